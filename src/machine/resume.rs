//! A later start: where to go on, and which budgets are new.

use super::event::Renew;
use super::state::{At, Ending, Feedback, FeedbackKind, From, Limits, Stage, State, Work};
use super::work;
use crate::cause::{Bail, Cause};
use crate::plan::Plan;
use crate::role::Claim;

/// Goes back to preflight, remembering where the run stood.
pub(super) fn resume(state: &mut State, limits: Limits, renew: Renew, plan: Option<Plan>) {
    state.limits = limits;
    state.stop = None;
    state.lost = 0;
    let bailed = match &state.at {
        At::Ended(Ending::Bailed(bail)) | At::Unwinding(Ending::Bailed(bail)) => Some(bail.clone()),
        _ => None,
    };
    match renew {
        Renew::All => renew_all(state),
        Renew::Spent => renew_spent(state, bailed.as_ref().map(|b| b.cause)),
    }
    // A preflight that failed has not come to the work.
    if let (Some(bail), Some(work), None) = (&bailed, &mut state.work, &state.then) {
        try_again(work, bail);
    }
    let then = match std::mem::replace(&mut state.at, At::Preflight) {
        // Interrupted before preflight had passed: what was remembered then still holds.
        At::New | At::Preflight => state.then.take().map(|at| *at),
        At::Planning => Some(At::Planning),
        At::CommitPlan(plan) => Some(At::CommitPlan(plan)),
        // What a developer left is taken before the ledger is looked at: the leaf may have changed that.
        At::Working if state.work.as_ref().is_some_and(is_collecting) => Some(At::Working),
        At::Boundary | At::Working | At::Accepting | At::Publishing => Some(At::Boundary),
        // A preflight that failed has changed nothing: what was to follow it still is.
        At::Unwinding(_) | At::Ended(_) => state.then.take().map(|at| *at),
    };
    // A person's plan takes the place of one that could not be committed.
    let then = then.filter(|at| plan.is_none() || !matches!(at, At::CommitPlan(_)));
    state.given_plan = plan.or(state.given_plan.take());
    state.then = then.map(Box::new);
}

/// After a bail the working tree is put back, and what could not be done is tried again.
fn try_again(work: &mut Work, bail: &Bail) {
    match work.stage {
        // A suite that could not run or was killed: once more, and then it is for the developer to mend, who may
        // have brought it about.
        Stage::Check if matches!(bail.cause, Cause::NeedsUser | Cause::KilledExternal) => {
            work.check_bails += 1;
            if work.check_bails > 1 {
                // It need not be the candidate's fault: as it is, it may be put forward again.
                let feedback = Feedback {
                    kind: FeedbackKind::Refused,
                    reasons: vec![bail.detail.clone()],
                };
                work::send_back(work, feedback);
            }
        }
        _ => {}
    }
}

fn is_collecting(work: &Work) -> bool {
    matches!(work.stage, Stage::Collect { .. })
}

fn renew_spent(state: &mut State, spent: Option<Cause>) {
    match spent {
        Some(Cause::ReviseExhausted) => {
            if let Some(work) = &mut state.work {
                work.revisions = 0;
                restart_phase(work);
            }
        }
        Some(Cause::KilledStuck) => {
            state.planner.stuck = 0;
            if let Some(work) = &mut state.work {
                work.stuck = 0;
            }
        }
        Some(Cause::PlanInvalid) => state.planner.malformed = 0,
        Some(Cause::VerdictMalformed) => {
            if let Some(work) = &mut state.work {
                work.malformed = 0;
            }
        }
        _ => {}
    }
}

fn renew_all(state: &mut State) {
    state.planner.stuck = 0;
    state.planner.malformed = 0;
    if let Some(work) = &mut state.work {
        work.revisions = 0;
        work.stuck = 0;
        work.malformed = 0;
        work.reopens = 0;
    }
}

/// The phase from its beginning: the attempts led nowhere, and their reasons are kept.
fn restart_phase(work: &mut Work) {
    work.stage = Stage::Develop;
    work.candidate = None;
    work.passed_at_once = false;
    if work.claim == Claim::AlreadyThere {
        work.claim = Claim::Red;
    }
    // In green, and in a red that was reopened from it.
    work.from = work.red.clone().map_or(From::Head, From::Tree);
}
