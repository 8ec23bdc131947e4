//! What was judged before a crash, looked at once more before it is committed; and what is told of a step whose proof
//! is in no journal, or whose refactor came to nothing.

use crate::branch::{sent_back, walk};
use crate::scene::{APPROVE, Agent, REJECT, Scene};
use crate::watching::{ONE_STEP, noting, plain};
use std::fs;
use veri::event::{Kind, Line};
use veri::role::Phase;

/// The commit of the first step, counted as `VERI_CRASH_AT` counts.
const COMMIT: &str = "14:before";

/// A run of one step that was killed between the approval of its green and the commit.
fn approved(agent: Agent) -> Scene {
    let mut scene = plain();
    let broken = scene.note("broken").display().to_string();
    let tests = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    scene.write(
        "run-tests.sh",
        format!(
            "if [ -e '{broken}' ] && grep -q 'hello \\$1' src/lib.sh; then exit 1; fi\n{tests}"
        ),
    );
    scene.commit_all("the suite can be broken for the finished code");
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..agent
    }));
    let plain = scene.env.len();
    scene.env.push(("VERI_CRASH_AT".into(), COMMIT.into()));
    assert_eq!(scene.tdd(&[]).code, None, "killed");
    scene.env.truncate(plain);
    let lines = scene.lines();
    let last = lines.iter().rfind(|l| l.fields.contains_key("input"));
    assert_eq!(last.unwrap().text("verdict"), "approve", "{last:?}");
    assert_eq!(scene.subjects().len(), 1);
    scene
}

fn verdicts(scene: &Scene) -> usize {
    let lines = scene.lines();
    lines.iter().filter(|l| l.event == Kind::Verdict).count()
}

fn rechecks(scene: &Scene) -> usize {
    let recheck = |l: &&Line| l.fields.contains_key("recheck");
    scene.lines().iter().filter(recheck).count()
}

#[test]
fn an_approval_before_a_crash_is_enough_when_it_is_on_record_and_the_checks_still_hold() {
    let scene = approved(Agent::default());
    scene.tdd(&[]).expect(0);
    assert_eq!((verdicts(&scene), rechecks(&scene)), (2, 1));
    walk(&scene);
}

#[test]
fn an_approval_of_which_only_the_journal_knows_is_asked_for_again() {
    let scene = approved(Agent::default());
    let lines = scene.lines();
    let launch = lines
        .iter()
        .rfind(|l| l.text("intent") == "launch" && l.actor == "verifier");
    let record = format!(".tdd/runs/{}.exit", launch.unwrap().text("launch"));
    fs::remove_file(scene.worktree().join(record)).unwrap();
    scene.tdd(&[]).expect(0);
    let why = sent_back(&scene, 1, Phase::Green).join("\n");
    assert!(why.contains("no verifier's approval"), "{why}");
    assert_eq!(verdicts(&scene), 3, "red once and green twice");
    walk(&scene);
}

#[test]
fn what_was_approved_before_a_crash_is_not_committed_when_its_checks_do_not_hold_any_more() {
    let good = Agent::default();
    let scene = approved(Agent {
        green: format!(
            "if [ \"$VERI_ATTEMPT\" = 2 ]; then rm \"$d/broken\"; echo '# again' >> src/lib.sh; else {}\nfi",
            good.green
        ),
        ..good
    });
    fs::write(scene.note("broken"), "").unwrap();
    let home = scene.worktree().ancestors().nth(2).unwrap().to_owned();
    fs::remove_dir_all(home.join("results")).unwrap();
    scene.tdd(&[]).expect(0);
    let why = sent_back(&scene, 1, Phase::Green).join("\n");
    assert!(why.contains("the suite fails"), "{why}");
    assert_eq!(verdicts(&scene), 3, "what takes its place is judged");
    let code = scene.git(&["show", "tdd/issue-42:src/lib.sh"]);
    assert!(code.ends_with("# again"), "{code}");
    walk(&scene);
}

#[test]
fn what_a_dropped_refactor_touched_is_not_said_to_be_in_the_pull_request() {
    for (verdict, told) in [(REJECT, false), (APPROVE, true)] {
        let scene = plain();
        scene.write(".veri.toml", "[limits]\nrevisions = 0\n");
        scene.agent(&noting(Agent {
            plan: ONE_STEP.to_owned(),
            refactor: "mkdir -p .github/workflows; echo 'on: push' > .github/workflows/ci.yml"
                .to_owned(),
            verify: format!("if [ $VERI_PHASE = refactor ]; then {verdict}; else {APPROVE}; fi"),
            ..Agent::default()
        }));
        scene.tdd(&[]).expect(0);
        let pull = scene.pull().unwrap();
        assert_eq!(pull.contains(".github/workflows"), told, "{pull}");
    }
}

#[test]
fn a_step_whose_proof_is_in_no_journal_is_said_to_be_that_and_neither_proven_nor_made_by_hand() {
    let scene = plain();
    scene.tdd(&[]).expect(0);
    let (proven, not_on_record) = (
        "failing before the code was written",
        "its record is in the issue's thread",
    );
    let pull = scene.pull().unwrap();
    assert!(
        pull.contains(proven) && !pull.contains(not_on_record),
        "{pull}"
    );
    fs::remove_file(scene.worktree().join(".tdd/events.jsonl")).unwrap();
    scene.tdd(&[]).expect(0);
    let pull = scene.pull().unwrap();
    assert!(pull.contains(not_on_record), "{pull}");
    assert!(
        !pull.contains(proven) && !pull.contains("by hand"),
        "{pull}"
    );
}
