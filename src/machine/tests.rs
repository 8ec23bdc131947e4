use super::*;
use crate::cause::{Bail, Cause};
use crate::plan::Plan;
use crate::role::{Claim, Role, StopMode};

mod random;
mod resumed;

fn plan() -> Plan {
    Plan {
        criteria: Vec::new(),
        steps: Vec::new(),
    }
}

fn ledger_step(number: u32, ticked: bool) -> Step {
    Step {
        number,
        title: format!("step {number}"),
        criteria: vec!["AC1".to_owned()],
        ticked,
        no_test: (number == 3).then(|| "documentation only".to_owned()),
    }
}

fn tree(n: u32) -> Tree {
    Tree(format!("{n:040x}"))
}

/// The world that a shell would be: a ledger of three steps, the third without a test, and a branch.
#[derive(Clone)]
struct World {
    ticked: Vec<bool>,
    committed: Vec<(u32, Claim)>,
    trees: u32,
}

impl World {
    fn new() -> World {
        World {
            ticked: vec![false; 3],
            committed: Vec::new(),
            trees: 0,
        }
    }

    fn steps(&self) -> Vec<Step> {
        (1..=3)
            .map(|n| ledger_step(n, self.ticked[n as usize - 1]))
            .collect()
    }

    fn fresh(&mut self) -> Tree {
        self.trees += 1;
        tree(self.trees)
    }

    /// The outcome of an effect when everything goes well.
    fn well(&mut self, effect: &Effect) -> Event {
        match effect {
            Effect::Preflight => Event::PreflightPassed {
                ledger: self.trees > 0,
            },
            Effect::Launch(leaf) => Event::LeafEnded(LeafEnd::Answered(match leaf.role {
                Role::Planner => Answer::Plan(plan()),
                Role::Developer => Answer::Developed,
                Role::Verifier => Answer::Approve {
                    breaks_with: Some("patch".to_owned()),
                },
            })),
            Effect::CommitPlan(_) => {
                self.trees += 1;
                Event::PlanCommitted
            }
            Effect::ReadLedger => Event::LedgerRead {
                steps: self.steps(),
                red: None,
                committed: None,
                moved: false,
            },
            Effect::Collect(_) => Event::Collected(Collected::Candidate(self.fresh())),
            Effect::Check(_) => Event::Checked(Checked::Holds),
            Effect::Prove(_) => Event::Proved {
                shown: true,
                reasons: Vec::new(),
            },
            Effect::KeepRed(_) => Event::RedKept,
            Effect::Commit(work) => {
                self.ticked[work.step.number as usize - 1] = true;
                self.committed.push((work.step.number, work.claim));
                Event::Committed {
                    commit: "c".to_owned(),
                }
            }
            Effect::Drop(_) => Event::Dropped,
            Effect::Accept => Event::Accepted,
            Effect::Publish => Event::Published { url: None },
            Effect::Unwind(_) => Event::Unwound,
            Effect::Note(_) | Effect::Mirror | Effect::Push => unreachable!("not awaited"),
        }
    }
}

fn begun() -> State {
    let event = Event::Begun {
        limits: Limits::default(),
        plan: None,
    };
    next(State::new(), event).unwrap().0
}

/// Runs to the end, asking `answer` first and the well-going world otherwise; gives every state.
fn run(
    mut state: State,
    world: &mut World,
    mut answer: impl FnMut(&Effect, &State) -> Option<Event>,
) -> State {
    for _ in 0..10_000 {
        let Some(effect) = state.pending() else {
            return state;
        };
        let event = answer(&effect, &state).unwrap_or_else(|| world.well(&effect));
        let (after, effects) = next(state, event).unwrap();
        assert_eq!(
            after.pending().as_ref(),
            effects.last().filter(|_| after.pending().is_some())
        );
        state = after;
    }
    panic!("the run does not end: {state:?}");
}

fn bail_of(state: &State) -> Option<Cause> {
    match state.ending() {
        Some(Ending::Bailed(bail)) => Some(bail.cause),
        _ => None,
    }
}

