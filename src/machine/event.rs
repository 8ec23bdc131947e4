//! What happens to the machine: the outcomes of its effects, starts, and stop requests.

use super::state::{Feedback, Limits, Reopen, Step, Tree};
use crate::cause::Bail;
use crate::plan::Plan;
use crate::role::StopMode;
use serde::{Deserialize, Serialize};

/// Which budgets a rerun renews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Renew {
    /// The one that was spent, if the last run bailed for it.
    Spent,
    /// All (`--reset-budgets`).
    All,
}

/// One input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The first start of a run on this issue.
    Begun {
        /// Budgets and choices.
        limits: Limits,
        /// A person's plan instead of a planner's.
        plan: Option<Plan>,
    },
    /// A later start: after a stop, a bail, an end or a crash.
    Resumed {
        /// Budgets and choices, as they are now.
        limits: Limits,
        /// Which budgets are renewed.
        renew: Renew,
        /// A person's plan, used where the branch has no ledger yet.
        plan: Option<Plan>,
    },
    /// Preflight passed.
    PreflightPassed {
        /// Whether the issue branch has a ledger.
        ledger: bool,
    },
    /// The leaf that was launched has ended.
    LeafEnded(LeafEnd),
    /// The ledger is committed.
    PlanCommitted,
    /// The ledger was read, hand-made changes committed.
    LedgerRead {
        /// Its steps, in the order of the file.
        steps: Vec<Step>,
        /// The approved red that is kept for one of them, if any.
        red: Option<KeptRed>,
        /// The commit of the claim under way, when it was made and a crash came before its record.
        committed: Option<String>,
        /// Whether the claim under way cannot be gone on with: somebody has changed what the branch holds since
        /// work on it was last begun or committed, or its trees are gone.
        moved: bool,
    },
    /// What a developer left was taken.
    Collected(Collected),
    /// The candidate was checked.
    Checked(Checked),
    /// A patch that should break the behaviour was applied and the suite run.
    Proved {
        /// Whether the suite failed under it.
        shown: bool,
        /// Why not, for the developer.
        reasons: Vec<String>,
    },
    /// The approved red is kept under its ref.
    RedKept,
    /// The approved candidate is committed.
    Committed {
        /// The commit's name.
        commit: String,
    },
    /// A hook refused the commit for its content.
    CommitRefused {
        /// The hook's words.
        reasons: Vec<String>,
    },
    /// The unfinished refactor is dropped.
    Dropped,
    /// The branch passes what is demanded of it.
    Accepted,
    /// The pull request is there, or none was wanted.
    Published {
        /// Where it is.
        url: Option<String>,
    },
    /// Somebody asked for a stop.
    StopAsked {
        /// How urgently.
        mode: StopMode,
    },
    /// A stop request of mode now ended what was awaited (a suite, a setup).
    Interrupted,
    /// The effect that was awaited found that the run cannot go on.
    Failed(Bail),
    /// The working tree is put back.
    Unwound,
}

/// An approved red that outlived its run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptRed {
    /// The title of its step.
    pub title: String,
    /// The criteria of its step.
    pub criteria: Vec<String>,
    /// The tree.
    pub tree: Tree,
}

/// How a leaf ended, and what it answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeafEnd {
    /// It ended by itself with an answer that could be read.
    Answered(Answer),
    /// Planner, verifier: it ended by itself without one.
    Malformed {
        /// What is wrong with the answer, for the planner's next prompt.
        reason: String,
    },
    /// Developer: it ended by itself with a code other than 0.
    Failed {
        /// The code.
        code: i32,
    },
    /// We ended it at one of its deadlines, and which is not known: an earlier version's journal, a damaged record.
    Stuck,
    /// Its wall time was over: we ended it. Counts as stuck.
    Late {
        /// How many seconds it had, and what sets that.
        detail: String,
    },
    /// It gave no sign of life for longer than it may: we ended it. Counts as stuck.
    Silent {
        /// Which deadline it passed, and what sets that.
        detail: String,
    },
    /// A stop of mode now ended it.
    Stopped,
    /// It was not launched, because a stop was asked for.
    Refused,
    /// A signal that was not ours ended it while the conductor watched.
    External {
        /// What was seen.
        detail: String,
    },
    /// It ended without a record while no conductor watched.
    Lost,
    /// It was never started: the conductor died between its intent and the launch.
    NeverStarted,
    /// Its program could not be run.
    SpawnFailed {
        /// What was seen.
        detail: String,
    },
}

/// What a leaf answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Planner: a valid plan.
    Plan(Plan),
    /// Developer: it says that it is done; its words are not kept here.
    Developed,
    /// Developer, green: old tests must change first.
    ReopenRed(Vec<Reopen>),
    /// Verifier: the claim holds.
    Approve {
        /// Already there: a patch under which the test fails.
        breaks_with: Option<String>,
    },
    /// Verifier: the claim does not hold.
    Reject {
        /// Why, for the developer.
        reasons: Vec<String>,
    },
    /// Any role: only a person can decide.
    NeedsUser {
        /// The whole question.
        question: String,
    },
}

/// What a developer left, taken as a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collected {
    /// A tree to check.
    Candidate(Tree),
    /// A tree that is refused before its checks (tampering, a pre-commit hook).
    Refused {
        /// The tree, to start the next attempt from.
        tree: Tree,
        /// Why.
        feedback: Feedback,
    },
}

/// What the checks found.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checked {
    /// The claim holds as far as checks can tell.
    Holds,
    /// Red: the changed tests pass at once.
    PassesAtOnce {
        /// The evidence, for the developer.
        reasons: Vec<String>,
    },
    /// The claim does not hold.
    Fails {
        /// The evidence, for the developer.
        reasons: Vec<String>,
    },
    /// Nothing was changed.
    Unchanged,
    /// The candidate is what was refused the last time.
    Repeated,
}
