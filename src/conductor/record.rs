//! How effects and events are written into the journal: their kind, subject and fields.

use crate::cause::Bail;
use crate::event::{Kind, Line};
use crate::journal::Subject;
use crate::machine::{
    Answer, Checked, Collected, Effect, Ending, Event, Feedback, Leaf, LeafEnd, Notice, Work,
};
use crate::role::{Phase, Role, StopMode};
use serde_json::{Map, Value, json};

/// A line about to be written.
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) subject: Subject,
    pub(super) fields: Map<String, Value>,
}

impl Entry {
    pub(super) fn new(kind: Kind, subject: Subject, fields: Value) -> Entry {
        let fields = match fields {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => Map::from_iter([("detail".to_owned(), other)]),
        };
        Entry {
            kind,
            subject,
            fields,
        }
    }

    pub(super) fn say(mut self, said: impl Into<String>) -> Entry {
        self.fields
            .insert("said".to_owned(), Value::String(said.into()));
        self
    }
}

pub(super) fn of_leaf(leaf: &Leaf) -> Subject {
    Subject {
        step: leaf.step.as_ref().map(|s| s.number),
        title: leaf
            .step
            .as_ref()
            .map_or(String::new(), |s| s.title.clone()),
        phase: Some(leaf.phase.into()),
        actor: leaf.role.as_str().to_owned(),
        attempt: Some(leaf.attempt),
    }
}

pub(super) fn of_work(work: &Work) -> Subject {
    Subject {
        step: Some(work.step.number),
        title: work.step.title.clone(),
        phase: Some(work.claim.phase().into()),
        actor: String::new(),
        attempt: Some(1 + work.revisions),
    }
}

fn of_plan() -> Subject {
    Subject {
        phase: Some(Phase::Plan.into()),
        ..Subject::default()
    }
}

/// The line that says what is about to be done. Launches write their own: it names the launch.
pub(super) fn intent(effect: &Effect) -> Option<Entry> {
    let (kind, subject, name) = match effect {
        Effect::Launch(_) | Effect::Note(_) | Effect::Mirror | Effect::Push => return None,
        Effect::Preflight => (Kind::Preflight, Subject::default(), "preflight"),
        Effect::CommitPlan(_) => (Kind::Commit, of_plan(), "commit-plan"),
        Effect::ReadLedger => (Kind::Plan, Subject::default(), "read-ledger"),
        Effect::Collect(work) => (Kind::Check, of_work(work), "collect"),
        Effect::Check(work) => (Kind::Check, of_work(work), "check"),
        Effect::Prove(work) => (Kind::Check, of_work(work), "prove"),
        Effect::KeepRed(work) => (Kind::Commit, of_work(work), "keep-red"),
        Effect::Commit(work) => (Kind::Commit, of_work(work), "commit"),
        Effect::Drop(work) => (Kind::Check, of_work(work), "drop-refactor"),
        Effect::Accept => (Kind::Evaluate, Subject::default(), "accept"),
        Effect::Publish => (Kind::Pr, Subject::default(), "publish"),
        Effect::Unwind(ending) => (kind_of(ending), Subject::default(), "put-back"),
    };
    Some(Entry::new(kind, subject, json!({ "intent": name })))
}

fn kind_of(ending: &Ending) -> Kind {
    match ending {
        Ending::Bailed(_) => Kind::Bail,
        Ending::Stopped(_) => Kind::Stop,
        Ending::Done { .. } | Ending::Planned => Kind::RunEnd,
    }
}

/// Whether a line gave the machine an event.
pub(super) fn is_input(line: &Line) -> bool {
    line.fields.contains_key("input")
}

