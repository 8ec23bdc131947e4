//! Heeding stops: what is asked for by file and by signal, told to the machine and answered.

use super::signals::{ANSWER, Told};
use super::stop;
use crate::conductor::record::Entry;
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::leaf::KillWhy;
use crate::machine::{At, Event};
use crate::role::StopMode;
use anyhow::Result;
use serde_json::{Value, json};

impl Run<'_> {
    /// The stop that is asked for by now, by file or by signal. What was asked for before and has been answered is not
    /// taken back by a weaker request.
    pub(in crate::conductor) fn stop_mode(&mut self) -> Option<StopMode> {
        let asked = stop::look(&self.tree.tdd()).mode();
        asked.max(self.signals.mode()).max(self.told_stop)
    }

    /// Tells the machine of a stop that is newly asked for, and the person how it is understood.
    pub(in crate::conductor) fn look_for_stops(&mut self) -> Result<()> {
        let request = stop::look(&self.tree.tdd());
        let signalled = self.signals.mode();
        let Some(mode) = request.mode().max(signalled) else {
            return Ok(());
        };
        self.answer_signal(signalled);
        if self.told_stop.is_some_and(|told| told >= mode) {
            return Ok(());
        }
        let publishing = matches!(self.state.at, At::Publishing);
        // A developer may be at work beside the journal: nothing of its making is built upon.
        self.mend_journal()?;
        self.feed(Event::StopAsked { mode }, None, Value::Null)?;
        // From here on it is known; had it failed, it would be asked for again at the next look.
        let first = self.told_stop.replace(mode).is_none();
        if let (true, stop::Request::Doubtful(why)) = (first, request) {
            self.say(
                Kind::Stop,
                format!("a stop request is there but no mode ({why}); it counts as at-ledger"),
            )?;
        }
        if publishing {
            self.say(
                Kind::Stop,
                "publishing has begun: the run is finished first",
            )?;
        }
        Ok(())
    }

    /// Says what the first Ctrl-C does and how to press on: at once, whether or not it can be journalled.
    fn answer_signal(&mut self, signalled: Option<StopMode>) {
        if signalled.is_none() {
            return;
        }
        let Some(told) = self.signals.to_answer() else {
            return;
        };
        let fields = match told {
            Told::Aside => json!({ "told": true }),
            Told::NotYet => Value::Null,
        };
        let entry = || Entry::new(Kind::Stop, Default::default(), fields.clone()).say(ANSWER);
        if self.write(entry()).is_err()
            && let Some(mut line) = self.lines.last().cloned()
        {
            line.event = Kind::Stop;
            line.fields = entry().fields;
            (self.watch)(&line);
        }
    }

    /// A look at what is asked for while a leaf or suite runs: whether to end it.
    pub(in crate::conductor) fn glance(&mut self) -> Option<KillWhy> {
        // What cannot be journalled now is tried again at the next look, and fails at the next effect.
        drop(self.look_for_stops());
        let publishing = matches!(self.state.at, At::Publishing);
        (!publishing && self.stop_mode() == Some(StopMode::Now)).then_some(KillWhy::Stop)
    }
}
