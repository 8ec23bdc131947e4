//! What can happen in a world, and what comes of it. The shell's part is as `conductor/run.rs`, `start.rs`,
//! `pick_up.rs` and `leaves.rs` play it; two defences of theirs are left out (the leaf's lock, the ending of leaves that
//! no journal knows), since the machine must not lean on them.

use super::Cycle;
use super::outcomes;
use super::rank;
use super::world::{Conductor, Now, World};
use super::wrong::{self, Wrong};
use crate::cause::Cause;
use crate::machine::{Answer, At, Effect, Ending, Event, LeafEnd, Limits, Renew};
use crate::role::{Role, StopMode};

/// One thing that happens. Those that are somebody's doing, and not the run's own, take fuel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// The command is given (again). A rerun after an end takes fuel; after a crash it does not.
    Start,
    /// The end of the open launch is read and given to the machine.
    Read(LeafEnd),
    /// A starting conductor finds the leaf alive and holds it.
    TakeUp,
    /// A starting conductor, with nothing left to settle, tells the machine of the start.
    Begin(Event),
    /// A starting conductor finds a bail that was put back but not told: it tells it, and has ended.
    TellOfEnd,
    /// The conductor finds a stop request and tells the machine.
    Look,
    /// The launch is journalled.
    Intend,
    /// The shim starts the leaf, or cannot.
    LeafStarts,
    LeafCannotStart,
    /// It ends by itself.
    LeafAnswers,
    /// Its deadline passes: the shim, which needs no conductor for it, ends it.
    LeafIsStuck,
    /// The conductor that holds it ends it for a stop of mode now.
    EndLeaf,
    /// The awaited effect does what can be seen outside, its outcome not yet journalled.
    Perform,
    /// The awaited effect has this outcome: journalled, and counted.
    Outcome(Event),
    /// Before the ledger is read, a person does this to the branch.
    Edit(Edit),
    /// The conductor tells how it ended, removes the request, and exits.
    Close,
    /// Kill -9 of the conductor.
    Crash,
    /// Kill -9 of the conductor, the shim and the leaf.
    CrashOfAll,
    /// Somebody kills shim and leaf.
    KillLeaf,
    Ask(StopMode),
}

/// What a person does to the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Edit {
    /// Code is committed.
    Code,
    /// The first unticked step, or the newest ticked one when there is none, gets another title.
    Rename,
    /// The first unticked step is ticked.
    Tick,
}

impl Cycle {
    pub(super) fn possible(&self, world: &World, actions: &mut Vec<Action>) {
        let fuelled = world.fuel > 0;
        match world.conductor {
            Conductor::Dead => {
                if !world.closed || fuelled {
                    actions.push(Action::Start);
                }
                // What happens while nobody watches, as far as there is anything left to happen.
                leaf_alone(world, actions);
            }
            Conductor::Starting => self.while_starting(world, actions),
            Conductor::Live => self.while_live(world, actions),
        }
        if !fuelled {
            return;
        }
        let running = world.launch.as_ref().is_some_and(|l| l.now == Now::Running);
        if running {
            actions.push(Action::KillLeaf);
        }
        if world.conductor != Conductor::Dead {
            actions.push(Action::Crash);
            if running {
                actions.push(Action::CrashOfAll);
            }
            for mode in [StopMode::AtLedger, StopMode::AtLeaf, StopMode::Now] {
                if world.request < Some(mode) && !world.is_over() {
                    actions.push(Action::Ask(mode));
                }
            }
        }
    }

