//! What a developer left, taken as a candidate: tampering undone, the pre-commit hook run, a tree saved.

use super::commits::Edit;
use super::record::Entry;
use super::run::Run;
use crate::cause::Bail;
use crate::event::Kind;
use crate::git::Hook;
use crate::machine::{Collected, Event, Feedback, FeedbackKind, Tree, Work};
use anyhow::Result;
use git2::Oid;
use serde_json::{Value, json};

impl Run<'_> {
    pub(super) fn collect(&mut self, work: &Work) -> Result<(Event, Value)> {
        self.settle_guard()?;
        self.restore_ledger()?;
        let findings = self.findings();
        let mut reasons = findings.clone();
        match self.tree.pre_commit(self.settings.hook_deadline())? {
            Hook::None | Hook::Passed => {}
            Hook::Refused { words } => {
                reasons.push(format!("the pre-commit hook refused the change:\n{words}"))
            }
            Hook::Cannot { words } => {
                return Err(Bail::needs_user(format!(
                    "The repository's pre-commit hook cannot run here, and veri never skips a hook: {words}"
                ))
                .into());
            }
            Hook::TimedOut => reasons.push(format!(
                "the pre-commit hook did not end within {} seconds (limits.hook_timeout)",
                self.settings.hook_deadline().as_secs()
            )),
        }
        let tree = self.take_candidate()?;
        self.tree.refs(self.issue_number).save(
            "candidate",
            tree,
            Some(self.tree.head()?),
            &format!(
                "candidate: {} of step {}\n",
                work.claim.as_str(),
                work.step.number
            ),
        )?;
        let tree = Tree(tree.to_string());
        let fields = json!({ "findings": findings });
        if reasons.is_empty() {
            return Ok((Event::Collected(Collected::Candidate(tree)), fields));
        }
        let feedback = Feedback {
            kind: FeedbackKind::Check,
            reasons,
        };
        Ok((
            Event::Collected(Collected::Refused { tree, feedback }),
            fields,
        ))
    }

    /// The tree of what is in the working tree, without what suites are known to leave behind.
    fn take_candidate(&mut self) -> Result<Oid> {
        let head = self.tree.head_tree()?;
        let tracked = |path: &[u8]| {
            crate::git::tree::read_blob(self.tree.git2(), head, path).is_ok_and(|b| b.is_some())
        };
        let debris: Vec<Vec<u8>> = self
            .ready()?
            .debris
            .iter()
            .filter(|p| !tracked(p))
            .cloned()
            .collect();
        self.tree.candidate(&debris)
    }

    /// Undoes what a leaf did to the repository itself. Journalled at once: done a second time, after a crash,
    /// there is nothing left to find.
    pub(super) fn settle_guard(&mut self) -> Result<()> {
        let Some(guard) = self.tree.open_guard()? else {
            return Ok(());
        };
        let settled = guard.settle(&self.tree, self.issue_number)?;
        for what in &settled.tampered {
            self.found(format!(
                "{what}: this is git's or the person's and was put back; leave it alone"
            ))?;
        }
        for said in &settled.noted {
            self.say(Kind::Check, said.clone())?;
        }
        Ok(())
    }

    /// Something that fails the check of the answer under way.
    fn found(&mut self, what: String) -> Result<()> {
        let fields = json!({ "finding": what });
        self.write(Entry::new(Kind::Check, Default::default(), fields).say(what))
    }

    /// What was found since the leaf was launched.
    fn findings(&self) -> Vec<String> {
        let since = self.lines.iter().rev();
        let mut found: Vec<String> = since
            .take_while(|l| l.text("intent") != "launch")
            .filter_map(|l| Some(l.fields.get("finding")?.as_str()?.to_owned()))
            .collect();
        found.reverse();
        found
    }

    /// The ledger is the conductor's while a leaf runs: a change of it is undone, and a finding.
    fn restore_ledger(&mut self) -> Result<()> {
        if self.ledger_edit()?.is_none() {
            return Ok(());
        }
        self.keep_ledger_of_leaf()?;
        self.found(format!(
            "{} was changed: only the conductor ticks steps; it was put back",
            self.ledger_path()
        ))?;
        let committed = self.ledger_in_force()?;
        self.write_ledger(committed.as_bytes())
    }

    /// Keeps a leaf's version of the ledger as an object, and says so.
    pub(super) fn keep_ledger_of_leaf(&mut self) -> Result<()> {
        if let Some(Edit::Bytes(bytes)) = self.ledger_edit()? {
            let blob = self.tree.git2().blob(&bytes)?;
            self.say(
                Kind::Check,
                format!("the leaf's version of the ledger is kept as object {blob}"),
            )?;
        }
        Ok(())
    }
}