#[test]
fn a_run_in_which_all_goes_well_commits_each_claim_once_and_is_done() {
    let mut world = World::new();
    let end = run(begun(), &mut world, |_, _| None);
    assert_eq!(end.ending(), Some(&Ending::Done { url: None }));
    let expected = [
        (1, Claim::Green),
        (1, Claim::Refactor),
        (2, Claim::Green),
        (2, Claim::Refactor),
        (3, Claim::NoTest),
    ];
    assert_eq!(world.committed, expected);
}

#[test]
fn rejects_spend_revisions_and_stuck_leaves_spend_retries_of_their_own() {
    // Two stuck launches and three rejects of the same red: both budgets nearly spent, neither over.
    let (mut stuck, mut rejects) = (0, 0);
    let end = run(begun(), &mut World::new(), |effect, _| match effect {
        Effect::Launch(leaf) if leaf.claim == Some(Claim::Red) => match leaf.role {
            Role::Developer if stuck < 2 => {
                stuck += 1;
                Some(Event::LeafEnded(LeafEnd::Stuck))
            }
            Role::Verifier if rejects < 3 => {
                rejects += 1;
                let reasons = vec!["too weak".to_owned()];
                Some(Event::LeafEnded(LeafEnd::Answered(Answer::Reject {
                    reasons,
                })))
            }
            _ => None,
        },
        _ => None,
    });
    assert_eq!(end.ending(), Some(&Ending::Done { url: None }));
    assert_eq!((stuck, rejects), (2, 3));
}

#[test]
fn the_fourth_reject_of_a_phase_bails_revise_exhausted() {
    let mut asked = 0;
    let end = run(begun(), &mut World::new(), |effect, _| match effect {
        Effect::Launch(leaf) if leaf.role == Role::Verifier => {
            asked += 1;
            let reasons = vec!["no".to_owned()];
            Some(Event::LeafEnded(LeafEnd::Answered(Answer::Reject {
                reasons,
            })))
        }
        _ => None,
    });
    assert_eq!((bail_of(&end), asked), (Some(Cause::ReviseExhausted), 4));
}

#[test]
fn the_third_stuck_launch_of_a_leaf_bails_killed_stuck() {
    let mut launches = 0;
    let end = run(begun(), &mut World::new(), |effect, _| match effect {
        Effect::Launch(leaf) if leaf.role == Role::Developer => {
            launches += 1;
            assert_eq!(leaf.launch, launches);
            Some(Event::LeafEnded(LeafEnd::Stuck))
        }
        _ => None,
    });
    assert_eq!((bail_of(&end), launches), (Some(Cause::KilledStuck), 3));
}

#[test]
fn in_refactor_spent_budgets_drop_the_change_and_the_step_stands() {
    for ended in [
        LeafEnd::Stuck,
        LeafEnd::Answered(Answer::Reject {
            reasons: vec!["slower".to_owned()],
        }),
        LeafEnd::Malformed {
            reason: "prose".to_owned(),
        },
    ] {
        let mut world = World::new();
        let end = run(begun(), &mut world, |effect, _| match effect {
            Effect::Launch(leaf)
                if leaf.claim == Some(Claim::Refactor) && leaf.role == Role::Verifier =>
            {
                Some(Event::LeafEnded(ended.clone()))
            }
            _ => None,
        });
        assert_eq!(end.ending(), Some(&Ending::Done { url: None }));
        assert_eq!(
            world.committed,
            [(1, Claim::Green), (2, Claim::Green), (3, Claim::NoTest)]
        );
    }
}

#[test]
fn a_test_that_passes_at_once_twice_is_committed_alone_when_a_patch_breaks_it() {
    let mut world = World::new();
    let mut proved = 0;
    let end = run(begun(), &mut world, |effect, _| match effect {
        Effect::Check(work) if work.step.number == 1 => {
            let reasons = vec!["passes".to_owned()];
            Some(Event::Checked(Checked::PassesAtOnce { reasons }))
        }
        Effect::Prove(_) => {
            proved += 1;
            None
        }
        _ => None,
    });
    assert_eq!(end.ending(), Some(&Ending::Done { url: None }));
    assert_eq!(proved, 1);
    assert_eq!(world.committed[0], (1, Claim::AlreadyThere));
    assert_eq!(
        world.committed[1],
        (2, Claim::Green),
        "no green and no refactor of step 1"
    );
}

