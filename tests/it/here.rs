//! `--here`: a run in the checkout itself. What is a leaf's is the run's to handle; what is a person's is not.

use crate::scene::{APPROVE, Agent, REJECT, Ran, Scene, VERI, finish, wait};
use crate::watching::{
    ONE_STEP, all_of, kill, kill_everything, launches_of, noting, plain, start, until,
};
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

/// Waits at the green verifier, lets a person do something in the checkout, and goes on.
fn meanwhile(scene: &Scene, person: impl FnOnce()) -> Ran {
    scene.hold("verifier-green");
    let run = scene.start_here("42");
    scene.begun("verifier-green");
    person();
    scene.let_go("verifier-green");
    wait(run)
}

#[test]
fn a_file_that_a_person_saves_while_a_verifier_works_survives_the_run_and_is_not_taken() {
    let scene = plain();
    scene.write(".veri.toml", "[cycle]\nrefactor = 'off'\n");
    meanwhile(&scene, || {
        scene.write("notes.txt", "mine\n");
        scene.write("tests/greet.sh", "# mine\n");
    })
    .expect(0);
    let read = |path: &str| fs::read_to_string(scene.repo().join(path)).unwrap();
    assert_eq!(read("notes.txt"), "mine\n");
    assert_eq!(read("tests/greet.sh"), "# mine\n");
    assert_eq!(
        scene.dirt(),
        " M tests/greet.sh\n?? .veri.toml\n?? notes.txt"
    );
    let taken = scene.git(&["diff", "--name-only", "main", "tdd/issue-42"]);
    assert!(
        !taken.contains("notes.txt") && !taken.contains("greet.sh"),
        "{taken}"
    );
}

#[test]
fn before_the_next_developer_a_persons_file_ends_the_run_and_lies_where_it_lay() {
    let scene = Scene::new();
    scene.agent(&noting(Agent::default()));
    let notes = scene.repo().join("notes.txt");
    let ran = meanwhile(&scene, || scene.write("notes.txt", "mine\n"));
    let ran = ran.bails("needs-user").says("notes.txt");
    assert!(
        !ran.err.contains("src/lib.sh"),
        "only theirs is named: {}",
        ran.err
    );
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine\n");
    assert_eq!(scene.dirt(), "?? notes.txt");
    scene
        .run_here("42", &[])
        .bails("needs-user")
        .says("notes.txt");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine\n");
    fs::remove_file(&notes).unwrap();
    scene.run_here("42", &[]).expect(0);
    assert_eq!(scene.dirt(), "");
}

#[test]
fn a_persons_file_beside_a_rejected_candidate_is_neither_moved_nor_taken_into_the_next() {
    let scene = plain();
    let once = scene.note("rejected");
    scene.agent(&noting(Agent {
        green: format!("{}; echo \"# $VERI_ATTEMPT\" >> src/lib.sh", Agent::default().green),
        verify: format!(
            "if [ $VERI_PHASE = green ] && [ ! -e {0} ]; then touch {0}; {REJECT}; else {APPROVE}; fi",
            once.display()
        ),
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    let ran = meanwhile(&scene, || scene.write("notes.txt", "mine\n"));
    let ran = ran.bails("needs-user").says("notes.txt");
    assert!(!ran.err.contains("src/lib.sh"), "{}", ran.err);
    let notes = scene.repo().join("notes.txt");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine\n");
    fs::remove_file(&notes).unwrap();
    scene.run_here("42", &[]).expect(0);
    assert_eq!(scene.dirt(), "");
    assert_eq!(launches_of(&scene, "developer green"), 2);
}

#[test]
fn what_somebody_writes_into_veris_own_worktree_is_put_aside_and_said() {
    let scene = plain();
    scene.hold("verifier-green");
    let run = start(&scene, &[]);
    scene.begun("verifier-green");
    fs::write(scene.worktree().join("stray.txt"), "stray\n").unwrap();
    scene.let_go("verifier-green");
    let ran = wait(run).expect(0);
    assert!(
        ran.out
            .contains("somebody changed files in veri's own worktree")
            && ran.out.contains("stray.txt"),
        "{}",
        ran.out
    );
    assert!(!scene.worktree().join("stray.txt").exists());
    let kept = scene.veri(&["discarded", "42"]).expect(0).out;
    assert!(kept.contains("stray.txt"), "{kept}");
}

#[test]
fn veris_own_files_in_the_checkout_are_no_dirt_and_stay() {
    let scene = plain();
    let issue = fs::read_to_string(scene.path("forge/issues/42/issue.md")).unwrap();
    let body = issue.rsplit("---\n").next().unwrap().trim();
    scene.write("issue.md", format!("# Greet people by name\n\n{body}\n"));
    let agent = format!("command:{}", scene.path("agent").display());
    let ran = scene.veri(&[
        "tdd",
        "./issue.md",
        "--here",
        "--forge",
        "dir:./f",
        "--agent",
        &agent,
        "--test-cmd",
        "sh run-tests.sh",
        "--plan-only",
    ]);
    let ran = ran.expect(0);
    assert!(ran.last().contains("`veri tdd 1 --here`"), "{}", ran.err);
    scene.veri(&["tdd", "1", "--here"]).expect(0);
    assert!(scene.repo().join("issue.md").exists());
    assert!(scene.repo().join("f/pulls/1.md").exists());
    let taken = scene.git(&["diff", "--name-only", "main", "tdd/issue-1"]);
    assert!(
        !taken.contains("issue.md") && !taken.contains("f/"),
        "{taken}"
    );
}
