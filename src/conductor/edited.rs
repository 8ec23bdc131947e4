//! The ledger's file in the working tree: whose change of it is what.
//!
//! A developer may have changed it as long as its guard is open: that is undone. Any other difference from the
//! committed ledger is a person's edit, which nothing here may lose; it is read between two steps.

use super::record::Entry;
use super::run::Run;
use crate::event::{Kind, Line};
use crate::git::{Guard, tree};
use crate::ledger::{self, Ledger};
use crate::machine::{Stage, Work};
use crate::untrusted::whole;
use anyhow::{Context, Result};
use git2::Oid;
use serde_json::json;
use std::io::ErrorKind;

impl Run<'_> {
    /// Undoes a leaf's change of the ledger, a person's edit from before its launch kept. While something else
    /// runs, notes that a person writes into it change nothing that counts, and stay.
    pub(super) fn undo_ledger(&mut self, guard: &Guard, developer: bool) -> Result<()> {
        let path = self.ledger_path();
        let (before, now) = (guard.ledger(&self.ledger_name()), self.ledger_file()?);
        let Some(before) = before.filter(|before| Some(before) != now.as_ref()) else {
            return Ok(());
        };
        if !developer
            && now
                .as_deref()
                .is_some_and(|now| says_the_same(&before, now))
        {
            return Ok(());
        }
        if let Some(bytes) = now {
            let blob = self.tree.git2().blob(&bytes)?;
            self.say(
                Kind::Check,
                format!("the leaf's version of the ledger is kept as object {blob}"),
            )?;
        }
        // Found before it is undone: a crash in between must not hide it.
        self.found(format!(
            "{path} was changed: only the conductor ticks steps; it was put back"
        ))?;
        self.write_ledger(&before)
    }

    /// Puts the working tree back to the last commit and lays a tree on top; a person's edit of the ledger stays.
    pub(super) fn restore(&self, tree: Option<Oid>) -> Result<()> {
        let Some(edit) = self.edit_since(self.tree.head()?)? else {
            return self.tree.restore(tree);
        };
        // It is in its file before, after and meanwhile: nothing else knows of it.
        if self.ledger_file()?.as_ref() != Some(&edit) {
            self.write_ledger(&edit)?;
        }
        self.tree.restore_beside(tree, &self.ledger_name())
    }

    /// The same after the commit of a step whose ledger was `before`: the edit gets the tick, too, unless it
    /// changed that very step.
    pub(super) fn restore_after(&mut self, work: &Work, before: Option<Vec<u8>>) -> Result<()> {
        let committed = self.committed_ledger(self.tree.head()?)?;
        let now = self.tree.salvage()?;
        if !self.must_leave_alone(now)? {
            self.tree.restore(None)?;
        }
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
        if let Some(kept) = self.kept_edit() {
            return Ok(Some(kept));
        }
        let now = self.ledger_file()?;
        let now = now.map(|bytes| self.without_own_tick(bytes, &committed));
        let Some(edited) = now.filter(|bytes| *bytes != committed) else {
            return Ok(None);
        };
        let blob = self.tree.blob_of(&self.ledger_path(), &edited)?;
        let same = blob == Oid::hash_object(git2::ObjectType::Blob, &committed)?;
        Ok((!same).then_some(edited))
    }

    /// A commit writes the ledger: a person's edit is kept before, and found again after a crash.
    pub(super) fn keep_edit(&mut self, edit: &[u8]) -> Result<()> {
        let blob = self.tree.git2().blob(edit)?.to_string();
        let entry = Entry::new(Kind::Commit, Default::default(), json!({ "edit": blob }));
        self.write(entry)
    }

    /// Brings a kept edit back into its file, when the commit came to nothing or was cut off. What a person has written
    /// there since is newer, and stays.
    pub(super) fn bring_edit_back(&mut self) -> Result<()> {
        let Some(edit) = self.kept_edit() else {
            return Ok(());
        };
        let committed = self.committed_ledger(self.tree.head()?)?;
        let is_ours = |now: Vec<u8>| {
            let committed = committed.as_deref().unwrap_or_default();
            self.without_own_tick(now, committed) == committed
        };
        let now = self.ledger_file()?;
        if now.clone().is_none_or(is_ours) {
            self.write_ledger(&edit)?;
        } else if now.as_ref() != Some(&edit) {
            let blob = self.tree.git2().blob(&edit)?;
            self.say(
                Kind::Commit,
                format!(
                    "the ledger was edited once more; the edit before that is kept as object {blob}"
                ),
            )?;
        }
        let fields = json!({ "edit_back": true });
        self.write(Entry::new(Kind::Commit, Default::default(), fields))
    }

    /// The edit that was kept for the commit that is under way, and is not in its file again.
    fn kept_edit(&self) -> Option<Vec<u8>> {
        let is_over = |l: &Line| {
            let input = l.fields.get("input");
            l.fields.contains_key("edit_back")
                || input.is_some_and(|i| {
                    ["committed", "commit-refused", "ledger-read"]
                        .iter()
                        .any(|event| i.get(event).is_some())
                })
        };
        let mut since = self.lines.iter().rev().take_while(|l| !is_over(l));
        let name = since.find_map(|l| l.fields.get("edit")?.as_str())?;
        let blob = self.tree.git2().find_blob(Oid::from_str(name).ok()?).ok()?;
        Some(blob.content().to_vec())
    }

    /// The tick that a commit of ours has written into the file, and nowhere else when it was cut off, is no
    /// edit.
    pub(super) fn without_own_tick(&self, bytes: Vec<u8>, committed: &[u8]) -> Vec<u8> {
        let work = self.state.work.as_ref();
        let Some(work) = work.filter(|w| w.stage == Stage::Commit) else {
            return bytes;
        };
        let number = work.step.number;
        let open =
            Ledger::parse(committed).is_ok_and(|l| l.step(number).is_some_and(|s| !s.ticked));
        let edited = Ledger::parse(&bytes).ok().filter(|_| open);
        match edited.and_then(|edited| edited.untick(number).ok()) {
            Some(edited) => edited.as_bytes().to_vec(),
            None => bytes,
        }
    }

    pub(super) fn committed_ledger(&self, commit: Oid) -> Result<Option<Vec<u8>>> {
        let repo = self.tree.git2();
        let whole = repo.find_commit(commit)?.tree_id();
        tree::read_blob(repo, whole, self.ledger_path().as_bytes())
    }

    /// The ledger in the working tree; None where there is none, or something else in its place.
    pub(super) fn ledger_file(&self) -> Result<Option<Vec<u8>>> {
        let path = self.tree.path().join(self.ledger_path());
        match whole(&path, ledger::LARGEST) {
            Ok(bytes) => Ok(bytes),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}

/// Whether two ledgers ask for the same, notes aside: every step, tick, criterion, and the commands and commits named.
fn says_the_same(before: &[u8], now: &[u8]) -> bool {
    match (Ledger::parse(before), Ledger::parse(now)) {
        (Ok(before), Ok(now)) => {
            before.steps() == now.steps()
                && before.criteria() == now.criteria()
                && (before.tests(), before.base_name()) == (now.tests(), now.base_name())
        }
        _ => false,
    }
}
