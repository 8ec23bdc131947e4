//! Machines that pay for a crash, do things twice after it, or forget over it.

use super::super::properties::{CAUSE, FOUNDED, FREE, KEPT, ONCE, OURS, PROVEN};
use super::{Mutant, bailed, does, hears, is_lost, work};
use crate::cause::Cause;
use crate::machine::{At, Ending, Event, LeafEnd, Stage};
use crate::role::StopMode;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        does(
            "a lost launch spends a stuck-retry",
            FREE,
            1,
            |_, event, after| {
                if is_lost(event) {
                    work(after, |w| w.stuck += 1);
                }
            },
        ),
        does(
            "a lost planner spends a malformed answer",
            FREE,
            1,
            |_, event, after| {
                if is_lost(event) && after.at == At::Planning {
                    after.planner.malformed += 1;
                }
            },
        ),
        does(
            "a restart spends a revision",
            FREE,
            1,
            |before, event, after| {
                if matches!(event, Event::Resumed { .. }) && before.at == At::Working {
                    work(after, |w| w.revisions += 1);
                }
            },
        ),
        does(
            "a restart forgets the claim under way",
            KEPT,
            1,
            |before, event, after| {
                if matches!(event, Event::Resumed { .. }) && before.at == At::Working {
                    after.work = None;
                }
            },
        ),
        does(
            "a restart has the candidate made once more",
            KEPT,
            1,
            |_, event, after| {
                if matches!(event, Event::LedgerRead { .. }) {
                    work(after, |w| w.stage = Stage::Develop);
                }
            },
        ),
        hears(
            "a commit that a crash came after does not count",
            ONCE,
            1,
            |_, event| match event {
                Event::LedgerRead {
                    steps, red, moved, ..
                } => Event::LedgerRead {
                    steps,
                    red,
                    moved,
                    committed: None,
                },
                other => other,
            },
        ),
        hears(
            "the plan is committed by every start",
            ONCE,
            1,
            |_, event| match event {
                Event::PreflightPassed { .. } => Event::PreflightPassed { ledger: false },
                other => other,
            },
        ),
        does(
            "a leaf that we stopped is called killed by others",
            OURS,
            1,
            |_, event, after| {
                if *event == Event::LeafEnded(LeafEnd::Stopped) {
                    after.at = bailed(Cause::KilledExternal);
                }
            },
        ),
        does(
            "a leaf that we killed as stuck is called killed by others",
            OURS,
            0,
            |_, event, after| {
                if *event == Event::LeafEnded(LeafEnd::Stuck) {
                    after.at = bailed(Cause::KilledExternal);
                }
            },
        ),
        does(
            "a launch that a crash lost is called killed by others",
            OURS,
            1,
            |_, event, after| {
                if is_lost(event) {
                    after.at = bailed(Cause::KilledExternal);
                }
            },
        ),
        hears(
            "a person's commit is built over",
            PROVEN,
            2,
            |_, event| match event {
                Event::LedgerRead {
                    steps,
                    red,
                    committed,
                    ..
                } => Event::LedgerRead {
                    steps,
                    red,
                    committed,
                    moved: false,
                },
                other => other,
            },
        ),
        does(
            "an answer is looked for in a tree that was put back",
            FOUNDED,
            2,
            |before, event, after| {
                if *event == Event::Unwound
                    && let Some(was) = &before.work
                {
                    work(after, |w| w.stage = was.stage.clone());
                }
            },
        ),
        does(
            "putting back hides why the run ended",
            CAUSE,
            1,
            |_, event, after| {
                if *event == Event::Unwound {
                    after.at = At::Ended(Ending::Stopped(StopMode::AtLeaf));
                }
            },
        ),
    ]
}
