//! What a developer left, taken as a candidate: tampering undone, the pre-commit hook run, a tree saved.

use super::record::Entry;
use super::run::{JOURNAL_TOUCHED, Run};
use crate::cause::Bail;
use crate::event::{Kind, Line};
use crate::git::{CannotStage, Guard, Hook, Taken};
use crate::machine::{Collected, Event, Feedback, FeedbackKind, Stage, Tree, Work};
use crate::role::Role;
use anyhow::Result;
use git2::Oid;
use serde_json::{Value, json};

impl Run<'_> {
    pub(super) fn collect(&mut self, work: &Work) -> Result<(Event, Value)> {
        self.settle_guard()?;
        let findings = self.findings();
        let mut reasons = findings.clone();
        let ledger = self.ledger_file()?;
        let debris = self.untracked(&self.ready()?.debris)?;
        let large = self.tree.too_large(&debris)?;
        let fits = large.is_empty();
        reasons.extend(large);
        let hook = match fits {
            // No hook can look at what cannot be staged either.
            false => Hook::None,
            true => match self.tree.pre_commit(self.settings.hook_deadline()) {
                Err(error) if error.is::<CannotStage>() => {
                    reasons.push(format!("{error:#}"));
                    Hook::None
                }
                other => other?,
            },
        };
        // Kept where it says the same: it is put back here, and done again at the commit. A hook may run code of
        // the candidate, so anything else is nobody's to decide but a person's.
        if let Some(before) = ledger.filter(|_| !matches!(hook, Hook::None))
            && let Some(after) = self.ledger_file()?.filter(|after| *after != before)
        {
            self.write_ledger(&before)?;
            let steps = |bytes: &[u8]| self.parse_ledger(bytes).map(|l| l.steps().to_vec()).ok();
            if steps(&after).is_none() || steps(&after) != steps(&before) {
                return Err(Bail::needs_user(format!(
                    "{path} was changed while the pre-commit hook ran, so that its steps or ticks are others; it was \
                     put back. Exclude that path from the hook, then run again.",
                    path = self.ledger_path()
                ))
                .into());
            }
        }
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
        let taken = match fits.then(|| self.take_candidate()) {
            Some(Err(error)) if error.is::<CannotStage>() => {
                let words = format!("{error:#}");
                if !reasons.contains(&words) {
                    reasons.push(words);
                }
                None
            }
            other => other.transpose()?,
        };
        let taken = match taken {
            Some(taken) => taken,
            None => {
                let whole = self.tree.salvage()?;
                Taken {
                    candidate: whole,
                    whole,
                }
            }
        };
        let tree = taken.candidate;
        let refs = self.tree.refs(self.issue_number);
        let (claim, step) = (work.claim.as_str(), work.step.number);
        let message = format!("candidate: {claim} of step {step}\n");
        refs.save("candidate", tree, Some(self.tree.head()?), &message)?;
        if matches!(&work.stage, Stage::Collect { reopen, .. } if !reopen.is_empty()) {
            // The next candidates take that ref, and this code is gone on from when they are approved. The red
            // that it was written against is needed then too, to merge them.
            let red = refs.load("red")?.map(|red| red.commit);
            let message = format!("code of step {step} whose red was reopened\n");
            refs.save("reopened", tree, red, &message)?;
        }
        let tree = Tree(tree.to_string());
        let fields = json!({ "tampered": findings, "left": taken.whole.to_string() });
        if reasons.is_empty() {
            return Ok((Event::Collected(Collected::Candidate(tree)), fields));
        }
        let feedback = Feedback {
            kind: FeedbackKind::Refused,
            reasons,
        };
        Ok((
            Event::Collected(Collected::Refused { tree, feedback }),
            fields,
        ))
    }

    /// The journal lies within a developer's reach.
    pub(super) fn mend_journal(&mut self) -> Result<()> {
        let replaced = self.tree.regain()?;
        if self.journal.mend()? {
            self.found(JOURNAL_TOUCHED.to_owned())?;
        }
        if replaced {
            self.standing.made_again(self.tree.path());
            self.found(format!(
                "a link was put in the place of {}: what it leads to was left alone",
                self.tree.path().display()
            ))?;
        }
        Ok(())
    }

    /// Undoes what a leaf did to the repository itself and to the ledger. Journalled at once: done a second
    /// time, after a crash, there is nothing left to find.
    pub(super) fn settle_guard(&mut self) -> Result<()> {
        // First of all: nothing can be written to a journal that is spoilt.
        self.mend_journal()?;
        let owed = self.unsettled().map(|l| l.text("head").to_owned());
        let in_hand = self.guard.is_some();
        let guard = match self.guard.take() {
            Some(guard) => Some(guard),
            None => self
                .tree
                .open_guard()?
                .filter(|guard| guard.fits(&self.tree)),
        };
        let guard = match (guard, &owed) {
            (Some(guard), _) => guard,
            (None, None) => return self.tree.drop_guard(),
            (None, Some(head)) => self.guard_in_its_stead(head)?,
        };
        // First the ledger: once the guard is gone, a change of it would count as a person's. What was changed after
        // a suite's conductor was killed does.
        if in_hand || owed.is_some() {
            self.undo_ledger(&guard, owed.is_some())?;
        }
        // Found before it is undone, as the ledger is.
        let issue = self.issue_number;
        let settled = self.beside_the_tree(|tree, write| {
            guard.settle(tree, issue, &mut |what| {
                write(finding(format!(
                    "{what}: this is git's or the person's and was put back; leave it alone"
                )))
            })
        })?;
        if settled.shut {
            self.standing.locked_away(self.repo.git2().commondir());
        }
        for said in &settled.noted {
            self.say(Kind::Check, said.clone())?;
        }
        if owed.is_some() {
            let fields = json!({ "settled": true });
            self.write(Entry::new(Kind::Check, Default::default(), fields))?;
        }
        self.tree.drop_guard()
    }

    /// Runs something in which code of the candidate runs, outside a developer's own launch: what it does to git, to
    /// `.tdd/` and to the ledger is undone, and found. A person's change of the ledger in this time is, too: the two
    /// cannot be told apart.
    pub(super) fn guarded<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.guard.is_some() {
            return run(self);
        }
        self.guard = Some(match self.tree.is_linked() {
            true => self.tree.guard()?,
            // What a person does to their own checkout after a crash is theirs.
            false => self.tree.guard_in_memory()?,
        });
        let outcome = run(self);
        self.settle_guard()?;
        outcome
    }

    /// What was found since the newest effect began.
    pub(super) fn findings_of_effect(&self) -> Vec<String> {
        self.findings_since(|l| l.fields.contains_key("intent"))
    }

    /// A developer was let loose, and what was recorded before is gone or damaged: that is tampering, and what can
    /// be put back without it is.
    fn guard_in_its_stead(&mut self, head: &str) -> Result<Guard> {
        self.found(
            "what veri had recorded of git before the launch is gone or damaged: leave it alone. HEAD, index and \
             ledger are put back to the last commit; what else was done to git's configuration, hooks and \
             branches cannot be told"
                .to_owned(),
        )?;
        let commit = match Oid::from_str(head) {
            Ok(commit) if self.tree.git2().find_commit(commit).is_ok() => commit,
            _ => self.tree.head()?,
        };
        let committed = self.committed_ledger(commit)?;
        if let Some(now) = self
            .ledger_file()?
            .filter(|now| Some(now) != committed.as_ref())
        {
            let blob = self.tree.git2().blob(&now)?;
            let said = format!("the ledger as it was found is kept as object {blob}");
            self.say(Kind::Check, said)?;
        }
        if let Some(committed) = committed {
            self.write_ledger(&committed)?;
        }
        self.tree.guard_from(self.issue_number, commit)
    }

    /// The newest launch of a developer after which nothing was settled.
    pub(super) fn unsettled(&self) -> Option<&Line> {
        let newest = self.lines.iter().rev().find(|l| {
            l.fields.contains_key("settled")
                || l.text("intent") == "launch" && l.actor == Role::Developer.as_str()
        })?;
        (!newest.fields.contains_key("settled")).then_some(newest)
    }

    /// Something that fails the check of the answer under way.
    pub(super) fn found(&mut self, what: String) -> Result<()> {
        self.write(finding(what))
    }

    /// What was found since the leaf was launched.
    fn findings(&self) -> Vec<String> {
        self.findings_since(|l| l.text("intent") == "launch")
    }

    fn findings_since(&self, begins: impl Fn(&Line) -> bool) -> Vec<String> {
        let since = self.lines.iter().rev();
        let mut found: Vec<String> = since
            .take_while(|l| !begins(l))
            .filter_map(|l| Some(l.fields.get("finding")?.as_str()?.to_owned()))
            .collect();
        found.reverse();
        found.dedup();
        found
    }
}

fn finding(what: String) -> Entry {
    let fields = json!({ "finding": what });
    Entry::new(Kind::Check, Default::default(), fields).say(what)
}
