//! Whatever events come, in whatever order.

use super::*;
use proptest::prelude::*;

fn any_event() -> impl Strategy<Value = Event> {
    let reasons = || vec!["r".to_owned()];
    let bail = |cause| Bail::new(cause, "d");
    prop_oneof![
        Just(Event::Begun {
            limits: Limits::default(),
            plan: None
        }),
        any::<bool>().prop_map(|all| Event::Resumed {
            limits: Limits::default(),
            renew: if all { Renew::All } else { Renew::Spent },
            plan: None,
        }),
        any::<bool>().prop_map(|ledger| Event::PreflightPassed { ledger }),
        prop_oneof![
            Just(LeafEnd::Answered(Answer::Plan(plan()))),
            Just(LeafEnd::Answered(Answer::Developed)),
            Just(LeafEnd::Answered(Answer::ReopenRed(vec![Reopen {
                test: "t".to_owned(),
                why: "w".to_owned()
            }]))),
            Just(LeafEnd::Answered(Answer::Approve { breaks_with: None })),
            Just(LeafEnd::Answered(Answer::Approve {
                breaks_with: Some("p".to_owned())
            })),
            Just(LeafEnd::Answered(Answer::Reject { reasons: reasons() })),
            Just(LeafEnd::Answered(Answer::NeedsUser {
                question: "q".to_owned()
            })),
            Just(LeafEnd::Malformed {
                reason: "m".to_owned()
            }),
            Just(LeafEnd::Failed { code: 3 }),
            Just(LeafEnd::Stuck),
            Just(LeafEnd::Stopped),
            Just(LeafEnd::Refused),
            Just(LeafEnd::External {
                detail: "x".to_owned()
            }),
            Just(LeafEnd::Lost),
            Just(LeafEnd::NeverStarted),
            Just(LeafEnd::SpawnFailed {
                detail: "x".to_owned()
            }),
        ]
        .prop_map(Event::LeafEnded),
        Just(Event::PlanCommitted),
        (
            proptest::collection::vec(any::<bool>(), 3),
            any::<bool>(),
            any::<bool>()
        )
            .prop_map(|(t, committed, stale)| Event::LedgerRead {
                steps: (1..=3).map(|n| ledger_step(n, t[n as usize - 1])).collect(),
                red: None,
                committed: committed.then(|| "c".to_owned()),
                moved: stale,
            }),
        (0u32..50).prop_map(|n| Event::Collected(Collected::Candidate(tree(n)))),
        (0u32..50).prop_map(move |n| Event::Collected(Collected::Refused {
            tree: tree(n),
            feedback: Feedback {
                kind: FeedbackKind::Check,
                reasons: vec!["r".to_owned()]
            },
        })),
        Just(Event::Checked(Checked::Holds)),
        Just(Event::Checked(Checked::PassesAtOnce { reasons: reasons() })),
        Just(Event::Checked(Checked::Fails { reasons: reasons() })),
        Just(Event::Checked(Checked::Unchanged)),
        Just(Event::Checked(Checked::Repeated)),
        any::<bool>().prop_map(|shown| Event::Proved {
            shown,
            reasons: Vec::new()
        }),
        Just(Event::RedKept),
        Just(Event::Committed {
            commit: "c".to_owned()
        }),
        Just(Event::CommitRefused { reasons: reasons() }),
        Just(Event::Dropped),
        Just(Event::Accepted),
        Just(Event::Published { url: None }),
        prop_oneof![
            Just(StopMode::AtLedger),
            Just(StopMode::AtLeaf),
            Just(StopMode::Now)
        ]
        .prop_map(|mode| Event::StopAsked { mode }),
        Just(Event::Failed(bail(Cause::GitFailed))),
        Just(Event::Interrupted),
        Just(Event::Unwound),
    ]
}

