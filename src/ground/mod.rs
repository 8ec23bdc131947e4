//! The proving ground: a folder outside the repository that holds exactly one tree, and what was built from it.
//!
//! Grounds are slots per repository, each taken by a lock and reused across issues. A ground is brought to the
//! next tree by difference, so that its build and dependency folders stay warm; it is cleaned first, and compared
//! before and after each suite. Nothing in it is linked from or copied out of the person's checkout.

pub mod command;
pub mod disk;
pub(crate) mod files;
pub mod isolation;
pub mod leads;
pub mod project;
pub mod setup;
pub mod verify;

mod clock;
mod crowd;
mod entries;
mod folders;
mod hold;
mod index;
mod lay;
mod neutral;
mod path;
mod put;
mod record;
mod slot;
mod source;
mod survey;

pub use command::{Ended, Launch};
pub use hold::{ENV_FILE, Ground};
pub use isolation::{Isolation, IsolationAsk, Trial};
pub use lay::Brought;
pub use path::TreePath;
pub use setup::{Setup, SetupAsk};
pub use slot::Kind;
pub use verify::Verify;
