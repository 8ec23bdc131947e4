//! How a run is asked to stop. STOPPING.md is the contract.
//!
//! - `stop`: requests by file
//! - `signals`: requests by the terminal's signals
//! - `heed`: both told to the machine, and answered

mod heed;
pub(in crate::conductor) mod signals;
pub mod stop;
