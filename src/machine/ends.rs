//! What every part of the machine says the same way: an end, an end that is not the leaf's, a pair that
//! cannot happen.

use super::event::{Event, LeafEnd};
use super::state::{At, Ending, State};
use crate::cause::{Bail, Cause};
use crate::role::StopMode;

/// A pair of state and event that cannot happen: a bug of the shell, or a damaged journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event {event} cannot happen while the run is {at}")]
pub struct Illegal {
    /// Where the run stood.
    pub at: String,
    /// The event's name.
    pub event: String,
}

/// Launches that may leave no trace between two starts of the conductor: the one that an earlier start left open.
const LOSSES: u32 = 1;

/// A launch that left a trace: what is lost after it is counted anew.
pub(super) fn seen(state: &mut State, ended: &LeafEnd) {
    if !matches!(ended, LeafEnd::Lost | LeafEnd::NeverStarted) {
        state.lost = 0;
    }
}

/// The ends of a leaf that say nothing of its work, whoever it was.
pub(super) fn not_of_the_leaf(state: &mut State, ended: LeafEnd) {
    match ended {
        // A request may have become stronger since the machine was told of it: what was done is what is said.
        LeafEnd::Stopped => end(state, Ending::Stopped(StopMode::Now)),
        LeafEnd::Refused => {
            let mode = state
                .stop
                .map_or(StopMode::AtLeaf, |m| m.max(StopMode::AtLeaf));
            end(state, Ending::Stopped(mode));
        }
        LeafEnd::External { detail } => {
            end(
                state,
                Ending::Bailed(Bail::new(Cause::KilledExternal, detail)),
            );
        }
        LeafEnd::SpawnFailed { detail } => {
            end(
                state,
                Ending::Bailed(Bail::new(Cause::AgentUnavailable, detail)),
            );
        }
        // Relaunched without budget, which is right for what an earlier conductor left. One that watches
        // loses nothing: should it, that must not go on for ever.
        LeafEnd::Lost | LeafEnd::NeverStarted => {
            state.lost += 1;
            if state.lost > LOSSES {
                let detail = format!(
                    "{} launches in a row ended without a trace. Something on this machine keeps leaves from \
                     running (the out-of-memory killer, a program that was replaced); run again to go on.",
                    state.lost
                );
                end(
                    state,
                    Ending::Bailed(Bail::new(Cause::KilledExternal, detail)),
                );
            }
        }
        LeafEnd::Answered(_)
        | LeafEnd::Malformed { .. }
        | LeafEnd::Failed { .. }
        | LeafEnd::Stuck
        | LeafEnd::Late { .. }
        | LeafEnd::Silent { .. } => {}
    }
}

/// A leaf was ended by us more often than its budget allows; `last` is how it ended the last time.
pub(super) fn stuck_bail(who: &str, launches: u32, last: &LeafEnd) -> Bail {
    let passed = match last {
        LeafEnd::Late { detail } | LeafEnd::Silent { detail } => detail,
        _ => "it had passed one of its deadlines (--timeout, limits)",
    };
    Bail::new(
        Cause::KilledStuck,
        format!(
            "{who} was killed as stuck in each of {launches} launches. The last time {passed}: raise that or \
             limits.stuck_retries (a file that was changed counts with --new-templates), or look at what it waits \
             for; then run the same command again."
        ),
    )
}

pub(super) fn end(state: &mut State, ending: Ending) {
    state.at = At::Unwinding(ending);
}

pub(super) fn illegal(at: &At, event: &Event) -> Result<(), Illegal> {
    // The first word of the debug form is the variant's name, and holds no data.
    let name = |text: String| {
        text.split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    Err(Illegal {
        at: name(format!("{at:?}")),
        event: name(format!("{event:?}")),
    })
}
