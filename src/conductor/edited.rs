//! The ledger's file in the working tree: whose change of it is what.
//!
//! A developer may have changed it as long as its guard is open: that is undone. Any other difference from the
//! committed ledger is a person's edit, which nothing here may lose; it is read between two steps.

use super::run::Run;
use crate::event::Kind;
use crate::git::{Guard, tree};
use crate::ledger::Ledger;
use crate::machine::Work;
use anyhow::{Context, Result};
use git2::Oid;
use std::io::ErrorKind;

impl Run<'_> {
    /// Undoes a leaf's change of the ledger, a person's edit from before its launch kept. Gives the words for
    /// the developer.
    pub(super) fn undo_ledger(&mut self, guard: &Guard) -> Result<Option<String>> {
        let path = self.ledger_path();
        let name = path.rsplit('/').next().unwrap_or_default();
        let (before, now) = (guard.ledger(name), self.ledger_file()?);
        let Some(before) = before.filter(|before| Some(before) != now.as_ref()) else {
            return Ok(None);
        };
        if let Some(bytes) = now {
            let blob = self.tree.git2().blob(&bytes)?;
            self.say(
                Kind::Check,
                format!("the leaf's version of the ledger is kept as object {blob}"),
            )?;
        }
        self.write_ledger(&before)?;
        Ok(Some(format!(
            "{path} was changed: only the conductor ticks steps; it was put back"
        )))
    }

    /// Puts the working tree back to the last commit and lays a tree on top; a person's edit of the ledger stays.
    pub(super) fn restore(&self, tree: Option<Oid>) -> Result<()> {
        let edit = self.edit_since(self.tree.head()?)?;
        self.tree.restore(tree)?;
        match edit {
            Some(bytes) => self.write_ledger(&bytes),
            None => Ok(()),
        }
    }

    /// The same after the commit of a step whose ledger was `before`: the edit gets the tick, too, unless it
    /// changed that very step.
    pub(super) fn restore_after(&self, work: &Work, before: Option<Vec<u8>>) -> Result<()> {
        let committed = self.committed_ledger(self.tree.head()?)?;
        self.tree.restore(None)?;
        let Some(edit) = before.filter(|edit| Some(edit) != committed.as_ref()) else {
            return Ok(());
        };
        let ticked = Ledger::parse(&edit).ok().and_then(|ledger| {
            let step = ledger.step(work.step.number)?;
            let same = step.title == work.step.title && step.criteria == work.step.criteria;
            (same && !step.ticked).then(|| ledger.tick(work.step.number).ok())?
        });
        self.write_ledger(ticked.as_ref().map_or(&edit, |ledger| ledger.as_bytes()))
    }

    /// What a person has made of a commit's ledger in the working tree; None when it is as committed, missing,
    /// or there is none in the commit.
    pub(super) fn edit_since(&self, commit: Oid) -> Result<Option<Vec<u8>>> {
        let Some(committed) = self.committed_ledger(commit)? else {
            return Ok(None);
        };
        Ok(self.ledger_file()?.filter(|bytes| *bytes != committed))
    }

    fn committed_ledger(&self, commit: Oid) -> Result<Option<Vec<u8>>> {
        let repo = self.tree.git2();
        let whole = repo.find_commit(commit)?.tree_id();
        tree::read_blob(repo, whole, self.ledger_path().as_bytes())
    }

    fn ledger_file(&self) -> Result<Option<Vec<u8>>> {
        let path = self.tree.path().join(self.ledger_path());
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}
