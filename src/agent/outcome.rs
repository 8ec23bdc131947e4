//! How a leaf of an agent can end, as one of a closed set.

use crate::role::Role;
use crate::tail::tail;
use jiff::Timestamp;
use std::path::Path;

/// How much of an agent's output is read, in bytes from the end: an answer stands at the end.
pub const ANSWER_BYTES: u64 = 8 * 1024 * 1024;

/// What happened, in the agent's own terms. Stuck, stopped, lost and killed leaves are the supervisor's words (`leaf::End`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It answered; whether the answer is valid is for its reader to say.
    Answered,
    /// Planner, verifier: it gave no answer that can count, which is malformed. Developer: a failed attempt.
    NoAnswer,
    /// The agent's usage limit; with its end, where known.
    UsageLimited {
        /// When the limit ends.
        until: Option<Timestamp>,
    },
    /// The service could not take the request now.
    Overloaded,
    /// No login, no key, no credit.
    Unauthenticated,
    /// The conversation outgrew the model.
    TooLong,
    /// The model refused.
    Refused,
    /// Tools were denied to it.
    Denied,
    /// The agent's own money or token limit.
    OverBudget,
    /// The agent's own limit of turns.
    TurnsExhausted,
    /// Developer: its process ended with this code, not 0.
    Failed {
        /// The exit code.
        code: i32,
    },
}

impl Outcome {
    /// What the end of a `command` agent means. Its exit code is all it can say: a developer with exit code 0 has answered, words
    /// or not; a planner or verifier with another code has given nothing that can count, whatever stands in its output.
    pub fn of_command(role: Role, code: i32) -> Outcome {
        match (role, code) {
            (_, 0) => Outcome::Answered,
            (Role::Developer, code) => Outcome::Failed { code },
            (Role::Planner | Role::Verifier, _) => Outcome::NoAnswer,
        }
    }
}

/// An agent's answer: the end of its standard output, up to [`ANSWER_BYTES`].
///
/// # Errors
/// When the file cannot be read or is not a regular file.
pub fn read_output(stdout: &Path) -> anyhow::Result<Vec<u8>> {
    Ok(tail(stdout, ANSWER_BYTES)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exit_code_0_is_an_answer() {
        for role in [Role::Planner, Role::Developer, Role::Verifier] {
            assert_eq!(Outcome::of_command(role, 0), Outcome::Answered);
        }
        for code in [1, 2, 101, 137, -1] {
            assert_eq!(Outcome::of_command(Role::Planner, code), Outcome::NoAnswer);
            assert_eq!(Outcome::of_command(Role::Verifier, code), Outcome::NoAnswer);
            assert_eq!(
                Outcome::of_command(Role::Developer, code),
                Outcome::Failed { code }
            );
        }
    }
}