/// The line that gives the machine an event: the outcome of `effect`, or something from outside.
pub(super) fn input(event: &Event, effect: Option<&Effect>) -> Entry {
    let subject = match effect {
        Some(Effect::Launch(leaf)) => of_leaf(leaf),
        Some(
            Effect::Collect(work)
            | Effect::Check(work)
            | Effect::Prove(work)
            | Effect::KeepRed(work)
            | Effect::Commit(work)
            | Effect::Drop(work),
        ) => of_work(work),
        Some(Effect::CommitPlan(_)) => of_plan(),
        _ => Subject::default(),
    };
    let entry = |kind, fields| Entry::new(kind, subject.clone(), fields);
    match event {
        Event::Begun { .. } => entry(Kind::RunStart, Value::Null),
        Event::Resumed { .. } => entry(Kind::Resume, Value::Null),
        Event::PreflightPassed { .. } => entry(Kind::Preflight, Value::Null),
        Event::LeafEnded(end) => leaf_ended(end, subject.clone(), effect),
        Event::PlanCommitted => entry(Kind::Commit, json!({ "what": "plan" })),
        Event::LedgerRead { steps, .. } => {
            let done = steps.iter().filter(|s| s.ticked).count();
            entry(Kind::Plan, json!({ "steps": steps.len(), "done": done }))
        }
        Event::Collected(Collected::Candidate(tree)) => {
            entry(Kind::Check, json!({ "what": "candidate", "tree": tree }))
        }
        Event::Collected(Collected::Refused { tree, feedback }) => entry(
            Kind::Check,
            json!({ "what": "candidate", "result": "fails", "tree": tree, "reasons": feedback.reasons }),
        )
        .say(failed("refused before its checks", &feedback.reasons)),
        Event::Checked(checked) => checked_line(checked, subject.clone(), effect),
        Event::Proved { shown, reasons } => {
            let result = if *shown { "holds" } else { "fails" };
            entry(Kind::Check, json!({ "what": "breaks-with", "result": result, "reasons": reasons }))
                .say(if *shown {
                    "shown: the test fails under a change of the code".to_owned()
                } else {
                    failed("not shown", reasons)
                })
        }
        Event::RedKept => entry(Kind::Commit, json!({ "what": "red" })),
        Event::Committed { commit } => {
            entry(Kind::Commit, json!({ "what": "step", "commit": commit }))
                .say(format!("committed {}", commit.get(..9).unwrap_or(commit)))
        }
        Event::CommitRefused { reasons } => {
            entry(Kind::Commit, json!({ "what": "refused", "reasons": reasons }))
                .say(failed("the commit was refused", reasons))
        }
        Event::Dropped => {
            let why = match effect {
                Some(Effect::Drop(work)) => match &work.stage {
                    crate::machine::Stage::Drop { why } => why.clone(),
                    _ => String::new(),
                },
                _ => String::new(),
            };
            entry(Kind::Check, json!({ "what": "refactor-dropped", "why": why }))
                .say("the refactor is dropped; the step stands")
        }
        Event::Accepted => entry(Kind::Evaluate, json!({ "result": "passes" })),
        Event::Published { url } => entry(Kind::Pr, json!({ "url": url })),
        Event::StopAsked { mode } => entry(Kind::Stop, json!({ "mode": mode }))
            .say(format!("a stop was asked for ({mode}: {})", what_comes_first(*mode))),
        Event::Interrupted => entry(Kind::Stop, Value::Null).say("the running suite is ended by the stop"),
        Event::Failed(bail) => entry(Kind::Bail, bail_fields(bail)),
        Event::Unwound => entry(Kind::RunEnd, json!({ "what": "put-back" })),
    }
}

/// What is said of a leaf that has answered with a question.
pub(super) const ASKS: &str = "has a question for a person";

/// What still happens before a run stops.
fn what_comes_first(mode: StopMode) -> &'static str {
    match mode {
        StopMode::AtLedger => "the step under way is finished first",
        StopMode::AtLeaf => "the agent at work is waited for",
        StopMode::Now => "whatever runs is ended",
    }
}

pub(super) fn bail_fields(bail: &Bail) -> Value {
    json!({ "cause": bail.cause, "class": bail.cause.class(), "detail": bail.detail })
}

fn failed(what: &str, reasons: &[String]) -> String {
    match reasons.first() {
        Some(first) => format!("{what}: {}", first.lines().next().unwrap_or_default()),
        None => what.to_owned(),
    }
}

