//! What the machine wants done. The shell performs it; one effect at a time is awaited.

use super::state::{At, Ending, Feedback, From, Stage, State, Step, Tree, Work};
use crate::plan::Plan;
use crate::role::{Claim, Phase, Role};
use serde::{Deserialize, Serialize};

/// A leaf to be launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaf {
    /// Who it is.
    pub role: Role,
    /// The phase it works in.
    pub phase: Phase,
    /// The claim that it makes or judges; None for the planner.
    pub claim: Option<Claim>,
    /// The step; None for the planner.
    pub step: Option<Step>,
    /// 1 + the revisions of this phase.
    pub attempt: u32,
    /// 1 + the stuck-retries of this leaf.
    pub launch: u32,
    /// Developer: what its working tree holds.
    pub from: From,
    /// Verifier: the tree it judges.
    pub candidate: Option<Tree>,
}

/// Something worth telling that nothing waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notice {
    /// Work on a step begins.
    StepStart(Step),
    /// Another developer attempt.
    Revise {
        /// The attempt that begins.
        attempt: u32,
        /// Why.
        feedback: Feedback,
    },
    /// A step is ticked and its refactor settled.
    StepDone(Step),
    /// An approved red no longer fits the ledger.
    RedStale(Tree),
}

/// One thing to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Awaited: the checks of preflight.
    Preflight,
    /// Awaited: launch a leaf and wait for its end.
    Launch(Box<Leaf>),
    /// Awaited: write the ledger and commit it.
    CommitPlan(Plan),
    /// Awaited: commit hand-made changes of the ledger and read it.
    ReadLedger,
    /// Awaited: take what the developer left as a candidate.
    Collect(Box<Work>),
    /// Awaited: establish what must hold of the candidate.
    Check(Box<Work>),
    /// Awaited: show that the patch breaks the behaviour.
    Prove(Box<Work>),
    /// Awaited: keep the approved red.
    KeepRed(Box<Work>),
    /// Awaited: commit the approved candidate, with the tick where it earns one.
    Commit(Box<Work>),
    /// Awaited: drop the unfinished refactor.
    Drop(Box<Work>),
    /// Awaited: everything on the branch, once more.
    Accept,
    /// Awaited: push and make the draft pull request.
    Publish,
    /// Awaited: put the working tree back, keeping unfinished work aside.
    Unwind(Ending),
    /// Not awaited: journal it.
    Note(Notice),
    /// Not awaited: bring the thread up to date.
    Mirror,
    /// Not awaited: push what is finished.
    Push,
}

impl State {
    /// The effect that the state awaits; None before the first event and after the last.
    pub fn pending(&self) -> Option<Effect> {
        Some(match &self.at {
            At::New | At::Ended(_) => return None,
            At::Preflight => Effect::Preflight,
            At::Planning => Effect::Launch(Box::new(Leaf {
                role: Role::Planner,
                phase: Phase::Plan,
                claim: None,
                step: None,
                attempt: 1 + self.planner.malformed,
                launch: 1 + self.planner.stuck,
                from: From::Head,
                candidate: None,
            })),
            At::CommitPlan(plan) => Effect::CommitPlan(plan.clone()),
            At::Boundary => Effect::ReadLedger,
            At::Working => return self.work.as_ref().map(Work::pending),
            At::Accepting => Effect::Accept,
            At::Publishing => Effect::Publish,
            At::Unwinding(ending) => Effect::Unwind(ending.clone()),
        })
    }
}

impl Work {
    fn pending(&self) -> Effect {
        let work = || Box::new(self.clone());
        match &self.stage {
            Stage::Develop => Effect::Launch(Box::new(self.leaf(Role::Developer))),
            Stage::Verify => Effect::Launch(Box::new(self.leaf(Role::Verifier))),
            Stage::Collect { .. } => Effect::Collect(work()),
            Stage::Check => Effect::Check(work()),
            Stage::Prove { .. } => Effect::Prove(work()),
            Stage::KeepRed => Effect::KeepRed(work()),
            Stage::Commit => Effect::Commit(work()),
            Stage::Drop { .. } => Effect::Drop(work()),
        }
    }

    fn leaf(&self, role: Role) -> Leaf {
        Leaf {
            role,
            phase: self.claim.phase(),
            claim: Some(self.claim),
            step: Some(self.step.clone()),
            attempt: 1 + self.revisions,
            launch: 1 + self.stuck,
            from: self.from.clone(),
            candidate: self.candidate.clone(),
        }
    }
}
