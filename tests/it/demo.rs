//! `veri demo`, as a newcomer runs it; and the promise that whatever is killed, the same command goes on.
//!
//! All runs here are of the same demo, so all must end with the same trees and the same messages. The first, which
//! nobody disturbs, is made once and kept as text.

use crate::installed::cargo;
use crate::scene::{PATIENCE, Ran, Scene, VERI, wait};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use veri::event::{Kind, Line, PhaseWord};

/// Seconds that a leaf may take: enough for a verifier's test run on a busy machine, as only the leaf that hangs
/// shall be taken for one that does.
const LEAF_SECONDS: &str = "12";

/// The folder of a demo in a scene.
struct Demo {
    scene: Scene,
    folder: PathBuf,
}

impl Demo {
    fn new() -> Demo {
        let mut scene = Scene::bare();
        scene.env.push(("CI".into(), "true".into()));
        scene.env.push(("VERI_TIMEOUT".into(), LEAF_SECONDS.into()));
        let folder = scene.path("a demo");
        Demo { scene, folder }
    }

    fn repository(&self) -> PathBuf {
        self.folder.join("bank")
    }

    fn start(&self) -> Child {
        let mut command = self.scene.command(VERI);
        command.args(["demo", "--keep"]).arg(&self.folder);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self) -> Ran {
        wait(self.start())
    }

    /// The journal so far; empty before there is one.
    fn journal(&self) -> Vec<Line> {
        let homes = fs::read_dir(self.folder.join("veri-home")).into_iter();
        homes
            .flatten()
            .flatten()
            .map(|home| home.path().join("work/issue-42/.tdd/events.jsonl"))
            .find_map(|path| veri::journal::read(&path).ok())
            .unwrap_or_default()
    }

