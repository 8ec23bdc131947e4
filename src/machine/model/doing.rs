//! What comes of an action.

use super::actions::{Action, Edit};
use super::fault::Fault;
use super::world::{Conductor, Launch, Machine, Now, Red, Seen, World, name, title};
use super::wrong::{self, Wrong};
use crate::machine::{
    Answer, At, Checked, Effect, Ending, Event, KeptRed, Leaf, LeafEnd, Stage, State, Work,
};
use crate::role::{Claim, Role};

impl World {
    pub(super) fn perform(&mut self, fault: Option<Fault>, action: Action) {
        match action {
            Action::Start => {
                self.conductor = Conductor::Starting;
            }
            Action::TakeUp => self.hold(),
            Action::Begin(event) => {
                self.closed = false;
                self.deliver(fault, event);
                self.told = None;
                self.conductor = Conductor::Live;
                // A planner's answer that waits to be read: nobody holds a leaf that has ended.
                if let Some(launch) = &mut self.launch {
                    launch.held = false;
                }
            }
            Action::TellOfEnd => {
                self.performed = false;
                self.conductor = Conductor::Live;
            }
            Action::Look => {
                if let Some(mode) = self.request {
                    self.deliver(fault, Event::StopAsked { mode });
                }
            }
            Action::Intend => self.intend(),
            Action::LeafStarts => self.becomes(Now::Running),
            Action::LeafCannotStart => self.becomes(Now::SpawnFailed),
            Action::LeafAnswers => self.becomes(Now::Answered),
            Action::LeafIsStuck => self.becomes(Now::Stuck),
            Action::EndLeaf => self.becomes(Now::Stopped),
            Action::KillLeaf => self.becomes(Now::Gone),
            Action::Read(end) => self.read(fault, end),
            Action::Perform => self.make(),
            Action::Outcome(event) => self.outcome(fault, event),
            Action::Edit(edit) => self.edit(edit),
            Action::Ask(mode) => self.request = Some(mode),
            Action::Close => {
                self.request = None;
                self.told = None;
                self.closed = true;
                self.conductor = Conductor::Dead;
                if self.fuel == 0 {
                    self.forget_the_rest();
                }
            }
            Action::Crash => self.crash(),
            Action::CrashOfAll => {
                self.crash();
                self.becomes(Now::Gone);
            }
        }
    }

    fn crash(&mut self) {
        self.conductor = Conductor::Dead;
        self.performed = false;
        self.told = None;
        if let Some(launch) = &mut self.launch {
            launch.held = false;
        }
    }

    /// Nothing happens any more: all that a property may still ask is how it ended.
    fn forget_the_rest(&mut self) {
        let at = self.machine.at.clone();
        self.machine = Machine::new(State { at, ..State::new() });
        self.proofs.clear();
        self.git.red = None;
    }

    fn becomes(&mut self, now: Now) {
        if let Some(launch) = &mut self.launch {
            launch.now = now;
        }
    }

    fn hold(&mut self) {
        if let Some(launch) = &mut self.launch {
            launch.held = true;
        }
    }

    fn intend(&mut self) {
        let Some(Effect::Launch(leaf)) = self.machine.pending() else {
            return;
        };
        self.wrong.extend(wrong::of_launch(self, &leaf));
        self.left = false;
        let judged = |leaf: Leaf| Some((name(&leaf.step?), leaf.candidate?));
        self.launch = Some(Launch {
            role: leaf.role,
            claim: leaf.claim,
            judges: match leaf.role {
                Role::Verifier => judged(*leaf),
                Role::Planner | Role::Developer => None,
            },
            now: Now::Intended,
            held: true,
        });
    }

    fn read(&mut self, fault: Option<Fault>, end: LeafEnd) {
        let launch = self.launch.take();
        if let Some(Launch {
            judges: Some((step, tree)),
            claim: Some(claim),
            ..
        }) = &launch
            && let LeafEnd::Answered(Answer::Approve { .. }) = end
        {
            let there = *claim == Claim::AlreadyThere;
            self.saw(tree, *step, Seen::Approved(claim.phase(), there));
        }
        self.left = launch.is_some_and(|l| l.role == Role::Developer && l.now == Now::Answered);
        let starting = self.conductor == Conductor::Starting;
        self.deliver(fault, Event::LeafEnded(end));
        // Remembered for the rest of this start: what it has itself found may end the run.
        self.performed = starting && matches!(self.machine.at, At::Unwinding(_));
    }

