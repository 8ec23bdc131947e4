//! The command that goes on: whatever is printed, mirrored or shown does go on, from any folder's view.

use crate::scene::{Agent, Ran, Scene, VERI, finish};
use crate::watching::{ONE_STEP, plain};
use std::collections::BTreeSet;
use std::fs;

/// Runs a printed command as a person who pastes it into a shell.
fn paste(scene: &Scene, line: &str) -> Ran {
    let mut command = scene.command("sh");
    let line = line.replacen("veri ", &format!("'{VERI}' "), 1);
    command.args(["-c", &line]);
    finish(command)
}

/// The command in the last line of a run (`planned: \`veri …\` goes on`).
fn printed(ran: &Ran) -> String {
    let last = ran.last();
    let command = last.split('`').nth(1);
    command
        .unwrap_or_else(|| panic!("no command in {last:?}"))
        .to_owned()
}

fn remotes(scene: &Scene) {
    for name in ["origin", "upstream"] {
        let bare = scene.path(&format!("{name}.git"));
        let bare = bare.to_str().unwrap();
        scene.git(&["init", "-q", "--bare", bare]);
        scene.git(&["remote", "add", name, bare]);
        scene.git(&["push", "-q", name, "main"]);
    }
}

fn branches(scene: &Scene, remote: &str) -> String {
    scene.git_in(
        &scene.path(&format!("{remote}.git")),
        &["for-each-ref", "--format=%(refname:short)"],
    )
}

#[test]
fn the_printed_command_keeps_remote_trust_and_here() {
    let mut scene = plain();
    // Without a word about trust, nothing is taken from an issue here.
    scene.env.push(("CI".into(), "true".into()));
    remotes(&scene);
    let flags = ["--remote", "upstream", "--trust", "run", "--here"];
    let ran = scene
        .tdd(&[&flags[..], &["--plan-only"]].concat())
        .expect(0);
    let command = printed(&ran);
    assert_eq!(command, "veri tdd 42 --here");
    let status = scene.veri(&["status"]).expect(0).out;
    assert!(status.contains(&format!("next    {command}\n")), "{status}");
    let comments = scene.comments().concat();
    assert!(comments.contains(&format!("`{command}`")), "{comments}");
    paste(&scene, &command).expect(0);
    assert_eq!(branches(&scene, "origin"), "main");
    assert_eq!(branches(&scene, "upstream"), "main\ntdd/issue-42");
}

#[test]
fn what_preflight_has_not_stored_is_in_the_printed_command() {
    let scene = plain();
    let late = scene.path("it's late");
    let mut command = scene.command(VERI);
    let mut arguments = scene.arguments();
    for word in &mut arguments {
        if word == "sh run-tests.sh" {
            *word = "sh 'run-tests.sh'".to_owned();
        }
    }
    command.args(arguments);
    command.args(["--developer", "command:../it's late", "--timeout", "77"]);
    finish(command).bails("agent-unavailable");
    let status = scene.veri(&["status"]).expect(0).out;
    let command = status
        .split("then ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    assert!(command.contains("--timeout 77"), "{command}");
    paste(&scene, command).bails("agent-unavailable");
    fs::rename(scene.path("agent"), &late).unwrap();
    scene.agent(&Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    });
    paste(&scene, command).expect(0);
}

#[test]
fn flags_of_a_later_start_hold_from_then_on_and_leave_the_snapshot_as_it_is() {
    let scene = plain();
    scene.tdd(&["--plan-only"]).expect(0);
    let skills = || {
        let all = scene.journal();
        let all = all.iter().filter_map(|l| l.skill_commit.clone());
        all.collect::<BTreeSet<_>>()
    };
    let first = skills();
    assert_eq!(first.len(), 1);
    // The developer is another from now on.
    scene.agent(&Agent {
        red: "exit 3".to_owned(),
        ..Agent::default()
    });
    fs::rename(scene.path("agent"), scene.path("other")).unwrap();
    scene.agent(&Agent::default());
    let other = format!("command:{}", scene.path("other").display());
    let flags = ["tdd", "42", "--developer", &other, "--timeout", "77"];
    scene.veri(&flags).bails("revise-exhausted");
    scene.veri(&["tdd", "42"]).bails("revise-exhausted");
    assert_eq!(skills(), first);
    scene.write(".veri.toml", "[limits]\nrevisions = 1\n");
    scene.tdd(&["--new-templates"]).expect(0);
    let old = format!("refs/veri/issue-42/snapshots/{}", first.first().unwrap());
    assert_eq!(
        scene.git(&["rev-parse", &old]),
        *first.first().unwrap(),
        "commits name it: it stays"
    );
    assert_eq!(skills().len(), 2);
}
