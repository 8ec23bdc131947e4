//! The test command (6), agents (7), configuration and the command line.

use super::{refused, scene, tdd};
use crate::picture::Picture;
use std::fs;

#[test]
fn a_test_command_that_is_not_clear() {
    let scene = scene();
    let no_command = [("--test-cmd", None)];
    scene
        .veri(&["doctor", "--test-cmd"])
        .expect(3)
        .says("--test-cmd");
    let ran = refused(
        &scene,
        "needs-user",
        &["VERI_TEST_CMD", "--test-cmd"],
        || tdd(&scene, &no_command, &[]),
    );
    drop(ran);
    // The question is where the issue is, for whoever does not sit at this terminal.
    let comments = scene.comments();
    assert!(
        comments
            .iter()
            .any(|c| c.contains("needs-user") && c.contains("--test-cmd")),
        "{comments:?}"
    );

    scene.write(
        "Cargo.toml",
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\n",
    );
    scene.write("go.mod", "module x\n");
    scene.commit_all("two");
    scene
        .veri(&["doctor", "--test-cmd"])
        .expect(3)
        .says("go test");
    refused(
        &scene,
        "needs-user",
        &["cargo test", "go test", "--test-cmd"],
        || tdd(&scene, &no_command, &[]),
    );
    fs::remove_file(scene.repo().join("go.mod")).unwrap();
    scene.commit_all("one");
    assert_eq!(
        scene.veri(&["doctor", "--test-cmd"]).expect(0).out,
        "cargo test --no-fail-fast\n"
    );
}

#[test]
fn an_agent_that_cannot_be_run() {
    let scene = scene();
    fs::write(scene.path("plain"), "#!/bin/sh\n").unwrap();
    let plain = format!("command:{}", scene.path("plain").display());
    let gone = format!("command:{}", scene.path("gone").display());
    let folder = format!("command:{}", scene.path("home").display());
    for (agent, words) in [
        (gone.as_str(), ["gone", "No such file"]),
        (&plain, ["is not executable", "chmod +x"]),
        (&folder, ["home", "is not a file"]),
        ("command:no-such-agent", ["no-such-agent", "not on PATH"]),
        ("command:", ["names no program", "command:./my-agent"]),
        ("claude", ["`claude`", "command:./my-agent"]),
        ("", ["no agent", "--agent"]),
    ] {
        refused(&scene, "agent-unavailable", &words, || {
            tdd(&scene, &[("--agent", Some(agent))], &[])
        });
    }
    // Each role's counts, not only the first's.
    refused(&scene, "agent-unavailable", &["gone"], || {
        tdd(&scene, &[], &["--verifier", &gone])
    });
    let comments = scene.comments();
    assert!(
        comments.iter().any(|c| c.contains("agent-unavailable")),
        "{comments:?}"
    );
}

#[test]
fn a_configuration_or_plan_that_cannot_be_used() {
    let scene = scene();
    for (text, words) in [
        ("[limits]\nrevision = 2\n", ["revision", "revisions"]),
        ("push = \"often\"\n", ["push", "step"]),
        ("[limits\n", [".veri.toml", "line 1"]),
        (
            "[limits]\nrevisions = \"two\"\n",
            ["revisions", ".veri.toml"],
        ),
    ] {
        scene.write(".veri.toml", text);
        refused(&scene, "needs-user", &words, || scene.tdd(&[]));
    }
    fs::remove_file(scene.repo().join(".veri.toml")).unwrap();
    fs::create_dir(scene.repo().join(".veri.toml")).unwrap();
    refused(&scene, "needs-user", &[".veri.toml"], || scene.tdd(&[]));
    fs::remove_dir(scene.repo().join(".veri.toml")).unwrap();

    refused(
        &scene,
        "needs-user",
        &["gone.json", "cannot be read"],
        || scene.tdd(&["--plan", "gone.json"]),
    );
    let plan = scene.path("plan.json");
    fs::write(&plan, "Here is my plan: do it.").unwrap();
    let plan = plan.to_str().unwrap();
    refused(
        &scene,
        "plan-invalid",
        &["plan.json", "veri prompt schema plan"],
        || scene.tdd(&["--plan", plan]),
    );
    let forge = [("--forge", Some("gitlab:x"))];
    refused(&scene, "needs-user", &["gitlab:x"], || {
        tdd(&scene, &forge, &[])
    });
    refused(&scene, "needs-user", &["dir:", "--forge"], || {
        tdd(&scene, &[("--forge", None)], &[])
    });
}

#[test]
fn a_command_line_that_is_not_understood() {
    let mut scene = scene();
    let before = Picture::of(&scene.repo());
    for args in [
        &["tdd"][..],
        &["tdd", "0"],
        &["tdd", "forty-two"],
        &["tdd", "42", "--trust", "everybody"],
        &["tdd", "42", "--timeout", "soon"],
        &["tdd", "42", "--json", "--quiet"],
        &["tdd", "42", "43"],
        &["tdd", "42", "--no-such-flag"],
        &["stop", "--mode", "gently"],
        &["no-such-command"],
        &[],
    ] {
        let ran = scene.veri(args).expect(64);
        assert!(
            !ran.err.trim().is_empty() && ran.out.is_empty(),
            "{args:?}: {ran:?}"
        );
    }
    scene.env.push(("VERI_TIMEOUT".into(), "soon".into()));
    scene.tdd(&[]).expect(64).says("VERI_TIMEOUT");
    before.is_still(&Picture::of(&scene.repo()));
    assert!(fs::read_dir(scene.path("state")).unwrap().next().is_none());
}

#[test]
fn a_folder_for_temporary_files_that_cannot_be_used_is_a_question_before_anything_is_run() {
    let mut scene = scene();
    let file = scene.path("file");
    fs::write(&file, "").unwrap();
    let none: [std::path::PathBuf; 2] = ["/no/such/folder".into(), "../tmp".into()];
    for folder in none.into_iter().chain([file]) {
        scene.env.push(("TMPDIR".into(), folder.into_os_string()));
        scene.tdd(&[]).bails("needs-user").says("(TMPDIR)");
    }
}
