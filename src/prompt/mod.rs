//! What planners and developers are told. Pure: text in, text out.
//!
//! The verifier's text is rendered in `blind/`, from sources that cannot carry a developer's words; this room gives it the
//! templates, the fence and the nonce.

mod developer;
mod fence;
mod issue;
mod nonce;
mod planner;
mod templates;

pub use developer::{
    CutShort, DeveloperInputs, DeveloperPrompt, Kept, Rationale, RejectReason, Setback, Start, Task,
};
pub use fence::{Blocks, Fenced, escaped_line, plain_text};
pub use issue::{IssueText, StepText};
pub use nonce::Nonce;
pub use planner::{PlannerInputs, PlannerPrompt};
pub use templates::{TEMPLATE_BYTES, TemplateError, Templates};
