//! Starts after the first: where they go on.

use super::*;

#[test]
fn unfinished_work_is_begun_again_when_the_branch_has_moved_under_it() {
    let mut world = World::new();
    let mut state = begun();
    while !state.work.as_ref().is_some_and(|w| w.claim == Claim::Green) {
        let effect = state.pending().unwrap();
        state = next(state, world.well(&effect)).unwrap().0;
    }
    let resumed = Event::Resumed {
        limits: Limits::default(),
        renew: Renew::Spent,
        plan: None,
    };
    let state = next(state, resumed).unwrap().0;
    let passed = Event::PreflightPassed { ledger: true };
    let state = next(state, passed).unwrap().0;
    let read = Event::LedgerRead {
        steps: world.steps(),
        red: None,
        committed: None,
        moved: true,
    };
    let (state, effects) = next(state, read).unwrap();
    let stale = |e: &Effect| matches!(e, Effect::Note(Notice::RedStale(_)));
    assert!(effects.iter().any(stale));
    let Some(Effect::Launch(leaf)) = state.pending() else {
        panic!("no launch")
    };
    assert_eq!((leaf.claim, leaf.from), (Some(Claim::Red), From::Head));
}

#[test]
fn a_check_that_bails_twice_over_one_candidate_goes_to_its_developer() {
    let mut world = World::new();
    let mut state = begun();
    let checks = |state: &State| matches!(state.pending(), Some(Effect::Check(_)));
    while !checks(&state) {
        let effect = state.pending().unwrap();
        state = next(state, world.well(&effect)).unwrap().0;
    }
    for bail in [
        Bail::needs_user("no such program"),
        Bail::new(Cause::KilledExternal, "signal 9"),
    ] {
        assert!(checks(&state), "{:?}", state.pending());
        for event in [
            Event::Failed(bail),
            Event::Unwound,
            Event::Resumed {
                limits: Limits::default(),
                renew: Renew::Spent,
                plan: None,
            },
            Event::PreflightPassed { ledger: true },
            Event::LedgerRead {
                steps: world.steps(),
                red: None,
                committed: None,
                moved: false,
            },
        ] {
            state = next(state, event).unwrap().0;
        }
    }
    let Some(Effect::Launch(leaf)) = state.pending() else {
        panic!("no launch")
    };
    let work = state.work.unwrap();
    assert_eq!((leaf.role, leaf.attempt), (Role::Developer, 1));
    assert_eq!(work.feedback.unwrap().reasons, ["signal 9"]);
}

fn resumed(state: State) -> State {
    let event = Event::Resumed {
        limits: Limits::default(),
        renew: Renew::Spent,
        plan: None,
    };
    next(state, event).unwrap().0
}

/// Goes well until the machine awaits this.
fn until(mut state: State, world: &mut World, wanted: impl Fn(&Effect) -> bool) -> State {
    while let Some(effect) = state.pending().filter(|e| !wanted(e)) {
        let event = world.well(&effect);
        state = next(state, event).unwrap().0;
    }
    state
}

fn failed() -> Event {
    Event::Failed(Bail::new(Cause::ForgeFailed, "no answer"))
}

#[test]
fn a_preflight_that_fails_forgets_nothing_of_what_was_to_follow() {
    type Wanted = fn(&Effect) -> bool;
    let cases: [(Wanted, bool); 4] = [
        (|e| matches!(e, Effect::CommitPlan(_)), false),
        (|e| matches!(e, Effect::Collect(_)), true),
        (|e| matches!(e, Effect::Check(_)), true),
        (|e| matches!(e, Effect::Commit(_)), true),
    ];
    for (wanted, ledger) in cases {
        let mut world = World::new();
        let state = until(begun(), &mut world, wanted);
        let before = state.clone();
        // Twice refused, once interrupted, then passed.
        let mut state = resumed(state);
        for event in [failed(), failed(), Event::Interrupted] {
            state = resumed(next(state, event).unwrap().0);
        }
        let state = next(state, Event::PreflightPassed { ledger }).unwrap().0;
        let state = until(state, &mut world, |e| !matches!(e, Effect::ReadLedger));
        assert_eq!(state.pending(), before.pending());
        assert_eq!(state.work, before.work);
    }
}

