//! What must never happen, seen from outside the machine: by what the world knows of approvals, commits, kills and
//! requests, and never by what the machine says of itself.

use super::budgets;
use super::world::{Conductor, Now, Seen, World, name};
use crate::cause::Cause;
use crate::machine::{At, Effect, Ending, Event, From, Leaf, LeafEnd, Notice, Renew, State, Work};
use crate::role::{Claim, Phase, Role};

/// A fault: `properties.rs` says what each means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Wrong {
    TwoLeaves,
    LeftRunning,
    TickUnproven,
    CommittedTwice,
    OursCalledExternal,
    CrashCostBudget,
    Budget(String),
    Illegal(String),
    StopIgnored,
    StoppedUnasked,
    Unfounded,
    DoneUndone,
    CrashLost,
    NoProgress,
    EndChanged,
    NotAwaited,
}

/// What is wrong with a step of the machine. `world` is as it was before it.
pub(super) fn of_step(
    world: &World,
    before: &State,
    event: &Event,
    after: &State,
    effects: &[Effect],
) -> Vec<Wrong> {
    let begins = effects
        .iter()
        .any(|e| matches!(e, Effect::Note(Notice::StepStart(_))));
    let faults = [
        awaited(after, effects),
        called_external(before, event, after),
        stops(world, before, after, begins),
        forgets(before, event, after),
        changes_end(before, event, after),
        budgets::of_step(before, event, after, begins),
    ];
    faults.into_iter().flatten().collect()
}

/// One effect is awaited, the last, and it is the one that the state says; none only at the end.
fn awaited(after: &State, effects: &[Effect]) -> Option<Wrong> {
    let awaited: Vec<&Effect> = effects.iter().filter(|e| is_awaited(e)).collect();
    let pending = after.pending();
    let none = matches!(after.at, At::Ended(_));
    (awaited != Vec::from_iter(&pending) || pending.is_none() != none).then_some(Wrong::NotAwaited)
}

fn is_awaited(effect: &Effect) -> bool {
    !matches!(effect, Effect::Note(_) | Effect::Mirror | Effect::Push)
}

fn ends(state: &State) -> Option<&Ending> {
    match &state.at {
        At::Unwinding(ending) | At::Ended(ending) => Some(ending),
        _ => None,
    }
}

/// Only what somebody else killed, while a conductor watched, may be called so.
fn called_external(before: &State, event: &Event, after: &State) -> Option<Wrong> {
    let called =
        |state| matches!(ends(state), Some(Ending::Bailed(b)) if b.cause == Cause::KilledExternal);
    let by_others = match event {
        Event::LeafEnded(LeafEnd::External { .. }) => true,
        Event::Failed(bail) => bail.cause == Cause::KilledExternal,
        // One that an earlier conductor left, and another that this one has launched.
        Event::LeafEnded(LeafEnd::Lost | LeafEnd::NeverStarted) => before.lost > 0,
        _ => called(before),
    };
    (called(after) && !by_others).then_some(Wrong::OursCalledExternal)
}

/// A crash takes nothing of the claim under way with it, nor does a stop.
fn forgets(before: &State, event: &Event, after: &State) -> Option<Wrong> {
    let bailed = matches!(ends(before), Some(Ending::Bailed(_)));
    let kept = match event {
        Event::Resumed {
            renew: Renew::Spent,
            ..
        } if !bailed => true,
        Event::PreflightPassed { .. } => true,
        Event::LedgerRead {
            steps,
            committed: None,
            moved: false,
            ..
        } => {
            let same = |work: &Work| {
                let first = steps.iter().find(|s| !s.ticked);
                let mine = steps.iter().find(|s| s.number == work.step.number);
                let named = mine.is_some_and(|s| s.same_as(&work.step));
                let due = match work.claim {
                    Claim::Refactor => mine.is_some_and(|s| s.ticked),
                    _ => first.is_some_and(|s| s.number == work.step.number),
                };
                named && due
            };
            before.work.as_ref().is_some_and(same)
        }
        _ => false,
    };
    (kept && before.work != after.work).then_some(Wrong::CrashLost)
}

/// Putting things back never changes how the run ends.
fn changes_end(before: &State, event: &Event, after: &State) -> Option<Wrong> {
    let unwound = matches!(event, Event::Unwound);
    (unwound && ends(before) != ends(after)).then_some(Wrong::EndChanged)
}

