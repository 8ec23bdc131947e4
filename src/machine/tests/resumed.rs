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
