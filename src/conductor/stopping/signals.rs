//! The terminal's signals: the first Ctrl-C or TERM asks for at-leaf, the second for now.
//!
//! They are counted, and looked at where stop requests are looked at: before each effect, and all the while a leaf, a
//! suite or a short tool call runs. HUP and a vanished terminal are ignored: a run goes on overnight without the person
//! who started it.

use crate::role::StopMode;
use crate::tool;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::cell::RefCell;
use std::rc::Rc;

/// What the first signal does, and how to press on.
pub(in crate::conductor) const ANSWER: &str =
    "the agent or suite that runs may finish; press Ctrl-C again to end it now";

/// What has been asked for by signals so far.
#[derive(Debug)]
pub(in crate::conductor) struct Asked {
    heard: Rc<RefCell<Heard>>,
    _listening: Option<tool::Listening>,
}

#[derive(Debug)]
struct Heard {
    signals: Option<Signals>,
    count: u32,
    /// Says something to the person at once.
    answer: fn(&str),
    /// Whether the first was answered already, and whether that was during a call.
    answered: bool,
    aside: bool,
    /// Whether a call may be ended now; else what is under way is to be finished.
    may_end: bool,
    /// For how many signals calls were ended.
    acted: u32,
    /// Whether a call was ended since that was asked last.
    ended: bool,
}

impl Asked {
    /// Begins to listen. Where that is not possible the signals keep their defaults.
    pub(in crate::conductor) fn listen(answer: fn(&str)) -> Asked {
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).ok();
        let asked = Asked::of(signals, answer);
        let heard = Rc::clone(&asked.heard);
        // Nothing that holds it makes a call.
        let ear = move || {
            heard
                .try_borrow_mut()
                .is_ok_and(|mut heard| heard.in_call())
        };
        Asked {
            _listening: Some(tool::listen(ear)),
            ..asked
        }
    }

    /// Listens to nothing: a test's own signals are its runner's.
    #[cfg(test)]
    pub(in crate::conductor) fn nothing() -> Asked {
        Asked::of(None, |_| ())
    }

    fn of(signals: Option<Signals>, answer: fn(&str)) -> Asked {
        let heard = Heard {
            signals,
            count: 0,
            answer,
            answered: false,
            aside: false,
            may_end: false,
            acted: 0,
            ended: false,
        };
        Asked {
            heard: Rc::new(RefCell::new(heard)),
            _listening: None,
        }
    }

    /// The strongest mode that was asked for by now.
    pub(in crate::conductor) fn mode(&self) -> Option<StopMode> {
        let mut heard = self.heard.borrow_mut();
        heard.take();
        // Whoever asks here obeys, too.
        heard.acted = heard.count;
        match heard.count {
            0 => None,
            1 => Some(StopMode::AtLeaf),
            _ => Some(StopMode::Now),
        }
    }

    /// Whether it is to be answered now: once. Where a call ran, the person was told aside, and it is only to be
    /// written down.
    pub(in crate::conductor) fn to_answer(&self) -> Option<Told> {
        let mut heard = self.heard.borrow_mut();
        let aside = std::mem::take(&mut heard.aside);
        match (std::mem::replace(&mut heard.answered, true), aside) {
            (_, true) => Some(Told::Aside),
            (false, _) => Some(Told::NotYet),
            (true, false) => None,
        }
    }

    /// Says whether the second signal may end a call from now on; what was ended before is forgotten.
    pub(in crate::conductor) fn may_end_calls(&self, may: bool) {
        let mut heard = self.heard.borrow_mut();
        (heard.may_end, heard.ended) = (may, false);
    }

    /// Whether a call was ended since: what came of it counts for nothing.
    pub(in crate::conductor) fn ended_a_call(&self) -> bool {
        self.heard.borrow().ended
    }
}

/// Whether the person has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::conductor) enum Told {
    /// On standard error, while a call ran.
    Aside,
    /// Not at all.
    NotYet,
}

impl Heard {
    fn take(&mut self) {
        if let Some(signals) = &mut self.signals {
            self.count += signals.pending().filter(|s| *s != SIGHUP).count() as u32;
        }
    }

    /// A look while a call runs: whether to end it.
    fn in_call(&mut self) -> bool {
        self.take();
        if self.count > 0 && !std::mem::replace(&mut self.answered, true) {
            self.aside = true;
            (self.answer)(ANSWER);
        }
        let end = self.may_end && self.count > self.acted.max(1);
        if end {
            // Once for each: what puts things in order afterwards makes calls, too.
            self.acted = self.count;
            self.ended = true;
        }
        end
    }
}
