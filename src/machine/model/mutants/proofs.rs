//! Machines that believe too much.

use super::super::properties::{DONE, FOUNDED, PROVEN};
use super::{Mutant, approve, claims, does, hears, spent, work};
use crate::machine::{Answer, At, Checked, Collected, Event, From, LeafEnd, Stage};
use crate::role::Claim;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        does(
            "a green that holds its checks needs no verifier",
            PROVEN,
            0,
            |before, event, after| {
                if *event == Event::Checked(Checked::Holds) && claims(before, Claim::Green) {
                    work(after, |w| w.stage = Stage::Commit);
                }
            },
        ),
        does(
            "a red that holds its checks needs no verifier",
            FOUNDED,
            0,
            |before, event, after| {
                if *event == Event::Checked(Checked::Holds) && claims(before, Claim::Red) {
                    work(after, |w| w.stage = Stage::KeepRed);
                }
            },
        ),
        does(
            "green is begun without a red",
            FOUNDED,
            0,
            |_, event, after| {
                if matches!(event, Event::LedgerRead { .. }) && claims(after, Claim::Red) {
                    work(after, |w| w.claim = Claim::Green);
                }
            },
        ),
        does(
            "the approved red is not what green is built on",
            FOUNDED,
            0,
            |_, event, after| {
                if *event == Event::RedKept {
                    work(after, |w| w.from = From::Head);
                }
            },
        ),
        does(
            "a verifier is asked before the checks",
            FOUNDED,
            0,
            |_, event, after| {
                if matches!(event, Event::Collected(Collected::Candidate(_))) {
                    work(after, |w| w.stage = Stage::Verify);
                }
            },
        ),
        does(
            "a candidate inherits the approval of the one before it",
            PROVEN,
            0,
            |_, event, after| {
                if matches!(event, Event::Collected(_)) && spent(after).0 > 0 {
                    work(after, |w| w.stage = Stage::Commit);
                }
            },
        ),
        hears(
            "an answer that cannot be read is an approval",
            PROVEN,
            0,
            |before, event| match event {
                Event::LeafEnded(LeafEnd::Malformed { .. }) if claims(before, Claim::Green) => {
                    approve()
                }
                other => other,
            },
        ),
        hears(
            "a reject is an approval",
            PROVEN,
            0,
            |before, event| match event {
                Event::LeafEnded(LeafEnd::Answered(Answer::Reject { .. }))
                    if claims(before, Claim::Green) =>
                {
                    approve()
                }
                other => other,
            },
        ),
        does(
            "an already-there test needs no proof",
            PROVEN,
            0,
            |before, event, after| {
                let approved = matches!(
                    event,
                    Event::LeafEnded(LeafEnd::Answered(Answer::Approve { .. }))
                );
                if approved && claims(before, Claim::AlreadyThere) {
                    work(after, |w| w.stage = Stage::Commit);
                }
            },
        ),
        hears(
            "a patch that breaks nothing proves a test",
            PROVEN,
            0,
            |_, event| match event {
                Event::Proved { reasons, .. } => Event::Proved {
                    shown: true,
                    reasons,
                },
                other => other,
            },
        ),
        does(
            "a step is refactored before it is ticked",
            FOUNDED,
            0,
            |before, event, after| {
                if *event == Event::Checked(Checked::Holds) && claims(before, Claim::Green) {
                    work(after, |w| {
                        (w.claim, w.stage) = (Claim::Refactor, Stage::Develop)
                    });
                }
            },
        ),
        does(
            "a run is published without acceptance",
            DONE,
            0,
            |_, _, after| {
                if after.at == At::Accepting {
                    after.at = At::Publishing;
                }
            },
        ),
        does(
            "a run is done with a step undone",
            DONE,
            0,
            |_, event, after| {
                if let Event::LedgerRead { steps, .. } = event
                    && steps.iter().any(|s| s.ticked)
                    && after.at == At::Working
                {
                    (after.at, after.work) = (At::Accepting, None);
                }
            },
        ),
    ]
}
