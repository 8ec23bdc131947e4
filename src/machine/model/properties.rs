//! What must hold of every world, and what must be found in some: a model in which nothing happens proves nothing.

use super::Cycle;
use super::world::{Conductor, Now, World};
use super::wrong::Wrong;
use crate::cause::Cause;
use crate::machine::{At, Ending, From, Stage};
use crate::role::{Claim, StopMode};
use stateright::Property;

// The specification's.
pub(super) const ONE_LEAF: &str = "at most one leaf runs";
pub(super) const PROVEN: &str = "no tick without an approved red and green";
pub(super) const ONCE: &str = "never two commits of one step";
pub(super) const OURS: &str = "a kill of ours is never called external";
pub(super) const ENDS: &str = "every run ends";
pub(super) const FREE: &str = "a crash costs no budget";
// What else is promised.
pub(super) const KEPT: &str = "a crash or stop takes nothing of the claim under way";
pub(super) const BOOKS: &str =
    "a budget is spent by what it is for alone, and ends the run when it is over";
pub(super) const LEGAL: &str = "what can happen is never illegal";
pub(super) const OBEYED: &str = "a stop that was told is obeyed";
pub(super) const ASKED: &str = "no stop that nobody asked for";
pub(super) const FOUNDED: &str = "no leaf is launched without what it builds on";
pub(super) const QUIET: &str = "nothing runs when the run has ended";
pub(super) const DONE: &str = "done is accepted, ticked and published";
pub(super) const CAUSE: &str = "putting back never changes how the run ends";
pub(super) const AWAITED: &str = "exactly one effect is awaited until the run has ended";

macro_rules! never {
    ($name:expr, $wrong:pat) => {
        Property::always($name, |_, world: &World| {
            !world.wrong.iter().any(|wrong| matches!(wrong, $wrong))
        })
    };
}

/// All of them.
pub(super) fn all() -> Vec<Property<Cycle>> {
    let mut all = vec![
        never!(ONE_LEAF, Wrong::TwoLeaves),
        never!(PROVEN, Wrong::TickUnproven),
        never!(ONCE, Wrong::CommittedTwice),
        never!(OURS, Wrong::OursCalledExternal),
        never!(ENDS, Wrong::NoProgress),
        never!(FREE, Wrong::CrashCostBudget),
        never!(KEPT, Wrong::CrashLost),
        never!(BOOKS, Wrong::Budget(_)),
        never!(LEGAL, Wrong::Illegal(_)),
        never!(OBEYED, Wrong::StopIgnored),
        never!(ASKED, Wrong::StoppedUnasked),
        never!(FOUNDED, Wrong::Unfounded),
        never!(QUIET, Wrong::LeftRunning),
        never!(DONE, Wrong::DoneUndone),
        never!(CAUSE, Wrong::EndChanged),
        never!(AWAITED, Wrong::NotAwaited),
    ];
    all.extend(found());
    all
}

/// What some path comes by, or the model would be no model of the machine.
fn found() -> Vec<Property<Cycle>> {
    type Seen = fn(&Cycle, &World) -> bool;
    let seen: [(&'static str, Seen); 22] = [
        ("a run is done", |_, w| {
            matches!(w.ending(), Some(Ending::Done { .. }))
        }),
        ("a run is done after all that may happen", |_, w| {
            w.fuel == 0 && matches!(w.ending(), Some(Ending::Done { .. }))
        }),
        ("a refactor is dropped", |_, w| {
            at_stage(w, |s| matches!(s, Stage::Drop { .. }))
        }),
        ("a red is reopened", |_, w| {
            w.work().is_some_and(|k| k.reopens > 0)
        }),
        ("saved code meets a new red", |_, w| {
            w.work()
                .is_some_and(|k| matches!(k.from, From::Merge { .. }))
        }),
        ("an already-there test is committed", |_, w| {
            w.performed && w.work().is_some_and(|k| k.claim == Claim::AlreadyThere)
        }),
        ("revisions run out", |_, w| {
            bailed(w, Cause::ReviseExhausted)
        }),
        ("stuck-retries run out", |_, w| {
            bailed(w, Cause::KilledStuck)
        }),
        ("a verifier's malformed answers run out", |_, w| {
            bailed(w, Cause::VerdictMalformed)
        }),
        ("a planner's malformed answers run out", |_, w| {
            bailed(w, Cause::PlanInvalid)
        }),
        ("somebody kills a leaf", |_, w| {
            bailed(w, Cause::KilledExternal)
        }),
        ("a question is asked", |_, w| bailed(w, Cause::NeedsUser)),
        ("a run stops at the ledger", |_, w| {
            stopped(w, StopMode::AtLedger)
        }),
        ("a run stops at a leaf", |_, w| stopped(w, StopMode::AtLeaf)),
        ("a run stops now", |_, w| stopped(w, StopMode::Now)),
        ("a launch is lost", |_, w| w.machine.lost > 0),
        ("a start puts back what a full disk has ended", |_, w| {
            let ended = &w.machine.at;
            let full = |b: &crate::cause::Bail| b.cause == Cause::StorageFailed;
            w.conductor == Conductor::Starting
                && matches!(ended, At::Unwinding(Ending::Bailed(b)) if full(b))
        }),
        ("a leaf is taken up", |_, w| {
            w.conductor == Conductor::Starting
                && w.launch
                    .as_ref()
                    .is_some_and(|l| l.held && l.now == Now::Running)
        }),
        ("a leaf answers with no conductor alive", |_, w| {
            w.conductor == Conductor::Dead
                && w.launch.as_ref().is_some_and(|l| l.now == Now::Answered)
        }),
        (
            "a plan waits for the start after the one that died",
            |_, w| {
                w.machine.at == At::Planning
                    && w.launch
                        .as_ref()
                        .is_some_and(|l| !l.held && l.now == Now::Answered)
            },
        ),
        ("a commit is found that a crash came after", |_, w| {
            w.machine.at == At::Boundary && w.git.unrecorded && at_stage(w, |s| *s == Stage::Commit)
        }),
        ("the branch moves under a claim", |_, w| {
            w.machine.at == At::Boundary && w.git.moved && w.work().is_some()
        }),
    ];
    let property = |(name, condition)| Property::sometimes(name, condition);
    seen.into_iter().map(property).collect()
}

fn at_stage(world: &World, is: fn(&Stage) -> bool) -> bool {
    world.work().is_some_and(|work| is(&work.stage))
}

fn bailed(world: &World, cause: Cause) -> bool {
    matches!(world.ending(), Some(Ending::Bailed(bail)) if bail.cause == cause)
}

fn stopped(world: &World, mode: StopMode) -> bool {
    world.ending() == Some(&Ending::Stopped(mode))
}
