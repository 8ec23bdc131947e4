//! Agents: which program a leaf runs, with what environment and prompt, and what its end means.
//!
//! One kind so far: `command`, any program that reads a prompt and writes an answer. An adapter for an agent's own command
//! line is a further variant of [`Agent`] and of nothing else.

mod environment;
mod launch;
mod select;

pub use environment::{Env, suite};
pub use launch::{Launch, Place, Seclusion, developer_launch, planner_launch, verifier_launch};
pub use select::{Agent, Origin, Selected, Streaming, Wanted};

/// The agents of a run, one for each role.
#[derive(Debug, Clone)]
pub struct Agents {
    /// Splits the issue.
    pub planner: Agent,
    /// Writes tests and code.
    pub developer: Agent,
    /// Judges.
    pub verifier: Agent,
}

/// How much of an agent's output is read, in bytes from the end: an answer stands at the end.
pub const ANSWER_BYTES: u64 = 8 * 1024 * 1024;

use crate::prompt::Nonce;
use anyhow::Context;
use std::fs::File;
use std::io::Read;

/// Draws the nonce of one launch.
///
/// # Errors
/// When the kernel's random numbers cannot be read.
pub fn fresh_nonce() -> anyhow::Result<Nonce> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .context("reading random numbers from /dev/urandom")?;
    Ok(Nonce::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_launch_has_a_nonce_of_its_own() {
        assert_ne!(super::fresh_nonce().unwrap(), super::fresh_nonce().unwrap());
    }
}