fn stops(world: &World, before: &State, after: &State, begins: bool) -> Option<Wrong> {
    let publishes = after.at == At::Publishing && before.at != At::Publishing;
    if world.told.is_some() && (begins || publishes) {
        return Some(Wrong::StopIgnored);
    }
    let Some(Ending::Stopped(mode)) = ends(after) else {
        return None;
    };
    if ends(before) == ends(after) {
        return None;
    }
    // A stop at the ledger is one between two steps; and no stop is one that nobody asked for.
    let amid = after.work.is_some() && *mode == crate::role::StopMode::AtLedger;
    let unasked = world.told.max(world.request) < Some(*mode);
    (amid || unasked).then_some(Wrong::StoppedUnasked)
}

/// What is wrong with launching this leaf now.
pub(super) fn of_launch(world: &World, leaf: &Leaf) -> Option<Wrong> {
    if world.launch.as_ref().is_some_and(|l| l.now == Now::Running) {
        return Some(Wrong::TwoLeaves);
    }
    let step = name(leaf.step.as_ref()?);
    let approved = |tree, phase| world.has(tree, step, Seen::Approved(phase, false));
    let work = world.work()?;
    let founded = match leaf.claim? {
        // An approved test is asked for again only where green found that others stand against it.
        Claim::Red | Claim::AlreadyThere => {
            let kept = world
                .git
                .red
                .as_ref()
                .is_some_and(|r| r.fits && r.step == step);
            !kept || work.saved_code.is_some()
        }
        Claim::Green => {
            let from_red = match &leaf.from {
                From::Head => false,
                From::Tree(_) => true,
                From::Merge { red, .. } => work.red.as_ref() == Some(red),
            };
            from_red
                && work
                    .red
                    .as_ref()
                    .is_some_and(|red| approved(red, Phase::Red))
        }
        Claim::Refactor => world.commits_of(step, false) > 0 || world.is_ticked(step),
        Claim::NoTest => leaf.step.as_ref()?.no_test.is_some(),
    };
    let judged = match (leaf.role, &leaf.candidate) {
        (Role::Verifier, Some(tree)) => world.has(tree, step, Seen::Held(leaf.phase)),
        (Role::Verifier, None) => false,
        (Role::Developer | Role::Planner, _) => true,
    };
    (!founded || !judged).then_some(Wrong::Unfounded)
}

/// What is wrong with making this commit now.
pub(super) fn of_commit(world: &World, work: &Work) -> Option<Wrong> {
    let step = name(&work.step);
    if world.commits_of(step, work.claim == Claim::Refactor) > 0 {
        return Some(Wrong::CommittedTwice);
    }
    let Some(tree) = &work.candidate else {
        return Some(Wrong::TickUnproven);
    };
    let phase = work.claim.phase();
    let there = work.claim == Claim::AlreadyThere;
    let mut proven = world.has(tree, step, Seen::Held(phase))
        && world.has(tree, step, Seen::Approved(phase, there));
    proven &= match work.claim {
        Claim::Red => false,
        Claim::Green => {
            let red = world
                .git
                .red
                .as_ref()
                .filter(|red| Some(&red.tree) == work.red.as_ref());
            red.is_some_and(|r| {
                r.fits && world.has(&r.tree, step, Seen::Approved(Phase::Red, false))
            })
        }
        Claim::AlreadyThere => world.has(tree, step, Seen::Proved),
        Claim::NoTest => work.step.no_test.is_some(),
        Claim::Refactor => world.is_ticked(step),
    };
    (!proven).then_some(Wrong::TickUnproven)
}

/// What is wrong with the world itself.
pub(super) fn of_world(world: &World) -> Option<Wrong> {
    let running = world.launch.as_ref().is_some_and(|l| l.now == Now::Running);
    if world.is_over() && running {
        return Some(Wrong::LeftRunning);
    }
    if world.git.plans > 1 {
        return Some(Wrong::CommittedTwice);
    }
    let done = matches!(world.ending(), Some(Ending::Done { .. }));
    let ticked = world.git.steps.iter().all(|s| s.ticked);
    if done && world.conductor == Conductor::Live && !(ticked && world.pull && world.past.accepted)
    {
        return Some(Wrong::DoneUndone);
    }
    None
}

impl World {
    fn commits_of(&self, step: super::world::Name, refactor: bool) -> u8 {
        let at = usize::from(step.0).checked_sub(1);
        let found = at.and_then(|at| self.git.steps.get(at));
        found.map_or(0, |s| s.commits[usize::from(refactor)])
    }

    fn is_ticked(&self, step: super::world::Name) -> bool {
        let at = usize::from(step.0).checked_sub(1);
        at.and_then(|at| self.git.steps.get(at))
            .is_some_and(|s| s.ticked)
    }
}
