//! The transition function, for everything outside a claim; claims are in `work.rs`.

use super::effect::{Effect, Notice};
use super::ends::{Illegal, end, illegal, not_of_the_leaf, seen, stuck_bail};
use super::event::{Answer, Event, LeafEnd};
use super::state::{At, Ending, Feedback, FeedbackKind, Stage, State};
use super::{resume, work};
use crate::cause::{Bail, Cause};
use crate::role::StopMode;

/// One step of the machine: the state after the event, and what is to be done.
///
/// The awaited effect, if any, is the last of the list and equals `state.pending()`.
///
/// # Errors
/// [`Illegal`] when the event cannot happen in the state.
pub fn next(mut state: State, event: Event) -> Result<(State, Vec<Effect>), Illegal> {
    let mut notes = Vec::new();
    step(&mut state, event, &mut notes)?;
    if let At::Unwinding(_) | At::Ended(_) = state.at {
        // A stop or bail leaves no request behind.
        state.stop = None;
    }
    notes.extend(state.pending());
    Ok((state, notes))
}

fn step(state: &mut State, event: Event, notes: &mut Vec<Effect>) -> Result<(), Illegal> {
    match (&state.at, event) {
        (At::New, Event::Begun { limits, plan }) => {
            state.limits = limits;
            state.given_plan = plan;
            state.at = At::Preflight;
        }
        (At::New, event) => return illegal(&At::New, &event),
        (
            _,
            Event::Resumed {
                limits,
                renew,
                plan,
            },
        ) => {
            resume::resume(state, limits, renew, plan);
        }
        (At::Ended(_), event) => return illegal(&state.at, &event),
        (At::Unwinding(ending), Event::Unwound | Event::Failed(_)) => {
            // Putting things back is best effort and never changes how the run ends.
            state.at = At::Ended(ending.clone());
            // What a developer left and nobody has taken yet is not in the working tree any more.
            if let Some(work) = &mut state.work
                && matches!(work.stage, Stage::Collect { .. })
            {
                work.stage = Stage::Develop;
                work.cut_off = true;
            }
            notes.push(Effect::Push);
            notes.push(Effect::Mirror);
        }
        (At::Unwinding(_) | At::Publishing, Event::StopAsked { .. }) => {
            // Ending already; once publishing has begun the run finishes.
        }
        (_, Event::StopAsked { mode }) => {
            state.stop = Some(state.stop.map_or(mode, |m| m.max(mode)))
        }
        (At::Preflight, Event::Failed(bail)) => {
            // Nothing of this run is in the working tree yet, and what is there may be the user's.
            state.at = At::Ended(Ending::Bailed(bail));
            notes.push(Effect::Mirror);
        }
        (At::CommitPlan(plan), Event::Failed(bail)) => {
            // What kept it from being committed is not the plan's fault, unless that is said.
            let kept = (bail.cause != Cause::PlanInvalid).then(|| At::CommitPlan(plan.clone()));
            state.then = kept.map(Box::new);
            end(state, Ending::Bailed(bail));
        }
        (_, Event::Failed(bail)) => end(state, Ending::Bailed(bail)),
        (At::Preflight, Event::Interrupted) => {
            state.at = At::Ended(Ending::Stopped(state.stop.unwrap_or(StopMode::Now)));
            notes.push(Effect::Mirror);
        }
        (At::Unwinding(_), event @ Event::Interrupted) => return illegal(&state.at, &event),
        (_, Event::Interrupted) => {
            end(state, Ending::Stopped(state.stop.unwrap_or(StopMode::Now)));
        }
        (At::Preflight, Event::PreflightPassed { ledger }) => {
            state.at = match state.then.take().map(|at| *at) {
                Some(At::Working) => At::Working,
                Some(at @ At::CommitPlan(_)) if !ledger => at,
                then if ledger => {
                    if let Some(At::CommitPlan(_)) = then {
                        // Committed before a crash, or by somebody else since.
                        notes.push(Effect::Push);
                        notes.push(Effect::Mirror);
                    }
                    At::Boundary
                }
                _ => match state.given_plan.take() {
                    Some(plan) => At::CommitPlan(plan),
                    None => At::Planning,
                },
            };
        }
        (At::Planning, Event::LeafEnded(end)) => planner_ended(state, end),
        (At::CommitPlan(_), Event::PlanCommitted) => {
            notes.push(Effect::Push);
            notes.push(Effect::Mirror);
            state.given_plan = None;
            if state.limits.plan_only {
                end(state, Ending::Planned);
            } else {
                state.at = At::Boundary;
            }
        }
        (
            At::Boundary,
            Event::LedgerRead {
                steps,
                red,
                committed,
                moved,
            },
        ) => {
            if let Some(mut work) = state.work.take() {
                if committed.is_some() && work.stage == Stage::Commit {
                    if !work::committed(state, &mut work, notes) {
                        state.work = Some(work);
                        state.at = At::Working;
                        return Ok(());
                    }
                } else if !moved && work::still_current(&work, &steps) {
                    // Trees of unfinished work would undo what a person has committed since.
                    return continue_work(state, work, &steps);
                } else if let Some(tree) = work.red {
                    notes.push(Effect::Note(Notice::RedStale(tree)));
                }
            }
            if let Some(mode) = state.stop {
                end(state, Ending::Stopped(mode));
            } else if state.limits.plan_only {
                end(state, Ending::Planned);
            } else if let Some(step) = steps.iter().find(|s| !s.ticked) {
                let last = steps.iter().filter(|s| !s.ticked).count() == 1;
                state.work = Some(work::begin(step.clone(), last, red, notes));
                state.at = At::Working;
            } else {
                state.at = At::Accepting;
            }
        }
        (At::Working, event) => return work::step(state, event, notes),
        (At::Accepting, Event::Accepted) => match state.stop {
            // From the first push on the run finishes; until then a stop is obeyed.
            Some(mode) => end(state, Ending::Stopped(mode)),
            None => state.at = At::Publishing,
        },
        (At::Publishing, Event::Published { url }) => {
            state.at = At::Ended(Ending::Done { url });
            notes.push(Effect::Mirror);
        }
        (at, event) => return illegal(at, &event),
    }
    Ok(())
}

