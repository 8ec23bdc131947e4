//! Storage that fails: a full disk, a read-only folder. The run says so, and nothing finished is lost.

use crate::alone::{Disk, alone, bind_read_only, unmount};
use crate::scene::{Agent, Scene, wait};
use crate::watching::{ONE_STEP, is_finished, kill_everything, launches_of, noting, plain, start};
use std::fs;

#[test]
fn a_full_disk_under_veris_home_bails_and_a_rerun_with_room_goes_on() {
    if !alone("storage::a_full_disk_under_veris_home_bails_and_a_rerun_with_room_goes_on") {
        return;
    }
    let scene = plain();
    let home = Disk::over(&scene, "state", "size=24m");
    // Full from the moment that the developer of green works: the leaf fills it.
    let good = Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    };
    scene.agent(&noting(Agent {
        green: format!(
            "if [ ! -e \"$d/filled\" ]; then touch \"$d/filled\"; head -c 40000000 /dev/zero > '{}/filler' 2>/dev/null; fi\n{}",
            scene.path("state").display(),
            good.green
        ),
        ..good
    }));
    scene.tdd(&[]).bails("storage-failed");
    scene.nothing_is_left_running();
    assert_eq!(scene.subjects(), ["plan: issue 42 in 1 step"]);
    // Still full: the same answer, and still nothing lost.
    scene.tdd(&[]).bails("storage-failed");
    home.again("size=64m");
    fs::remove_file(scene.path("state/filler")).unwrap();
    scene.tdd(&[]).expect(0);
    is_finished(&scene);
    assert_eq!(
        launches_of(&scene, "developer red"),
        1,
        "the approved test was kept"
    );
}

#[test]
fn a_folder_that_turned_read_only_bails_and_nothing_is_lost() {
    if !alone("storage::a_folder_that_turned_read_only_bails_and_nothing_is_lost") {
        return;
    }
    let scene = plain();
    let home = Disk::over(&scene, "state", "size=64m");
    scene.hold("verifier-red");
    let run = start(&scene, &[]);
    scene.begun("verifier-red");
    kill_everything(&scene, run);
    scene.let_go("verifier-red");
    let before = (scene.git(&["for-each-ref"]), scene.lines());
    home.again("ro");
    scene.tdd(&[]).bails("storage-failed");
    assert_eq!((scene.git(&["for-each-ref"]), scene.lines()), before);
    home.again("rw");
    scene.tdd(&[]).expect(0);
    is_finished(&scene);
    assert_eq!(launches_of(&scene, "developer red"), 1);
}

/// What is locked away under a run of which an agent is held, and what the run may say of it.
type What = (
    &'static str,
    fn(&Scene) -> std::path::PathBuf,
    &'static [&'static str],
);

const LOCKED: [What; 4] = [
    ("veri's home", |s| s.path("state"), &["storage-failed"]),
    (".tdd", |s| s.worktree().join(".tdd"), &["storage-failed"]),
    (
        "the repository",
        |s| s.repo().join(".git"),
        &["storage-failed"],
    ),
    (
        "the forge",
        |s| s.path("forge"),
        &["storage-failed", "forge-failed"],
    ),
];

/// Locks something away while somebody works, and opens it again before the next start. What veri can open again, and a
/// developer may have locked, is put back and the developer told so; all else ends the run.
fn locked_away(
    what: &What,
    who: &str,
    lock: &dyn Fn(&std::path::Path),
    open: &dyn Fn(&std::path::Path),
    sent_back: bool,
) {
    let scene = plain();
    scene.hold(who);
    let run = start(&scene, &[]);
    scene.begun(who);
    let folder = (what.1)(&scene);
    lock(&folder);
    scene.let_go(who);
    let ran = wait(run);
    let case = format!("{} while {who} works:\n{}{}", what.0, ran.out, ran.err);
    if sent_back {
        assert!(
            ran.code == Some(0) && ran.out.contains("was locked away"),
            "{case}"
        );
        return is_finished(&scene);
    }
    let named = what
        .2
        .iter()
        .any(|c| ran.last() == format!("bail: {c} (system)"));
    assert!(named, "{case}");
    assert!(
        ran.err.contains("run again") || ran.err.contains("run the same command again"),
        "{case}"
    );
    scene.nothing_is_left_running();
    open(&folder);
    let again = scene.tdd(&[]);
    assert_eq!(
        again.code,
        Some(0),
        "{case}then:\n{}{}",
        again.out,
        again.err
    );
    is_finished(&scene);
    assert_eq!(launches_of(&scene, "developer red"), 1, "{case}");
}

