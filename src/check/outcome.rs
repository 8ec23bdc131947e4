//! What the checks of a phase are asked, and what they answer.

use crate::cause::Bail;
use crate::check::change::Change;
use crate::role::Claim;
use crate::suite::SuiteRun;
use crate::suite::paths::TestPaths;
use git2::{Oid, Repository};
use serde::{Deserialize, Serialize};

/// A run that the checks ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The tree to run on.
    pub tree: Oid,
    /// What to run.
    pub what: What,
    /// A second look at the same tree: the remembered result does not count.
    pub again: bool,
}

/// What to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The test command.
    Suite,
    /// The extra check of this index in `checks`.
    Extra(usize),
}

/// Runs what is asked for, in the check ground.
pub type Runner<'r> = dyn FnMut(Run) -> anyhow::Result<SuiteRun> + 'r;

/// A candidate and what it is held against.
pub struct Ask<'a> {
    /// Where the trees are.
    pub repo: &'a Repository,
    /// Which paths are tests.
    pub paths: &'a TestPaths,
    /// What the phase started from: for red and no-test the last finished commit, for green the approved red, for
    /// refactor the green commit. All without `.tdd/`.
    pub from: Oid,
    /// What would be committed.
    pub candidate: Oid,
    /// The largest file that may be committed, in bytes.
    pub max_file_bytes: u64,
    /// How many extra checks there are.
    pub extra_checks: usize,
    /// How much of a log's end goes into a reason, in bytes (`limits.tail_kib`).
    pub tail_bytes: usize,
}

/// What was seen, for the journal, the verifier and the PR.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Every run, in order.
    pub runs: Vec<SuiteRun>,
    /// What the candidate changed.
    pub change: Change,
}

/// How the checks of a phase ended.
#[derive(Debug)]
pub enum Outcome {
    /// Everything holds: this claim goes to the verifier.
    Holds {
        /// What is claimed.
        claim: Claim,
        /// What was seen.
        evidence: Evidence,
    },
    /// Something does not hold.
    Failed {
        /// What, for the developer; one reason an element.
        reasons: Vec<String>,
        /// What was seen.
        evidence: Evidence,
    },
    /// The candidate is what the phase started from: a failed attempt, or in refactor nothing to refactor.
    Unchanged,
    /// Red only: the new test passes at once, and nothing outside the tests changed.
    PassesAtOnce {
        /// What was seen.
        evidence: Evidence,
    },
    /// The run cannot go on.
    Bail(Bail),
    /// A stop request ended a suite.
    Stopped,
}