#[test]
fn an_already_there_claim_without_a_breaking_patch_is_a_vacuous_test() {
    let end = run(begun(), &mut World::new(), |effect, _| match effect {
        Effect::Check(_) => Some(Event::Checked(Checked::PassesAtOnce {
            reasons: vec!["passes".to_owned()],
        })),
        Effect::Launch(leaf) if leaf.role == Role::Verifier => {
            Some(Event::LeafEnded(LeafEnd::Answered(Answer::Approve {
                breaks_with: None,
            })))
        }
        _ => None,
    });
    assert_eq!(bail_of(&end), Some(Cause::ReviseExhausted));
}

#[test]
fn a_reopened_red_goes_back_to_red_and_on_from_the_saved_code_at_most_twice() {
    let mut reopened = 0;
    let mut merged = 0;
    let end = run(begun(), &mut World::new(), |effect, _| match effect {
        Effect::Launch(leaf)
            if leaf.claim == Some(Claim::Green) && leaf.role == Role::Developer =>
        {
            merged += u32::from(matches!(leaf.from, From::Merge { .. }));
            reopened += 1;
            let reopen = vec![Reopen {
                test: "old".to_owned(),
                why: "changes".to_owned(),
            }];
            Some(Event::LeafEnded(LeafEnd::Answered(Answer::ReopenRed(
                reopen,
            ))))
        }
        _ => None,
    });
    // Two reopens, each continued from the merged code; then four refused attempts.
    assert_eq!(
        (bail_of(&end), merged, reopened),
        (Some(Cause::ReviseExhausted), 2, 2 + 4)
    );
}

#[test]
fn stops_at_ledger_finish_the_step_under_way() {
    let mut world = World::new();
    let mut state = begun();
    let mut asked = false;
    while let Some(effect) = state.pending() {
        let mid_step = matches!(&effect, Effect::Check(w) if w.claim == Claim::Red);
        let event = if mid_step && !asked {
            asked = true;
            Event::StopAsked {
                mode: StopMode::AtLedger,
            }
        } else {
            world.well(&effect)
        };
        state = next(state, event).unwrap().0;
    }
    assert_eq!(state.ending(), Some(&Ending::Stopped(StopMode::AtLedger)));
    assert_eq!(world.committed, [(1, Claim::Green), (1, Claim::Refactor)]);
}

#[test]
fn a_request_that_became_stronger_unseen_is_called_what_was_done() {
    let ask = Event::StopAsked {
        mode: StopMode::AtLedger,
    };
    for (ended, mode) in [
        (LeafEnd::Refused, StopMode::AtLeaf),
        (LeafEnd::Stopped, StopMode::Now),
    ] {
        let mut state = begun();
        let mut world = World::new();
        while !matches!(state.pending(), Some(Effect::Launch(l)) if l.claim == Some(Claim::Green)) {
            let event = world.well(&state.pending().unwrap());
            state = next(state, event).unwrap().0;
        }
        state = next(state, ask.clone()).unwrap().0;
        state = next(state, Event::LeafEnded(ended)).unwrap().0;
        assert_eq!(state.at, At::Unwinding(Ending::Stopped(mode)));
    }
}

#[test]
fn a_step_that_was_renamed_while_its_red_was_kept_starts_over_and_the_red_is_put_aside() {
    let mut state = begun();
    let mut world = World::new();
    while !matches!(state.pending(), Some(Effect::Launch(l)) if l.claim == Some(Claim::Green)) {
        let event = world.well(&state.pending().unwrap());
        state = next(state, event).unwrap().0;
    }
    let resumed = Event::Resumed {
        limits: Limits::default(),
        renew: Renew::Spent,
        plan: None,
    };
    let state = next(state, resumed).unwrap().0;
    let state = next(state, Event::PreflightPassed { ledger: true })
        .unwrap()
        .0;
    let mut steps = world.steps();
    steps[0].title = "renamed".to_owned();
    let (state, effects) = next(
        state,
        Event::LedgerRead {
            steps,
            red: None,
            committed: None,
            moved: false,
        },
    )
    .unwrap();
    assert!(
        effects
            .iter()
            .any(|e| matches!(e, Effect::Note(Notice::RedStale(_))))
    );
    assert!(matches!(state.pending(), Some(Effect::Launch(l)) if l.claim == Some(Claim::Red)));
}
