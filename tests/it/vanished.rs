//! Folders that vanish in the middle of a run, while an agent or a suite is at work in them; and that come back, or not.

use crate::lanes::each;
use crate::scene::{Scene, wait};
use crate::watching::{is_finished, launches_of, plain, start, until};
use std::fs;
use std::path::PathBuf;

/// How many cases run side by side.
const LANES: usize = 6;

/// What vanishes: a folder, and the causes that a run may name for it.
type What = (&'static str, fn(&Scene) -> PathBuf, &'static [&'static str]);

const STORAGE: &[&str] = &["storage-failed"];

const FOLDERS: [What; 8] = [
    ("the worktree", |s| s.worktree(), STORAGE),
    (".tdd", |s| s.worktree().join(".tdd"), STORAGE),
    (".tdd/runs", |s| s.worktree().join(".tdd/runs"), STORAGE),
    ("veri's home", |s| s.path("state"), STORAGE),
    ("the repository's part of it", |s| home(s), STORAGE),
    ("the ground", |s| home(s).join("ground"), STORAGE),
    ("the forge", |s| s.path("forge"), &["forge-failed"]),
    ("the person's checkout", |s| s.repo(), STORAGE),
];

fn home(scene: &Scene) -> PathBuf {
    let homes = fs::read_dir(scene.path("state")).unwrap().flatten();
    homes.map(|e| e.path()).next().unwrap()
}

/// While who works, and whether the folder is moved back before the run is started again.
fn disturb(what: &What, who: &str, comes_back: bool) {
    let scene = plain();
    if who == "suite" {
        scene.suite_can_be_held();
    }
    let hold = if who == "suite" {
        "developer-green"
    } else {
        who
    };
    scene.hold(hold);
    let run = start(&scene, &[]);
    scene.begun(hold);
    if who == "suite" {
        scene.forget("suite");
        scene.hold("suite");
        scene.let_go(hold);
        scene.begun("suite");
    }
    let (_, find, causes) = what;
    let folder = find(&scene);
    let away = scene.path("away");
    fs::rename(&folder, &away).unwrap();
    scene.let_go(who);
    let ran = wait(run);
    let struck = ran.code != Some(0);
    let words = ran.err.clone();
    if struck {
        let cause = ran.last().to_owned();
        assert!(
            causes
                .iter()
                .any(|c| cause == format!("bail: {c} (system)")),
            "{words}"
        );
        // Where it is and what is to be done about it.
        assert!(
            words.contains("run again") || words.contains("run the same command again"),
            "{words}"
        );
    }
    scene.nothing_is_left_running();
    if comes_back && struck {
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&away, &folder).unwrap();
    } else if !folder.exists() && folder == scene.path("state") {
        fs::create_dir(&folder).unwrap();
    }
    if struck {
        let again = scene.tdd(&[]);
        assert_eq!(
            again.code,
            Some(0),
            "first:\n{words}\nthen:\n{}{}",
            again.out,
            again.err
        );
    }
    is_finished(&scene);
    assert_eq!(
        launches_of(&scene, "developer red"),
        1,
        "the approved test was kept"
    );
}

fn all(cases: &[(&What, &str, bool)]) {
    let name = |(what, who, back): &(&What, &str, bool)| {
        let back = if *back { "comes back" } else { "is gone" };
        format!("{} {back}, {who}", what.0)
    };
    each(
        "vanished folders",
        LANES,
        cases,
        name,
        |(what, who, back)| {
            disturb(what, who, *back);
        },
    );
}

#[test]
fn a_folder_that_is_moved_away_in_the_middle_of_a_run_and_back_before_the_next_costs_nothing() {
    let who = ["developer-green", "verifier-red", "suite"];
    let cases: Vec<_> = FOLDERS
        .iter()
        .flat_map(|f| who.map(|who| (f, who, true)))
        .collect();
    all(&cases);
}

#[test]
fn a_folder_of_veris_own_that_vanishes_in_the_middle_of_a_run_for_good_is_made_again_by_the_next() {
    // The forge and the person's checkout are nobody's to make again.
    let own = &FOLDERS[..6];
    let who = ["developer-green", "verifier-red", "suite"];
    let cases: Vec<_> = own
        .iter()
        .flat_map(|f| who.map(|who| (f, who, false)))
        .collect();
    all(&cases);
}

#[test]
fn a_forge_or_a_checkout_that_is_gone_between_two_runs_is_named_and_once_back_the_run_goes_on() {
    for (what, cause) in [("forge", "needs-user"), ("repo/.git", "needs-user")] {
        let scene = plain();
        scene.hold("verifier-green");
        let run = start(&scene, &[]);
        scene.begun("verifier-green");
        scene.veri(&["stop", "--mode", "now"]).expect(0);
        let stopped = wait(run).expect(12);
        assert!(!stopped.err.contains("internal"), "{}", stopped.err);
        scene.let_go("verifier-green");
        until("the leaf to end", || scene.said("stopped"));
        let folder = scene.path(what);
        fs::rename(&folder, scene.path("away")).unwrap();
        let ran = scene.tdd(&[]).bails(cause);
        assert!(
            ran.err
                .contains(&*folder.parent().unwrap().display().to_string()),
            "{}",
            ran.err
        );
        let _ = fs::remove_dir_all(&folder);
        fs::rename(scene.path("away"), &folder).unwrap();
        scene.tdd(&[]).expect(0);
        is_finished(&scene);
    }
}
