//! What the conductor knows: where the run stands, and every counter that a budget bounds.

use crate::cause::Bail;
use crate::plan::Plan;
use crate::role::{Claim, StopMode};
use serde::{Deserialize, Serialize};

/// The name of a git tree: hexadecimal, opaque to the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tree(pub String);

/// When the refactor phase is entered (`cycle.refactor`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefactorWhen {
    /// After every step.
    Step,
    /// Once, after the last step.
    End,
    /// Never.
    Off,
}

/// The budgets and choices of a run, fixed at each start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// Relaunches of one leaf that was killed as stuck.
    pub stuck_retries: u32,
    /// Further developer attempts at one claim after the first.
    pub revisions: u32,
    /// Malformed answers in a row that are asked again.
    pub malformed: u32,
    /// How often one step's red may be reopened from green.
    pub reopens: u32,
    /// When the refactor phase is entered.
    pub refactor: RefactorWhen,
    /// End after the plan commit.
    pub plan_only: bool,
}

impl Default for Limits {
    /// The defaults of the documentation: two stuck-retries, three revisions, one malformed answer.
    fn default() -> Limits {
        Limits {
            stuck_retries: 2,
            revisions: 3,
            malformed: 1,
            reopens: 2,
            refactor: RefactorWhen::Step,
            plan_only: false,
        }
    }
}

/// A step as the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// The number before the title.
    pub number: u32,
    /// The title: data, never parsed.
    pub title: String,
    /// The criteria that it serves.
    pub criteria: Vec<String>,
    /// Whether the box is ticked.
    pub ticked: bool,
    /// Why no test is called for, in a step without one.
    pub no_test: Option<String>,
}

impl Step {
    /// Whether two readings of the ledger mean the same step: its title and criteria are its name.
    pub fn same_as(&self, other: &Step) -> bool {
        self.title == other.title
            && self.criteria == other.criteria
            && self.no_test.is_some() == other.no_test.is_some()
    }
}

/// What a developer's working tree holds when it is launched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// The branch as it is.
    Head,
    /// This tree, on top of the branch.
    Tree(Tree),
    /// The saved code of a reopened green, brought onto the newly approved red.
    Merge {
        /// The red that the code was written against.
        base: Tree,
        /// The red that was approved since.
        red: Tree,
        /// The saved code.
        code: Tree,
    },
}

/// Why a developer or planner is asked again, for its prompt; never looked at by the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Feedback {
    /// What kind of answer the reasons are to.
    pub kind: FeedbackKind,
    /// One reason a line or paragraph.
    pub reasons: Vec<String>,
}

/// What made another attempt necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackKind {
    /// A verifier rejected the claim.
    Reject,
    /// A check of the conductor failed.
    Check,
    /// Something that is not the content alone was refused: tampering, a hook, a suite that could not run.
    Refused,
    /// The leaf exited with a code of its own.
    Failed,
    /// The first attempt left everything as it was.
    Unchanged,
    /// The answer could not be read.
    Malformed,
}

impl FeedbackKind {
    pub(super) fn because(self, reasons: Vec<String>) -> Feedback {
        Feedback {
            kind: self,
            reasons,
        }
    }
}

/// An old test that rightly breaks, named by a green leaf.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reopen {
    /// The test.
    pub test: String,
    /// Why the behaviour it asserts has to change.
    pub why: String,
}

/// Where a claim stands between its developer and its commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// A developer leaf is to be launched, or runs.
    Develop,
    /// What a developer left is to be taken as a candidate. Some: the attempt has failed already.
    Collect {
        /// The failure of the leaf itself, if it failed.
        failed: Option<Feedback>,
        /// The old tests it says must change first, if it says so.
        reopen: Vec<Reopen>,
    },
    /// The candidate is to be checked.
    Check,
    /// A verifier leaf is to be launched, or runs.
    Verify,
    /// An approved already-there claim is to be proven by a patch that breaks the behaviour.
    Prove {
        /// The verifier's patch.
        patch: String,
    },
    /// An approved red is to be kept.
    KeepRed,
    /// An approved candidate is to be committed.
    Commit,
    /// An unfinished refactor is to be dropped: the step stands.
    Drop {
        /// Why, for the pull request.
        why: String,
    },
}

