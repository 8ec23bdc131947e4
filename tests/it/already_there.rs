//! A test that passes at once: sent back, then either made to fail, or shown to be about behaviour that is
//! already there, or refused.

use crate::branch::{walk, was_sent_back};
use crate::scene::{APPROVE, Agent, Scene};
use veri::role::Phase;

/// A verifier that approves "already there" with this change of the code, and everything else as it is.
fn approves_with(patch: &str) -> String {
    let answer = format!(
        r#"{{"nonce":"NONCE","verdict":"approve","reasons":[],"breaks_with":{}}}"#,
        serde_json::to_string(patch).unwrap()
    );
    // Its claim is in its prompt alone, which the scene's agent has thrown away: the tree tells.
    format!(
        "if [ ! -e tests/bye.sh ] && [ -e tests/again.sh ] && ! grep -q bye src/lib.sh; then sed \"s/NONCE/$VERI_NONCE/\" <<'J'\n{answer}\nJ\nelse {APPROVE}; fi"
    )
}

/// Tests what `greet` does already.
const AGAIN: &str = r#"echo '. src/lib.sh; [ "$(greet)" = hello ]' > tests/again.sh"#;

/// The first step is about what is there already; the second is not.
fn red(first: &str) -> String {
    format!(
        "case \"$VERI_STEP\" in greet*) {first};; *) {};; esac",
        r#"echo '. src/lib.sh; [ "$(bye)" = "bye" ]' > tests/bye.sh"#
    )
}

#[test]
fn what_is_already_there_is_committed_as_a_test_alone_once_a_patch_breaks_it() {
    let scene = Scene::new();
    let patch = "diff --git a/src/lib.sh b/src/lib.sh\n--- a/src/lib.sh\n+++ b/src/lib.sh\n@@ -1 +1 @@\n-greet() { echo hello; }\n+greet() { echo broken; }\n";
    scene.agent(&Agent {
        // The second attempt changes nothing: it insists.
        red: red(&format!("[ $VERI_ATTEMPT != 1 ] || {{ {AGAIN}; }}")),
        verify: approves_with(patch),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    was_sent_back(&scene, 1, Phase::Red, &["passes at once"]);
    walk(&scene);
    let files = scene.git(&["show", "--format=", "--name-only", "tdd/issue-42~1"]);
    assert_eq!(files, ".tdd/issue-42.md\ntests/again.sh");
    let pull = scene.pull().unwrap();
    assert!(pull.contains("Already there"), "{pull}");
}

#[test]
fn a_test_that_passes_at_once_can_be_made_to_fail_instead() {
    let scene = Scene::new();
    scene.agent(&Agent {
        red: red(&format!("if [ $VERI_ATTEMPT = 1 ]; then {AGAIN}; else rm tests/again.sh; echo '. src/lib.sh; [ \"$(greet Ann)\" = \"hello Ann\" ]' > tests/name.sh; fi")),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    was_sent_back(&scene, 1, Phase::Red, &["passes at once"]);
    walk(&scene);
    assert!(!scene.pull().unwrap().contains("Already there"));
}

#[test]
fn without_a_patch_that_breaks_it_the_test_proves_nothing() {
    let scene = Scene::new();
    let count = scene.note("count");
    let patches = [
        // It changes the test, not the code.
        "diff --git a/tests/again.sh b/tests/again.sh\n--- a/tests/again.sh\n+++ b/tests/again.sh\n@@ -1 +1 @@\n-. src/lib.sh; [ \"$(greet)\" = hello ]\n+false\n",
        // It breaks nothing.
        "diff --git a/src/lib.sh b/src/lib.sh\n--- a/src/lib.sh\n+++ b/src/lib.sh\n@@ -1 +1,2 @@\n greet() { echo hello; }\n+# nothing\n",
    ];
    let [first, second] = patches.map(approves_with);
    scene.agent(&Agent {
        red: red(&format!(
            "{AGAIN}; echo \"# $VERI_ATTEMPT\" >> tests/again.sh"
        )),
        verify: format!(
            "echo >> {0}; case $(wc -l < {0}) in 1) {first};; 2) {second};; *) {APPROVE};; esac",
            count.display()
        ),
        ..Agent::default()
    });
    scene
        .tdd(&[])
        .bails("revise-exhausted")
        .says("proves nothing");
    was_sent_back(
        &scene,
        1,
        Phase::Red,
        &["passes at once", "shows nothing", "shows nothing"],
    );
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
    assert_eq!(
        scene.git_in(&scene.worktree(), &["status", "--porcelain"]),
        ""
    );
    let kept = scene.veri(&["discarded", "42"]).expect(0);
    assert!(kept.out.contains("tests/again.sh"), "{}", kept.out);
}
