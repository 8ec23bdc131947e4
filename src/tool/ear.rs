//! Hearing, while a call runs, that it shall end; and how long it has run.

use std::cell::RefCell;
use std::time::{Duration, Instant};

thread_local! {
    /// Asked while a call of this thread runs.
    static EAR: RefCell<Option<Box<dyn FnMut() -> bool>>> = const { RefCell::new(None) };
}

/// As long as this lives, calls of this thread listen.
#[derive(Debug)]
#[must_use]
pub struct Listening(());

/// Has every call of this thread ask `ear` about every 20 ms whether it shall end, for as long as what is given back
/// lives. A call that is to end gets TERM, upon which git removes its locks, and after a grace KILL; how it ended is told
/// as of any other signal. `ear` itself makes no call.
pub fn listen(ear: impl FnMut() -> bool + 'static) -> Listening {
    EAR.with(|held| held.replace(Some(Box::new(ear))));
    Listening(())
}

impl Drop for Listening {
    fn drop(&mut self) {
        // At the end of the thread there may be none any more.
        let _ = EAR.try_with(|held| held.take());
    }
}

/// Whether the call that runs shall end.
pub(super) fn asked_to_end() -> bool {
    EAR.with(|held| match held.try_borrow_mut() {
        Ok(mut ear) => ear.as_mut().is_some_and(|ear| ear()),
        Err(_) => false,
    })
}

/// The longest that passes between two looks at a call. What is beyond it passed while this program itself was stopped
/// (Ctrl-Z, a suspended machine): the call need not have run then, or could not be attended to.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// How long something has run, without the time in which this program did not.
#[derive(Debug)]
pub(super) struct Spent {
    spent: Duration,
    looked: Instant,
}

impl Spent {
    pub(super) fn from_now() -> Spent {
        Spent {
            spent: Duration::ZERO,
            looked: Instant::now(),
        }
    }

    /// By now. To be asked all the while.
    pub(super) fn by_now(&mut self) -> Duration {
        self.by(Instant::now())
    }

    fn by(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.looked);
        self.looked = now;
        self.spent += passed.min(BETWEEN_LOOKS);
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Tool, ToolEnd};

    #[test]
    fn the_time_in_which_this_program_was_stopped_is_not_the_calls() {
        let mut spent = Spent::from_now();
        let mut now = spent.looked;
        for _ in 0..100 {
            now += Duration::from_millis(20);
            spent.by(now);
        }
        assert_eq!(spent.spent, Duration::from_secs(2));
        now += Duration::from_secs(3600);
        assert_eq!(spent.by(now), Duration::from_secs(3));
    }

    #[test]
    fn a_call_that_is_to_end_may_put_itself_in_order_and_one_that_will_not_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        for (script, end) in [
            (
                "trap 'rm lock; exit 3' TERM; echo >ready; while :; do sleep 0.01; done",
                ToolEnd::Code(3),
            ),
            (
                "trap '' TERM; echo >ready; while :; do sleep 0.01; done",
                ToolEnd::Signal(9),
            ),
            (
                "trap 'rm lock; exit 4' TERM; exec >&- 2>&-; echo >ready; while :; do sleep 0.01; done",
                ToolEnd::Code(4),
            ),
        ] {
            std::fs::write(dir.path().join("lock"), "").unwrap();
            let ready = dir.path().join("ready");
            let _ = std::fs::remove_file(&ready);
            let mut asked = false;
            let listening = listen(move || ready.exists() && !std::mem::replace(&mut asked, true));
            let out = Tool::new("sh")
                .args(["-c", script])
                .dir(dir.path())
                .run()
                .unwrap();
            drop(listening);
            assert_eq!(out.end, end, "{script}");
            assert_eq!(dir.path().join("lock").exists(), end == ToolEnd::Signal(9));
        }
        assert!(Tool::new("true").run().unwrap().success());
    }
}