/// The claim under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Work {
    /// The step, as last read from the ledger.
    pub step: Step,
    /// Whether no other step was left when it began.
    pub last: bool,
    /// The claim that the next developer or verifier is asked for.
    pub claim: Claim,
    /// Where the claim stands.
    pub stage: Stage,
    /// Revisions spent on this phase.
    pub revisions: u32,
    /// Launches of the current leaf that were killed as stuck.
    pub stuck: u32,
    /// Malformed answers of the current verifier in a row.
    pub malformed: u32,
    /// Whether the developer's last launch was lost, stopped or killed, so that its answer never came.
    pub cut_off: bool,
    /// What the next developer starts from.
    pub from: From,
    /// The tree that the claim is about, once there is one.
    pub candidate: Option<Tree>,
    /// The approved red, in green.
    pub red: Option<Tree>,
    /// Whether a test of this red has already passed at once and been sent back for it.
    pub passed_at_once: bool,
    /// How often the run has bailed over the checks of this candidate, for what may be its own doing.
    pub check_bails: u32,
    /// Why the developer is asked again.
    pub feedback: Option<Feedback>,
    /// Old tests that this red has to change first.
    pub reopened: Vec<Reopen>,
    /// How often this step's red was reopened.
    pub reopens: u32,
    /// The code of a green that reopened its red.
    pub saved_code: Option<Tree>,
}

impl Work {
    /// Every tree that the claim is about or goes on from.
    pub fn trees(&self) -> Vec<&Tree> {
        let from: Vec<&Tree> = match &self.from {
            From::Head => Vec::new(),
            From::Tree(tree) => vec![tree],
            From::Merge { base, red, code } => vec![base, red, code],
        };
        let rest = [&self.candidate, &self.red, &self.saved_code];
        let mut trees: Vec<&Tree> = from.into_iter().chain(rest.into_iter().flatten()).collect();
        let mut seen = Vec::new();
        trees.retain(|tree| !seen.contains(tree) && (seen.push(*tree), true).1);
        trees
    }
}

/// The planner's counters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Planner {
    /// Launches that were killed as stuck.
    pub stuck: u32,
    /// Malformed or invalid answers in a row.
    pub malformed: u32,
    /// Why it is asked again.
    pub feedback: Option<Feedback>,
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Published.
    Done {
        /// The pull request, if there is one.
        url: Option<String>,
    },
    /// The plan is committed, and only that was asked for.
    Planned,
    /// It cannot go on.
    Bailed(Bail),
    /// Somebody asked.
    Stopped(StopMode),
}

/// Where the run stands: which effect it awaits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// Before the first event.
    New,
    /// Preflight is awaited.
    Preflight,
    /// A planner leaf is to be launched, or runs.
    Planning,
    /// The ledger is to be written and committed.
    CommitPlan(Plan),
    /// The ledger is to be read, to find the next step.
    Boundary,
    /// The claim in `work` is under way.
    Working,
    /// Every step is ticked: the branch is to be accepted.
    Accepting,
    /// The pull request is to be made.
    Publishing,
    /// The working tree is to be put back before this end.
    Unwinding(Ending),
    /// Nothing is awaited.
    Ended(Ending),
}

/// The whole of what the machine knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct State {
    /// Budgets and choices.
    pub limits: Limits,
    /// Where the run stands.
    pub at: At,
    /// Where it stood when it was interrupted; entered when preflight has passed.
    pub then: Option<Box<At>>,
    /// The claim under way, kept over stops, bails and crashes.
    pub work: Option<Work>,
    /// The planner's counters.
    pub planner: Planner,
    /// Launches in a row that left no trace since the conductor was started.
    pub lost: u32,
    /// The plan that a person gave instead of a planner.
    pub given_plan: Option<Plan>,
    /// The strongest stop that was asked for.
    pub stop: Option<StopMode>,
}

impl State {
    /// Before anything has happened.
    pub fn new() -> State {
        State {
            limits: Limits::default(),
            at: At::New,
            then: None,
            work: None,
            planner: Planner::default(),
            lost: 0,
            given_plan: None,
            stop: None,
        }
    }

    /// How the run ended, once it has.
    pub fn ending(&self) -> Option<&Ending> {
        match &self.at {
            At::Ended(ending) => Some(ending),
            _ => None,
        }
    }
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}
