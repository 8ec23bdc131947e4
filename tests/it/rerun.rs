//! The same command again after a bail, a stop or a change of mind: what it goes on from, and what is in force.

use crate::scene::{Agent, VERI, finish, wait};
use crate::watching::{ONE_STEP, is_finished, kill, launches_of, noting, plain, start};
use std::fs;

#[test]
fn what_a_run_was_started_with_stays_in_force_until_new_templates_are_asked_for() {
    let scene = plain();
    scene.write(".veri.toml", "[cycle]\nrefactor = \"off\"\n");
    scene.commit_all("config");
    scene.hold("developer-red");
    let run = start(&scene, &["--timeout", "100"]);
    scene.begun("developer-red");
    scene.veri(&["stop", "--mode", "now"]).expect(0);
    wait(run).expect(12);
    let skills = || -> Vec<String> {
        let mut all: Vec<String> = scene
            .lines()
            .iter()
            .filter_map(|l| l.skill_commit.clone())
            .collect();
        all.dedup();
        all
    };
    let first = skills();
    assert_eq!(first.len(), 1);

    // The repository's configuration and templates move on, and so does the issue.
    scene.write(".veri.toml", "[cycle]\nrefactor = \"step\"\n");
    let template = include_str!("../../templates/develop-red.md");
    scene.write(
        ".veri/templates/develop-red.md",
        format!("MARK\n{template}"),
    );
    scene.commit_all("config moves on");
    scene.issue(
        "title: Greet people by name",
        "The greeting should take a name. Really.\n",
    );
    // No flag of the first start is repeated.
    let prompts = |word: &str| {
        let runs = fs::read_dir(scene.worktree().join(".tdd/runs"))
            .unwrap()
            .flatten();
        runs.map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|e| e == "prompt"))
            .filter(|p| fs::read_to_string(p).is_ok_and(|text| text.contains(word)))
            .count()
    };
    scene.forget("developer-red");
    let mut command = scene.command(VERI);
    let run = command
        .args(["tdd", "42"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    scene.begun("developer-red");
    scene.veri(&["stop", "--mode", "now"]).expect(0);
    let ran = wait(run).expect(12);
    assert!(
        ran.out
            .contains("the issue's text has changed since the last start"),
        "{}",
        ran.out
    );
    assert_eq!((skills(), prompts("MARK")), (first.clone(), 0));
    scene.let_go("developer-red");

    let mut command = scene.command(VERI);
    command.args(scene.arguments()).env("VERI_NEW_SKILL", "1");
    finish(command).expect(0);
    let second = skills();
    assert_eq!(second.len(), 2, "{second:?}");
    assert_eq!(second[0], first[0]);
    assert_eq!(prompts("MARK"), 1);
    // The new configuration, too: a refactor was looked for.
    assert_eq!(launches_of(&scene, "developer refactor"), 1);
    let trailers = scene.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Veri-Snapshot,valueonly)",
        "tdd/issue-42",
    ]);
    assert_eq!(trailers.trim(), second[1]);
}

#[test]
fn a_persons_commits_and_edits_between_two_starts_are_neither_lost_nor_taken_back() {
    let scene = plain();
    scene.hold("verifier-green");
    let run = start(&scene, &[]);
    scene.begun("verifier-green");
    scene.veri(&["stop", "--mode", "now"]).expect(0);
    wait(run).expect(12);
    scene.let_go("verifier-green");
    // A commit on the branch that the candidate, made before it, does not hold.
    let tree = scene.worktree();
    fs::write(tree.join("by-hand.txt"), "by hand\n").unwrap();
    scene.git_in(&tree, &["add", "by-hand.txt"]);
    scene.git_in(&tree, &["commit", "-q", "-m", "something by hand"]);
    // And an edit of the ledger that is not committed.
    let ledger = tree.join(".tdd/issue-42.md");
    let text = fs::read_to_string(&ledger).unwrap();
    fs::write(&ledger, format!("{text}\nA note by hand.\n")).unwrap();
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out.contains("somebody has changed the branch since"),
        "{}",
        ran.out
    );
    let file = |path: &str| scene.git(&["show", &format!("tdd/issue-42:{path}")]);
    assert_eq!(file("by-hand.txt"), "by hand");
    assert!(file(".tdd/issue-42.md").ends_with("A note by hand."));
    assert!(file("src/lib.sh").contains("hello $1"));
    let subjects = [
        "plan: issue 42 in 1 step",
        "something by hand",
        "ledger: edited by hand",
        "greet takes a name",
    ];
    assert_eq!(scene.subjects(), subjects);
    assert!(
        scene
            .veri(&["discarded", "42"])
            .expect(0)
            .out
            .contains("a branch that has moved on")
    );
}

