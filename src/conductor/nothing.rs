//! The last of a start; and of one that came to nothing, since its issue was never read, nothing is left.

use super::Ended;
use super::run::Run;
use crate::machine::Ending;
use anyhow::Result;

impl Run<'_> {
    /// Lets go of everything that the run holds.
    pub(super) fn leave(mut self, ending: &Ending, exit: u8) -> Ended {
        let mut last_words = std::mem::take(&mut self.last_words);
        if self.came_to_nothing(ending)
            && let Err(error) = self.leave_nothing()
        {
            let said = format!("what this start has made could not be removed: {error:#}");
            last_words.insert(0, said);
        }
        Ended { exit, last_words }
    }

    /// Whether this start is the first of its issue here, and ended before the forge had given the issue: a mistyped
    /// number, most of the time.
    fn came_to_nothing(&self, ending: &Ending) -> bool {
        let first = self.lines.iter().all(|l| l.run == self.source.run);
        let ours = match self.tree.is_linked() {
            true => self.made,
            false => self.others == 0,
        };
        matches!(ending, Ending::Bailed(_)) && first && ours && !self.seen.issue
    }

    /// Removes the worktree that this start has made, with the journal in it; of a checkout, the journal alone.
    fn leave_nothing(self) -> Result<()> {
        let files = [
            self.tree.journal_copy(),
            self.tree.tdd().join("events.jsonl"),
        ];
        drop(self.journal);
        for file in files {
            match std::fs::remove_file(file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
        }
        match self.tree.is_linked() {
            true => self.tree.remove(),
            false => Ok(()),
        }
    }
}
