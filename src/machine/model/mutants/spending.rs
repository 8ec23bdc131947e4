//! Machines that cannot count.

use super::super::properties::{BOOKS, ENDS};
use super::{Mutant, bailed, does, is_lost, spent, work};
use crate::cause::Cause;
use crate::machine::{Answer, At, Checked, Event, LeafEnd, Stage, Work};

pub(super) fn endless() -> Vec<Mutant> {
    vec![
        does(
            "a stuck leaf is launched for ever",
            ENDS,
            0,
            |before, event, after| {
                if *event == Event::LeafEnded(LeafEnd::Stuck) {
                    *after = before.clone();
                }
            },
        ),
        does(
            "what cannot be read is asked for for ever",
            ENDS,
            0,
            |before, event, after| {
                if matches!(event, Event::LeafEnded(LeafEnd::Malformed { .. })) {
                    *after = before.clone();
                }
            },
        ),
        does(
            "a developer revises for ever",
            ENDS,
            0,
            |before, event, after| {
                if matches!(event, Event::Checked(Checked::Fails { .. })) {
                    after.at = At::Working;
                    work(after, |w| {
                        (w.stage, w.revisions) = (Stage::Develop, spent(before).0)
                    });
                }
            },
        ),
        does("red is reopened for ever", ENDS, 0, |_, event, after| {
            if matches!(event, Event::Collected(_)) {
                work(after, |w| w.reopens = 0);
            }
        }),
        does(
            "launches that leave no trace are launched for ever",
            ENDS,
            0,
            |before, event, after| {
                if is_lost(event) {
                    *after = before.clone();
                }
            },
        ),
        does(
            "a refused commit is tried for ever",
            ENDS,
            0,
            |before, event, after| {
                if matches!(event, Event::CommitRefused { .. }) {
                    *after = before.clone();
                }
            },
        ),
        does(
            "a finished step is begun again",
            ENDS,
            0,
            |_, event, after| {
                if matches!(event, Event::LedgerRead { .. }) && after.at == At::Accepting {
                    after.at = At::Boundary;
                }
            },
        ),
    ]
}

pub(super) fn miscounted() -> Vec<Mutant> {
    vec![
        does(
            "a reject spends a stuck-retry",
            BOOKS,
            0,
            |_, event, after| {
                if matches!(
                    event,
                    Event::LeafEnded(LeafEnd::Answered(Answer::Reject { .. }))
                ) {
                    work(after, |w| w.stuck += 1);
                }
            },
        ),
        does(
            "a stuck launch spends a revision",
            BOOKS,
            0,
            |_, event, after| {
                if *event == Event::LeafEnded(LeafEnd::Stuck) {
                    work(after, |w| w.revisions += 1);
                }
            },
        ),
        does(
            "a stuck leaf is launched once more than it may",
            BOOKS,
            0,
            |before, event, after| {
                let once = after.limits.stuck_retries + 1;
                if *event == Event::LeafEnded(LeafEnd::Stuck) && spent(after).1 == once {
                    after.at = before.at.clone();
                }
            },
        ),
        does(
            "the last revision is not granted",
            BOOKS,
            0,
            |_, _, after| {
                if after.at == At::Working && spent(after).0 == after.limits.revisions {
                    after.at = bailed(Cause::ReviseExhausted);
                }
            },
        ),
        does(
            "green begins with what red has spent",
            BOOKS,
            0,
            |before, event, after| {
                if *event == Event::RedKept {
                    work(after, |w| w.revisions = spent(before).0);
                }
            },
        ),
        does(
            "an answer does not end the count of stuck launches",
            BOOKS,
            0,
            |before, event, after| {
                if *event == Event::LeafEnded(LeafEnd::Answered(Answer::Developed)) {
                    work(after, |w| w.stuck = spent(before).1);
                }
            },
        ),
        does(
            "a rerun renews what was not spent",
            BOOKS,
            1,
            |before, event, after| {
                let ended = matches!(before.at, At::Ended(_));
                if ended && matches!(event, Event::Resumed { .. }) {
                    work(after, |w| w.reopens = 0);
                }
            },
        ),
        does(
            "a rerun does not renew what was spent",
            BOOKS,
            1,
            |before, event, after| {
                if matches!(event, Event::Resumed { .. }) {
                    after.work.clone_from(&before.work);
                }
            },
        ),
        does(
            "a refactor that does not work out ends the run",
            BOOKS,
            0,
            |_, _, after| {
                let drops = |w: &Work| matches!(w.stage, Stage::Drop { .. });
                if after.work.as_ref().is_some_and(drops) {
                    after.at = bailed(Cause::ReviseExhausted);
                }
            },
        ),
    ]
}
