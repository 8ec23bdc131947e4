//! What an earlier start left behind, settled before this one goes on: locks of dead git calls, an open
//! launch, a working tree in a leaf's hands, lines that were owed, an end that was not told.

use super::dead_locks::DeadLocks;
use super::record::{self, Entry, is_input};
use super::run::{JOURNAL_TOUCHED, Run};
use crate::cause::{Bail, Cause};
use crate::event::{Kind, Line};
use crate::journal::Vouched;
use crate::leaf::{self, End, KillWhy, LaunchId, Records};
use crate::machine::{At, Effect, Ending, Event, Renew, Stage};
use crate::plan::Plan;
use crate::role::{Phase, Role, leaf_name};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Whether a conductor launches a leaf of this name in the working tree's records: each role, and what is run for them.
/// Any other is a person's own.
fn is_own_leaf(name: &str) -> bool {
    let phases = [Phase::Plan, Phase::Red, Phase::Green, Phase::Refactor];
    let roles = [Role::Planner, Role::Developer, Role::Verifier];
    name == "setup"
        || roles
            .iter()
            .any(|role| phases.iter().any(|phase| leaf_name(*role, *phase) == name))
}

/// What was found while the journal was opened.
pub(super) struct Left {
    /// Where a torn last line was put.
    pub(super) torn: Option<PathBuf>,
    /// What the journal's copy had to say of it.
    pub(super) vouched: Vouched,
    /// Lines of other issues in the same working tree.
    pub(super) others: Vec<Line>,
    /// What the last input of this issue asked for.
    pub(super) owed: Vec<Effect>,
    /// What is to be said of a configuration that is not the one in force.
    pub(super) changed: Option<String>,
}

