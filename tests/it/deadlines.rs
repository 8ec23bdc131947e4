//! What the conductor makes of leaves that a watchdog ended.
//!
//! The agents that this version runs do not stream, so no shim ends them so: the records are written as one does that has
//! outlived its conductor.

use crate::scene::{Agent, Scene, wait};
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
    let mut lines = scene.lines().into_iter();
    let of = lines.rfind(|l| l.fields.contains_key("record") && l.actor == role);
    of.unwrap()
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
    let said = "it was silent for too long (limits.idle, or idle of agents.developer)";
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
    scene.write(".veri.toml", "limits.stuck_retries = 0\n");
    scene.commit_all("limits");
    ended_unwatched(&scene, "developer-red", "first-sign");
    let ran = scene.tdd(&[]).bails("killed-stuck");
    let said = "it wrote nothing in time (limits.first_sign, or first_sign of agents.developer)";
    ran.says(said);
}

#[test]
fn a_role_has_the_deadlines_that_are_said_of_it_below_a_flag_and_above_those_of_all() {
    let scene = plain();
    let config =
        "agents.verifier = { use = 'command:replaced-by-the-flag', timeout = 50, grace = 0 }
limits.timeout = 70
limits.grace = 2
";
    scene.write(".veri.toml", config);
    scene.commit_all("limits");
    scene.tdd(&["--plan-only"]).expect(0);
    let shown = |line: &Line| {
        let of = |key: &str| line.fields["deadlines"][key].as_u64().unwrap();
        (line.actor.clone(), of("timeout"), of("grace"))
    };
    let launches = |scene: &Scene| -> Vec<(String, u64, u64)> {
        let lines = scene.lines();
        lines
            .iter()
            .filter(|l| l.text("intent") == "launch")
            .map(shown)
            .collect()
    };
    assert_eq!(launches(&scene), [("planner".to_owned(), 70, 2)]);
    // What the supervisor was told is what the journal says.
    let started = scene.worktree().join(".tdd/plan.pid");
    let started: Value = serde_json::from_slice(&fs::read(started).unwrap()).unwrap();
    assert_eq!(
        (&started["wall_ms"], &started["grace_ms"]),
        (&json!(70_000), &json!(2000))
    );
    scene.hold("developer-green");
    let run = start(&scene, &[]);
    scene.begun("developer-green");
    kill(run);
    scene.let_go("developer-green");
    scene.tdd(&["--timeout", "90"]).expect(0);
    let all = launches(&scene);
    for (role, timeout, grace) in [
        ("developer", 70, 2),
        ("verifier", 50, 0),
        ("verifier", 90, 0),
    ] {
        assert!(
            all.contains(&(role.to_owned(), timeout, grace)),
            "{role} {timeout}: {all:?}"
        );
    }
}

#[test]
fn a_role_is_ended_at_its_own_wall_time() {
    let scene = plain();
    let config =
        "agents.developer = { use = 'command:replaced-by-the-flag', timeout = 2, grace = 0 }
limits.stuck_retries = 0
";
    scene.write(".veri.toml", config);
    scene.commit_all("limits");
    scene.hold("developer-red");
    scene.tdd(&[]).bails("killed-stuck").says("--timeout");
    scene.nothing_is_left_running();
}

#[test]
fn a_leaf_that_was_late_is_told_of_with_its_deadline_in_journal_log_bail_and_comment() {
    let scene = plain();
    scene.write(
        ".veri.toml",
        "limits = { stuck_retries = 0, timeout = 2, grace = 0 }\n",
    );
    scene.commit_all("limits");
    scene.hold("developer-red");
    let ran = scene.tdd(&[]).bails("killed-stuck");
    let which = "it had not ended within 2 s (--timeout, VERI_TIMEOUT, limits.timeout, or timeout of agents.developer)";
    ran.says(which).says("What the developer printed last: ");
    assert_eq!(exit_of(&scene, "developer").text("detail"), which);
    let log = scene.veri(&["log", "42"]).expect(0).out;
    let told = |line: &&str| line.contains("developer is stuck") && line.contains(which);
    assert_eq!(log.lines().filter(told).count(), 1, "{log}");
    assert!(scene.comments().iter().any(|c| c.contains(which)));
}

#[test]
fn status_says_which_leaf_is_at_work_and_when_it_is_ended_and_nothing_of_one_that_has_ended() {
    let scene = plain();
    scene.hold("developer-red");
    let run = start(&scene, &["--timeout", "3600"]);
    scene.begun("developer-red");
    let status = || {
        let ran = scene.veri(&["status", "--json"]).expect(0);
        serde_json::from_str::<Value>(&ran.out).unwrap()[0].clone()
    };
    let seen = status();
    let time = |key: &str| {
        seen[key]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    assert_eq!(seen["leaf"], json!("develop-red"));
    assert_eq!(time("until").duration_since(time("since")).as_secs(), 3600);
    let said = scene.veri(&["status"]).expect(0).out;
    assert!(said.contains("works   develop-red since "), "{said}");
    scene.veri(&["stop", "--mode", "now"]).expect(0);
    wait(run).expect(12);
    assert_eq!(status()["leaf"], Value::Null);
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