/// What has been seen of the claim under way: the evidence that a commit needs.
#[derive(Default, Debug)]
struct Evidence {
    red_approved: bool,
    checked: bool,
    approved: bool,
    proved: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Random events, legal or not, among ones that bring the run on: nothing panics, and no commit
    /// lacks its evidence.
    #[test]
    fn no_sequence_of_events_commits_without_an_approved_red_and_an_approved_green(
        events in proptest::collection::vec(proptest::option::weighted(0.3, any_event()), 1..150)
    ) {
        let mut state = begun();
        let mut world = World::new();
        let mut seen = Evidence::default();
        let mut external = false;
        for event in events {
            let event = match (event, state.pending()) {
                (Some(event), _) => event,
                (None, Some(effect)) => world.well(&effect),
                (None, None) => Event::Resumed { limits: Limits::default(), renew: Renew::Spent, plan: None },
            };
            // Illegal pairs are errors and change nothing.
            let Ok((after, effects)) = next(state.clone(), event.clone()) else { continue };
            let before = state.work.clone();
            match &event {
                Event::LeafEnded(LeafEnd::Answered(Answer::Approve { .. }))
                    if before.as_ref().is_some_and(|w| w.stage == Stage::Verify) =>
                {
                    prop_assert!(seen.checked, "a verifier was asked without a check");
                    seen.approved = true;
                }
                Event::Checked(Checked::Holds | Checked::PassesAtOnce { .. }) => seen.checked = true,
                Event::RedKept => {
                    prop_assert!(seen.approved);
                    seen = Evidence { red_approved: true, ..Evidence::default() };
                }
                Event::Proved { shown, .. } => seen.proved = *shown,
                Event::Collected(_) => {
                    seen = Evidence { red_approved: seen.red_approved, ..Evidence::default() };
                }
                Event::LeafEnded(LeafEnd::External { .. }) => external = true,
                _ => {}
            }
            if let Some(Effect::Commit(work)) = after.pending() {
                prop_assert!(seen.approved && seen.checked, "{:?}", seen);
                match work.claim {
                    Claim::Green => prop_assert!(seen.red_approved && work.red.is_some()),
                    Claim::AlreadyThere => prop_assert!(seen.proved),
                    Claim::Refactor => prop_assert!(work.step.ticked),
                    Claim::NoTest => prop_assert!(work.step.no_test.is_some()),
                    Claim::Red => prop_assert!(false, "a red was committed"),
                }
            }
            let step_of = |w: &Option<Work>| w.as_ref().map(|w| w.step.number);
            if step_of(&before) != step_of(&after.work) || effects.iter().any(|e| matches!(e, Effect::Note(Notice::StepStart(_)))) {
                seen = Evidence::default();
            }
            if let Some(work) = &after.work {
                prop_assert!(work.revisions <= after.limits.revisions);
                prop_assert!(work.reopens <= after.limits.reopens);
                prop_assert!(work.stuck <= after.limits.stuck_retries + 1);
            }
            if let Some(Ending::Bailed(bail)) = after.ending() {
                prop_assert!(bail.cause != Cause::KilledExternal || external);
            }
            let awaited = effects.iter().filter(|e| !matches!(e, Effect::Note(_) | Effect::Mirror | Effect::Push)).count();
            prop_assert_eq!(awaited, usize::from(after.pending().is_some()), "one effect is awaited");
            state = after;
        }
    }

    /// A crash at any moment costs no budget: after the restart, the same leaf is asked for again.
    #[test]
    fn a_crash_costs_no_budget(events in proptest::collection::vec(any_event(), 1..200)) {
        let mut state = State::new();
        for event in events {
            let Ok((after, _)) = next(state.clone(), event) else { continue };
            let crashed = !matches!(after.at, At::New | At::Ended(_) | At::Unwinding(_));
            if crashed {
                let resumed = Event::Resumed { limits: after.limits.clone(), renew: Renew::Spent, plan: None };
                let (again, _) = next(after.clone(), resumed).unwrap();
                prop_assert_eq!(&again.work, &after.work);
                prop_assert_eq!(&again.planner, &after.planner);
            }
            state = after;
        }
    }

    /// The journal keeps events as JSON: reading them back gives the same run.
    #[test]
    fn events_survive_the_journal(events in proptest::collection::vec(any_event(), 1..20)) {
        for event in events {
            let text = serde_json::to_string(&event).unwrap();
            prop_assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        }
    }

    /// However the leaves behave, a run ends: every loop is bounded by a budget.
    #[test]
    fn every_run_ends(choices in proptest::collection::vec(0u8..12, 1..64)) {
        let mut at = 0;
        let mut world = World::new();
        let end = run(begun(), &mut world, |effect, _| {
            at += 1;
            let choice = choices[at % choices.len()];
            let reasons = vec!["r".to_owned()];
            match effect {
                Effect::Launch(leaf) => match (choice, leaf.role) {
                    (5, _) => Some(LeafEnd::Lost),
                    (6, _) => Some(LeafEnd::NeverStarted),
                    (0, _) => Some(LeafEnd::Stuck),
                    (1, Role::Developer) => Some(LeafEnd::Failed { code: 1 }),
                    (1 | 2, Role::Planner | Role::Verifier) => Some(LeafEnd::Malformed { reason: "m".to_owned() }),
                    (3 | 4, Role::Verifier) => Some(LeafEnd::Answered(Answer::Reject { reasons })),
                    (3 | 4, Role::Developer) => Some(LeafEnd::Answered(Answer::ReopenRed(vec![Reopen { test: "t".to_owned(), why: "w".to_owned() }]))),
                    _ => None,
                }
                .map(Event::LeafEnded),
                Effect::Check(_) => match choice {
                    0..=2 => Some(Event::Checked(Checked::Fails { reasons })),
                    3 => Some(Event::Checked(Checked::PassesAtOnce { reasons })),
                    4 => Some(Event::Checked(Checked::Unchanged)),
                    5 => Some(Event::Checked(Checked::Repeated)),
                    _ => None,
                },
                Effect::Commit(_) if choice < 3 => Some(Event::CommitRefused { reasons }),
                _ => None,
            }
        });
        prop_assert!(end.ending().is_some());
    }
}