impl Run<'_> {
    /// Tells the machine that this start begins, after settling what an earlier one left open.
    pub(super) fn begin(&mut self, left: &Left, plan: Option<Plan>) -> Result<()> {
        let limits = self.settings.limits(self.ask.plan_only);
        let fresh = matches!(self.state.at, At::New);
        // Before this start has a line of its own: the last one tells whose locks they are.
        let locks = self.end_dead_gits();
        if let Some(torn) = &left.torn {
            let said = format!(
                "a torn last line of the journal was set aside in {}",
                torn.display()
            );
            self.say(Kind::Resume, said)?;
        }
        self.write_what_is_owed(&left.owed)?;
        let unwinding = self.state.at.clone();
        self.settle_open_launch(locks.as_ref())?;
        self.end_strays(&left.others)?;
        // Not before: a git of a developer that was still at work held its own.
        if let Some(locks) = locks {
            self.remove_dead_locks(&locks)?;
        }
        match left.vouched {
            Vouched::Whole => {}
            Vouched::PutBack => self.found(JOURNAL_TOUCHED.to_owned())?,
            Vouched::CutBack => self.found(format!(
                "veri's own copy of the journal ({}) is gone or damaged: what was written since the developer \
                 was launched counts for nothing; leave it alone",
                self.tree.journal_copy().display()
            ))?,
        }
        self.take_unjudged_commit_back()?;
        self.bring_edit_back()?;
        self.take_tree_back()?;
        if fresh {
            let fields = self.begins_with();
            return self.feed(Event::Begun { limits, plan }, None, fields);
        }
        match self.state.at.clone() {
            // What this start has just found of the open launch ends the run; a stop only while it is
            // still asked for.
            At::Unwinding(ending) if unwinding != self.state.at => {
                if !matches!(ending, Ending::Stopped(_)) || self.stop_mode().is_some() {
                    return Ok(());
                }
                self.unwind_now(&ending)?;
            }
            // A bail that was cut off is told before the work is tried again: it may hold a question.
            At::Unwinding(Ending::Bailed(bail)) if bail.cause != Cause::StorageFailed => {
                return Ok(());
            }
            At::Unwinding(ending) => self.unwind_now(&ending)?,
            At::Ended(Ending::Bailed(bail))
                if bail.cause != Cause::StorageFailed && self.is_untold() =>
            {
                self.push_if_wanted();
                self.mirror();
                return Ok(());
            }
            _ => {}
        }
        let renew = if self.ask.reset_budgets {
            Renew::All
        } else {
            Renew::Spent
        };
        let resumed = Event::Resumed {
            limits,
            renew,
            plan,
        };
        let fields = self.begins_with();
        self.feed(resumed, None, fields)?;
        if let Some(changed) = &left.changed {
            self.say(Kind::Preflight, changed)?;
        }
        // A stop that was asked for while a leaf was taken up still is.
        self.told_stop = None;
        Ok(())
    }

    /// What the first line of a start says: the command that goes on, and the locks that are somebody else's.
    fn begins_with(&self) -> Value {
        let locks = self.tree.locks(self.issue_number);
        let locks: Vec<_> = locks.iter().map(|l| l.to_string_lossy()).collect();
        match locks.is_empty() {
            true => json!({ "resume": self.resume_command() }),
            false => json!({ "resume": self.resume_command(), "locks": locks }),
        }
    }

    fn unwind_now(&mut self, ending: &Ending) -> Result<()> {
        let event = self.unwind(ending);
        self.feed(event, Some(&Effect::Unwind(ending.clone())), Value::Null)
    }

    /// Whether the last start unwound and was killed before it could say how it ended.
    fn is_untold(&self) -> bool {
        let last = self.lines.iter().rposition(is_input);
        last.and_then(|at| self.lines.split_at_checked(at))
            .is_some_and(|(_, rest)| {
                rest.first().is_some_and(|l| is(l, "unwound"))
                    && !rest.iter().any(|l| l.fields.contains_key("ending"))
            })
    }

    /// The lines that belong to the last input and that a crash kept from being written.
    fn write_what_is_owed(&mut self, owed: &[Effect]) -> Result<()> {
        let Some(last) = self.lines.iter().rposition(is_input) else {
            return Ok(());
        };
        let (_, rest) = self.lines.split_at(last);
        let told_bail = rest.iter().any(|l| l.fields.contains_key("cause"));
        let written = rest.iter().filter(|l| is_notice(l)).count();
        if !told_bail {
            self.tell_of_bail()?;
        }
        let notices = owed.iter().filter_map(|effect| match effect {
            Effect::Note(notice) => Some(notice),
            _ => None,
        });
        for (index, notice) in notices.enumerate() {
            if index >= written {
                let entry = record::notice(notice, self.state.work.as_ref());
                self.write(entry)?;
            }
            // Done twice it does nothing more.
            self.noticed(notice);
        }
        Ok(())
    }

    /// The newest launch of a leaf whose end is not in the journal.
    pub(super) fn open_launch(&self) -> Option<Line> {
        let line =
            self.lines.iter().rev().find(|l| {
                l.text("intent") == "launch" || is(l, "leaf-ended") || is(l, "unwound")
            })?;
        (line.event == Kind::Launch).then(|| line.clone())
    }

    /// A launch whose outcome no conductor has recorded: taken up again, read, or found to be lost.
    fn settle_open_launch(&mut self, locks: Option<&DeadLocks>) -> Result<()> {
        let Some(effect @ Effect::Launch(_)) = self.state.pending() else {
            return Ok(());
        };
        let (Effect::Launch(leaf), Some(line)) = (&effect, self.open_launch()) else {
            return Ok(());
        };
        match self.take_up(leaf, &line, locks)? {
            Some((event, fields)) => self.feed(event, Some(&effect), fields),
            // A plan is read when the issue's text is known.
            None => Ok(()),
        }
    }

    /// A leaf that lives and is nobody's open launch: its journal was lost, or a setup was cut off.
    fn end_strays(&mut self, others: &[Line]) -> Result<()> {
        let records = Records::new(self.tree.tdd())?.with_shim(&self.ask.program);
        for listed in leaf::list(&records)? {
            let name = &listed.started.leaf;
            if listed.end != End::StillRunning || !is_own_leaf(name) {
                continue;
            }
            let launch = listed.started.launch.as_str();
            if let Some(other) = others.iter().find(|l| l.text("launch") == launch) {
                return Err(Bail::needs_user(format!(
                    "The leaf {name} of issue {} still runs in {}. Go on with that issue first (`veri tdd {} \
                     --here`), or end it (`veri leaf kill {name}`).",
                    other.issue,
                    self.tree.path().display(),
                    other.issue
                ))
                .into());
            }
            let said = format!("a leaf that no journal knows is ended: {name}");
            self.say(Kind::Resume, said)?;
            leaf::end(&records, name, KillWhy::Stop, None)?;
        }
        Ok(())
    }

    /// A working tree that a leaf left in whatever state is put back, and what it held is kept aside;
    /// unless it is an answer, which is taken as a candidate.
    fn take_tree_back(&mut self) -> Result<()> {
        let in_hands = self.is_in_hands() || self.unsettled().is_some();
        // Before any other ref is written: what a leaf or a suite did to the repository is undone first.
        self.settle_guard()?;
        if !in_hands {
            return Ok(());
        }
        let work = self.state.work.as_ref();
        if work.is_some_and(|w| matches!(w.stage, Stage::Collect { .. })) {
            return Ok(());
        }
        let start = match work.filter(|w| w.stage == Stage::Develop).map(|w| &w.from) {
            Some(from) => self.start_tree(from)?,
            None => None,
        };
        let now = self.tree.salvage()?;
        let kept = self.set_aside(now, start, "unfinished work of a leaf that was cut off")?;
        self.restore(None)?;
        let mut entry = match kept {
            Some(kept) => self.kept_aside(Kind::Resume, &kept),
            None => Entry::new(Kind::Resume, Default::default(), Value::Null),
        };
        entry.fields.insert("put_back".to_owned(), true.into());
        self.write(entry)
    }

    /// Whether a developer may have changed the working tree since it was last known: by the journal.
    pub(super) fn is_in_hands(&self) -> bool {
        let newest = self.lines.iter().rev().find(|l| {
            l.text("intent") == "prepare"
                || l.fields.contains_key("put_back")
                || ["collected", "committed", "dropped", "unwound"]
                    .iter()
                    .any(|event| is(l, event))
        });
        newest.is_some_and(|l| l.text("intent") == "prepare")
    }

    /// How an open launch ended, taking it up when it still runs; None for a plan that cannot be judged yet. `locks`: those
    /// of a killed conductor, where nobody has removed them yet.
    pub(super) fn take_up(
        &mut self,
        leaf: &crate::machine::Leaf,
        line: &Line,
        locks: Option<&DeadLocks>,
    ) -> Result<Option<(Event, Value)>> {
        let records = self.records()?;
        let id = LaunchId::parse(line.text("launch"))
            .with_context(|| format!("line {} of the journal names no launch", line.seq))?;
        let name = line.text("leaf");
        let mut end = leaf::settle(&records, name, &id, Some(Duration::ZERO), &mut || None)?;
        if end == End::StillRunning {
            let said = format!("{name} still runs: it is taken up");
            self.say(Kind::Resume, said)?;
            end = leaf::settle(&records, name, &id, None, &mut || self.glance())?;
        }
        // As its own conductor would have: what code of the candidate did is found before its answer counts.
        // Before that, what the killed conductor left, or it would be found there.
        if leaf.role != Role::Developer {
            if let Some(locks) = locks {
                self.remove_dead_locks(locks)?;
            }
            self.settle_guard()?;
        }
        let ended = matches!(end, End::Done { .. } | End::Lingered);
        if leaf.role == Role::Planner && self.ready.is_none() && ended {
            return Ok(None);
        }
        let record = records
            .ended(&id)?
            .map(|r| serde_json::to_value(&r))
            .transpose()?;
        let files = self.files_of(leaf.role, &records, &id);
        // A verifier's files were moved when its conductor had read them.
        let stdout = files.answer(&records, &id);
        let nonce = line.fields.get("nonce").and_then(Value::as_str);
        let deadlines = line.fields.get("deadlines").unwrap_or(&Value::Null);
        let outcome = self.outcome(leaf, &end, &stdout, nonce, record, deadlines)?;
        match leaf.role {
            Role::Verifier => files.keep(&records, &id),
            Role::Developer => self.clear_developer_temp(&id),
            Role::Planner => {}
        }
        Ok(Some(outcome))
    }
}

