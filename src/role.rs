//! The roles of leaves, the phases they work in, and the claims they make.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Who a leaf is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Splits the issue into steps.
    Planner,
    /// Writes tests and code.
    Developer,
    /// Judges one claim, blind to the developer's reasoning.
    Verifier,
}

impl Role {
    /// The word for `VERI_ROLE` and the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Developer => "developer",
            Role::Verifier => "verifier",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The part of a run that a leaf works in (`VERI_PHASE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Splitting the issue.
    Plan,
    /// Writing a test that fails for want of the behaviour.
    Red,
    /// Making it pass; also the one phase of a step without a test.
    Green,
    /// Changing the code and not its behaviour.
    Refactor,
}

impl Phase {
    /// The word for `VERI_PHASE`, leaf names, trailers and the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Plan => "plan",
            Phase::Red => "red",
            Phase::Green => "green",
            Phase::Refactor => "refactor",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a developer leaf asserts by its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// This test fails for want of the behaviour.
    Red,
    /// This test passes at once, because the behaviour is already there.
    AlreadyThere,
    /// This makes the test pass.
    Green,
    /// This changes no behaviour.
    Refactor,
    /// This does what the step says, and no test is called for.
    NoTest,
}

impl Claim {
    /// The phase in which the claim is made.
    pub fn phase(self) -> Phase {
        match self {
            Claim::Red | Claim::AlreadyThere => Phase::Red,
            Claim::Green | Claim::NoTest => Phase::Green,
            Claim::Refactor => Phase::Refactor,
        }
    }

    /// The word for the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Claim::Red => "red",
            Claim::AlreadyThere => "already-there",
            Claim::Green => "green",
            Claim::Refactor => "refactor",
            Claim::NoTest => "no-test",
        }
    }
}

/// The name of a leaf's files in `.tdd/`: by role and phase, not by step.
pub fn leaf_name(role: Role, phase: Phase) -> String {
    match role {
        Role::Planner => "plan".to_owned(),
        Role::Developer => format!("develop-{phase}"),
        Role::Verifier => format!("verify-{phase}"),
    }
}

/// A stop request's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopMode {
    /// Finish the step under way, then stop.
    AtLedger,
    /// Let the running leaf end, start no other.
    AtLeaf,
    /// End the running leaf, start no other.
    Now,
}

impl StopMode {
    /// The word in `.tdd/stop`.
    pub fn as_str(self) -> &'static str {
        match self {
            StopMode::AtLedger => "at-ledger",
            StopMode::AtLeaf => "at-leaf",
            StopMode::Now => "now",
        }
    }

    /// Reads the word; None for anything else.
    pub fn parse(word: &str) -> Option<StopMode> {
        match word {
            "at-ledger" => Some(StopMode::AtLedger),
            "at-leaf" => Some(StopMode::AtLeaf),
            "now" => Some(StopMode::Now),
            _ => None,
        }
    }
}

impl fmt::Display for StopMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
