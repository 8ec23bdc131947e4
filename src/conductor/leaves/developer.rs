//! Developers: what the working tree holds when one begins, and what it is told.

use crate::blind::issue_text;
use crate::conductor::leaves::files::Files;
use crate::conductor::pick_up::is;
use crate::conductor::record::{Entry, of_leaf};
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::leaf::LaunchId;
use crate::ledger::Ledger;
use crate::machine::{Event, Feedback, FeedbackKind, From, Leaf};
use crate::prompt::{
    CutShort, DeveloperInputs, DeveloperPrompt, Kept, RejectReason, Setback, Start, StepText, Task,
};
use crate::role::{Claim, leaf_name};
use crate::{agent, answer};
use anyhow::{Result, anyhow};
use serde_json::{Value, json};

impl Run<'_> {
    pub(super) fn launch_developer(&mut self, leaf: &Leaf, id: LaunchId) -> Result<(Event, Value)> {
        let start = self.start_tree(&leaf.from)?;
        self.settle_guard()?;
        let now = self.tree.salvage()?;
        self.make_way(now)?;
        // From here on, what is in the working tree is the leaf's until it is collected or put back.
        self.write(Entry::new(
            Kind::Check,
            of_leaf(leaf),
            json!({ "intent": "prepare" }),
        ))?;
        let why = format!("unfinished work of {}", leaf_name(leaf.role, leaf.phase));
        if let Some(kept) = self.set_aside(now, start, &why)? {
            self.write(self.kept_aside(Kind::Check, &kept))?;
        }
        self.restore(start)?;
        self.furnish(start)?;
        let records = self.records()?;
        let files = Files::below(&records, &id);
        let deadlines = self.deadlines(leaf.role)?;
        let declared = self.declared_with_slot(self.ready()?.ground.slot());
        let work = self
            .state
            .work
            .clone()
            .ok_or_else(|| anyhow!("a developer without a step"))?;
        let ledger = self.ledger_in_force()?;
        let step = step_text(&ledger, work.step.number)?;
        let setback = work.feedback.as_ref().map(setback);
        let cut_short = match (leaf.launch > 1, work.cut_off) {
            (_, true) => Some(CutShort::CutOff),
            (true, false) if self.was_silent() => Some(CutShort::Silent),
            (true, false) => Some(CutShort::Stuck(
                self.last_timeout().unwrap_or(deadlines.wall.as_secs()),
            )),
            (false, false) => None,
        };
        // What is in the working tree need not be looked for.
        let begun_anew = matches!(leaf.from, From::Head) || leaf.attempt == 1;
        let kept = (begun_anew || cut_short.is_some())
            .then(|| self.kept_lately())
            .flatten()
            .map(|reference| Kept { reference });
        let reopened: Vec<answer::Reopen> = work
            .reopened
            .iter()
            .map(|r| answer::Reopen {
                test: r.test.clone(),
                why: r.why.clone(),
            })
            .collect();
        let ready = self.ready()?;
        let prompt = DeveloperPrompt::render(
            &ready.templates,
            &DeveloperInputs {
                task: match work.claim {
                    Claim::Red | Claim::AlreadyThere => Task::Red,
                    Claim::Green => Task::Green,
                    Claim::Refactor => Task::Refactor,
                    Claim::NoTest => Task::NoTest,
                },
                issue: &issue_text(&ready.text),
                ledger: ledger.as_str(),
                step: &step,
                test_command: &ready.test_command,
                checks: &self.settings.config.checks,
                attempt: leaf.attempt,
                reopened: &reopened,
                setback: setback.as_ref(),
                start: match begun_anew {
                    true => Start::Fresh,
                    false => Start::FromCandidate,
                },
                cut_short,
                kept: kept.as_ref(),
            },
        )?;
        let place = self.place(&files, self.tree.path(), deadlines.wall, &declared)?;
        let launch = agent::developer_launch(&ready.agents.developer, &prompt, &place)?;
        let launch = self.confine_developer(launch, &id)?;
        // From here on, what the leaf does to the repository itself can be told and undone.
        self.guard = Some(self.tree.guard()?);
        let outcome = self.run_leaf(leaf, &launch, id.clone(), None, &deadlines, &records);
        self.clear_developer_temp(&id);
        outcome
    }

    /// Where the newest work was put since a developer last answered or work on the step began, by the journal.
    fn kept_lately(&self) -> Option<String> {
        let lines = self.lines.iter().rev();
        lines
            .take_while(|l| !is(l, "collected") && l.event != Kind::StepStart)
            .find_map(|l| Some(l.fields.get("kept")?.as_str()?.to_owned()))
    }
}

fn step_text(ledger: &Ledger, number: u32) -> Result<StepText> {
    let step = ledger
        .step(number)
        .ok_or_else(|| anyhow!("the ledger has no step {number}"))?;
    let criteria = ledger
        .criteria()
        .iter()
        .filter(|c| step.criteria.contains(&c.id))
        .map(|c| (c.id.clone(), c.text.clone()))
        .collect();
    Ok(StepText {
        number,
        title: step.title.clone(),
        criteria,
        no_test: step.no_test.clone(),
    })
}

/// Why the last answer was refused.
fn setback(feedback: &Feedback) -> Setback {
    let Feedback { kind, reasons } = feedback;
    let evidence = || reasons.join("\n\n");
    match kind {
        FeedbackKind::Reject => Setback::Rejected(
            reasons
                .iter()
                .map(|text| RejectReason {
                    text: text.clone(),
                    counterexample: None,
                })
                .collect(),
        ),
        FeedbackKind::Refused => Setback::Refused(evidence()),
        FeedbackKind::Failed => Setback::Failed(evidence()),
        FeedbackKind::Unchanged => Setback::NothingChanged,
        FeedbackKind::Check | FeedbackKind::Malformed => Setback::CheckFailed(evidence()),
    }
}
