//! Commits and the ledger: the plan, the approved red, the finished step, and a person's own edits.

use super::leaves::oid;
use super::making::{Made, Wanted};
use super::record::{Entry, of_work};
use super::run::Run;
use crate::cause::{Bail, Cause};
use crate::event::Kind;
use crate::git::{Pushed, issue_branch_name, tree};
use crate::ledger::{Ledger, NewLedger};
use crate::machine::{Event, Stage, Step, Work};
use crate::plan::{Plan, PlanErrorKind};
use crate::role::Claim;
use anyhow::{Context, Result, anyhow};
use git2::Oid;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a push may take.
const PUSH_DEADLINE: Duration = Duration::from_secs(300);

impl Run<'_> {
    /// `.tdd/issue-<n>.md`.
    pub(super) fn ledger_path(&self) -> String {
        format!(".tdd/issue-{}.md", self.issue_number)
    }

    /// `issue-<n>.md`.
    pub(super) fn ledger_name(&self) -> String {
        format!("issue-{}.md", self.issue_number)
    }

    /// The ledger as it is committed.
    pub(super) fn ledger_in_force(&self) -> Result<Ledger> {
        self.ledger_at(self.tree.head()?)?
            .ok_or_else(|| anyhow!("the branch has no ledger {}", self.ledger_path()))
    }

    /// The ledger's object, for the verifier's specification.
    pub(super) fn ledger_blob(&self) -> Result<Oid> {
        Ok(self.tree.git2().blob(self.ledger_in_force()?.as_bytes())?)
    }

    pub(super) fn write_ledger(&self, bytes: &[u8]) -> Result<()> {
        let path = self.tree.path().join(self.ledger_path());
        let what = || format!("cannot write the ledger {}", path.display());
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            // Kept, and found when what a leaf did to `.tdd/` is undone.
            let aside = tempfile::Builder::new()
                .prefix("in-the-place-of-the-ledger-")
                .tempdir_in(self.tree.tdd())
                .with_context(what)?;
            std::fs::rename(&path, aside.keep().join("ledger")).with_context(what)?;
        }
        let mut new = tempfile::NamedTempFile::new_in(self.tree.tdd()).with_context(what)?;
        std::io::Write::write_all(&mut new, bytes).with_context(what)?;
        new.persist(&path).map_err(|e| e.error).with_context(what)?;
        Ok(())
    }

    pub(super) fn commit_plan(&mut self, plan: &Plan) -> Result<(Event, Value)> {
        // A person's plan has not been validated yet.
        self.validate(plan).map_err(|e| {
            let (cause, advice) = match e.kind {
                PlanErrorKind::NothingQuoted => (
                    Cause::NeedsUser,
                    "Give one of them a `quote` from the issue, or write what is wanted into the issue.",
                ),
                _ => (
                    Cause::PlanInvalid,
                    "`veri prompt schema plan` shows the form; mend the plan, then run again.",
                ),
            };
            Bail::new(cause, format!("The plan cannot be used: {e}. {advice}"))
        })?;
        let ready = self.ready()?;
        let issue_ref = self.forge.issue_ref(self.issue_number);
        let ledger = Ledger::create(&NewLedger {
            issue_number: self.issue_number,
            issue_ref: &issue_ref,
            issue_title: ready.text.title(),
            base_name: &ready.base.name,
            base_commit: &ready.base.commit.to_string(),
            test_command: &ready.test_command,
            plan,
        });
        // Preflight has found no ledger on the branch: one that was committed before a crash is not made again.
        let parent = self.tree.head()?;
        self.write_ledger(ledger.as_bytes())?;
        let steps = plan.steps.len();
        let subject = format!(
            "plan: issue {} in {steps} step{}",
            self.issue_number,
            if steps == 1 { "" } else { "s" }
        );
        let tree = tree::without_tdd(self.tree.git2(), tree::of_commit(self.tree.git2(), parent)?)?;
        let commit = match self.make_commit(&Wanted::of_ledger(
            tree,
            ledger.as_bytes(),
            &subject,
            parent,
        ))? {
            Made::Commit(commit) => commit,
            Made::Refused(words) => {
                return Err(Bail::needs_user(format!(
                    "A hook refused the commit of the ledger {}; exclude that path from it:\n{}",
                    self.ledger_path(),
                    words.join("\n")
                ))
                .into());
            }
        };
        self.crash_point("committed");
        let fields = json!({
            "commit": commit.to_string(),
            "steps": steps,
            "said": format!("the plan is committed: {steps} step{}", if steps == 1 { "" } else { "s" }),
            "issue_title": self.ready()?.text.title(),
        });
        Ok((Event::PlanCommitted, fields))
    }

    /// Commits a person's uncommitted edit of the ledger; says whether there was one.
    fn commit_hand_edit(&mut self) -> Result<bool> {
        let head = self.tree.head()?;
        let Some(bytes) = self.edit_since(head)? else {
            // Somebody's `git clean`, or a commit of ours that was cut off: the committed one is the truth.
            let committed = self.ledger_in_force()?;
            if self.ledger_file()?.as_deref() != Some(committed.as_bytes()) {
                self.write_ledger(committed.as_bytes())?;
            }
            return Ok(false);
        };
        self.parse_ledger(&bytes)?;
        let tree = self.tree.head_tree()?;
        if let Made::Refused(words) = self.make_commit(&Wanted::of_ledger(
            tree,
            &bytes,
            "ledger: edited by hand",
            head,
        ))? {
            return Err(Bail::needs_user(format!(
                "A hook refused the commit of the hand-edited ledger:\n{}",
                words.join("\n")
            ))
            .into());
        }
        Ok(true)
    }

    /// Commits a person's uncommitted edit of the ledger, and reads it.
    pub(super) fn read_ledger(&mut self) -> Result<(Event, Value)> {
        let work = self.state.work.clone();
        let committed = match &work {
            Some(work) if work.stage == Stage::Commit => self.committed_already(work)?,
            _ => None,
        };
        let head_tree = self.tree.head_tree()?.to_string();
        let moved = committed.is_none() && self.is_moved(&head_tree);
        let mut fields = json!({ "head_tree": head_tree });
        if let (true, Some(work)) = (moved, &work) {
            let words = "somebody has changed the branch since: unfinished work is begun again on top of it";
            self.say(Kind::Plan, words)?;
            self.put_work_aside(work)?;
        }
        if let (Some(commit), Some(work)) = (committed, &work) {
            let fields = json!({ "what": "step", "commit": commit.to_string() });
            let entry = Entry::new(Kind::Commit, of_work(work), fields);
            self.write(entry.say("found the commit that was made before the interruption"))?;
            let parent = self.tree.git2().find_commit(commit)?.parent_id(0)?;
            let edit = self.edit_since(parent)?;
            self.after_commit(work, edit);
        }
        if self.commit_hand_edit()? {
            let before = fields.get("said").and_then(Value::as_str);
            let before = before.map_or(String::new(), |b| format!("{b}; "));
            fields["said"] = json!(format!(
                "{before}the ledger was edited by hand; it is committed"
            ));
            fields["by_hand"] = json!(true);
        }
        let ledger = self.ledger_in_force()?;
        let steps = ledger
            .steps()
            .iter()
            .map(|s| Step {
                number: s.number,
                title: s.title.clone(),
                criteria: s.criteria.clone(),
                ticked: s.ticked,
                no_test: s.no_test.clone(),
            })
            .collect();
        let event = Event::LedgerRead {
            steps,
            red: self.kept_red()?,
            committed: committed.map(|c| c.to_string()),
            moved,
        };
        Ok((event, fields))
    }

    /// Commits the approved candidate; the tick is in the commit that earns it.
    pub(super) fn commit(&mut self, work: &Work) -> Result<(Event, Value)> {
        let candidate = oid(work.candidate.as_ref())?;
        let subject = match work.claim {
            Claim::Refactor => format!("refactor: {}", work.step.title),
            _ => work.step.title.clone(),
        };
        let phase = work.claim.phase().as_str();
        // A commit of this claim that was made before a crash is found when the ledger is read.
        let parent = self.tree.head()?;
        if self.known_head_tree() != Some(&self.tree.head_tree()?.to_string()) {
            return Err(Bail::new(
                Cause::GitFailed,
                format!(
                    "Somebody committed to {} while a step was under way, and committing the step on top would undo \
                     that. Run again: the new commit is taken in, and the step is begun again from it.",
                    issue_branch_name(self.issue_number)
                ),
            )
            .into());
        }
        if let Some(reasons) = self.not_to_be_committed(work, candidate)? {
            return Ok((Event::CommitRefused { reasons }, Value::Null));
        }
        let before = self.ledger_in_force()?;
        let edit = self.edit_since(parent)?;
        if let Some(edit) = &edit {
            self.keep_edit(edit)?;
        }
        let ledger = match work.claim {
            Claim::Refactor => before,
            _ => before.tick(work.step.number)?,
        };
        let wanted = Wanted {
            tree: candidate,
            ledger: ledger.as_bytes(),
            subject: &subject,
            phase,
            step: Some(work.step.number),
            parent,
        };
        let made = self.make_checked_commit(work, wanted);
        let commit = match made {
            Ok(Made::Commit(commit)) => commit,
            Ok(Made::Refused(reasons)) => {
                self.bring_edit_back()?;
                return Ok((Event::CommitRefused { reasons }, Value::Null));
            }
            // What failed after the commit was made does not undo it.
            Err(error) => match self.committed_already(work) {
                Ok(Some(commit)) => {
                    self.say(Kind::Commit, format!("after the commit: {error:#}"))?;
                    commit
                }
                _ => {
                    // What cannot be brought back now is by the next start.
                    drop(self.bring_edit_back());
                    return Err(error);
                }
            },
        };
        self.crash_point("committed");
        self.after_commit(work, edit);
        let commit = commit.to_string();
        Ok((
            Event::Committed { commit },
            json!({ "head_tree": self.tree.head_tree()?.to_string() }),
        ))
    }

    /// What was kept for a commit is not needed any more. Best effort: the commit stands.
    fn after_commit(&mut self, work: &Work, edit: Option<Vec<u8>>) {
        if let Err(error) = self.tidy_up(work, edit) {
            drop(self.say(Kind::Commit, format!("after the commit: {error:#}")));
        }
    }

    fn tidy_up(&mut self, work: &Work, edit: Option<Vec<u8>>) -> Result<()> {
        let refs = self.tree.refs(self.issue_number);
        refs.delete("candidate")?;
        if work.claim != Claim::Refactor {
            refs.delete("red")?;
            refs.delete("reopened")?;
        }
        self.restore_after(work, edit)
    }

    /// Drops an unfinished refactor: what there is of it is kept aside.
    pub(super) fn drop_refactor(&mut self, work: &Work) -> Result<(Event, Value)> {
        self.settle_guard()?;
        let now = self.tree.salvage()?;
        self.make_way(now)?;
        let refused = match &work.from {
            crate::machine::From::Tree(tree) => oid(Some(tree))?,
            _ => now,
        };
        for tree in [refused, now] {
            self.tree
                .discard(self.issue_number, tree, "a refactor that was dropped")?;
        }
        self.restore(None)?;
        Ok((Event::Dropped, Value::Null))
    }

    /// Pushes what is finished, where there is a remote; never in the way of the run.
    pub(super) fn push_if_wanted(&mut self) {
        if self.settings.config.push.as_deref() == Some("end") && self.state.ending().is_none() {
            return;
        }
        match self.push() {
            Ok(None) => {}
            Ok(Some(said)) => drop(self.say(Kind::Commit, said)),
            Err(error) => drop(self.say(Kind::Commit, format!("not pushed yet: {error:#}"))),
        }
    }

    /// Pushes the issue branch; None when there is nothing to say.
    pub(super) fn push(&mut self) -> Result<Option<String>> {
        let name = issue_branch_name(self.issue_number);
        if !self.repo.has_remote(self.settings.remote())
            || self.tree.branch().as_deref() != Some(&name)
        {
            return Ok(None);
        }
        let refspec = format!("refs/heads/{name}:refs/heads/{name}");
        match self
            .tree
            .push(self.settings.remote(), &refspec, PUSH_DEADLINE)?
        {
            Pushed::Done => Ok(Some(format!("pushed {name} to {}", self.settings.remote()))),
            Pushed::UpToDate => Ok(None),
            Pushed::Rejected { words } => Err(Bail::needs_user(format!(
                "The push of {name} to {} was refused; it is never forced:\n{words}",
                self.settings.remote()
            ))
            .into()),
            Pushed::Unreachable { words } => Err(Bail::new(
                Cause::GitFailed,
                format!(
                    "{name} could not be pushed to {}:\n{words}",
                    self.settings.remote()
                ),
            )
            .into()),
        }
    }
}
