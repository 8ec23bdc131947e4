//! The books of every budget, kept beside the machine: what each event may spend, and when a budget is over.

use super::wrong::Wrong;
use crate::cause::Cause;
use crate::machine::{
    Answer, At, Checked, Collected, Ending, Event, LeafEnd, Renew, Stage, State, Work,
};
use crate::role::{Claim, Phase};

/// What is spent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spent {
    planner: [u32; 2],
    /// Launches killed as stuck, malformed answers, revisions, reopens of the work under way.
    work: [u32; 4],
}

const STUCK: usize = 0;
const MALFORMED: usize = 1;
const REVISIONS: usize = 2;
const REOPENS: usize = 3;

fn spent(state: &State) -> Spent {
    let of = |w: &Work| [w.stuck, w.malformed, w.revisions, w.reopens];
    Spent {
        planner: [state.planner.stuck, state.planner.malformed],
        work: state.work.as_ref().map_or([0; 4], of),
    }
}

/// Which of the claims of which step: within one, counters go on.
fn phase(state: &State) -> Option<(u32, &str, Phase)> {
    let work = state.work.as_ref()?;
    Some((work.step.number, &work.step.title, work.claim.phase()))
}

/// What an event is, to the books.
enum Costs {
    /// Whatever happens to the process of conductor or leaf is nobody's fault.
    Crash,
    Nothing,
    Stuck,
    Malformed,
    /// The developer has ended: launches are counted anew.
    Developed,
    /// A verdict could be read: launches and malformed answers are counted anew.
    Approved,
    Revision,
    Reopen,
    Renews(Option<Cause>),
    RenewsAll,
}

fn cost(before: &State, event: &Event) -> Costs {
    let work = before.work.as_ref().filter(|_| before.at == At::Working);
    let planner = work.is_none();
    match event {
        Event::Resumed {
            renew: Renew::All, ..
        } => Costs::RenewsAll,
        Event::Resumed { .. } => match &before.at {
            At::Ended(Ending::Bailed(bail)) | At::Unwinding(Ending::Bailed(bail)) => {
                Costs::Renews(Some(bail.cause))
            }
            At::Ended(_) => Costs::Renews(None),
            _ => Costs::Crash,
        },
        Event::LeafEnded(end) => of_leaf(work, planner, end),
        Event::Collected(Collected::Refused { .. }) => Costs::Revision,
        Event::Collected(Collected::Candidate(_)) => match work.map(|w| (&w.stage, w)) {
            Some((
                Stage::Collect {
                    failed: Some(_), ..
                },
                _,
            )) => Costs::Revision,
            Some((Stage::Collect { reopen, .. }, w)) if !reopen.is_empty() => {
                match w.reopens < before.limits.reopens {
                    true => Costs::Reopen,
                    false => Costs::Revision,
                }
            }
            _ => Costs::Nothing,
        },
        Event::Checked(Checked::Holds) => Costs::Nothing,
        Event::Checked(Checked::PassesAtOnce { .. })
            if work.is_some_and(|w| w.passed_at_once && w.claim == Claim::Red) =>
        {
            Costs::Nothing
        }
        Event::Checked(Checked::Unchanged) if work.is_some_and(|w| w.claim == Claim::Refactor) => {
            Costs::Nothing
        }
        Event::Checked(_) | Event::Proved { shown: false, .. } | Event::CommitRefused { .. } => {
            Costs::Revision
        }
        _ => Costs::Nothing,
    }
}

fn of_leaf(work: Option<&Work>, planner: bool, end: &LeafEnd) -> Costs {
    match end {
        LeafEnd::Lost | LeafEnd::NeverStarted => Costs::Crash,
        LeafEnd::Stuck | LeafEnd::Late { .. } | LeafEnd::Silent { .. } => Costs::Stuck,
        LeafEnd::Stopped
        | LeafEnd::Refused
        | LeafEnd::External { .. }
        | LeafEnd::SpawnFailed { .. } => Costs::Nothing,
        LeafEnd::Answered(Answer::NeedsUser { .. }) => Costs::Nothing,
        LeafEnd::Malformed { .. } => Costs::Malformed,
        LeafEnd::Failed { .. } | LeafEnd::Answered(Answer::Developed | Answer::ReopenRed(_))
            if !planner =>
        {
            Costs::Developed
        }
        LeafEnd::Answered(Answer::Reject { .. }) => Costs::Revision,
        LeafEnd::Answered(Answer::Approve { breaks_with: None })
            if work.is_some_and(|w| w.claim == Claim::AlreadyThere) =>
        {
            Costs::Revision
        }
        LeafEnd::Answered(Answer::Approve { .. }) => Costs::Approved,
        LeafEnd::Answered(_) | LeafEnd::Failed { .. } => Costs::Nothing,
    }
}

