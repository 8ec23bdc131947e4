//! Machines with one fault each, and the property that must notice it.

mod crashes;
mod proofs;
mod spending;
mod stops;

use super::fault::Fault;
use crate::cause::{Bail, Cause};
use crate::machine::{Answer, At, Ending, Event, LeafEnd, State, Work};
use crate::role::Claim;

/// A machine with a fault.
pub(super) struct Mutant {
    /// What it does that it should not.
    pub(super) name: &'static str,
    /// What must notice.
    pub(super) property: &'static str,
    /// How much must come in the run's way for the fault to show.
    pub(super) fuel: u8,
    pub(super) fault: Fault,
}

fn does(
    name: &'static str,
    property: &'static str,
    fuel: u8,
    does: fn(&State, &Event, &mut State),
) -> Mutant {
    let fault = Fault {
        hears: |_, event| event,
        does,
    };
    Mutant {
        name,
        property,
        fuel,
        fault,
    }
}

fn hears(
    name: &'static str,
    property: &'static str,
    fuel: u8,
    hears: fn(&State, Event) -> Event,
) -> Mutant {
    let fault = Fault {
        hears,
        does: |_, _, _| {},
    };
    Mutant {
        name,
        property,
        fuel,
        fault,
    }
}

pub(super) fn all() -> Vec<Mutant> {
    let mut all = crashes::mutants();
    all.extend(proofs::mutants());
    all.extend(spending::endless());
    all.extend(spending::miscounted());
    all.extend(stops::mutants());
    all
}

/// Changes the claim under way, where there is one.
fn work(after: &mut State, change: impl FnOnce(&mut Work)) {
    if let Some(work) = &mut after.work {
        change(work);
    }
}

fn spent(state: &State) -> (u32, u32) {
    state
        .work
        .as_ref()
        .map_or((0, 0), |w| (w.revisions, w.stuck))
}

fn claims(state: &State, claim: Claim) -> bool {
    state.work.as_ref().is_some_and(|w| w.claim == claim)
}

fn bailed(cause: Cause) -> At {
    At::Unwinding(Ending::Bailed(Bail::new(cause, "")))
}

fn is_lost(event: &Event) -> bool {
    matches!(
        event,
        Event::LeafEnded(LeafEnd::Lost | LeafEnd::NeverStarted)
    )
}

fn approve() -> Event {
    Event::LeafEnded(LeafEnd::Answered(Answer::Approve { breaks_with: None }))
}
