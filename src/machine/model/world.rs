//! The world that the model's conductor lives in: what is durable, what lives, and what is true whatever the
//! machine believes.

use super::Cycle;
use super::fault::{self, Fault};
use super::wrong::{self, Wrong};
use crate::machine::{At, Effect, Ending, Event, Notice, State, Step, Tree, Work};
use crate::role::{Claim, Phase, Role, StopMode};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Everything. Equal worlds have equal futures.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// What replaying the journal gives. A living conductor holds the same: it journals an event before it counts.
    pub(super) machine: Machine,
    pub(super) conductor: Conductor,
    /// What a living conductor has done of the awaited effect without having journalled its outcome.
    pub(super) performed: bool,
    /// Whether the working tree holds what a developer has left and nobody has taken.
    pub(super) left: bool,
    /// The strongest stop that the living conductor has told the machine of.
    pub(super) told: Option<StopMode>,
    /// `.tdd/stop`.
    pub(super) request: Option<StopMode>,
    /// The launch whose end is not in the journal.
    pub(super) launch: Option<Launch>,
    pub(super) git: Git,
    /// Whether the forge has the pull request.
    pub(super) pull: bool,
    /// What has been seen of trees that still matter, in the order of `Ord`.
    pub(super) proofs: Vec<Proof>,
    /// Whether the journal says how the last start ended.
    pub(super) closed: bool,
    /// How many more things may go wrong or be asked for: crashes, kills, stops, failures, edits, reruns.
    pub(super) fuel: u8,
    /// What has happened on the way that a property asks for.
    pub(super) past: Past,
    /// What must never happen and has, by the newest action.
    pub(super) wrong: Vec<Wrong>,
}

/// The conductor's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Conductor {
    Dead,
    /// It has replayed the journal and settles what an earlier start left.
    Starting,
    Live,
}

/// A launch that the journal knows as open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Launch {
    pub(super) role: Role,
    pub(super) claim: Option<Claim>,
    /// Verifier: the tree that it judges, and for which step.
    pub(super) judges: Option<(Name, Tree)>,
    pub(super) now: Now,
    /// Whether a living conductor holds it.
    pub(super) held: bool,
}

/// What has become of an open launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Now {
    /// In the journal, not yet started.
    Intended,
    Running,
    /// It ended by itself: what it answered is chosen when somebody reads it, which nobody can tell apart.
    Answered,
    /// A deadline of ours ended it: recorded.
    Stuck,
    /// A stop of mode now ended it: recorded.
    Stopped,
    /// Somebody else killed it, with its shim: no record.
    Gone,
    SpawnFailed,
}

/// A step by number, and whether a person has given it another title.
pub(super) type Name = (u8, bool);

/// What was seen of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Proof {
    pub(super) tree: String,
    pub(super) step: Name,
    pub(super) seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Seen {
    /// Its checks held, for this phase.
    Held(Phase),
    /// A verifier approved it, as already there or as what its phase claims.
    Approved(Phase, bool),
    /// The verifier's patch was shown to break it.
    Proved,
}

/// What git has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Git {
    /// Commits of the plan.
    pub(super) plans: u8,
    pub(super) steps: [InGit; 2],
    /// `refs/veri/issue-<n>/red`.
    pub(super) red: Option<Red>,
    /// The commit that was made and whose making is not in the journal: found by its trailers.
    pub(super) unrecorded: bool,
    /// Whether a person has committed code since the ledger was last read.
    pub(super) moved: bool,
}

/// What git has of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InGit {
    pub(super) no_test: bool,
    pub(super) renamed: bool,
    pub(super) ticked: bool,
    /// Commits that tick it, and commits of its refactor.
    pub(super) commits: [u8; 2],
}

/// The approved red that is kept under a ref.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Red {
    pub(super) step: Name,
    pub(super) tree: Tree,
    /// Whether the branch is still what it was kept on.
    pub(super) fits: bool,
}

/// What a path has seen: only what makes a difference to a property, so that paths can meet again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Past {
    /// The run has passed acceptance since something was last committed.
    pub(super) accepted: bool,
}

/// A state of the machine with its hash, so that it is computed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine(Arc<(u64, State)>);

impl Machine {
    pub(super) fn new(state: State) -> Machine {
        #[allow(deprecated)]
        let mut hasher = std::hash::SipHasher::new();
        state.hash(&mut hasher);
        Machine(Arc::new((hasher.finish(), state)))
    }
}

impl Hash for Machine {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.0.0);
    }
}

impl Deref for Machine {
    type Target = State;
    fn deref(&self) -> &State {
        &self.0.1
    }
}

impl World {
    pub(super) fn new(cycle: &Cycle) -> World {
        let step = |no_test| InGit {
            no_test,
            renamed: false,
            ticked: false,
            commits: [0; 2],
        };
        World {
            machine: Machine::new(State::new()),
            conductor: Conductor::Dead,
            performed: false,
            left: false,
            told: None,
            request: None,
            launch: None,
            git: Git {
                plans: 0,
                steps: cycle.no_test.map(step),
                red: None,
                unrecorded: false,
                moved: false,
            },
            pull: false,
            proofs: Vec::new(),
            closed: false,
            fuel: cycle.fuel,
            past: Past::default(),
            wrong: Vec::new(),
        }
    }

