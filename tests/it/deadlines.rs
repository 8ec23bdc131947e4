//! What the conductor makes of leaves that a watchdog ended.
//!
//! The agents that this version runs do not stream, so no shim ends them so: the records are written as one does that has
//! outlived its conductor.

use crate::scene::{Agent, Scene};
use crate::watching::{ONE_STEP, kill, launches_of, noting, plain, start, until};
use serde_json::{Value, json};
use std::fs;
use veri::event::{Kind, Line};

/// Lets the leaf run while its conductor is killed, and has its shim record this end.
fn ended_unwatched(scene: &Scene, who: &str, why: &str) {
    scene.hold(who);
    let run = start(scene, &[]);
    scene.begun(who);
    kill(run);
    let lines = scene.lines();
    let launch = lines.iter().rfind(|l| l.text("intent") == "launch");
    let launch = launch.unwrap().text("launch").to_owned();
    let path = scene.worktree().join(format!(".tdd/runs/{launch}.exit"));
    scene.let_go(who);
    until("the record", || path.exists());
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["signalled_by_us"] = json!(true);
    record["code"] = Value::Null;
    record["signal"] = json!(15);
    record["why"] = json!(why);
    fs::write(&path, record.to_string()).unwrap();
    scene.forget(who);
}

fn exit_of(scene: &Scene, role: &str) -> Line {
    let lines = scene.lines().into_iter();
    lines
        .filter(|l| l.fields.contains_key("record") && l.actor == role)
        .next_back()
        .unwrap()
}

#[test]
fn a_leaf_that_was_ended_as_idle_is_launched_again_and_told_why() {
    let scene = plain();
    let prompts = scene.agent_keeping_prompts(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    ended_unwatched(&scene, "developer-red", "idle");
    let ran = scene.tdd(&[]).expect(0);
    let said = "it was silent for 480 s (limits.idle, or idle of agents.developer)";
    assert!(ran.out.contains(said), "{}", ran.out);
    let line = scene
        .lines()
        .into_iter()
        .find(|l| l.text("end") == "killed-stuck");
    assert_eq!(line.unwrap().text("detail"), said);
    assert_eq!(launches_of(&scene, "developer red 1"), 2);
    let prompt = fs::read_to_string(prompts.join("developer-2")).unwrap();
    assert!(prompt.contains("no sign of life"), "{prompt}");
    assert!(!scene.lines().iter().any(|l| l.event == Kind::Revise));
}

#[test]
fn a_leaf_that_is_idle_too_often_bails_with_the_limit_that_ended_it() {
    let scene = plain();
    scene.write(
        ".veri.toml",
        "limits.stuck_retries = 0\nlimits.first_sign = 77\n",
    );
    scene.commit_all("limits");
    ended_unwatched(&scene, "developer-red", "first-sign");
    let ran = scene.tdd(&[]).bails("killed-stuck");
    let said =
        "it wrote nothing within 77 s (limits.first_sign, or first_sign of agents.developer)";
    ran.says(said);
}

#[test]
fn a_leaf_that_lingered_after_its_result_has_answered_and_the_journal_says_so() {
    for (who, role, event) in [
        ("developer-red", "developer", Kind::Exit),
        ("verifier-red", "verifier", Kind::Verdict),
    ] {
        let scene = plain();
        ended_unwatched(&scene, who, "lingering");
        scene.tdd(&[]).expect(0);
        let launches = scene.launches();
        let of = launches
            .iter()
            .filter(|l| l.starts_with(&who.replace('-', " ")));
        assert_eq!(of.count(), 1, "{launches:?}");
        let lines = scene.lines();
        let lingered = lines
            .iter()
            .find(|l| l.fields.get("lingered") == Some(&json!(true)));
        let lingered = lingered.expect("the journal to note it");
        assert_eq!((lingered.event, lingered.actor.as_str()), (event, role));
        // Which does not hold of the leaves after it.
        assert!(!exit_of(&scene, role).fields.contains_key("lingered"));
    }
}