fn leaf_ended(end: &LeafEnd, subject: Subject, effect: Option<&Effect>) -> Entry {
    let entry = |kind, fields| Entry::new(kind, subject.clone(), fields);
    let verifier = matches!(effect, Some(Effect::Launch(leaf)) if leaf.role == Role::Verifier);
    match end {
        LeafEnd::Answered(Answer::Approve { breaks_with }) => entry(
            Kind::Verdict,
            json!({ "verdict": "approve", "reasons": [], "breaks_with": breaks_with }),
        ),
        LeafEnd::Answered(Answer::Reject { reasons }) => entry(
            Kind::Verdict,
            json!({ "verdict": "reject", "reasons": reasons }),
        ),
        LeafEnd::Malformed { reason } if verifier => entry(
            Kind::Verdict,
            json!({ "verdict": "malformed", "reasons": [reason] }),
        ),
        LeafEnd::Answered(Answer::Plan(plan)) => entry(
            Kind::Plan,
            json!({ "criteria": plan.criteria.len(), "planned": plan.steps.len() }),
        )
        .say(match plan.steps.len() {
            1 => "planned 1 step".to_owned(),
            steps => format!("planned {steps} steps"),
        }),
        LeafEnd::Malformed { reason } => entry(
            Kind::Plan,
            json!({ "result": "invalid", "reasons": [reason] }),
        )
        .say(format!("the plan is not valid: {reason}")),
        LeafEnd::Answered(Answer::ReopenRed(reopen)) => {
            let tests: Vec<&str> = reopen.iter().map(|r| r.test.as_str()).collect();
            entry(
                Kind::Exit,
                json!({ "end": "answered", "reopen_red": reopen }),
            )
            .say(format!(
                "asks for old tests to change: {}",
                tests.join(", ")
            ))
        }
        LeafEnd::Answered(Answer::NeedsUser { question }) => entry(
            Kind::Exit,
            json!({ "end": "answered", "needs_user": question }),
        )
        .say(ASKS),
        LeafEnd::Answered(Answer::Developed) => {
            entry(Kind::Exit, json!({ "end": "answered" })).say("has answered")
        }
        LeafEnd::Failed { code } => entry(Kind::Exit, json!({ "end": "failed", "code": code }))
            .say(format!("exited with code {code}")),
        LeafEnd::Stuck => entry(Kind::Exit, json!({ "end": "killed-stuck" }))
            .say("is stuck, and is killed with all that it started"),
        LeafEnd::Late { detail } | LeafEnd::Silent { detail } => entry(
            Kind::Exit,
            json!({ "end": "killed-stuck", "detail": detail }),
        )
        .say(format!(
            "is stuck, and is killed with all that it started: {detail}"
        )),
        LeafEnd::Stopped => {
            entry(Kind::Exit, json!({ "end": "killed-by-stop" })).say("is ended by the stop")
        }
        LeafEnd::Refused => entry(Kind::Exit, json!({ "end": "refused" }))
            .say("is not launched: a stop was asked for"),
        LeafEnd::External { detail } => entry(
            Kind::Exit,
            json!({ "end": "killed-external", "detail": detail }),
        )
        .say("was killed by somebody else"),
        LeafEnd::Lost => entry(Kind::Exit, json!({ "end": "lost" }))
            .say("was lost while no conductor watched; it is launched again"),
        LeafEnd::NeverStarted => entry(Kind::Exit, json!({ "end": "never-started" }))
            .say("had not been started when its conductor ended; it is launched now"),
        LeafEnd::SpawnFailed { detail } => entry(
            Kind::Exit,
            json!({ "end": "spawn-failed", "detail": detail }),
        )
        .say(format!("could not be started: {detail}")),
    }
}

fn checked_line(checked: &Checked, subject: Subject, effect: Option<&Effect>) -> Entry {
    let claim = match effect {
        Some(Effect::Check(work)) => work.claim.as_str(),
        _ => "claim",
    };
    let entry = |fields| Entry::new(Kind::Check, subject.clone(), fields);
    match checked {
        Checked::Holds => {
            let said = match claim {
                "red" => "check: the suite fails, and the new test is what fails",
                "green" => "check: the suite passes, and the tests are as they were",
                "refactor" => "check: the suite passes, and every test is as it was",
                "no-test" => "check: the suite passes, without a new test",
                _ => "check: holds",
            };
            entry(json!({ "what": claim, "result": "holds" })).say(said)
        }
        Checked::PassesAtOnce { reasons } => {
            entry(json!({ "what": claim, "result": "passes-at-once", "reasons": reasons }))
                .say("check: the new test passes at once")
        }
        Checked::Fails { reasons } => {
            entry(json!({ "what": claim, "result": "fails", "reasons": reasons }))
                .say(failed("check fails", reasons))
        }
        Checked::Repeated => entry(json!({ "what": claim, "result": "unchanged" }))
            .say("check: nothing was changed since the attempt that was refused"),
        Checked::Unchanged => {
            entry(json!({ "what": claim, "result": "unchanged" })).say("check: nothing was changed")
        }
    }
}

/// The line of something that nothing waits for.
pub(super) fn notice(notice: &Notice, work: Option<&Work>) -> Entry {
    let subject = work.map(of_work).unwrap_or_default();
    match notice {
        Notice::StepStart(step) | Notice::StepDone(step) => {
            let done = matches!(notice, Notice::StepDone(_));
            let kind = if done {
                Kind::StepDone
            } else {
                Kind::StepStart
            };
            let subject = Subject {
                step: Some(step.number),
                title: step.title.clone(),
                ..Subject::default()
            };
            Entry::new(
                kind,
                subject,
                json!({ "criteria": step.criteria, "no_test": step.no_test }),
            )
        }
        Notice::Revise {
            attempt,
            feedback: Feedback { kind, reasons },
        } => {
            let subject = Subject {
                attempt: Some(*attempt),
                ..subject
            };
            Entry::new(
                Kind::Revise,
                subject,
                json!({ "why": kind, "reasons": reasons }),
            )
        }
        Notice::RedStale(tree) => Entry::new(
            Kind::Check,
            subject,
            json!({ "what": "red-stale", "tree": tree }),
        )
        .say("the approved test no longer fits the ledger; it is put aside"),
    }
}