    fn while_starting(&self, world: &World, actions: &mut Vec<Action>) {
        if let (Some(Effect::Launch(_)), Some(launch)) = (world.machine.pending(), &world.launch) {
            if !launch.held && launch.now == Now::Running {
                actions.push(Action::TakeUp);
                leaf_alone(world, actions);
                return;
            }
            watch(world, actions);
            // A plan is read when the text is known: after preflight.
            if launch.role != Role::Planner || launch.now != Now::Answered {
                outcomes::of_launch(world, launch, actions);
                return;
            }
        }
        let unwind = |ending: &Ending| match ending {
            // What this start has itself found of the open launch, or a bail that was cut off: told first.
            Ending::Bailed(bail) => bail.cause != Cause::StorageFailed,
            Ending::Stopped(_) => world.performed && world.request.is_some(),
            Ending::Done { .. } | Ending::Planned => false,
        };
        match &world.machine.at {
            At::New => {
                for plan in [None, Some(outcomes::plan())] {
                    let limits = self.limits();
                    actions.push(Action::Begin(Event::Begun { limits, plan }));
                }
            }
            At::Unwinding(ending) if unwind(ending) => actions.push(Action::TellOfEnd),
            At::Unwinding(_) => actions.push(Action::Outcome(Event::Unwound)),
            at => {
                if matches!(at, At::Ended(Ending::Bailed(_))) && !world.closed {
                    actions.push(Action::TellOfEnd);
                }
                let renewals = [Renew::Spent, Renew::All];
                // The flag is the person's: given where there is something to renew.
                for renew in renewals.into_iter().take(if world.closed { 2 } else { 1 }) {
                    let limits = self.limits();
                    let plan = None;
                    actions.push(Action::Begin(Event::Resumed {
                        limits,
                        renew,
                        plan,
                    }));
                }
            }
        }
    }

    fn while_live(&self, world: &World, actions: &mut Vec<Action>) {
        if world.is_over() {
            actions.push(Action::Close);
            return;
        }
        let Some(effect) = world.machine.pending() else {
            return;
        };
        if let Some(launch) = &world.launch
            && (launch.held || awaits_planner(&effect))
        {
            watch(world, actions);
            outcomes::of_launch(world, launch, actions);
            if self.careless {
                actions.push(Action::Read(LeafEnd::NeverStarted));
            }
            return;
        }
        if world.request > world.told && !world.performed {
            actions.push(Action::Look);
            // Only a launch looks for itself, and may find what came just after that look.
            if !matches!(effect, Effect::Launch(_)) {
                return;
            }
        }
        outcomes::of(world, &effect, actions);
    }

    fn limits(&self) -> Limits {
        Limits {
            stuck_retries: 1,
            revisions: 1,
            malformed: 1,
            reopens: 1,
            refactor: self.refactor,
            plan_only: false,
        }
    }

    /// What comes of an action; None where it changes nothing.
    pub(super) fn after(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        world.wrong.clear();
        if costs(&world, &action) {
            world.fuel = world.fuel.checked_sub(1)?;
        }
        world.perform(self.fault, action);
        let faults = wrong::of_world(&world);
        world.wrong.extend(faults);
        if rank::of(&world) >= rank::of(before) {
            world.wrong.push(Wrong::NoProgress);
        }
        Some(world)
    }
}

/// Whether the action is somebody's doing, of which a path has only so many.
fn costs(world: &World, action: &Action) -> bool {
    match action {
        Action::Start => world.closed,
        Action::Crash
        | Action::CrashOfAll
        | Action::KillLeaf
        | Action::Ask(_)
        | Action::Edit(_) => true,
        Action::Outcome(Event::Failed(_)) | Action::LeafCannotStart => true,
        Action::Read(LeafEnd::Answered(Answer::NeedsUser { .. })) => true,
        _ => false,
    }
}

/// The planner's open launch is settled by `Run::launch`, once preflight has given the text.
fn awaits_planner(effect: &Effect) -> bool {
    matches!(effect, Effect::Launch(leaf) if leaf.role == Role::Planner)
}

/// What a leaf and its shim do, whoever watches.
fn leaf_alone(world: &World, actions: &mut Vec<Action>) {
    if world.launch.as_ref().is_some_and(|l| l.now == Now::Running) {
        actions.push(Action::LeafAnswers);
        actions.push(Action::LeafIsStuck);
    }
}

/// What can happen while a conductor holds a leaf.
fn watch(world: &World, actions: &mut Vec<Action>) {
    let Some(launch) = &world.launch else { return };
    match launch.now {
        Now::Intended if launch.held => {
            actions.extend([Action::LeafStarts, Action::LeafCannotStart])
        }
        Now::Running => {
            leaf_alone(world, actions);
            if world.request == Some(StopMode::Now) {
                actions.push(Action::EndLeaf);
            }
            if launch.held && world.request > world.told {
                actions.push(Action::Look);
            }
        }
        _ => {}
    }
}
