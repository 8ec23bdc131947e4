//! One claim: develop, check, verify; then the next claim of the step, or another attempt.

use super::effect::{Effect, Notice};
use super::ends::{Illegal, end, illegal, not_of_the_leaf, seen, stuck_bail};
use super::event::{Answer, Checked, Collected, Event, KeptRed, LeafEnd};
use super::state::{
    At, Ending, Feedback, FeedbackKind, From, RefactorWhen, Reopen, Stage, State, Step, Tree, Work,
};
use crate::cause::{Bail, Cause};
use crate::role::Claim;

/// Begins a step: at its red, at its green when an approved red was kept, or at its one phase.
pub(super) fn begin(step: Step, last: bool, red: Option<KeptRed>, notes: &mut Vec<Effect>) -> Work {
    notes.push(Effect::Note(Notice::StepStart(step.clone())));
    let kept = red
        .filter(|r| step.no_test.is_none() && r.title == step.title && r.criteria == step.criteria);
    let (claim, from, red) = match kept {
        Some(kept) => (Claim::Green, From::Tree(kept.tree.clone()), Some(kept.tree)),
        None if step.no_test.is_some() => (Claim::NoTest, From::Head, None),
        None => (Claim::Red, From::Head, None),
    };
    Work {
        step,
        last,
        claim,
        stage: Stage::Develop,
        revisions: 0,
        stuck: 0,
        malformed: 0,
        cut_off: false,
        from,
        candidate: None,
        red,
        passed_at_once: false,
        check_bails: 0,
        feedback: None,
        reopened: Vec::new(),
        reopens: 0,
        saved_code: None,
    }
}

/// Whether the ledger still has this work as the next thing to do.
pub(super) fn still_current(work: &Work, steps: &[Step]) -> bool {
    match work.claim {
        // The step is ticked; only its refactor is under way.
        Claim::Refactor => steps.iter().any(|s| s.ticked && s.same_as(&work.step)),
        _ => steps
            .iter()
            .find(|s| !s.ticked)
            .is_some_and(|s| s.same_as(&work.step)),
    }
}

pub(super) fn step(
    state: &mut State,
    event: Event,
    notes: &mut Vec<Effect>,
) -> Result<(), Illegal> {
    let Some(mut work) = state.work.take() else {
        return illegal(&state.at, &event);
    };
    let done = match (&work.stage, event) {
        (Stage::Develop, Event::LeafEnded(ended)) => developer_ended(state, &mut work, ended),
        (Stage::Collect { .. }, Event::Collected(collected)) => {
            self::collected(state, &mut work, collected, notes)
        }
        (Stage::Check, Event::Checked(checked)) => self::checked(state, &mut work, checked, notes),
        (Stage::Verify, Event::LeafEnded(ended)) => verifier_ended(state, &mut work, ended, notes),
        (Stage::Prove { .. }, Event::Proved { shown: true, .. }) => {
            work.stage = Stage::Commit;
            false
        }
        (
            Stage::Prove { .. },
            Event::Proved {
                shown: false,
                reasons,
            },
        ) => {
            notes.push(Effect::Mirror);
            revise(
                state,
                &mut work,
                FeedbackKind::Check.because(reasons),
                notes,
            )
        }
        (Stage::KeepRed, Event::RedKept) => {
            enter_green(&mut work);
            false
        }
        (Stage::Commit, Event::Committed { .. }) => committed(state, &mut work, notes),
        (Stage::Commit, Event::CommitRefused { reasons }) => revise(
            state,
            &mut work,
            FeedbackKind::Refused.because(reasons),
            notes,
        ),
        (Stage::Drop { .. }, Event::Dropped) => settle(&work, notes),
        (_, event) => {
            state.work = Some(work);
            return illegal(&state.at, &event);
        }
    };
    if done {
        state.at = At::Boundary;
    } else {
        state.work = Some(work);
    }
    Ok(())
}

// Each of these says whether the step is settled and its work is over.

fn developer_ended(state: &mut State, work: &mut Work, ended: LeafEnd) -> bool {
    seen(state, &ended);
    work.cut_off = match ended {
        LeafEnd::Lost | LeafEnd::Stopped | LeafEnd::External { .. } => true,
        // Not begun: what is known of the launch before it still holds.
        LeafEnd::NeverStarted | LeafEnd::Refused | LeafEnd::SpawnFailed { .. } => work.cut_off,
        LeafEnd::Answered(_)
        | LeafEnd::Malformed { .. }
        | LeafEnd::Failed { .. }
        | LeafEnd::Stuck
        | LeafEnd::Late { .. }
        | LeafEnd::Silent { .. } => false,
    };
    match ended {
        LeafEnd::Answered(Answer::NeedsUser { question }) => {
            end(state, Ending::Bailed(Bail::needs_user(question)));
        }
        LeafEnd::Answered(Answer::ReopenRed(reopen)) => {
            collect(work, None, reopen);
        }
        LeafEnd::Answered(_) | LeafEnd::Malformed { .. } => collect(work, None, Vec::new()),
        LeafEnd::Failed { code } => {
            let reasons = vec![format!("the developer exited with code {code}")];
            collect(
                work,
                Some(FeedbackKind::Failed.because(reasons)),
                Vec::new(),
            );
        }
        LeafEnd::Stuck | LeafEnd::Late { .. } | LeafEnd::Silent { .. } => {
            work.stuck += 1;
            if work.stuck > state.limits.stuck_retries {
                out_of_launches(state, work, "the developer", &ended);
            }
        }
        other => not_of_the_leaf(state, other),
    }
    false
}

