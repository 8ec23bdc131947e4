//! What the checks saw of a step, as the journal has it: which tests it brought, and what needs a person's eye.

use crate::check::Evidence;
use crate::event::{Kind, Line};
use crate::forge::facts::{Eye, EyeKind, Tests};
use crate::suite::SuiteRun;
use std::collections::BTreeSet;

pub(in crate::conductor) fn evidence_of(line: &Line) -> Option<Evidence> {
    serde_json::from_value(line.fields.get("evidence")?.clone()).ok()
}

/// How often suites and extra checks ran, by the journal: all but preflight's. Remembered results are no runs.
pub fn suite_runs(lines: &[Line]) -> usize {
    let of_line = |line: &Line| -> Vec<SuiteRun> {
        let told = line.fields.get("runs").cloned();
        let told = told.and_then(|runs| serde_json::from_value(runs).ok());
        let mut runs: Vec<SuiteRun> = told.unwrap_or_default();
        runs.extend(evidence_of(line).map_or(Vec::new(), |e| e.runs));
        runs
    };
    let runs = lines.iter().flat_map(of_line);
    runs.filter(|run| !run.remembered).count()
}

/// The evidence of the last check of each claim that held.
pub(in crate::conductor) fn accepted_evidence(lines: &[&Line]) -> Vec<(String, Evidence)> {
    let mut found: Vec<(String, Evidence)> = Vec::new();
    for line in lines {
        if line.event != Kind::Check || !matches!(line.text("result"), "holds" | "passes-at-once") {
            continue;
        }
        let Some(evidence) = evidence_of(line) else {
            continue;
        };
        let claim = line.text("what").to_owned();
        found.retain(|(known, _)| *known != claim);
        found.push((claim, evidence));
    }
    found
}

pub(in crate::conductor) fn tests_of(evidence: &[(String, Evidence)]) -> Vec<Tests> {
    let mut tests: Vec<Tests> = Vec::new();
    let mut add = |path: &str, name: Option<&str>| {
        let at = match tests.iter().position(|t| t.path == path) {
            Some(at) => at,
            None => {
                tests.push(Tests {
                    path: path.to_owned(),
                    names: Vec::new(),
                });
                tests.len() - 1
            }
        };
        if let (Some(name), Some(entry)) = (name, tests.get_mut(at))
            && !entry.names.iter().any(|n| n == name)
        {
            entry.names.push(name.to_owned());
        }
    };
    for (_, evidence) in evidence.iter().filter(|(claim, _)| claim != "refactor") {
        let change = &evidence.change;
        for path in change
            .test_files_added
            .iter()
            .chain(&change.test_files_changed)
        {
            add(path, None);
        }
        for item in change
            .test_items_added
            .iter()
            .chain(&change.test_items_changed)
            .chain(&change.test_functions)
        {
            add(&item.file, test_name(&item.name).as_deref());
        }
    }
    tests
}

/// The name of a test function as its runner prints it: `tests::fn refuses` is `tests::refuses`.
/// Modules, imports and macros beside the tests are not tests.
fn test_name(item: &str) -> Option<String> {
    match item.rsplit_once("fn ") {
        Some((place, name)) if place.is_empty() || place.ends_with("::") => {
            Some(format!("{place}{name}"))
        }
        _ => None,
    }
}

pub(in crate::conductor) fn eyes_of(
    step: u32,
    evidence: &[(String, Evidence)],
    lines: &[&Line],
) -> Vec<Eye> {
    let mut eyes = Vec::new();
    let reopened: BTreeSet<String> = lines
        .iter()
        .filter_map(|l| l.fields.get("reopen_red")?.as_array())
        .flatten()
        .filter_map(|r| {
            Some(format!(
                "{}: {}",
                r.get("test")?.as_str()?,
                r.get("why")?.as_str()?
            ))
        })
        .collect();
    eyes.extend(
        reopened
            .iter()
            .map(|detail| note(EyeKind::ReopenedTest, Some(step), detail)),
    );
    for (claim, Evidence { change, .. }) in evidence {
        let listed = &change.listed;
        let mut say = |what, paths: &[String]| {
            if !paths.is_empty() {
                eyes.push(note(what, Some(step), &paths.join(", ")));
            }
        };
        say(EyeKind::CiHooksConfig, &listed.ci);
        say(EyeKind::CiHooksConfig, &listed.hooks);
        say(EyeKind::CiHooksConfig, &listed.veri_files);
        say(EyeKind::CiHooksConfig, &change.runner_changed);
        say(EyeKind::Dependencies, &listed.dependencies);
        if claim == "red" {
            say(EyeKind::ExistingTest, &change.existing_tests_changed);
            say(EyeKind::Stub, &listed.stubs);
        }
    }
    eyes.dedup();
    eyes
}

pub(in crate::conductor) fn note(what: EyeKind, step: Option<u32>, detail: &str) -> Eye {
    Eye {
        what,
        step,
        detail: detail.to_owned(),
    }
}
