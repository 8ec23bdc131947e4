//! A start that came to nothing: its issue was never read, so that nothing is left of it.

use super::run::Run;
use crate::machine::Ending;
use anyhow::Result;

impl Run<'_> {
    /// Whether this start is the first of its issue here, and ended before the forge had given the issue: a mistyped
    /// number, most of the time.
    pub(super) fn came_to_nothing(&self, ending: &Ending) -> bool {
        let first = self.lines.iter().all(|l| l.run == self.source.run);
        let ours = self.made || !self.tree.is_linked() && self.others == 0;
        matches!(ending, Ending::Bailed(_)) && first && ours && !self.seen.issue
    }

    /// Removes the worktree that this start has made, with the journal in it; of a checkout, the journal alone.
    pub(super) fn leave_nothing(self) -> Result<()> {
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
