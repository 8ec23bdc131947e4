//! What the awaited effect can come to, and a launch.

use super::actions::{Action, Edit};
use super::world::{Launch, Now, World};
use crate::cause::{Bail, Cause};
use crate::machine::{
    Answer, Checked, Collected, Effect, Event, Feedback, FeedbackKind, LeafEnd, Reopen, Work,
};
use crate::plan::Plan;
use crate::role::{Claim, Role, StopMode};

pub(super) fn plan() -> Plan {
    Plan {
        criteria: Vec::new(),
        steps: Vec::new(),
    }
}

fn reasons() -> Vec<String> {
    Vec::new()
}

fn failed(cause: Cause) -> Action {
    Action::Outcome(Event::Failed(Bail::new(cause, "")))
}

/// The outcomes of an awaited effect that a living conductor performs, with no launch open.
pub(super) fn of(world: &World, effect: &Effect, actions: &mut Vec<Action>) {
    let mut outcome = |event| actions.push(Action::Outcome(event));
    // `Run::go_on` tells the machine of the request before it says that this ended the suite.
    let now = world.told == Some(StopMode::Now);
    match effect {
        Effect::Preflight => {
            let ledger = world.git.plans > 0;
            outcome(Event::PreflightPassed { ledger });
            if now {
                outcome(Event::Interrupted);
            }
            actions.push(failed(Cause::NeedsUser));
        }
        Effect::Launch(_) => match world.request {
            // `Run::launch` reads the request afresh.
            Some(StopMode::AtLeaf | StopMode::Now) => actions.push(Action::Read(LeafEnd::Refused)),
            Some(StopMode::AtLedger) if world.told.is_none() => {}
            _ => actions.push(Action::Intend),
        },
        Effect::CommitPlan(_) | Effect::KeepRed(_) | Effect::Commit(_) | Effect::Publish
            if !world.performed =>
        {
            actions.push(Action::Perform);
            if let Effect::Commit(_) = effect {
                let reasons = reasons();
                actions.push(Action::Outcome(Event::CommitRefused { reasons }));
            }
            let causes: &[Cause] = match effect {
                Effect::CommitPlan(_) => &[Cause::PlanInvalid, Cause::NeedsUser],
                Effect::Publish => &[Cause::ForgeFailed],
                _ => &[Cause::GitFailed],
            };
            actions.extend(causes.iter().copied().map(failed));
        }
        Effect::CommitPlan(_) => outcome(Event::PlanCommitted),
        Effect::KeepRed(_) => outcome(Event::RedKept),
        Effect::Commit(_) => outcome(Event::Committed {
            commit: String::new(),
        }),
        Effect::Publish => outcome(Event::Published { url: None }),
        Effect::ReadLedger => {
            outcome(world.reading());
            if world.fuel > 0 {
                actions.extend([Edit::Code, Edit::Rename, Edit::Tick].map(Action::Edit));
            }
        }
        Effect::Collect(_) => {
            let tree = world.fresh_tree();
            outcome(Event::Collected(Collected::Candidate(tree.clone())));
            let feedback = Feedback {
                kind: FeedbackKind::Refused,
                reasons: reasons(),
            };
            outcome(Event::Collected(Collected::Refused { tree, feedback }));
            actions.push(failed(Cause::GitFailed));
        }
        Effect::Check(work) => of_check(work, now, actions),
        Effect::Prove(_) => {
            for shown in [true, false] {
                outcome(Event::Proved {
                    shown,
                    reasons: reasons(),
                });
            }
            if now {
                outcome(Event::Interrupted);
            }
        }
        Effect::Drop(_) => outcome(Event::Dropped),
        Effect::Accept => {
            outcome(Event::Accepted);
            if now {
                outcome(Event::Interrupted);
            }
            actions.push(failed(Cause::AcceptanceFailed));
        }
        Effect::Unwind(_) => outcome(Event::Unwound),
        Effect::Note(_) | Effect::Mirror | Effect::Push => {}
    }
    // The disk may be full: where nothing else fails, that does. The next start puts back before it tells.
    if let Effect::Launch(_) | Effect::ReadLedger | Effect::Prove(_) | Effect::Drop(_) = effect {
        actions.push(failed(Cause::StorageFailed));
    }
}

fn of_check(work: &Work, now: bool, actions: &mut Vec<Action>) {
    let mut checked = |checked| actions.push(Action::Outcome(Event::Checked(checked)));
    checked(Checked::Holds);
    checked(Checked::Fails { reasons: reasons() });
    if matches!(work.claim, Claim::Red | Claim::AlreadyThere) {
        checked(Checked::PassesAtOnce { reasons: reasons() });
    }
    if work.feedback.is_none() {
        checked(Checked::Unchanged);
    } else {
        checked(Checked::Repeated);
    }
    if now {
        actions.push(Action::Outcome(Event::Interrupted));
    }
    // A suite that somebody kills.
    actions.push(failed(Cause::KilledExternal));
}

/// How the end of an open launch is read (`Run::outcome`, `leaf::settle`).
pub(super) fn of_launch(world: &World, launch: &Launch, actions: &mut Vec<Action>) {
    let mut read = |end| actions.push(Action::Read(end));
    match launch.now {
        Now::Running => {}
        Now::Intended if launch.held => {}
        Now::Intended => read(LeafEnd::NeverStarted),
        Now::Answered => answers(launch).into_iter().for_each(read),
        // A stop that came while the deadline passed is a stop.
        Now::Stuck if world.request == Some(StopMode::Now) => read(LeafEnd::Stopped),
        Now::Stuck => read(LeafEnd::Stuck),
        Now::Stopped => read(LeafEnd::Stopped),
        Now::Gone if launch.held => read(LeafEnd::External {
            detail: String::new(),
        }),
        Now::Gone => read(LeafEnd::Lost),
        Now::SpawnFailed => read(LeafEnd::SpawnFailed {
            detail: String::new(),
        }),
    }
}

/// What a leaf that has ended by itself may have answered.
fn answers(launch: &Launch) -> Vec<LeafEnd> {
    let asks = LeafEnd::Answered(Answer::NeedsUser {
        question: String::new(),
    });
    let malformed = LeafEnd::Malformed {
        reason: String::new(),
    };
    let mut ends = match launch.role {
        Role::Planner => vec![LeafEnd::Answered(Answer::Plan(plan())), malformed],
        Role::Developer => vec![
            LeafEnd::Answered(Answer::Developed),
            LeafEnd::Failed { code: 1 },
        ],
        Role::Verifier => vec![
            LeafEnd::Answered(Answer::Approve {
                breaks_with: (launch.claim == Some(Claim::AlreadyThere)).then(String::new),
            }),
            LeafEnd::Answered(Answer::Reject { reasons: reasons() }),
            malformed,
        ],
    };
    if launch.claim == Some(Claim::Green) && launch.role == Role::Developer {
        let reopen = Reopen {
            test: String::new(),
            why: String::new(),
        };
        ends.push(LeafEnd::Answered(Answer::ReopenRed(vec![reopen])));
    }
    if launch.claim == Some(Claim::AlreadyThere) && launch.role == Role::Verifier {
        ends.push(LeafEnd::Answered(Answer::Approve { breaks_with: None }));
    }
    ends.push(asks);
    ends
}
