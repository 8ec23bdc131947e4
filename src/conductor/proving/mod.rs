//! What the conductor has proven in the proving ground, and what runs beside it.
//!
//! - `grounds`: grounds made ready, and what is seen of the caller's environment there
//! - `baseline`: suite and extra checks before any work is done, and whether the ground is isolated
//! - `checks`: what the checks establish of a candidate
//! - `suites`: which run of the suite stands for which question
//! - `recheck`: the checks of a commit's tree and its approval, taken at nobody's word
//! - `supervise`: what runs in a ground runs under the supervisor
//! - `services`, `serving`: what is started beside a ground, and when
//! - `furnish`, `debris`: dependencies for developers, and what running leaves behind

pub(in crate::conductor) mod baseline;
mod checks;
mod debris;
mod furnish;
mod grounds;
mod recheck;
pub(in crate::conductor) mod services;
mod serving;
pub(in crate::conductor) mod suites;
mod supervise;

pub use debris::debris_file;
