//! Why every run ends: a measure that each action makes smaller. Whatever a path does, it can do only so much of it.
//!
//! This is stronger than the absence of cycles in what was explored, it is checked at each step alone, and so it has none
//! of the blind spots of the checker's own `eventually`.

use super::world::{Conductor, Now, World};
use crate::machine::{At, Stage, Work};
use crate::role::{Claim, StopMode};

/// Compared from the left.
pub(super) type Rank = [u32; 14];

/// How much may still happen, at most.
pub(super) fn of(world: &World) -> Rank {
    let machine = &world.machine;
    let limits = &machine.limits;
    let working = matches!(machine.at, At::Working | At::Boundary);
    let work = machine.work.as_ref().filter(|_| working);
    let left = |limit: u32, spent: u32| limit.saturating_add(1).saturating_sub(spent);
    let planner = match machine.at {
        At::Planning => {
            left(limits.stuck_retries, machine.planner.stuck)
                + left(limits.malformed, machine.planner.malformed)
        }
        _ => 0,
    };
    [
        world.fuel.into(),
        start(world),
        3 - world.told.map_or(0, strength),
        at(&machine.at, work.is_some()),
        if working { unticked(world) } else { 0 },
        work.map_or(if working { TICKED } else { 0 }, |w| step(world, w)),
        work.map_or(0, |w| left(limits.reopens, w.reopens)),
        work.map_or(0, |w| claim(w.claim)),
        work.map_or(0, |w| left(limits.revisions, w.revisions)),
        work.map_or(0, |w| stage(&w.stage)),
        work.map_or(planner, |w| {
            left(limits.stuck_retries, w.stuck) + left(limits.malformed, w.malformed)
        }),
        2_u32.saturating_sub(machine.lost),
        launch(world),
        u32::from(!world.performed),
    ]
}

/// What is left of this start. A start that takes fuel begins anew.
fn start(world: &World) -> u32 {
    match world.conductor {
        Conductor::Dead if world.closed => 0,
        Conductor::Live => 1,
        Conductor::Starting => 2,
        Conductor::Dead => 3,
    }
}

fn strength(mode: StopMode) -> u32 {
    match mode {
        StopMode::AtLedger => 1,
        StopMode::AtLeaf => 2,
        StopMode::Now => 3,
    }
}

fn at(at: &At, work: bool) -> u32 {
    match at {
        At::New => 9,
        At::Preflight => 8,
        At::Planning => 7,
        At::CommitPlan(_) => 6,
        // After a resume alone: what is found may make the claim begin again.
        At::Boundary if work => 5,
        At::Boundary | At::Working => 4,
        At::Accepting => 3,
        At::Publishing => 2,
        At::Unwinding(_) => 1,
        At::Ended(_) => 0,
    }
}

fn unticked(world: &World) -> u32 {
    world.git.steps.iter().map(|s| u32::from(!s.ticked)).sum()
}

/// Between two steps: what follows a tick comes before it, the work on the next step after it.
const TICKED: u32 = 1;

fn step(world: &World, work: &Work) -> u32 {
    let at = usize::try_from(work.step.number)
        .unwrap_or(0)
        .checked_sub(1);
    let ticked = at
        .and_then(|at| world.git.steps.get(at))
        .is_some_and(|s| s.ticked);
    if ticked { TICKED + 1 } else { TICKED - 1 }
}

fn claim(claim: Claim) -> u32 {
    match claim {
        Claim::Red | Claim::AlreadyThere => 2,
        Claim::Green | Claim::NoTest => 1,
        Claim::Refactor => 0,
    }
}

fn stage(stage: &Stage) -> u32 {
    match stage {
        Stage::Develop => 7,
        Stage::Collect { .. } => 6,
        Stage::Check => 5,
        Stage::Verify => 4,
        Stage::Prove { .. } => 3,
        Stage::KeepRed => 2,
        Stage::Commit => 1,
        Stage::Drop { .. } => 0,
    }
}

fn launch(world: &World) -> u32 {
    match &world.launch {
        // A start launches nothing before it has settled what was launched.
        None if world.conductor == Conductor::Starting => 0,
        None => 5,
        Some(launch) => match launch.now {
            Now::Intended => 4,
            Now::Running if launch.held => 2,
            Now::Running => 3,
            Now::Answered | Now::Stuck | Now::Stopped | Now::Gone | Now::SpawnFailed => 1,
        },
    }
}
