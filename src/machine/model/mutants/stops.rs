//! Machines that do not hear, or hear too much.

use super::super::properties::{ASKED, AWAITED, LEGAL, OBEYED, ONE_LEAF, QUIET};
use super::{Mutant, does, hears};
use crate::machine::{At, Ending, Event, LeafEnd, Limits};
use crate::role::StopMode;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        does("a stop is not heard", OBEYED, 1, |before, event, after| {
            if matches!(event, Event::StopAsked { .. }) {
                after.stop = before.stop;
            }
        }),
        does(
            "a stop is forgotten by acceptance",
            OBEYED,
            1,
            |_, event, after| {
                if *event == Event::Accepted {
                    after.at = At::Publishing;
                }
            },
        ),
        does(
            "a stop at the ledger stops amid a step",
            ASKED,
            1,
            |before, event, after| {
                let mode = StopMode::AtLedger;
                if *event == (Event::StopAsked { mode }) && before.at == At::Working {
                    after.at = At::Unwinding(Ending::Stopped(mode));
                }
            },
        ),
        does(
            "a run stops after its first step",
            ASKED,
            0,
            |_, event, after| {
                if let Event::LedgerRead { steps, .. } = event
                    && steps.iter().any(|s| s.ticked)
                {
                    after.at = At::Unwinding(Ending::Stopped(StopMode::AtLedger));
                }
            },
        ),
        does(
            "a weaker request is what a stop is called by",
            ASKED,
            2,
            |before, event, after| {
                if *event == Event::LeafEnded(LeafEnd::Refused)
                    && let Some(mode) = before.stop
                {
                    after.at = At::Unwinding(Ending::Stopped(mode));
                }
            },
        ),
        does(
            "a stop ends the run under its leaf",
            QUIET,
            2,
            |before, event, after| {
                let mode = StopMode::Now;
                if *event == (Event::StopAsked { mode }) && before.at == At::Working {
                    after.at = At::Unwinding(Ending::Stopped(mode));
                }
            },
        ),
        does(
            "a stop looks at the ledger while a leaf runs",
            ONE_LEAF,
            2,
            |before, event, after| {
                if matches!(event, Event::StopAsked { .. }) && before.at == At::Working {
                    after.at = At::Boundary;
                }
            },
        ),
        hears(
            "a stop before publishing cannot be told",
            LEGAL,
            1,
            |before, event| match event {
                Event::StopAsked { .. } if before.at == At::Accepting => Event::Begun {
                    limits: Limits::default(),
                    plan: None,
                },
                other => other,
            },
        ),
        does(
            "a run that has accepted awaits nothing",
            AWAITED,
            0,
            |_, event, after| {
                if *event == Event::Accepted {
                    after.at = At::New;
                }
            },
        ),
    ]
}