/// Whether a line gave the machine this event (`leaf-ended`).
pub(super) fn is(line: &Line, event: &str) -> bool {
    match line.fields.get("input") {
        Some(Value::String(name)) => name == event,
        Some(Value::Object(fields)) => fields.contains_key(event),
        _ => false,
    }
}

/// Whether a line was written for a notice (`record::notice`).
fn is_notice(line: &Line) -> bool {
    matches!(line.event, Kind::StepStart | Kind::StepDone | Kind::Revise)
        || line.text("what") == "red-stale"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Journal, Source};
    use crate::machine::{Feedback, FeedbackKind, LeafEnd, Notice, Step, Tree};

    fn line(entry: Entry) -> Line {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(&dir.path().join("j")).unwrap();
        let source = Source {
            run: "r".to_owned(),
            issue: 1,
            skill_commit: None,
        };
        journal
            .append(&source, &entry.subject, entry.kind, entry.fields)
            .unwrap()
    }

    #[test]
    fn events_are_found_by_the_names_under_which_they_are_written() {
        for (event, name) in [
            (Event::Unwound, "unwound"),
            (Event::Dropped, "dropped"),
            (Event::LeafEnded(LeafEnd::Stuck), "leaf-ended"),
            (Event::LeafEnded(LeafEnd::Failed { code: 3 }), "leaf-ended"),
            (
                Event::Committed {
                    commit: "c".to_owned(),
                },
                "committed",
            ),
        ] {
            let mut entry = record::input(&event, None);
            entry
                .fields
                .insert("input".to_owned(), serde_json::to_value(&event).unwrap());
            let line = line(entry);
            assert!(is_input(&line) && is(&line, name), "{line:?}");
            assert!(!is(&line, "collected"));
        }
    }

    #[test]
    fn every_notice_is_recognised_by_its_line_and_no_input_is() {
        let step = Step {
            number: 1,
            title: "t".to_owned(),
            criteria: Vec::new(),
            ticked: false,
            no_test: None,
        };
        let feedback = Feedback {
            kind: FeedbackKind::Check,
            reasons: Vec::new(),
        };
        for notice in [
            Notice::StepStart(step.clone()),
            Notice::StepDone(step),
            Notice::Revise {
                attempt: 2,
                feedback,
            },
            Notice::RedStale(Tree("t".to_owned())),
        ] {
            assert!(
                is_notice(&line(record::notice(&notice, None))),
                "{notice:?}"
            );
        }
        assert!(!is_notice(&line(record::input(&Event::Accepted, None))));
    }
}