#[test]
fn a_plan_that_was_committed_before_a_crash_is_not_committed_again() {
    let mut world = World::new();
    let state = until(begun(), &mut world, |e| matches!(e, Effect::CommitPlan(_)));
    let (state, effects) = next(resumed(state), Event::PreflightPassed { ledger: true }).unwrap();
    assert_eq!(
        effects,
        [Effect::Push, Effect::Mirror, Effect::ReadLedger],
        "{state:?}"
    );
}

#[test]
fn a_commit_that_was_made_before_a_crash_counts_and_its_refactor_follows() {
    let mut world = World::new();
    let at_commit = until(begun(), &mut world, |e| matches!(e, Effect::Commit(_)));
    let read = |committed: bool| Event::LedgerRead {
        steps: vec![ledger_step(1, committed), ledger_step(2, false)],
        red: None,
        committed: committed.then(|| "c".to_owned()),
        moved: false,
    };
    let at_boundary = |state| {
        next(resumed(state), Event::PreflightPassed { ledger: true })
            .unwrap()
            .0
    };
    let (state, effects) = next(at_boundary(at_commit.clone()), read(true)).unwrap();
    assert!(effects.contains(&Effect::Push));
    assert!(matches!(state.pending(), Some(Effect::Launch(l)) if l.claim == Some(Claim::Refactor)));
    // Not made: it is made now.
    let state = next(at_boundary(at_commit.clone()), read(false)).unwrap().0;
    assert_eq!(state.pending(), at_commit.pending());
}

#[test]
fn an_answer_whose_collection_failed_is_not_looked_for_in_a_tree_that_was_put_back() {
    let mut world = World::new();
    let state = until(begun(), &mut world, |e| matches!(e, Effect::Collect(_)));
    let state = next(state, failed()).unwrap().0;
    let state = next(state, Event::Unwound).unwrap().0;
    let state = next(resumed(state), Event::PreflightPassed { ledger: true })
        .unwrap()
        .0;
    let state = until(state, &mut world, |e| !matches!(e, Effect::ReadLedger));
    let Some(Effect::Launch(leaf)) = state.pending() else {
        panic!("{:?}", state.pending())
    };
    assert_eq!(
        (leaf.role, leaf.attempt, leaf.launch),
        (Role::Developer, 1, 1)
    );
}

#[test]
fn a_stop_is_obeyed_until_publishing_begins_and_not_after() {
    let ask = Event::StopAsked {
        mode: StopMode::AtLeaf,
    };
    for (publishing, ending) in [
        (false, Ending::Stopped(StopMode::AtLeaf)),
        (true, Ending::Done { url: None }),
    ] {
        let mut world = World::new();
        let state = until(begun(), &mut world, |e| match publishing {
            true => *e == Effect::Publish,
            false => *e == Effect::Accept,
        });
        let state = next(state, ask.clone()).unwrap().0;
        let end = run(state, &mut world, |_, _| None);
        assert_eq!(end.ending(), Some(&ending));
    }
}

#[test]
fn leaves_that_leave_no_trace_are_not_launched_for_ever() {
    for lost in [LeafEnd::Lost, LeafEnd::NeverStarted] {
        for role in [Role::Planner, Role::Developer, Role::Verifier] {
            let mut launches = 0;
            let mut answer = |effect: &Effect, _: &State| match effect {
                Effect::Launch(leaf) if leaf.role == role => {
                    launches += 1;
                    Some(Event::LeafEnded(lost.clone()))
                }
                _ => None,
            };
            let mut world = World::new();
            let end = run(begun(), &mut world, &mut answer);
            assert_eq!(bail_of(&end), Some(Cause::KilledExternal));
            // A later start has as many again.
            let end = run(resumed(end), &mut world, &mut answer);
            assert_eq!(bail_of(&end), Some(Cause::KilledExternal));
            assert_eq!(launches, 4, "{lost:?} {role:?}");
        }
    }
}

#[test]
fn what_is_lost_is_counted_anew_after_a_launch_that_left_a_trace() {
    let mut world = World::new();
    let mut launches = 0;
    let end = run(begun(), &mut world, |effect, _| {
        let Effect::Launch(leaf) = effect else {
            return None;
        };
        // Each leaf is lost once; none twice in a row.
        launches += 1;
        let lost = launches % 2 == 1;
        assert!(launches < 200, "{leaf:?}");
        lost.then_some(Event::LeafEnded(LeafEnd::Lost))
    });
    assert!(matches!(end.ending(), Some(Ending::Done { .. })), "{end:?}");
}

