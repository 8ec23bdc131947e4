//! What is told of a run: the mirror in the thread, and the pull request.
//!
//! - `mirror`: the thread brought up to date
//! - `facts`, `evidence`, `stories`: what journal and branch tell, read back
//! - `repeat`: the commands with which a reviewer repeats the evidence

pub(in crate::conductor) mod evidence;
pub(in crate::conductor) mod facts;
mod mirror;
mod repeat;
mod stories;