#[test]
fn a_question_that_nobody_has_seen_is_asked_before_the_work_is_tried_again() {
    let scene = plain();
    let mut agent = Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    };
    agent.red = format!(
        "if [ ! -e \"$d/asked\" ]; then touch \"$d/asked\"; echo '{{\"needs_user\":\"Which greeting?\"}}'; exit 0; fi\n{}",
        agent.red
    );
    scene.agent(&noting(agent));
    // The conductor dies while the developer works, and the answer is a question.
    scene.hold("developer-red");
    let run = start(&scene, &[]);
    scene.begun("developer-red");
    kill(run);
    scene.let_go("developer-red");
    scene.nothing_is_left_running();
    // It is killed again when the question is in the journal, and nowhere else.
    let mut command = scene.command(VERI);
    command
        .args(scene.arguments())
        .env("VERI_CRASH_AT", "0:journalled");
    assert_eq!(finish(command).code, None);
    assert!(!scene.comments().join("").contains("Which greeting?"));
    let ran = scene.tdd(&[]).bails("needs-user").says("Which greeting?");
    assert!(
        scene.comments().join("").contains("Which greeting?"),
        "{}",
        ran.out
    );
    assert_eq!(launches_of(&scene, "developer red"), 1);
    scene.worktree_is_clean();
    scene.tdd(&[]).expect(0);
    is_finished(&scene);
}

#[test]
fn a_preflight_that_fails_in_between_costs_nothing_of_the_work_under_way() {
    let scene = plain();
    // An answer that nobody has taken yet.
    scene.hold("developer-green");
    let run = start(&scene, &[]);
    scene.begun("developer-green");
    kill(run);
    scene.let_go("developer-green");
    scene.nothing_is_left_running();
    let issue = fs::read_to_string(scene.path("forge/issues/42/issue.md")).unwrap();
    scene.issue(
        "title: Greet people by name\nstate: closed",
        "Closed for a while.\n",
    );
    for _ in 0..2 {
        scene.tdd(&[]).bails("needs-user");
    }
    fs::write(scene.path("forge/issues/42/issue.md"), issue).unwrap();
    scene.tdd(&[]).expect(0);
    assert_eq!(launches_of(&scene, "developer green"), 1);
    is_finished(&scene);
}

#[test]
fn a_rerun_after_each_kind_of_bail_goes_on_where_it_stood_with_the_spent_budget_renewed() {
    let scene = plain();
    let once = |name: &str, act: &str| {
        format!("if [ ! -e \"$d/{name}\" ]; then touch \"$d/{name}\"; {act}; fi\n")
    };
    let good = Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    };
    let question = "echo \"{\\\"nonce\\\":\\\"$VERI_NONCE\\\",\\\"needs_user\\\":\\\"Is that so?\\\"}\"; exit 0";
    // The red is refused until it is allowed; the verifier asks, then talks prose twice, then approves.
    scene.agent(&noting(Agent {
        red: format!("[ -e \"$d/allowed\" ] || exit 3\n{}", good.red),
        verify: format!(
            "{}{}{}{}",
            once("verifier-asked", question),
            once("prose-1", "echo looks fine; exit 0"),
            once("prose-2", "echo looks fine; exit 0"),
            good.verify
        ),
        ..good
    }));
    scene.tdd(&[]).bails("revise-exhausted");
    assert_eq!(launches_of(&scene, "developer red"), 4);
    // Renewed: four attempts more.
    scene.tdd(&[]).bails("revise-exhausted");
    assert_eq!(launches_of(&scene, "developer red"), 8);
    fs::write(scene.note("allowed"), "").unwrap();
    scene.tdd(&[]).bails("needs-user").says("Is that so?");
    scene.tdd(&[]).bails("verdict-malformed");
    // The candidate that was judged is judged again: no developer is asked once more.
    assert_eq!(launches_of(&scene, "developer red"), 9);
    scene.tdd(&[]).expect(0);
    assert_eq!(launches_of(&scene, "developer red"), 9);
    is_finished(&scene);
}
