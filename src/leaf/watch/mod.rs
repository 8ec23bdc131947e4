//! Watching a leaf while it runs: its deadlines, and what counts as a sign of life.
//!
//! - `watchdog`: the deadlines, as a pure clockwork
//! - `signs`: what an agent's lines mean to them, as data
//! - `lines`: lines out of what is read in pieces
//! - `senses`: what the shim sees and hears for the watchdog

pub(in crate::leaf) mod lines;
pub(in crate::leaf) mod senses;
pub(in crate::leaf) mod signs;
pub(in crate::leaf) mod watchdog;