/// Which budget is over after the event, by the books.
fn over(before: &State, costs: &Costs) -> Option<Cause> {
    let limits = &before.limits;
    let was = spent(before);
    let planner = before.at == At::Planning;
    let of = |kind: usize| {
        if planner {
            was.planner[kind]
        } else {
            was.work[kind]
        }
    };
    match costs {
        Costs::Stuck if of(STUCK) >= limits.stuck_retries => Some(Cause::KilledStuck),
        Costs::Malformed if of(MALFORMED) >= limits.malformed => Some(match planner {
            true => Cause::PlanInvalid,
            false => Cause::VerdictMalformed,
        }),
        Costs::Revision if was.work[REVISIONS] >= limits.revisions => Some(Cause::ReviseExhausted),
        _ => None,
    }
}

/// What the books say against this step of the machine.
pub(super) fn of_step(before: &State, event: &Event, after: &State, begins: bool) -> Option<Wrong> {
    let costs = cost(before, event);
    let over = over(before, &costs);
    let (was, is) = (spent(before), spent(after));
    let mut should = was;
    let planner = before.at == At::Planning;
    match costs {
        Costs::Crash | Costs::Nothing => {}
        Costs::Stuck if planner => should.planner[STUCK] += 1,
        Costs::Malformed if planner => should.planner[MALFORMED] += 1,
        Costs::Stuck => should.work[STUCK] += 1,
        Costs::Malformed => should.work[MALFORMED] += 1,
        Costs::Developed => should.work[STUCK] = 0,
        Costs::Approved => (should.work[STUCK], should.work[MALFORMED]) = (0, 0),
        Costs::Revision => {
            (should.work[STUCK], should.work[MALFORMED]) = (0, 0);
            should.work[REVISIONS] += u32::from(over.is_none());
        }
        Costs::Reopen => should.work = [0, 0, 0, was.work[REOPENS] + 1],
        Costs::Renews(Some(Cause::ReviseExhausted)) => should.work[REVISIONS] = 0,
        Costs::Renews(Some(Cause::KilledStuck)) => {
            (should.planner[STUCK], should.work[STUCK]) = (0, 0)
        }
        Costs::Renews(Some(Cause::PlanInvalid)) => should.planner[MALFORMED] = 0,
        Costs::Renews(Some(Cause::VerdictMalformed)) => should.work[MALFORMED] = 0,
        Costs::Renews(_) => {}
        Costs::RenewsAll => {
            should = Spent {
                planner: [0; 2],
                work: [0; 4],
            }
        }
    }
    // A plan that could be read is the end of the planner's counters; another phase has its own.
    if let Event::LeafEnded(LeafEnd::Answered(Answer::Plan(_))) = event {
        should.planner = [0; 2];
    }
    if begins {
        should.work = [0; 4];
    } else if phase(before) != phase(after) && !matches!(costs, Costs::Reopen) {
        should.work = match (&before.work, &after.work) {
            (Some(b), Some(a)) if b.step.same_as(&a.step) => [0, 0, 0, was.work[REOPENS]],
            _ => [0; 4],
        };
    }
    if is != should {
        return Some(match costs {
            Costs::Crash => Wrong::CrashCostBudget,
            _ => Wrong::Budget(format!(
                "{was:?} became {is:?}, not {should:?}, by {event:?}"
            )),
        });
    }
    ends_when_spent(before, over, after)
}

/// A budget ends the run (or the refactor) when it is over, and not a moment before.
fn ends_when_spent(before: &State, over: Option<Cause>, after: &State) -> Option<Wrong> {
    let bailed = |state: &State| match &state.at {
        At::Unwinding(Ending::Bailed(bail)) | At::Ended(Ending::Bailed(bail)) => Some(bail.cause),
        _ => None,
    };
    let budget = |cause: &Cause| {
        matches!(
            cause,
            Cause::KilledStuck
                | Cause::VerdictMalformed
                | Cause::ReviseExhausted
                | Cause::PlanInvalid
        )
    };
    let dropped = after
        .work
        .as_ref()
        .is_some_and(|w| matches!(w.stage, Stage::Drop { .. }));
    let drops = before
        .work
        .as_ref()
        .is_some_and(|w| w.claim == Claim::Refactor);
    let ended = bailed(after)
        .filter(budget)
        .filter(|_| bailed(before).is_none());
    let expected = match over {
        Some(_) if drops => dropped && ended.is_none(),
        Some(cause) => ended == Some(cause),
        // A plan that a person gave may be invalid without a planner.
        None => {
            ended.is_none_or(|c| c == Cause::PlanInvalid && matches!(before.at, At::CommitPlan(_)))
        }
    };
    (!expected).then(|| {
        Wrong::Budget(format!(
            "over: {over:?}, bailed: {ended:?}, dropped: {dropped}"
        ))
    })
}
