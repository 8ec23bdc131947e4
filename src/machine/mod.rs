//! The conductor's state machine: `next(state, event) -> (state, effects)`.
//!
//! Pure. The shell replays the journal through [`next`], performs the effect that the state awaits
//! ([`State::pending`]), and feeds its outcome back as the next event. Exactly one effect is awaited
//! at a time; the others in the list (notices, mirror, push) are not waited for and give no event.
//!
//! Every pair of state and event is defined: a pair that cannot happen is an [`Illegal`] error.

mod effect;
mod ends;
mod event;
mod next;
mod resume;
mod state;
mod work;

pub use effect::{Effect, Leaf, Notice};
pub use ends::Illegal;
pub use event::{Answer, Checked, Collected, Event, KeptRed, LeafEnd, Renew};
pub use next::next;
pub use state::{
    At, Ending, Feedback, FeedbackKind, From, Limits, Planner, RefactorWhen, Reopen, Stage, State,
    Step, Tree, Work,
};

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