    fn read(&self, below: &str) -> String {
        let path = self.folder.join(below);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    fn git(&self, args: &[&str]) -> String {
        self.scene.git_in(&self.repository(), args)
    }

    /// Of each commit of the branch, oldest first: its tree and its whole message.
    fn history(&self) -> String {
        self.git(&["log", "--reverse", "--format=%T %B", "main..tdd/issue-42"])
    }

    fn assert_ended_well(&self) {
        let undisturbed = &PLAIN.history;
        assert_eq!(&self.history(), undisturbed);
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        assert_eq!(files(&self.folder.join("forge/pulls")), ["1.md"]);
        let comments = files(&self.folder.join("forge/issues/42/comments"));
        let markers: BTreeSet<String> = comments
            .iter()
            .map(|name| self.read(&format!("forge/issues/42/comments/{name}")))
            .map(|text| {
                text.lines()
                    .find(|line| line.starts_with("<!-- veri:"))
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(
            markers.len(),
            comments.len(),
            "one comment for each marker: {comments:?}"
        );
        let journal = self.journal();
        assert_eq!(verdicts(&journal, "reject"), 1);
        assert_eq!(stuck(&journal), 1);
        self.scene.nothing_is_left_running();
    }
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn verdicts(journal: &[Line], word: &str) -> usize {
    let given = journal.iter().filter(|line| line.event == Kind::Verdict);
    given.filter(|line| line.text("verdict") == word).count()
}

fn stuck(journal: &[Line]) -> usize {
    let ended = journal.iter().filter(|line| line.event == Kind::Exit);
    ended
        .filter(|line| line.text("end") == "killed-stuck")
        .count()
}

/// What is kept of the demo that nobody disturbs.
struct Plain {
    out: String,
    err: String,
    /// The demo's folder, which is gone by now.
    folder: PathBuf,
    history: String,
    pull: String,
    journal: Vec<Line>,
    commits: Vec<Commit>,
}

struct Commit {
    message: String,
    /// What it changes.
    paths: Vec<String>,
    ledger: String,
    /// None when its suite passes, else what it says.
    failure: Option<String>,
}

static PLAIN: LazyLock<Plain> = LazyLock::new(|| {
    let demo = Demo::new();
    let ran = demo.run().expect(0);
    demo.scene.nothing_is_left_running();
    let clone = demo.scene.path("clone");
    let branch = demo.git(&["log", "--reverse", "--format=%H", "main..tdd/issue-42"]);
    demo.git(&[
        "clone",
        "-q",
        "-b",
        "tdd/issue-42",
        ".",
        clone.to_str().unwrap(),
    ]);
    let commits = branch.lines().map(|id| commit(&demo, &clone, id)).collect();
    Plain {
        history: demo.history(),
        pull: demo.read("forge/pulls/1.md"),
        journal: demo.journal(),
        folder: demo.folder.clone(),
        out: ran.out,
        err: ran.err,
        commits,
    }
});

fn commit(demo: &Demo, clone: &Path, id: &str) -> Commit {
    let git = |args: &[&str]| demo.scene.git_in(clone, args);
    git(&["checkout", "-q", "--detach", id]);
    let suite = demo
        .scene
        .command("cargo")
        .args(["test", "--offline", "--no-fail-fast"])
        .current_dir(clone)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&suite.stdout).into_owned();
    Commit {
        message: git(&["log", "-1", "--format=%B"]),
        paths: git(&["show", "--format=", "--name-only"])
            .lines()
            .map(str::to_owned)
            .collect(),
        ledger: git(&["show", "HEAD:.tdd/issue-42.md"]),
        failure: (!suite.status.success()).then_some(said),
    }
}

#[test]
fn the_demo_ends_with_a_draft_pull_request_and_says_where_it_is() {
    if !cargo() {
        return;
    }
    let pull = PLAIN.folder.join("forge/pulls/1.md");
    let pull = pull.to_str().unwrap();
    assert!(PLAIN.out.trim_end().ends_with(pull), "{}", PLAIN.out);
    assert_eq!(
        PLAIN.err.trim_end(),
        format!("done: draft pull request 1: {pull}")
    );
    assert!(PLAIN.pull.contains("\ndraft: true\n"), "{}", PLAIN.pull);
    for name in [
        "a_transfer_that_takes_the_day_above_the_limit_is_refused",
        "the_refusal_says_how_much_can_still_be_sent_today",
        "at_midnight_the_allowance_is_whole_again",
    ] {
        assert!(PLAIN.pull.contains(name), "{name}: {}", PLAIN.pull);
    }
    assert!(
        !PLAIN.pull.contains(PLAIN.folder.to_str().unwrap()),
        "a reader elsewhere has no such folder: {}",
        PLAIN.pull
    );
}

#[test]
fn both_retry_axes_are_seen_in_the_demo_once_each() {
    if !cargo() {
        return;
    }
    assert_eq!(verdicts(&PLAIN.journal, "reject"), 1);
    assert_eq!(verdicts(&PLAIN.journal, "approve"), 7);
    assert_eq!(stuck(&PLAIN.journal), 1);
    let revisions = PLAIN
        .journal
        .iter()
        .filter(|line| line.event == Kind::Revise);
    assert_eq!(revisions.count(), 1);
    let refactors = PLAIN
        .commits
        .iter()
        .filter(|commit| commit.message.starts_with("refactor: "));
    assert_eq!(refactors.count(), 1);
}

#[test]
fn every_commit_of_the_demo_passes_and_brings_the_tick_with_its_test_and_its_code() {
    if !cargo() {
        return;
    }
    let ticks = |commit: &Commit| commit.ledger.matches("- [x]").count();
    let (plan, work) = PLAIN.commits.split_first().unwrap();
    assert_eq!(plan.paths, [".tdd/issue-42.md"]);
    assert_eq!(
        (ticks(plan), plan.ledger.matches("- [ ]").count()),
        (0, 3),
        "{}",
        plan.ledger
    );
    let mut done = 0;
    for commit in work {
        if commit.message.starts_with("refactor: ") {
            assert_eq!(commit.paths, ["src/lib.rs"]);
        } else {
            done += 1;
            assert_eq!(
                commit.paths,
                [".tdd/issue-42.md", "src/lib.rs", "tests/daily_limit.rs"]
            );
        }
        assert_eq!(ticks(commit), done, "{}", commit.message);
    }
    assert_eq!(done, 3);
    for commit in &PLAIN.commits {
        assert_eq!(commit.failure, None, "{}", commit.message);
    }
}

#[test]
fn the_messages_of_the_demo_hold_the_ledgers_words_and_no_others() {
    if !cargo() {
        return;
    }
    let ledger = &PLAIN.commits.last().unwrap().ledger;
    let ledger = veri::ledger::Ledger::parse(ledger.as_bytes()).unwrap();
    let snapshot = PLAIN.journal.last().unwrap().skill_commit.clone().unwrap();
    let message = |subject: &str, step: &str, phase: &str| {
        format!(
            "{subject}\n\nVeri-Issue: #42\n{step}Veri-Phase: {phase}\nVeri-Snapshot: {snapshot}"
        )
    };
    let mut expected = vec![message("plan: issue 42 in 3 steps", "", "plan")];
    for step in ledger.steps() {
        let trailer = format!("Veri-Step: {}\n", step.number);
        expected.push(message(&step.title, &trailer, "green"));
        if step.number == 2 {
            let subject = format!("refactor: {}", step.title);
            expected.push(message(&subject, &trailer, "refactor"));
        }
    }
    let messages: Vec<&str> = PLAIN
        .commits
        .iter()
        .map(|commit| commit.message.trim_end())
        .collect();
    assert_eq!(messages, expected);
}

#[test]
fn a_demo_that_is_killed_in_a_step_goes_on_from_there_without_a_home() {
    if !cargo() {
        return;
    }
    let demo = Demo::new();
    let mut command = demo.scene.command(VERI);
    command
        .args(["demo", "--kill-at", "2"])
        .env_remove("HOME")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = wait(command.spawn().unwrap()).expect(0);
    let (before, after) = ran
        .out
        .split_once("killed with SIGKILL, in the middle of step 2")
        .unwrap_or_else(|| panic!("{}", ran.out));
    assert!(before.contains("step 1 is done") && !before.contains("step 2 is done"));
    assert!(after.contains("step 2 is done") && !after.contains("step 1 is done"));

    // Without --keep it lies in the temporary folder, and stays there.
    let made = files(&demo.scene.path("tmp"));
    let name = made.iter().find(|name| name.starts_with("veri-demo-"));
    let folder = demo.scene.path("tmp").join(name.unwrap());
    let demo = Demo { folder, ..demo };
    demo.assert_ended_well();
}

#[test]
fn a_folder_that_holds_something_else_is_left_alone() {
    if !cargo() {
        return;
    }
    let demo = Demo::new();
    fs::create_dir(&demo.folder).unwrap();
    fs::write(demo.folder.join("thesis.txt"), "all of it").unwrap();
    demo.run().expect(10).says("name another folder");
    assert_eq!(files(&demo.folder), ["thesis.txt"]);
}

/// A moment of the demo: the first line of the journal that is like this.
struct Moment {
    event: Kind,
    step: Option<u32>,
    phase: Option<PhaseWord>,
    actor: &'static str,
    intent: &'static str,
}

impl Moment {
    fn is(&self, line: &Line) -> bool {
        line.event == self.event
            && line.step == self.step
            && line.phase == self.phase
            && line.actor == self.actor
            && line.text("intent") == self.intent
    }
}

/// Ten moments of the demo in their order, from preflight to the last commit.
fn moments() -> [Moment; 10] {
    let intent = |event, step, phase, intent| Moment {
        event,
        step,
        phase,
        actor: "conductor",
        intent,
    };
    let launch = |actor, step, phase| Moment {
        event: Kind::Launch,
        step,
        phase: Some(phase),
        actor,
        intent: "launch",
    };
    use PhaseWord::{Green, Plan, Red, Refactor};
    [
        intent(Kind::Preflight, None, None, "preflight"),
        launch("planner", None, Plan),
        intent(Kind::Commit, None, Some(Plan), "commit-plan"),
        launch("developer", Some(1), Red),
        intent(Kind::Check, Some(1), Some(Red), "check"),
        launch("verifier", Some(1), Green),
        intent(Kind::Commit, Some(1), Some(Green), "commit"),
        launch("verifier", Some(2), Refactor),
        launch("developer", Some(3), Green),
        intent(Kind::Commit, Some(3), Some(Green), "commit"),
    ]
}

/// Starts the demo again and again, and has it killed at each of the moments; then lets it end.
fn killed_at_ten_moments(kill: fn(&Demo, &mut Child)) -> Demo {
    let demo = Demo::new();
    for moment in moments() {
        let mut running = demo.start();
        let start = Instant::now();
        while !demo.journal().iter().any(|line| moment.is(line)) {
            assert!(running.try_wait().unwrap().is_none(), "it ended too early");
            assert!(start.elapsed() < PATIENCE, "the moment does not come");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(running.try_wait().unwrap().is_none(), "it ended too early");
        kill(&demo, &mut running);
        running.wait().unwrap();
    }
    demo.run().expect(0);
    demo
}

#[test]
fn a_conductor_that_is_killed_at_ten_moments_ends_with_the_same_branch() {
    if !cargo() {
        return;
    }
    killed_at_ten_moments(|_, conductor| conductor.kill().unwrap()).assert_ended_well();
}

#[test]
fn a_demo_whose_every_process_is_killed_at_ten_moments_ends_with_the_same_branch() {
    if !cargo() {
        return;
    }
    killed_at_ten_moments(|demo, _| demo.scene.kill_everything()).assert_ended_well();
}