fn collect(work: &mut Work, failed: Option<Feedback>, reopen: Vec<Reopen>) {
    work.stuck = 0;
    work.stage = Stage::Collect { failed, reopen };
}

fn collected(
    state: &mut State,
    work: &mut Work,
    collected: Collected,
    notes: &mut Vec<Effect>,
) -> bool {
    let (failed, reopen) = match std::mem::replace(&mut work.stage, Stage::Check) {
        Stage::Collect { failed, reopen } => (failed, reopen),
        _ => (None, Vec::new()),
    };
    match collected {
        Collected::Refused { tree, feedback } => {
            work.candidate = Some(tree);
            revise(state, work, feedback, notes)
        }
        Collected::Candidate(tree) => {
            work.candidate = Some(tree.clone());
            if let Some(feedback) = failed {
                return revise(state, work, feedback, notes);
            }
            if !reopen.is_empty() {
                return reopen_red(state, work, tree, reopen, notes);
            }
            false
        }
    }
}

fn reopen_red(
    state: &mut State,
    work: &mut Work,
    code: Tree,
    reopen: Vec<Reopen>,
    notes: &mut Vec<Effect>,
) -> bool {
    if work.claim != Claim::Green || work.red.is_none() {
        let reasons = vec!["only green may ask for old tests to change (reopen_red)".to_owned()];
        return revise(state, work, FeedbackKind::Check.because(reasons), notes);
    }
    if work.reopens >= state.limits.reopens {
        let reasons = vec![format!(
            "red was reopened {} times already, which is the limit: keep the old tests passing",
            work.reopens
        )];
        return revise(state, work, FeedbackKind::Check.because(reasons), notes);
    }
    work.reopens += 1;
    work.saved_code = Some(code);
    work.reopened = reopen;
    new_phase(work, Claim::Red);
    work.from = work.red.clone().map_or(From::Head, From::Tree);
    false
}

fn checked(state: &mut State, work: &mut Work, checked: Checked, notes: &mut Vec<Effect>) -> bool {
    match checked {
        Checked::Holds => {
            work.stage = Stage::Verify;
            false
        }
        Checked::PassesAtOnce { .. } if work.passed_at_once && work.claim == Claim::Red => {
            work.claim = Claim::AlreadyThere;
            work.stage = Stage::Verify;
            false
        }
        Checked::PassesAtOnce { reasons } => {
            work.passed_at_once = true;
            revise(state, work, FeedbackKind::Check.because(reasons), notes)
        }
        Checked::Unchanged if work.claim == Claim::Refactor => settle(work, notes),
        Checked::Unchanged => {
            let reasons = vec!["nothing was changed".to_owned()];
            revise(state, work, FeedbackKind::Unchanged.because(reasons), notes)
        }
        Checked::Repeated => {
            let feedback = still(work.feedback.take());
            revise(state, work, feedback, notes)
        }
        Checked::Fails { reasons } => {
            notes.push(Effect::Mirror);
            revise(state, work, FeedbackKind::Check.because(reasons), notes)
        }
    }
}

/// What was said of a candidate, to a developer that has put it forward again as it was.
fn still(said: Option<Feedback>) -> Feedback {
    let again =
        "nothing was changed since the attempt that was refused, for the reasons that follow";
    let mut feedback = said.unwrap_or(FeedbackKind::Unchanged.because(Vec::new()));
    if feedback.reasons.first().is_none_or(|first| first != again) {
        feedback.reasons.insert(0, again.to_owned());
    }
    feedback
}