#[test]
fn a_planners_launches_are_numbered_by_what_was_refused_and_what_was_stuck() {
    let mut world = World::new();
    let mut told = Vec::new();
    run(begun(), &mut world, |effect, _| match effect {
        Effect::Launch(leaf) if leaf.role == Role::Planner => {
            told.push((leaf.attempt, leaf.launch));
            match told.len() {
                1 => Some(Event::LeafEnded(LeafEnd::Stuck)),
                2 => Some(Event::LeafEnded(LeafEnd::Malformed {
                    reason: "no plan".to_owned(),
                })),
                _ => None,
            }
        }
        _ => None,
    });
    assert_eq!(told[..2], [(1, 1), (1, 2)], "{told:?}");
    assert_eq!(told.last().unwrap().0, 2, "{told:?}");
}

#[test]
fn each_start_of_the_conductor_may_find_one_launch_lost() {
    let mut world = World::new();
    let mut state = until(begun(), &mut world, |e| matches!(e, Effect::Launch(_)));
    for _ in 0..5 {
        state = resumed(next(state, Event::LeafEnded(LeafEnd::Lost)).unwrap().0);
        state = next(state, Event::PreflightPassed { ledger: false })
            .unwrap()
            .0;
        assert!(matches!(state.pending(), Some(Effect::Launch(_))));
    }
}

#[test]
fn a_plan_that_could_not_be_committed_is_committed_by_the_next_start() {
    let given = |title: &str| Plan {
        steps: vec![crate::plan::Step {
            title: title.to_owned(),
            criteria: Vec::new(),
            no_test: None,
        }],
        ..plan()
    };
    let begin = Event::Begun {
        limits: Limits::default(),
        plan: Some(given("mine")),
    };
    let planned = next(State::new(), begin).unwrap().0;
    let at_commit = |state| {
        next(state, Event::PreflightPassed { ledger: false })
            .unwrap()
            .0
    };
    let committing = at_commit(planned);
    let bailed = |bail| {
        let state = next(committing.clone(), Event::Failed(bail)).unwrap().0;
        next(state, Event::Unwound).unwrap().0
    };
    // A hook that refuses the ledger; a preflight that fails in between.
    let state = resumed(bailed(Bail::needs_user("the hook")));
    let state = resumed(next(state, failed()).unwrap().0);
    assert_eq!(at_commit(state).pending(), committing.pending());
    // Another plan takes its place.
    let again = Event::Resumed {
        limits: Limits::default(),
        renew: Renew::Spent,
        plan: Some(given("another")),
    };
    let state = next(bailed(Bail::needs_user("the hook")), again).unwrap().0;
    let wanted = Some(Effect::CommitPlan(given("another")));
    assert_eq!(at_commit(state).pending(), wanted);
    // A plan that is not valid is not tried again.
    let state = resumed(bailed(Bail::new(Cause::PlanInvalid, "no step")));
    assert!(matches!(
        at_commit(state).pending(),
        Some(Effect::Launch(_))
    ));
}

#[test]
fn a_reopened_red_whose_revisions_are_spent_is_begun_again_from_the_red_before_it() {
    let mut world = World::new();
    let mut reopened = false;
    let end = run(begun(), &mut world, |effect, _| match effect {
        Effect::Launch(leaf) if leaf.claim == Some(Claim::Green) && !reopened => {
            reopened = true;
            Some(Event::LeafEnded(LeafEnd::Answered(Answer::ReopenRed(
                vec![Reopen {
                    test: "old".to_owned(),
                    why: "changes".to_owned(),
                }],
            ))))
        }
        Effect::Check(_) if reopened => Some(Event::Checked(Checked::Fails {
            reasons: vec!["r".to_owned()],
        })),
        _ => None,
    });
    assert_eq!(bail_of(&end), Some(Cause::ReviseExhausted));
    let red = end.work.clone().unwrap().red.unwrap();
    let state = until(resumed(end), &mut world, |e| matches!(e, Effect::Launch(_)));
    let Some(Effect::Launch(leaf)) = state.pending() else {
        panic!("no launch")
    };
    assert_eq!((leaf.claim, leaf.from), (Some(Claim::Red), From::Tree(red)));
}

