//! Why a run bailed: a closed set of causes in two classes. BAIL.md is its contract.

use crate::exit;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose fault it is that a run cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The work or its description.
    Process,
    /// The machine or a service.
    System,
}

impl Class {
    /// The word in messages and the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Process => "process",
            Class::System => "system",
        }
    }

    /// The exit code of a run that bailed with a cause of this class.
    pub fn exit_code(self) -> u8 {
        match self {
            Class::Process => exit::BAIL_PROCESS,
            Class::System => exit::BAIL_SYSTEM,
        }
    }
}

macro_rules! causes {
    ($($name:ident = $word:literal, $class:ident, $meaning:literal;)*) => {
        /// Why a run bailed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Cause { $(#[doc = $meaning] $name,)* }

        impl Cause {
            /// Every cause, in the order of BAIL.md.
            pub const ALL: &'static [Cause] = &[$(Cause::$name,)*];

            /// The word in messages, the journal and BAIL.md.
            pub fn as_str(self) -> &'static str {
                match self { $(Cause::$name => $word,)* }
            }

            /// The class that the cause belongs to.
            pub fn class(self) -> Class {
                match self { $(Cause::$name => Class::$class,)* }
            }

            /// What it means, in one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Cause::$name => $meaning,)* }
            }
        }
    };
}

causes! {
    NeedsUser = "needs-user", Process, "Only a person can decide: the whole question is in the bail comment.";
    BaselineRed = "baseline-red", Process, "The suite or an extra check fails on the base.";
    PlanInvalid = "plan-invalid", Process, "The planner's answer or the ledger is not a valid plan.";
    ReviseExhausted = "revise-exhausted", Process, "A phase was rejected or failed its checks more often than the budget allows.";
    BudgetExhausted = "budget-exhausted", Process, "The run's cost, wall or token budget is spent.";
    AcceptanceFailed = "acceptance-failed", Process, "The finished branch does not pass what the issue or config demands of it.";
    KilledStuck = "killed-stuck", System, "A leaf was killed as stuck more often than the budget allows.";
    KilledExternal = "killed-external", System, "Somebody else's signal ended a leaf or a suite.";
    AgentUnavailable = "agent-unavailable", System, "An agent is not installed, not executable or not logged in.";
    UsageLimited = "usage-limited", System, "The agent's usage limit ends later than the run may wait.";
    VerdictMalformed = "verdict-malformed", System, "A verifier's answer could not be read twice in a row.";
    GitFailed = "git-failed", System, "git failed in a way that no change of the work can mend.";
    ForgeFailed = "forge-failed", System, "The forge did not answer or refused.";
    StorageFailed = "storage-failed", System, "The disk is full, read-only, or a folder of veri's own has vanished.";
}

impl Cause {
    /// Reads the word; None for anything else.
    pub fn parse(word: &str) -> Option<Cause> {
        Cause::ALL.iter().copied().find(|c| c.as_str() == word)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The end of a run that cannot go on: its cause, and the whole question or evidence.
///
/// Any floor may return one inside an `anyhow::Error`; the conductor finds it in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[error("{detail}")]
pub struct Bail {
    /// The classified cause.
    pub cause: Cause,
    /// What was attempted, on what, why it failed and what to do: plain text, never markup.
    pub detail: String,
}

impl Bail {
    /// A bail with its cause and whole detail.
    pub fn new(cause: Cause, detail: impl Into<String>) -> Bail {
        Bail {
            cause,
            detail: detail.into(),
        }
    }

    /// A question that only a person can answer.
    pub fn needs_user(detail: impl Into<String>) -> Bail {
        Bail::new(Cause::NeedsUser, detail)
    }
}