fn verifier_ended(
    state: &mut State,
    work: &mut Work,
    ended: LeafEnd,
    notes: &mut Vec<Effect>,
) -> bool {
    seen(state, &ended);
    match ended {
        LeafEnd::Answered(Answer::Approve { breaks_with }) => {
            work.stuck = 0;
            work.malformed = 0;
            notes.push(Effect::Mirror);
            match (work.claim, breaks_with) {
                (Claim::Red, _) => work.stage = Stage::KeepRed,
                (Claim::AlreadyThere, Some(patch)) => work.stage = Stage::Prove { patch },
                (Claim::AlreadyThere, None) => {
                    let reasons = vec![
                        "the test passes at once and the verifier gave no change of the code under \
                         which it fails: it proves nothing"
                            .to_owned(),
                    ];
                    return revise(state, work, FeedbackKind::Reject.because(reasons), notes);
                }
                (Claim::Green | Claim::Refactor | Claim::NoTest, _) => work.stage = Stage::Commit,
            }
            false
        }
        LeafEnd::Answered(Answer::Reject { reasons }) => {
            work.stuck = 0;
            work.malformed = 0;
            notes.push(Effect::Mirror);
            revise(state, work, FeedbackKind::Reject.because(reasons), notes)
        }
        LeafEnd::Answered(Answer::NeedsUser { question }) => {
            end(state, Ending::Bailed(Bail::needs_user(question)));
            false
        }
        LeafEnd::Answered(_) => {
            let reason = "the verifier answered something that is not a verdict".to_owned();
            verifier_ended(state, work, LeafEnd::Malformed { reason }, notes)
        }
        LeafEnd::Failed { code } => {
            let reason = format!("the verifier exited with code {code}");
            verifier_ended(state, work, LeafEnd::Malformed { reason }, notes)
        }
        LeafEnd::Malformed { reason } => {
            work.malformed += 1;
            if work.malformed > state.limits.malformed {
                let said = format!(
                    "the verifier's answer could not be read {} times in a row; the last time: \
                     {reason}",
                    work.malformed
                );
                if work.claim == Claim::Refactor {
                    drop_refactor(work, said);
                } else {
                    let bail = Bail::new(Cause::VerdictMalformed, said);
                    end(state, Ending::Bailed(bail));
                }
            }
            false
        }
        LeafEnd::Stuck | LeafEnd::Late { .. } | LeafEnd::Silent { .. } => {
            work.stuck += 1;
            if work.stuck > state.limits.stuck_retries {
                out_of_launches(state, work, "the verifier", &ended);
            }
            false
        }
        other => {
            not_of_the_leaf(state, other);
            false
        }
    }
}

pub(super) fn committed(state: &State, work: &mut Work, notes: &mut Vec<Effect>) -> bool {
    notes.push(Effect::Push);
    notes.push(Effect::Mirror);
    let refactor = match state.limits.refactor {
        RefactorWhen::Step => true,
        RefactorWhen::End => work.last,
        RefactorWhen::Off => false,
    };
    if work.claim == Claim::Green && refactor {
        work.step.ticked = true;
        work.red = None;
        work.saved_code = None;
        work.reopened = Vec::new();
        new_phase(work, Claim::Refactor);
        return false;
    }
    settle(work, notes)
}

fn settle(work: &Work, notes: &mut Vec<Effect>) -> bool {
    let step = Step {
        ticked: true,
        ..work.step.clone()
    };
    notes.push(Effect::Note(Notice::StepDone(step)));
    notes.push(Effect::Mirror);
    true
}

fn enter_green(work: &mut Work) {
    let Some(red) = work.candidate.take() else {
        return;
    };
    let before = work.red.replace(red.clone());
    new_phase(work, Claim::Green);
    work.from = match (before, work.saved_code.take()) {
        (Some(base), Some(code)) => From::Merge { base, red, code },
        _ => From::Tree(red),
    };
}

fn new_phase(work: &mut Work, claim: Claim) {
    work.claim = claim;
    work.stage = Stage::Develop;
    work.revisions = 0;
    work.stuck = 0;
    work.malformed = 0;
    work.cut_off = false;
    work.from = From::Head;
    work.candidate = None;
    work.passed_at_once = false;
    work.check_bails = 0;
    work.feedback = None;
}

fn revise(state: &mut State, work: &mut Work, feedback: Feedback, notes: &mut Vec<Effect>) -> bool {
    work.stuck = 0;
    work.malformed = 0;
    if work.claim == Claim::AlreadyThere {
        work.claim = Claim::Red;
    }
    send_back(work, feedback.clone());
    if work.revisions < state.limits.revisions {
        work.revisions += 1;
        notes.push(Effect::Note(Notice::Revise {
            attempt: 1 + work.revisions,
            feedback,
        }));
        return false;
    }
    let attempts = 1 + work.revisions;
    let said = format!(
        "{} of step {} ({}) was refused in each of {attempts} attempts; the last time: {}",
        work.claim.phase(),
        work.step.number,
        work.step.title,
        feedback.reasons.join("; ")
    );
    if work.claim == Claim::Refactor {
        drop_refactor(work, said);
    } else {
        end(
            state,
            Ending::Bailed(Bail::new(Cause::ReviseExhausted, said)),
        );
    }
    false
}

/// The developer again, from its candidate, told why.
pub(super) fn send_back(work: &mut Work, feedback: Feedback) {
    if let Some(candidate) = work.candidate.take() {
        work.from = From::Tree(candidate);
    }
    work.stage = Stage::Develop;
    work.check_bails = 0;
    work.feedback = Some(feedback);
}

fn out_of_launches(state: &mut State, work: &mut Work, who: &str, last: &LeafEnd) {
    let bail = stuck_bail(
        &format!("{who} of {}", work.claim.phase()),
        work.stuck,
        last,
    );
    if work.claim == Claim::Refactor {
        drop_refactor(work, bail.detail);
    } else {
        end(state, Ending::Bailed(bail));
    }
}

fn drop_refactor(work: &mut Work, why: String) {
    work.stage = Stage::Drop { why };
}