fn continue_work(
    state: &mut State,
    mut work: super::state::Work,
    steps: &[super::state::Step],
) -> Result<(), Illegal> {
    if let Some(step) = steps.iter().find(|s| s.same_as(&work.step)) {
        work.step = step.clone();
    }
    state.work = Some(work);
    state.at = At::Working;
    Ok(())
}

fn planner_ended(state: &mut State, ended: LeafEnd) {
    seen(state, &ended);
    match ended {
        LeafEnd::Answered(Answer::Plan(plan)) => {
            state.planner = Default::default();
            state.at = At::CommitPlan(plan);
        }
        LeafEnd::Answered(Answer::NeedsUser { question }) => {
            end(state, Ending::Bailed(Bail::needs_user(question)));
        }
        LeafEnd::Malformed { reason } => {
            state.planner.malformed += 1;
            if state.planner.malformed > state.limits.malformed {
                let said = format!(
                    "the planner's answer could not be used {} times in a row; the last time: {reason}",
                    state.planner.malformed
                );
                end(state, Ending::Bailed(Bail::new(Cause::PlanInvalid, said)));
            } else {
                let reasons = vec![reason];
                state.planner.feedback = Some(Feedback {
                    kind: FeedbackKind::Malformed,
                    reasons,
                });
            }
        }
        LeafEnd::Answered(_) => {
            let reason = "the planner answered something that is not a plan".to_owned();
            planner_ended(state, LeafEnd::Malformed { reason });
        }
        LeafEnd::Failed { code } => {
            let reason = format!("the planner exited with code {code}");
            planner_ended(state, LeafEnd::Malformed { reason });
        }
        LeafEnd::Stuck | LeafEnd::Late { .. } | LeafEnd::Silent { .. } => {
            state.planner.stuck += 1;
            if state.planner.stuck > state.limits.stuck_retries {
                let bail = stuck_bail("the planner", state.planner.stuck, &ended);
                end(state, Ending::Bailed(bail));
            }
        }
        other => not_of_the_leaf(state, other),
    }
}
