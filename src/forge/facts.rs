//! What the conductor tells the mirror and the pull request about a run: plain data. Every text in it
//! counts as untrusted; rendering sanitises it.

use crate::role::{Claim, Phase};
use serde::{Deserialize, Serialize};

/// A verifier's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It agreed.
    Approve,
    /// It did not, and the developer had to try again.
    Reject,
    /// It did not, and its evidence or a second verifier showed that it was wrong.
    Overruled,
}

/// What one verifier said about one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The claim that was judged.
    pub claim: Claim,
    /// Which attempt of its phase made the claim: 1, 2, …
    pub attempt: u32,
    /// The answer.
    pub answer: Answer,
    /// Its reasons.
    pub reasons: Vec<String>,
}

/// One thing that the conductor established itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Whether it held.
    pub passed: bool,
    /// What was established, in words: `the suite fails with the new test`.
    pub what: String,
    /// The evidence, such as the tail of a log; shown when the check failed.
    pub evidence: Option<String>,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// The step's number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// The criteria that it serves.
    pub criteria: Vec<String>,
    /// Whether it is finished.
    pub ticked: bool,
    /// Why it has no test.
    pub no_test: Option<String>,
}

/// One attempt at a phase: a developer's change, what the conductor found, what the verifier said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// 1, 2, …
    pub number: u32,
    /// What the change claims.
    pub claim: Claim,
    /// How the developer ended, when it did not simply finish: `killed as stuck after 900 s`.
    pub ended: Option<String>,
    /// What was checked, in order.
    pub checks: Vec<Check>,
    /// What verifiers said; none when a check failed.
    pub verdicts: Vec<Verdict>,
}

/// What happened in one phase of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseStory {
    /// The phase.
    pub phase: Phase,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// How it came out: `committed as 1a2b3c4`, `nothing to refactor`. None while under way.
    pub outcome: Option<String>,
}

/// What happened in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStory {
    /// The step's number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// Its phases so far.
    pub phases: Vec<PhaseStory>,
    /// How it came out: `finished`, `under way`. Shown beside the title.
    pub outcome: String,
}