#[test]
fn a_file_system_that_turns_read_only_in_the_middle_of_a_run_bails_and_nothing_is_lost() {
    if alone(
        "storage::a_file_system_that_turns_read_only_in_the_middle_of_a_run_bails_and_nothing_is_lost",
    ) {
        for what in &LOCKED {
            for who in ["developer-green", "verifier-green"] {
                locked_away(what, who, &bind_read_only, &unmount, false);
            }
        }
    }
}

#[test]
#[allow(clippy::print_stdout)] // a test that is skipped says so
fn a_folder_that_may_not_be_written_any_more_bails_and_nothing_is_lost() {
    if nix::unistd::geteuid().is_root() {
        println!(
            "skipped: a_folder_that_may_not_be_written_any_more: permissions are nothing to root"
        );
        return;
    }
    let chmod = |mode: &'static str| {
        move |folder: &std::path::Path| {
            // Of every folder below it, too; files may keep theirs.
            let done = std::process::Command::new("find")
                .arg(folder)
                .args(["-type", "d", "-exec", "chmod", mode, "{}", "+"])
                .status();
            assert!(done.unwrap().success());
        }
    };
    for what in &LOCKED {
        for who in ["developer-green", "verifier-green"] {
            let sent_back = what.0 == "the repository" && who.starts_with("developer");
            locked_away(what, who, &chmod("a-w"), &chmod("u+w"), sent_back);
        }
    }
}

#[test]
fn a_limit_on_the_size_of_files_kills_nobody_silently() {
    let scene = Scene::new();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    let arguments: Vec<String> = scene.arguments().iter().map(|a| format!("'{a}'")).collect();
    // In KiB; SIGXFSZ as it is by default, which ends a program that says nothing.
    for limit in [2, 6, 12, 24] {
        let mut command = scene.command("bash");
        let line = format!(
            "ulimit -f {limit}; exec '{}' {}",
            crate::scene::VERI,
            arguments.join(" ")
        );
        command.args(["-c", &line]);
        crate::scene::finish(command).bails("storage-failed");
        scene.nothing_is_left_running();
    }
    scene.tdd(&[]).expect(0);
    assert!(!scene.said("torn"));
    is_finished(&scene);
}

/// Where nothing can be mounted, a bound on the size of files stands in for the full disk.
#[test]
fn a_journal_that_cannot_grow_bails_and_is_whole_afterwards() {
    let scene = Scene::new();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    let mut command = scene.command("bash");
    // Blocks of 1 KiB; SIGXFSZ ignored, so that writes fail instead of killing.
    let arguments: Vec<String> = scene.arguments().iter().map(|a| format!("'{a}'")).collect();
    let line = format!(
        "trap '' XFSZ; ulimit -f 12; exec '{}' {}",
        crate::scene::VERI,
        arguments.join(" ")
    );
    command.args(["-c", &line]);
    crate::scene::finish(command).bails("storage-failed");
    scene.nothing_is_left_running();
    scene.tdd(&[]).expect(0);
    assert!(!scene.said("torn"));
    is_finished(&scene);
}

#[test]
fn a_journal_that_cannot_be_read_does_not_hide_how_the_other_issues_stand() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let issues = scene.path("forge/issues");
    fs::create_dir(issues.join("7")).unwrap();
    fs::copy(issues.join("42/issue.md"), issues.join("7/issue.md")).unwrap();
    let mut arguments = scene.arguments();
    arguments[1] = "7".to_owned();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    scene
        .veri(&[&arguments[..], &["--plan-only"]].concat())
        .expect(0);
    fs::write(scene.worktree().join(".tdd/events.jsonl"), "garbage\n").unwrap();
    let ran = scene.veri(&["status"]).expect(11).says("is damaged");
    assert!(ran.out.contains("issue 7: planned"), "{}", ran.out);
    let ran = scene.veri(&["status", "--json"]).expect(11);
    assert!(ran.out.contains("\"issue\": 7"), "{}", ran.out);
}