#[test]
fn a_launch_that_was_cut_off_is_known_to_the_next_and_no_longer_than_that() {
    let cut_off = |state: &State| state.work.as_ref().unwrap().cut_off;
    let developer = |e: &Effect| matches!(e, Effect::Launch(l) if l.role == Role::Developer);
    for (end, known) in [
        (LeafEnd::Lost, true),
        (LeafEnd::Stopped, true),
        (
            LeafEnd::External {
                detail: "signal 9".to_owned(),
            },
            true,
        ),
        (LeafEnd::NeverStarted, false),
        (LeafEnd::Refused, false),
    ] {
        let mut world = World::new();
        let mut state = until(begun(), &mut world, developer);
        state = next(state, Event::LeafEnded(end.clone())).unwrap().0;
        state = resumed(state);
        state = until(state, &mut world, developer);
        assert_eq!(cut_off(&state), known, "{end:?}");
        let stuck = next(state.clone(), Event::LeafEnded(LeafEnd::Stuck))
            .unwrap()
            .0;
        let answered = until(state, &mut world, |e| matches!(e, Effect::Check(_)));
        assert!(!cut_off(&stuck) && !cut_off(&answered), "{end:?}");
    }
}

#[test]
fn an_attempt_that_changes_nothing_is_told_again_what_was_refused_and_not_twice() {
    let mut world = World::new();
    let mut state = until(begun(), &mut world, |e| matches!(e, Effect::Check(_)));
    let fails = Checked::Fails {
        reasons: vec!["too weak".to_owned()],
    };
    for checked in [fails, Checked::Repeated, Checked::Repeated] {
        state = next(state, Event::Checked(checked)).unwrap().0;
        state = until(state, &mut world, |e| matches!(e, Effect::Check(_)));
    }
    let feedback = state.work.unwrap().feedback.unwrap();
    assert_eq!(feedback.kind, FeedbackKind::Check);
    assert_eq!(feedback.reasons.len(), 2);
    assert_eq!(feedback.reasons[1], "too weak");
}

#[test]
fn a_kept_red_without_a_journal_goes_on_at_green() {
    let state = next(begun(), Event::PreflightPassed { ledger: true })
        .unwrap()
        .0;
    let red = KeptRed {
        title: "step 1".to_owned(),
        criteria: vec!["AC1".to_owned()],
        tree: tree(7),
    };
    let event = Event::LedgerRead {
        steps: World::new().steps(),
        red: Some(red),
        committed: None,
        moved: false,
    };
    let state = next(state, event).unwrap().0;
    let Some(Effect::Launch(leaf)) = state.pending() else {
        panic!("no launch")
    };
    assert_eq!(
        (leaf.claim, leaf.from),
        (Some(Claim::Green), From::Tree(tree(7)))
    );
}

#[test]
fn a_rerun_goes_on_where_the_stop_left_it_without_spending_a_budget() {
    let mut world = World::new();
    let mut stopped = false;
    let end = run(begun(), &mut world, |effect, _| match effect {
        Effect::Launch(leaf) if leaf.claim == Some(Claim::Green) && !stopped => {
            stopped = true;
            Some(Event::LeafEnded(LeafEnd::Refused))
        }
        _ => None,
    });
    assert!(matches!(end.ending(), Some(Ending::Stopped(_))));
    let resumed = Event::Resumed {
        limits: Limits::default(),
        renew: Renew::Spent,
        plan: None,
    };
    let again = next(end, resumed).unwrap().0;
    let end = run(again, &mut world, |effect, _| {
        if let Effect::Launch(leaf) = effect {
            assert_eq!((leaf.attempt, leaf.launch), (1, 1));
            assert!(world_has_no_second_red(leaf));
        }
        None
    });
    assert_eq!(end.ending(), Some(&Ending::Done { url: None }));
}

fn world_has_no_second_red(leaf: &Leaf) -> bool {
    !(leaf.claim == Some(Claim::Red) && leaf.step.as_ref().is_some_and(|s| s.number == 1))
}
