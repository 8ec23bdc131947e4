//! Storage that fails: a full disk, a read-only folder. The run says so, and nothing finished is lost.

use crate::scene::{Agent, Scene};
use crate::watching::{ONE_STEP, is_finished, kill_everything, launches_of, noting, plain, start};
use std::fs;
use std::path::{Path, PathBuf};

/// A little file system of the test's own, taken away at its end. None where mounting is not allowed.
struct Mounted(PathBuf);

impl Mounted {
    #[allow(clippy::print_stdout)] // a test that is skipped says so
    fn new(at: &Path, options: &str) -> Option<Mounted> {
        let options = format!("size={options},mode=755");
        let done = mount(&[
            "-t",
            "tmpfs",
            "-o",
            &options,
            "veri-test",
            &at.display().to_string(),
        ]);
        if !done {
            println!("skipped: mounting a tmpfs is not allowed here");
        }
        done.then(|| Mounted(at.to_owned()))
    }

    fn again(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(mount(&["-o", &options, &self.0.display().to_string()]));
    }
}

impl Drop for Mounted {
    #[allow(clippy::disallowed_methods)] // the real program
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}

#[allow(clippy::disallowed_methods)] // the real program
fn mount(args: &[&str]) -> bool {
    let mut command = std::process::Command::new("mount");
    let out = command.args(args).output();
    out.is_ok_and(|out| out.status.success())
}

#[test]
fn a_full_disk_under_veris_home_bails_and_a_rerun_with_room_goes_on() {
    let scene = plain();
    let Some(home) = Mounted::new(&scene.path("state"), "24m") else {
        return;
    };
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
    let scene = plain();
    let Some(home) = Mounted::new(&scene.path("state"), "64m") else {
        return;
    };
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