    /// Does what others can see, short of journalling it.
    fn make(&mut self) {
        self.performed = true;
        match self.machine.pending() {
            Some(Effect::CommitPlan(_)) => {
                self.git.plans += 1;
            }
            Some(Effect::KeepRed(work)) => {
                let tree = work.candidate.clone();
                self.git.red = tree.map(|tree| Red {
                    step: name(&work.step),
                    tree,
                    fits: true,
                });
            }
            Some(Effect::Commit(work)) => self.commit(&work),
            Some(Effect::Publish) => self.pull = true,
            _ => {}
        }
    }

    fn commit(&mut self, work: &Work) {
        self.wrong.extend(wrong::of_commit(self, work));
        self.git.unrecorded = true;
        self.past.accepted = false;
        let refactor = work.claim == Claim::Refactor;
        if let Some(red) = &mut self.git.red {
            red.fits = false;
        }
        if let Some(step) = self.in_git(name(&work.step)) {
            step.ticked |= !refactor;
            step.commits[usize::from(refactor)] += 1;
        }
    }

    fn outcome(&mut self, fault: Option<Fault>, event: Event) {
        match &event {
            Event::Checked(checked) => {
                if let (Checked::Holds | Checked::PassesAtOnce { .. }, Some(work)) =
                    (checked, self.work())
                    && let Some(tree) = work.candidate.clone()
                {
                    let (step, phase) = (name(&work.step), work.claim.phase());
                    self.saw(&tree, step, Seen::Held(phase));
                }
            }
            Event::Proved { shown: true, .. } => {
                if let Some(work) = self.work()
                    && let Some(tree) = work.candidate.clone()
                {
                    let step = name(&work.step);
                    self.saw(&tree, step, Seen::Proved);
                }
            }
            Event::Collected(_) if !self.left => self.wrong.push(Wrong::Unfounded),
            Event::Committed { .. } => self.after_commit(),
            Event::LedgerRead {
                committed: Some(_), ..
            } => self.after_commit(),
            Event::Accepted => self.past.accepted = true,
            Event::Unwound => {
                // `Run::unwind` removes the request that it obeys.
                if let At::Unwinding(Ending::Stopped(_)) = self.machine.at {
                    self.request = None;
                }
            }
            _ => {}
        }
        self.deliver(fault, event);
    }

    /// `Run::tidy_up`.
    fn after_commit(&mut self) {
        self.git.unrecorded = false;
        if self.work().is_some_and(|w| w.claim != Claim::Refactor) {
            self.git.red = None;
        }
    }

    fn edit(&mut self, edit: Edit) {
        let unticked = self.git.steps.iter().position(|s| !s.ticked);
        match edit {
            Edit::Code => {
                self.git.moved = true;
                // What was held, shown and approved was so on another branch.
                self.proofs.clear();
                self.past.accepted = false;
                if let Some(red) = &mut self.git.red {
                    red.fits = false;
                }
            }
            Edit::Rename => {
                if let Some(step) = self.git.steps.get_mut(unticked.unwrap_or(1)) {
                    step.renamed = !step.renamed;
                }
            }
            Edit::Tick => {
                if let Some(step) = unticked.and_then(|at| self.git.steps.get_mut(at)) {
                    step.ticked = true;
                }
            }
        }
    }

    /// What `Run::read_ledger` finds.
    pub(super) fn reading(&self) -> Event {
        let committing = self.work().is_some_and(|w| w.stage == Stage::Commit);
        let committed = (committing && self.git.unrecorded).then(|| "c".to_owned());
        let red = self.git.red.as_ref().filter(|red| red.fits);
        Event::LedgerRead {
            steps: self.ledger(),
            red: red.map(|red| KeptRed {
                title: title(red.step),
                criteria: vec!["AC1".to_owned()],
                tree: red.tree.clone(),
            }),
            moved: committed.is_none() && self.git.moved,
            committed,
        }
    }
}
