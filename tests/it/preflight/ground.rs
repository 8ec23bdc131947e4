//! The suite on the base, in the proving ground (10).

use super::{refused, scene, tdd};
use crate::scene::Agent;

#[test]
fn a_suite_that_fails_on_the_base_names_the_ignored_files_that_may_explain_it() {
    let scene = scene();
    scene.write(".gitignore", "settings.local\n");
    scene.write(
        "tests/greet.sh",
        ". ./settings.local; . src/lib.sh; [ \"$(greet)\" = hello ]\n",
    );
    scene.commit_all("needs an ignored file");
    scene.write("settings.local", "true\n");
    assert!(
        scene
            .command("sh")
            .arg("run-tests.sh")
            .status()
            .unwrap()
            .success()
    );
    let ran = refused(
        &scene,
        "baseline-red",
        &[
            "does not pass before any work was done",
            "settings.local",
            "ground.env_file",
            "FAIL tests/greet.sh",
        ],
        || scene.tdd(&[]),
    );
    drop(ran);
    let comments = scene.comments();
    assert!(
        comments
            .iter()
            .any(|c| c.contains("baseline-red") && c.contains("FAIL")),
        "{comments:?}"
    );
    // Declared, it is in the ground, and the same command goes on.
    scene.write(".veri.toml", "[ground]\nenv_file = \"settings.local\"\n");
    scene.agent(&Agent::default());
    scene.tdd(&["--plan-only"]).expect(0);
}

#[test]
fn a_suite_that_cannot_be_run_hangs_or_dies() {
    let scene = scene();
    let suite = |command: &'static str| tdd(&scene, &[("--test-cmd", Some(command))], &[]);
    refused(
        &scene,
        "needs-user",
        &["exit 127", "--test-cmd", "ground"],
        || suite("no-such-runner --all"),
    );
    refused(&scene, "needs-user", &["exit 126"], || {
        suite("./src/lib.sh")
    });
    refused(
        &scene,
        "killed-external",
        &["signal 9", "run again"],
        || suite("kill -9 $$"),
    );
    refused(&scene, "baseline-red", &["SEGV"], || suite("kill -SEGV $$"));
    scene.write(".veri.toml", "[tests]\ntimeout = 1\n");
    refused(&scene, "baseline-red", &["did not end within 1 s"], || {
        suite("sleep 1000 & sleep 1000")
    });
    scene.nothing_is_left_running();
    scene.write(".veri.toml", "checks = [\"false\"]\n");
    refused(&scene, "baseline-red", &["extra check", "`false`"], || {
        suite("true")
    });
}

#[test]
fn a_suite_that_tests_another_checkout() {
    let mut scene = scene();
    let other = scene.repo();
    // By a variable, as PYTHONPATH does.
    scene.write(
        "run-tests.sh",
        ". \"$LIBRARY/lib.sh\"\n[ \"$(greet)\" = hello ]\n",
    );
    scene.commit_all("by a variable");
    scene.env.push(("LIBRARY".into(), other.join("src").into()));
    refused(
        &scene,
        "needs-user",
        &["LIBRARY", "ground.isolation"],
        || scene.tdd(&[]),
    );
    scene.env.clear();
    // By a path that is written down.
    scene.write(
        "run-tests.sh",
        format!(
            "cd '{}'\n. src/lib.sh\n[ \"$(greet)\" = hello ]\n",
            other.display()
        ),
    );
    scene.commit_all("by a path");
    refused(
        &scene,
        "needs-user",
        &["run-tests.sh", "ground.isolation"],
        || scene.tdd(&[]),
    );
    // The person's word overrides it, and the pull request will say so.
    scene.write(".veri.toml", "[ground]\nisolation = \"trust\"\n");
    scene.agent(&Agent::default());
    scene.tdd(&["--plan-only"]).expect(0);
}

#[test]
fn a_declared_file_that_is_missing_and_a_glob_that_is_none_are_questions() {
    let scene = scene();
    scene.write(".veri.toml", "[ground]\nenv_file = \".env\"\n");
    refused(&scene, "needs-user", &["ground.env_file", ".env"], || {
        scene.tdd(&[])
    });
    scene.write(".veri.toml", "[tests]\npaths = [\"a[\"]\n");
    refused(&scene, "needs-user", &["tests.paths", "`a[`"], || {
        scene.tdd(&[])
    });
}
