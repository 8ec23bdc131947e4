//! `--here`: a run in the checkout itself. What is a leaf's is the run's to handle; what is a person's is not.

use crate::scene::{Ran, Scene, VERI, finish, wait};
use crate::watching::{all_of, kill, kill_everything, launches_of, plain, until};
use std::fs;
use std::process::{Child, Stdio};

impl Scene {
    fn here(&self, issue: &str, more: &[&str]) -> std::process::Command {
        let mut arguments = self.arguments();
        arguments[1] = issue.to_owned();
        let mut command = self.command(VERI);
        command.args(arguments).arg("--here").args(more);
        command
    }

    fn run_here(&self, issue: &str, more: &[&str]) -> Ran {
        finish(self.here(issue, more))
    }

    fn start_here(&self, issue: &str) -> Child {
        let mut command = self.here(issue, &[]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    fn on(&self) -> String {
        self.git(&["rev-parse", "--abbrev-ref", "HEAD"])
    }

    fn dirt(&self) -> String {
        self.git(&["status", "--porcelain"])
    }
}

#[test]
fn a_whole_run_in_the_checkout_survives_kills_and_leaves_it_clean() {
    let scene = plain();
    // Killed with everything while a developer has begun to write.
    scene.hold("developer-red");
    let run = scene.start_here("42");
    scene.begun("developer-red");
    scene.write("half.txt", "half\n");
    kill_everything(&scene, run);
    scene.let_go("developer-red");
    scene.forget("developer-red");
    // Killed while a candidate lies in the checkout and a verifier judges it.
    scene.hold("verifier-green");
    let run = scene.start_here("42");
    scene.begun("verifier-green");
    assert!(!scene.dirt().is_empty(), "the candidate is in the checkout");
    kill_everything(&scene, run);
    scene.let_go("verifier-green");
    let ran = scene.run_here("42", &[]).expect(0);
    assert_eq!(
        (scene.on().as_str(), scene.dirt().as_str()),
        ("tdd/issue-42", "")
    );
    assert_eq!(
        scene.subjects(),
        ["plan: issue 42 in 1 step", "greet takes a name"]
    );
    let kept = scene.veri(&["discarded", "42"]).expect(0).out;
    assert!(kept.contains("half.txt"), "{kept}\n{}", ran.out);
    assert_eq!(launches_of(&scene, "developer green"), 1);
    let shown = scene.veri(&["status"]).expect(0).out;
    assert!(shown.contains("issue 42: done"), "{shown}");
    scene.nothing_is_left_running();
}

#[test]
fn a_persons_changes_are_refused_and_not_touched_whatever_the_run_has_under_way() {
    let scene = plain();
    scene.write("mine.txt", "mine\n");
    let refused = |branch: &str| {
        let ran = scene
            .run_here("42", &[])
            .bails("needs-user")
            .says("mine.txt");
        assert_eq!(
            fs::read_to_string(scene.repo().join("mine.txt")).unwrap(),
            "mine\n"
        );
        assert_eq!(scene.on(), branch, "{}", ran.err);
    };
    refused("main");
    fs::remove_file(scene.repo().join("mine.txt")).unwrap();
    // A candidate of the run and a file of the person's: neither is moved.
    scene.hold("verifier-green");
    let run = scene.start_here("42");
    scene.begun("verifier-green");
    kill_everything(&scene, run);
    scene.let_go("verifier-green");
    scene.write("mine.txt", "mine\n");
    let before = scene.dirt();
    refused("tdd/issue-42");
    assert_eq!(scene.dirt(), before);
    fs::remove_file(scene.repo().join("mine.txt")).unwrap();
    // A git that may be the person's holds the index.
    let lock = scene.repo().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    scene
        .run_here("42", &[])
        .bails("needs-user")
        .says("index.lock");
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
    scene.run_here("42", &[]).expect(0);
    assert_eq!(scene.dirt(), "");
    assert_eq!(launches_of(&scene, "developer green"), 1);
}

#[test]
fn another_issue_unfinished_in_the_same_checkout_is_left_and_found_again() {
    let scene = plain();
    let issue = fs::read_to_string(scene.path("forge/issues/42/issue.md")).unwrap();
    fs::create_dir_all(scene.path("forge/issues/7")).unwrap();
    fs::write(scene.path("forge/issues/7/issue.md"), &issue).unwrap();
    scene.hold("developer-green");
    let run = scene.start_here("7");
    scene.begun("developer-green");
    kill(run);
    // Its leaf still works in this checkout: nobody else may.
    let ran = scene
        .run_here("42", &["--base", "main"])
        .bails("needs-user");
    assert!(
        ran.err.contains("issue 7") && ran.err.contains("veri tdd 7 --here"),
        "{}",
        ran.err
    );
    let run = scene.start_here("7");
    let journal = scene.repo().join(".tdd/events.jsonl");
    until("the next start to wait", || {
        fs::read_to_string(&journal)
            .unwrap()
            .contains("still runs: it is taken up")
    });
    scene.veri(&["stop", "7", "--mode", "now"]).expect(0);
    wait(run).expect(12);
    scene.let_go("developer-green");
    assert!(all_of(&scene).is_empty());
    let seven = scene.git(&["rev-parse", "tdd/issue-7"]);
    // Nothing runs: its branch is left. The base cannot be the branch of an issue.
    scene.run_here("42", &[]).bails("needs-user").says("--base");
    scene.run_here("42", &["--base", "main"]).expect(0);
    assert_eq!(
        (scene.on().as_str(), scene.dirt().as_str()),
        ("tdd/issue-42", "")
    );
    assert_eq!(scene.git(&["rev-parse", "tdd/issue-7"]), seven);
    let red = launches_of(&scene, "developer red");
    scene.run_here("7", &[]).expect(0);
    assert_eq!(
        (scene.on().as_str(), scene.dirt().as_str()),
        ("tdd/issue-7", "")
    );
    assert_eq!(
        launches_of(&scene, "developer red"),
        red,
        "its approved test was kept"
    );
}
