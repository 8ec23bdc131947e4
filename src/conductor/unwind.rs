//! The end of a run that cannot or shall not go on: unfinished work kept aside, the working tree put back.

use super::run::Run;
use super::stopping::stop;
use crate::event::Kind;
use crate::machine::{Ending, Event};
use anyhow::Result;

impl Run<'_> {
    /// Best effort: what fails here is said and never changes how the run ends.
    pub(super) fn unwind(&mut self, ending: &Ending) -> Event {
        match self.put_back(ending) {
            Ok(Some(refname)) => {
                let entry = self.kept_aside(Kind::Stop, &refname);
                drop(self.write(entry));
            }
            Ok(None) => {}
            Err(error) => {
                let said = format!("the working tree could not be put back: {error:#}");
                self.last_words.push(said.clone());
                drop(self.say(Kind::Bail, said));
            }
        }
        if matches!(ending, Ending::Stopped(_)) {
            stop::clear(&self.tree.tdd());
        }
        Event::Unwound
    }

    fn put_back(&mut self, ending: &Ending) -> Result<Option<String>> {
        self.settle_guard()?;
        let now = self.tree.salvage()?;
        if self.must_leave_alone(now)? {
            return Ok(None);
        }
        let why = match ending {
            Ending::Bailed(bail) => format!("unfinished when the run bailed ({})", bail.cause),
            Ending::Stopped(mode) => format!("unfinished when the run was stopped ({mode})"),
            Ending::Done { .. } | Ending::Planned => "unfinished at the end of the run".to_owned(),
        };
        let kept = match ending {
            // What the next start goes on from is no discarded work.
            Ending::Stopped(_) => {
                let from = self.state.work.as_ref().map(|w| w.from.clone());
                let start = from.map(|from| self.start_tree(&from)).transpose()?;
                self.set_aside(now, start.flatten(), &why)?
            }
            _ => self.tree.discard(self.issue_number, now, &why)?,
        };
        self.restore(None)?;
        Ok(kept)
    }
}
