//! What the conductor has proven in the proving ground, and what runs beside it.
//!
//! - `checks`: the ground, the suite, and what the checks establish on them
//! - `suites`: which run of the suite stands for which question
//! - `recheck`: the checks of a commit's tree and its approval, taken at nobody's word
//! - `supervise`: what runs in a ground runs under the supervisor
//! - `services`, `serving`: what is started beside a ground, and when
//! - `furnish`, `debris`: dependencies for developers, and what running leaves behind

pub(in crate::conductor) mod checks;
mod debris;
mod furnish;
mod recheck;
pub(in crate::conductor) mod services;
mod serving;
pub(in crate::conductor) mod suites;
mod supervise;

pub use debris::debris_file;