    /// Gives the machine an event and journals it, as `Run::feed` does.
    pub(super) fn deliver(&mut self, fault: Option<Fault>, event: Event) {
        let before = self.machine.clone();
        let (mut after, effects) = match fault::next(fault, &before, event.clone()) {
            Ok(outcome) => outcome,
            Err(illegal) => return self.wrong.push(Wrong::Illegal(illegal.to_string())),
        };
        self.performed = false;
        self.wrong
            .extend(wrong::of_step(self, &before, &event, &after, &effects));
        for effect in &effects {
            // `Run::noticed`: the approved red goes to the discarded work.
            if let Effect::Note(Notice::RedStale(_)) = effect {
                self.git.red = None;
            }
        }
        match event {
            Event::StopAsked { mode } => self.told = self.told.max(Some(mode)),
            Event::LedgerRead { .. } => self.git.moved = false,
            Event::Collected(_) | Event::Unwound => self.left = false,
            _ => {}
        }
        forget_words(&mut after);
        self.machine = Machine::new(after);
        self.keep_what_matters();
    }

    pub(super) fn work(&self) -> Option<&Work> {
        self.machine.work.as_ref()
    }

    /// Whether this was seen of the tree.
    pub(super) fn has(&self, tree: &Tree, step: Name, seen: Seen) -> bool {
        let found = |p: &Proof| p.tree == tree.0 && p.step == step && p.seen == seen;
        self.proofs.iter().any(found)
    }

    pub(super) fn saw(&mut self, tree: &Tree, step: Name, seen: Seen) {
        if !self.has(tree, step, seen) {
            self.proofs.push(Proof {
                tree: tree.0.clone(),
                step,
                seen,
            });
            self.proofs.sort();
        }
    }

    /// The name of a tree that nothing remembers: which name it is makes no difference to anybody.
    pub(super) fn fresh_tree(&self) -> Tree {
        let known = self.trees();
        let free = (0..u8::MAX).map(|n| format!("t{n}"));
        Tree(
            free.into_iter()
                .find(|n| !known.contains(&n.as_str()))
                .unwrap_or_default(),
        )
    }

    fn trees(&self) -> Vec<&str> {
        let work = self.work().map(Work::trees).unwrap_or_default();
        let red = self.git.red.as_ref().map(|red| &red.tree);
        let judged = self
            .launch
            .as_ref()
            .and_then(|l| Some(&l.judges.as_ref()?.1));
        let all = work.into_iter().chain(red).chain(judged);
        all.map(|tree| tree.0.as_str()).collect()
    }

    fn keep_what_matters(&mut self) {
        let known: Vec<String> = self.trees().into_iter().map(str::to_owned).collect();
        self.proofs.retain(|proof| known.contains(&proof.tree));
    }

    /// The ledger as it is read.
    pub(super) fn ledger(&self) -> Vec<Step> {
        let step = |n: u8| self.git.steps.get(usize::from(n - 1)).map(|s| s.step(n));
        [1, 2].into_iter().filter_map(step).collect()
    }

    /// What git has of a step.
    pub(super) fn in_git(&mut self, name: Name) -> Option<&mut InGit> {
        self.git.steps.get_mut(usize::from(name.0).checked_sub(1)?)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.machine.at, At::Ended(_))
    }

    pub(super) fn ending(&self) -> Option<&Ending> {
        self.machine.ending()
    }
}

impl InGit {
    fn step(self, number: u8) -> Step {
        Step {
            number: number.into(),
            title: title((number, self.renamed)),
            criteria: vec!["AC1".to_owned()],
            ticked: self.ticked,
            no_test: self.no_test.then(|| "words only".to_owned()),
        }
    }
}

/// The title under which the ledger knows a step.
pub(super) fn title((number, renamed): Name) -> String {
    format!("{number}{}", if renamed { "'" } else { "" })
}

/// Which step the machine means.
pub(super) fn name(step: &Step) -> Name {
    (
        u8::try_from(step.number).unwrap_or(0),
        step.title.ends_with('\''),
    )
}

/// Words are for people and prompts: the machine never looks at them, so that worlds which differ in words alone
/// are one world.
fn forget_words(state: &mut State) {
    use crate::machine::{Feedback, FeedbackKind, Stage};
    let quiet = |feedback: &mut Option<Feedback>| {
        if let Some(feedback) = feedback {
            feedback.reasons.clear();
            feedback.kind = FeedbackKind::Check;
        }
    };
    if let Some(work) = &mut state.work {
        quiet(&mut work.feedback);
        // For the next prompt alone.
        work.cut_off = false;
        match &mut work.stage {
            Stage::Collect { failed, .. } => quiet(failed),
            Stage::Drop { why } => why.clear(),
            _ => {}
        }
    }
    quiet(&mut state.planner.feedback);
    let then = state.then.as_deref_mut();
    for at in then.into_iter().chain([&mut state.at]) {
        if let At::Unwinding(Ending::Bailed(bail)) | At::Ended(Ending::Bailed(bail)) = at {
            bail.detail.clear();
        }
    }
}
