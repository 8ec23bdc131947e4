//! The crash matrix: whatever effect the conductor is killed at, on whichever side, running the same command
//! again comes to what an undisturbed run comes to.

use crate::scene::{APPROVE, Agent, wait};
use crate::watching::{
    Came, HANGS, ONE_STEP, eventful, kill_everything, launches_of, noting, plain, start, until,
};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use veri::event::{Kind, Line};

/// How many cases run side by side: leaves sleep more than they work.
const LANES: usize = 8;

/// One crash: at which effect, at which of its points, and then again in the next start.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    crashes: Vec<String>,
}

/// An undisturbed run, and the effects that it awaited: their names, in order.
fn reference() -> (Came, Vec<String>) {
    let scene = eventful();
    scene.tdd(&HANGS).expect(0);
    let effects = scene.lines().iter().filter_map(effect_of).collect();
    (Came::of(&scene), effects)
}

/// The effect whose outcome a line holds: what was done, and for which role and phase.
fn effect_of(line: &Line) -> Option<String> {
    let input = line.fields.get("input")?;
    let name = match input {
        serde_json::Value::String(name) => name.clone(),
        serde_json::Value::Object(fields) => fields.keys().next()?.clone(),
        _ => return None,
    };
    let outcome = !matches!(name.as_str(), "begun" | "resumed" | "stop-asked");
    let phase = line.phase.map_or("", |p| p.as_str());
    let actor = if line.event == Kind::Launch || name == "leaf-ended" {
        line.actor.as_str()
    } else {
        ""
    };
    outcome.then(|| {
        format!("{name} {actor} {phase}")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    })
}

fn points_of(effect: &str) -> Vec<&'static str> {
    let mut points = vec!["before", "after", "journalled", "told"];
    if effect.starts_with("leaf-ended") {
        points.extend(["launching", "started"]);
    } else {
        points.push("intended");
    }
    if effect.starts_with("committed") || effect.starts_with("plan-committed") {
        points.push("committed");
    }
    points.push("posted");
    points
}

/// Crashes a story as a case says, goes on, and compares.
fn disturb(case: &Case, reference: &Came) {
    let mut scene = eventful();
    let plain = scene.env.len();
    for crash in &case.crashes {
        scene.env.truncate(plain);
        scene.env.push(("VERI_CRASH_AT".into(), crash.into()));
        let ran = scene.tdd(&HANGS);
        // Not every effect has every point: then nothing was disturbed, and the end is the end.
        assert!(matches!(ran.code, None | Some(0)), "{}: {ran:?}", case.name);
    }
    scene.env.truncate(plain);
    let ran = scene.tdd(&HANGS);
    assert_eq!(
        ran.code,
        Some(0),
        "{}:\n{}\n{}",
        case.name,
        ran.out,
        ran.err
    );
    Came::of(&scene).is_what(reference, &case.name);
}

/// Runs cases side by side; every failure is shown, not the first alone.
#[allow(clippy::print_stdout)] // how long it took is for whoever looks
fn all(cases: &[Case], reference: &Came) {
    let began = Instant::now();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = std::panic::AssertUnwindSafe(|| disturb(case, reference));
                    if let Err(panic) = std::panic::catch_unwind(run) {
                        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                        failures
                            .lock()
                            .unwrap()
                            .push(format!("=== {case:?}\n{text}"));
                    }
                }
            });
        }
    });
    println!("{} crashes in {:.0?}", cases.len(), began.elapsed());
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn matrix(effects: &[String], mut wanted: impl FnMut(usize, &str, &str) -> bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, effect) in effects.iter().enumerate() {
        for point in points_of(effect) {
            if wanted(index, effect, point) {
                let crash = format!("{}:{point}", index + 1);
                let name = format!("{crash} ({effect})");
                cases.push(Case {
                    name,
                    crashes: vec![crash],
                });
            }
        }
    }
    cases
}

/// The default matrix is thinned to the first effect of each kind and phase, before and after it, and to the
/// finer points where they are the only ones of their kind; `every_point_of_every_effect` holds the rest.
#[test]
fn a_conductor_that_is_killed_at_any_kind_of_effect_ends_as_if_it_had_not_been() {
    let (reference, effects) = reference();
    let mut seen = HashSet::new();
    let cases = matrix(&effects, |_, effect, point| {
        let kind = effect.split(' ').next().unwrap_or_default();
        let key = match point {
            "before" | "after" => format!("{effect} {point}"),
            "posted" => {
                return effect == "leaf-ended verifier red" && seen.insert("posted".to_owned());
            }
            _ => format!("{kind} {point}"),
        };
        seen.insert(key)
    });
    all(&cases, &reference);
}

