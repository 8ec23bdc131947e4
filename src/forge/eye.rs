//! What needs the reviewer's eye in a pull request.

use super::facts::{Eye, EyeKind, Merge, PullFacts, StepKind};
use super::sanitize::inline;

/// All that needs the reviewer's eye, in order: as told, and what follows from the other facts.
pub(super) fn eye(facts: &PullFacts) -> Vec<Eye> {
    let mut eye = facts.eye.clone();
    let mut add = |what, step, detail: String| eye.push(Eye { what, step, detail });
    match &facts.merge {
        Merge::Conflict(paths) => add(EyeKind::MergeConflict, None, paths.join(", ")),
        Merge::Clean {
            suite_passed: false,
        } => {
            add(
                EyeKind::MergeFails,
                None,
                format!("it passes on {} alone", facts.branch),
            );
        }
        Merge::Clean { suite_passed: true } | Merge::NotTried(_) => {}
    }
    for step in &facts.steps {
        match &step.kind {
            // A tick by hand is told by whoever has seen that there is no commit.
            StepKind::Tested | StepKind::ByHand => {}
            StepKind::NotOnRecord => {
                add(EyeKind::NotOnRecord, Some(step.number), step.title.clone());
            }
            StepKind::NoTest(why) => {
                add(
                    EyeKind::NoTest,
                    Some(step.number),
                    format!("{}: {why}", step.title),
                );
            }
            StepKind::AlreadyThere => add(
                EyeKind::AlreadyThere,
                Some(step.number),
                format!(
                    "{}: the test passed at once. That it tests something was shown by a small change \
                     to the code under which it fails",
                    step.title
                ),
            ),
        }
    }
    for criterion in &facts.criteria {
        if let Some(why) = &criterion.inferred {
            let detail = format!("{} ({}): {why}", criterion.id, criterion.text);
            add(EyeKind::Assumption, None, detail);
        }
    }
    eye.sort_by_key(|point| (point.what, point.step));
    eye
}

/// What is said where there is nothing.
pub(super) const NOTHING_FOR_THE_EYE: &str = "Nothing out of the ordinary: no existing test, dependency, CI file, hook or \
     configuration was changed, no assumption was made, and no step is without a test.\n";

fn eye_words(what: EyeKind) -> &'static str {
    match what {
        EyeKind::ReopenedTest => {
            "Old test changed: the new behaviour breaks it, a second agent agreed"
        }
        EyeKind::CiHooksConfig => "CI, hooks or configuration changed",
        EyeKind::Dependencies => "Dependencies changed",
        EyeKind::ExistingTest => "Existing test changed",
        EyeKind::MergeConflict => "Merge conflict with the base",
        EyeKind::MergeFails => "The suite fails once the newest base is merged in",
        EyeKind::Overruled => "A second agent objected and was overruled",
        EyeKind::NoTest => "No test",
        EyeKind::AlreadyThere => "Already there",
        EyeKind::Assumption => "Assumption",
        EyeKind::Stub => "Code written before its test failed, so that the test compiles",
        EyeKind::ByHandCommit => "Committed by hand",
        EyeKind::ByHandTick => "Ticked by hand, not proven by this run",
        EyeKind::NotOnRecord => "Proven by an earlier run: its record is in the issue's thread",
        EyeKind::Flaky => "Flaky: failed, then passed when run again",
        EyeKind::KnownFailing => "Failing since before this work",
        EyeKind::Isolation => "Not shown that the suite tests exactly this code",
        EyeKind::Other => "Note",
    }
}

/// One of them, as a line of a list.
pub(super) fn eye_line(point: &Eye) -> String {
    let step = point
        .step
        .map(|n| format!(" (step {n})"))
        .unwrap_or_default();
    format!(
        "- **{}**{step}: {}\n",
        eye_words(point.what),
        inline(&point.detail, 900)
    )
}
