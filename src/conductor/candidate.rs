//! What a developer left, taken as a candidate: tampering undone, the pre-commit hook run, a tree saved.

use super::record::Entry;
use super::run::Run;
use crate::cause::Bail;
use crate::event::Kind;
use crate::git::{CannotStage, Hook};
use crate::machine::{Collected, Event, Feedback, FeedbackKind, Tree, Work};
use anyhow::{Context, Result};
use git2::Oid;
use serde_json::{Value, json};

impl Run<'_> {
    pub(super) fn collect(&mut self, work: &Work) -> Result<(Event, Value)> {
        self.settle_guard()?;
        let findings = self.findings();
        let mut reasons = findings.clone();
        let hook = match self.tree.pre_commit(self.settings.hook_deadline()) {
            Err(error) if error.is::<CannotStage>() => {
                // No hook can look at it either.
                reasons.push(format!("{error:#}"));
                Hook::None
            }
            other => other?,
        };
        match hook {
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
        let tree = match self.take_candidate() {
            Err(error) if error.is::<CannotStage>() => {
                let words = format!("{error:#}");
                if !reasons.contains(&words) {
                    reasons.push(words);
                }
                self.tree.salvage()?
            }
            other => other?,
        };
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
        let left = self.tree.salvage()?.to_string();
        let fields = json!({ "findings": findings, "left": left });
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

    /// Undoes what a leaf did to the repository itself and to the ledger. Journalled at once: done a second
    /// time, after a crash, there is nothing left to find.
    pub(super) fn settle_guard(&mut self) -> Result<()> {
        if let Some(guard) = self.tree.open_guard()? {
            // First the ledger: once the guard is gone, a change of it would count as a person's.
            self.undo_ledger(&guard)?;
            let settled = guard.settle(&self.tree, self.issue_number)?;
            for what in &settled.tampered {
                self.found(format!(
                    "{what}: this is git's or the person's and was put back; leave it alone"
                ))?;
            }
            for said in &settled.noted {
                self.say(Kind::Check, said.clone())?;
            }
        }
        let copy = self.tree.journal_copy();
        match std::fs::remove_file(&copy) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(e).with_context(|| format!("cannot remove {}", copy.display()))
            }
            _ => Ok(()),
        }
    }

    /// Something that fails the check of the answer under way.
    pub(super) fn found(&mut self, what: String) -> Result<()> {
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
        found.dedup();
        found
    }
}
