//! A wall clock that jumps by years, forwards and back, in the middle of a run and between two.

use crate::scene::{Scene, wait};
use crate::watching::{is_finished, kill_everything, launches_of, plain, start};
use std::fs;
use std::path::PathBuf;

/// The library that has a program see another time (apt: faketime). None where it is not installed.
#[allow(clippy::print_stdout)] // a test that is skipped says so
fn faketime() -> Option<PathBuf> {
    let roots = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let found = roots
        .map(|root| root.path().join("faketime/libfaketime.so.1"))
        .find(|path| path.exists());
    if found.is_none() {
        println!("skipped: no jump of the clock without libfaketime (apt-get install faketime)");
    }
    found
}

/// A scene whose clock can be set, with a suite that builds only what is newer than what it has built.
fn scene() -> Option<Scene> {
    let library = faketime()?;
    let mut scene = plain();
    scene.write(".gitignore", "build/\n");
    let tests = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    let build = "mkdir -p build; [ build/lib.sh -nt src/lib.sh ] || cp src/lib.sh build/lib.sh\n";
    scene.write(
        "run-tests.sh",
        format!("{build}{}", tests.replace("src/lib.sh", "build/lib.sh")),
    );
    scene.write(
        "tests/greet.sh",
        ". build/lib.sh; [ \"$(greet)\" = hello ]\n",
    );
    scene.commit_all("a suite that builds");
    let agent = fs::read_to_string(scene.path("agent")).unwrap();
    fs::write(
        scene.path("agent"),
        agent.replace("echo '. src/lib.sh;", "echo '. build/lib.sh;"),
    )
    .unwrap();
    let clock = scene.note("clock");
    for (name, value) in [
        ("LD_PRELOAD", library.as_os_str()),
        ("FAKETIME_TIMESTAMP_FILE", clock.as_os_str()),
        ("FAKETIME_NO_CACHE", "1".as_ref()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".as_ref()),
    ] {
        scene.env.push((name.into(), value.into()));
    }
    set(&scene, "+0");
    Some(scene)
}

/// Sets the clock, so far from the true time: `+10y`, `-3d`.
fn set(scene: &Scene, offset: &str) {
    fs::write(scene.note("clock.new"), format!("{offset}\n")).unwrap();
    fs::rename(scene.note("clock.new"), scene.note("clock")).unwrap();
}

/// Holds that the run came to its end by the straight way, and that those who tell of it can.
fn straight(scene: &Scene) {
    is_finished(scene);
    for who in [
        "developer red",
        "developer green",
        "verifier red",
        "verifier green",
    ] {
        assert_eq!(launches_of(scene, who), 1, "{who}: {:?}", scene.launches());
    }
    scene.veri(&["log", "--issue", "42"]).expect(0);
    scene.veri(&["status", "42"]).expect(0);
    scene.veri(&["status", "--json"]).expect(0);
}

#[test]
fn a_clock_that_jumps_while_an_agent_works_changes_nothing() {
    for (before, after) in [("+0", "+10y"), ("+10y", "+0"), ("+0", "-10y")] {
        let Some(scene) = scene() else { return };
        set(&scene, before);
        scene.hold("developer-green");
        let run = start(&scene, &["--timeout", "600"]);
        scene.begun("developer-green");
        set(&scene, after);
        scene.let_go("developer-green");
        wait(run).expect(0);
        let stamps: Vec<String> = scene.lines().iter().map(|l| l.ts[..4].to_owned()).collect();
        assert_ne!(
            stamps.first(),
            stamps.last(),
            "the journal tells the time that it was"
        );
        straight(&scene);
    }
}

#[test]
fn a_clock_that_was_set_between_two_starts_changes_nothing() {
    for (before, after) in [("+0", "+10y"), ("+10y", "+0")] {
        let Some(scene) = scene() else { return };
        set(&scene, before);
        scene.hold("developer-green");
        let run = start(&scene, &[]);
        scene.begun("developer-green");
        let conductor = run.id();
        kill_everything(&scene, run);
        // The library's own, which a process that is killed cannot remove.
        for name in ["faketime_shm", "sem.faketime_sem"] {
            fs::remove_file(format!("/dev/shm/{name}_{conductor}")).unwrap();
        }
        // What a git of that run left is its own, whatever the clocks say.
        let admin = scene.git_in(&scene.worktree(), &["rev-parse", "--absolute-git-dir"]);
        let lock = PathBuf::from(admin).join("index.lock");
        fs::write(&lock, "").unwrap();
        set(&scene, after);
        scene.let_go("developer-green");
        fs::write(scene.note("launches"), "developer red\nverifier red\n").unwrap();
        let ran = scene.tdd(&[]).expect(0);
        // By its own knowledge, before the guard of the developer's launch finds it strange.
        let said = "a lock that a killed git left is removed";
        assert!(ran.out.contains(said), "{before} {after}: {}", ran.out);
        straight(&scene);
    }
}
