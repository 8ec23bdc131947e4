//! The machine under test: the real `next`, or the real one behind a fault. Production code knows nothing of this.

use crate::machine::{self, Effect, Event, Illegal, State};

/// What is wrong with a mutant: what it takes an event for, and what it makes of the state that the real machine
/// comes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) hears: fn(&State, Event) -> Event,
    pub(super) does: fn(&State, &Event, &mut State),
}

/// One step of the machine, or of a mutant.
pub(super) fn next(
    fault: Option<Fault>,
    before: &State,
    event: Event,
) -> Result<(State, Vec<Effect>), Illegal> {
    let Some(fault) = fault else {
        return machine::next(before.clone(), event);
    };
    let heard = (fault.hears)(before, event);
    let (mut after, mut effects) = machine::next(before.clone(), heard.clone())?;
    (fault.does)(before, &heard, &mut after);
    effects.retain(|e| matches!(e, Effect::Note(_) | Effect::Mirror | Effect::Push));
    effects.extend(after.pending());
    Ok((after, effects))
}
