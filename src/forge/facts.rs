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

/// What the pull request tells. Every text counts as untrusted but `test_command`, `checks`,
/// `evidence_command` and `red_half`, which are the person's own and stay copyable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PullFacts {
    /// The issue's number.
    pub issue_number: u64,
    /// How people refer to the issue: `#42`, `acme/bank#42`.
    pub issue_ref: String,
    /// The issue's title.
    pub issue_title: String,
    /// The branch that holds the work.
    pub branch: String,
    /// The branch that it started from.
    pub base: String,
    /// The command that runs the suite.
    pub test_command: String,
    /// Extra commands that had to pass as well.
    pub checks: Vec<String>,
    /// The acceptance criteria, in the ledger's order.
    pub criteria: Vec<Criterion>,
    /// The steps, in the ledger's order.
    pub steps: Vec<Step>,
    /// What else the reviewer should look at. No-test and already-there steps, assumptions and the
    /// merge are told from the other facts and need not be here.
    pub eye: Vec<Eye>,
    /// What merging the newest base would do.
    pub merge: Merge,
    /// Commands that repeat the evidence in the reader's clone.
    pub evidence_command: String,
    /// Commands that show the first half of a step, where one has its tests in files of their own.
    pub red_half: Option<RedHalf>,
    /// The ledger as it stands on the branch.
    pub ledger_text: String,
    /// What the agents cost in US dollars, where known.
    pub cost_usd: Option<f64>,
    /// Wall time of the run in seconds.
    pub wall_seconds: u64,
    /// How many agents were started.
    pub leaves: u32,
    /// How often the suite was run.
    pub suite_runs: u32,
}

/// How a reader sees the test of a step fail without the code of the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedHalf {
    /// The step's number.
    pub step: u32,
    /// The commands.
    pub command: String,
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// `AC1`.
    pub id: String,
    /// What must hold.
    pub text: String,
    /// Why it is believed, when the issue does not say it in so many words.
    pub inferred: Option<String>,
    /// The numbers of the steps that serve it.
    pub steps: Vec<u32>,
}

/// How a step was shown to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// By a test that failed before and passes after.
    Tested,
    /// Without a test, for this reason.
    NoTest(String),
    /// By a test that passed at once: nothing had to be written.
    AlreadyThere,
    /// A person ticked it: veri has no commit of it.
    ByHand,
    /// veri's commits are there, but the record of how it was proven is not here: it was made on another machine, or
    /// was removed.
    NotOnRecord,
}

/// What became of tidying up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refactor {
    /// A change was committed.
    Done,
    /// There was nothing to tidy.
    Nothing,
    /// A change was tried and dropped, for this reason.
    Dropped(String),
    /// It was not asked for.
    Off,
}

/// One finished step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// The criteria that it serves.
    pub criteria: Vec<String>,
    /// How it was shown to be done.
    pub kind: StepKind,
    /// Its commits, oldest first.
    pub commits: Vec<Commit>,
    /// The tests that it added or changed.
    pub tests: Vec<Tests>,
    /// The files that it changed, tests included.
    pub files_changed: Vec<FileChange>,
    /// What verifiers said, in order.
    pub verdicts: Vec<Verdict>,
    /// How many revisions it took.
    pub revisions: u32,
    /// How many agents had to be ended as stuck.
    pub stuck_retries: u32,
    /// What became of tidying up.
    pub refactor: Refactor,
}

/// One commit of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its abbreviated object id.
    pub short: String,
    /// Its subject.
    pub subject: String,
    /// The phase that it concluded.
    pub phase: Phase,
}

/// Tests in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tests {
    /// The file.
    pub path: String,
    /// The names of the tests, where the runner's results or the language tell them.
    pub names: Vec<String>,
}

/// How much a file changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file.
    pub path: String,
    /// Lines added.
    pub added: u32,
    /// Lines removed.
    pub removed: u32,
}

/// What merging the newest base into the branch does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// It merges; the suite ran on the result.
    Clean {
        /// Whether the suite passed there.
        suite_passed: bool,
    },
    /// It conflicts in these files.
    Conflict(Vec<String>),
    /// It was not tried, for this reason.
    NotTried(String),
}

/// Something that a reviewer should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eye {
    /// Of what kind.
    pub what: EyeKind,
    /// The step that it happened in.
    pub step: Option<u32>,
    /// What exactly: paths, names, reasons.
    pub detail: String,
}

/// The kinds, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EyeKind {
    /// Old tests were changed because the new behaviour rightly breaks them.
    ReopenedTest,
    /// CI, hooks or configuration were changed.
    CiHooksConfig,
    /// Dependencies were added or changed.
    Dependencies,
    /// Existing tests were changed.
    ExistingTest,
    /// The newest base does not merge cleanly.
    MergeConflict,
    /// The suite fails with the newest base merged.
    MergeFails,
    /// A verifier's reject was overruled.
    Overruled,
    /// A step has no test.
    NoTest,
    /// A step's behaviour was there before.
    AlreadyThere,
    /// A criterion is an assumption.
    Assumption,
    /// Code outside tests was written together with a test, so that it compiles.
    Stub,
    /// Commits by hand.
    ByHandCommit,
    /// A step was ticked by hand.
    ByHandTick,
    /// How a step was proven is not on record here.
    NotOnRecord,
    /// Tests passed only when run again.
    Flaky,
    /// Tests that failed before the work began and may go on failing.
    KnownFailing,
    /// It was not shown that the suite tests this code and no other.
    Isolation,
    /// Anything else.
    Other,
}