#[test]
fn a_second_crash_on_top_of_the_first_costs_no_more() {
    let (reference, effects) = reference();
    let at = |effect: &str, nth: usize| {
        let found = effects
            .iter()
            .enumerate()
            .filter(|(_, e)| *e == effect)
            .nth(nth);
        found
            .unwrap_or_else(|| panic!("{effect} is not in {effects:?}"))
            .0
            + 1
    };
    let pairs = [
        // Taken up by a start that is killed itself, before preflight has passed.
        (
            format!("{}:started", at("leaf-ended developer green", 0)),
            "1:after",
        ),
        (
            format!("{}:started", at("leaf-ended planner plan", 0)),
            "1:before",
        ),
        (
            format!("{}:after", at("leaf-ended planner plan", 0)),
            "2:after",
        ),
        (format!("{}:after", at("collected red", 0)), "2:after"),
        (format!("{}:committed", at("committed green", 0)), "2:after"),
        (
            format!("{}:committed", at("committed green", 0)),
            "2:journalled",
        ),
        (format!("{}:after", at("committed refactor", 0)), "2:before"),
        (
            format!("{}:journalled", at("leaf-ended verifier red", 0)),
            "0:journalled",
        ),
        (format!("{}:after", at("published", 0)), "4:after"),
    ];
    let cases: Vec<Case> = pairs
        .map(|(first, second)| Case {
            name: format!("{first}, then {second}"),
            crashes: vec![first, second.to_owned()],
        })
        .into();
    all(&cases, &reference);
}

#[test]
#[ignore = "the whole matrix takes minutes: cargo test --test it -- --ignored every_point"]
fn every_point_of_every_effect() {
    let (reference, effects) = reference();
    all(&matrix(&effects, |_, _, _| true), &reference);
}

/// Kills at moments between the effects' own points: whatever the journal's n-th line says, everything dies.
#[test]
fn everything_is_killed_at_one_line_of_the_journal_after_another() {
    let mut scene = eventful();
    scene.tdd(&HANGS).expect(0);
    let (reference, mut lines) = (Came::of(&scene), 3);
    scene = eventful();
    let mut kills = 0;
    loop {
        let mut run = start(&scene, &HANGS);
        let mut ended = false;
        until("a line", || {
            ended = run.try_wait().unwrap().is_some();
            ended || scene.lines().len() >= lines
        });
        if ended {
            wait(run).expect(0);
            break;
        }
        kill_everything(&scene, run);
        kills += 1;
        // A resumed run writes some lines before it comes to anything new.
        lines = scene.lines().len() + 7 + kills % 5;
    }
    assert!(kills > 5, "{kills}");
    let came = Came::of(&scene);
    assert_eq!(came.branch, reference.branch);
    assert_eq!(came.ledger, reference.ledger);
    assert_eq!((came.pulls, came.refs), (reference.pulls, reference.refs));
}

/// Between the decision to bail and the end: the bail is told by the next start, once, and only then is the
/// work tried again. A stop that was cut off is settled, and the next start goes on.
#[test]
fn an_end_that_was_cut_off_is_told_before_anything_is_tried_again() {
    let story = |crash: Option<&str>| {
        let mut scene = plain();
        scene.agent(&noting(Agent {
            plan: ONE_STEP.to_owned(),
            verify: format!("[ -e \"$d/sensible\" ] || {{ echo prose; exit 0; }}\n{APPROVE}"),
            ..Agent::default()
        }));
        let plain = scene.env.len();
        if let Some(crash) = crash {
            scene.env.push(("VERI_CRASH_AT".into(), crash.into()));
            assert_eq!(scene.tdd(&[]).code, None, "{crash}");
            scene.env.truncate(plain);
        }
        let ran = scene.tdd(&[]).bails("verdict-malformed");
        assert!(
            ran.err.contains("could not be read 2 times in a row"),
            "{}",
            ran.err
        );
        let bailed = Came::of(&scene);
        std::fs::write(scene.path("sensible"), "").unwrap();
        scene.tdd(&[]).expect(0);
        (bailed, Came::of(&scene))
    };
    let (bailed, done) = story(None);
    // Preflight, plan, its commit, the ledger, red, its candidate, its check, two verdicts: the tenth puts back.
    let crashes = [
        "9:journalled",
        "9:told",
        "10:before",
        "10:after",
        "10:journalled",
        "10:told",
    ];
    std::thread::scope(|scope| {
        for crash in crashes {
            let (bailed, done, story) = (&bailed, &done, &story);
            scope.spawn(move || {
                let (told, went_on) = story(Some(crash));
                told.is_what(bailed, crash);
                went_on.is_what(done, crash);
            });
        }
    });

    let mut scene = plain();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: format!("echo at-leaf > .tdd/stop\n{}", Agent::default().red),
        ..Agent::default()
    }));
    let plain = scene.env.len();
    scene.env.push(("VERI_CRASH_AT".into(), "9:before".into()));
    assert_eq!(scene.tdd(&[]).code, None);
    scene.env.truncate(plain);
    scene.tdd(&[]).expect(0);
    assert_eq!(launches_of(&scene, "developer red"), 1);
    assert_eq!(launches_of(&scene, "verifier red"), 1);
}
