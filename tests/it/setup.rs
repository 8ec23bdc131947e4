//! Dependencies: the ground's own, the worktree's own, and never the person's.

use crate::scene::{Agent, Scene};

#[test]
fn setup_serves_suites_developers_and_verifiers_and_leaves_the_checkout_alone() {
    let scene = Scene::new();
    scene.write(".gitignore", "deps/\n");
    scene.write(
        ".veri.toml",
        "[ground]\nsetup = [\"mkdir -p deps && cp requirements.txt deps/made && echo once >> deps/runs\"]\nenv_file = '.secrets'\n",
    );
    scene.write("requirements.txt", "one\n");
    scene.write("run-tests.sh", "set -u\n[ -e deps/made ] || exit 3\n. ./.secrets || exit 4\n. src/lib.sh\nfail=0\nfor t in tests/*.sh; do sh -eu \"$t\" || fail=1; done\nexit $fail\n");
    scene.commit_all("a project that needs setting up");
    scene.write(".secrets", "TOKEN=1\n");
    scene.git(&["update-index", "--refresh", "-q"]);
    let good = Agent::default();
    scene.agent(&Agent {
        red: format!(
            "[ \"$(cat deps/runs)\" = once ] && [ -e .secrets ] || exit 9\n{}",
            good.red
        ),
        verify: format!(
            "[ -e deps/made ] && [ -e .secrets ] || exit 9\n{}",
            good.verify
        ),
        ..good
    });
    scene.write(".git/info/exclude", ".secrets\n");
    scene.tdd(&[]).expect(0);
    assert!(
        !scene.repo().join("deps").exists(),
        "the person's checkout was set up"
    );
    let files = scene.git(&["ls-tree", "-r", "--name-only", "tdd/issue-42"]);
    assert!(
        !files.contains("deps") && !files.contains(".secrets"),
        "{files}"
    );
}

#[test]
fn a_candidate_whose_setup_fails_goes_back_to_the_developer() {
    let scene = Scene::new();
    scene.write(
        ".veri.toml",
        "[ground]\nsetup = [\"grep -q fine requirements.txt\"]\n",
    );
    scene.write("requirements.txt", "fine\n");
    scene.commit_all("a project that needs setting up");
    let good = Agent::default();
    scene.agent(&Agent {
        green: format!(
            "{}\nif [ $VERI_ATTEMPT = 1 ]; then echo broken > requirements.txt; else echo fine > requirements.txt; fi",
            good.green
        ),
        ..good
    });
    scene.tdd(&[]).expect(0);
    let refused = scene
        .journal()
        .iter()
        .filter(|l| l.text("result") == "fails")
        .count();
    assert_eq!(refused, 2, "once a step");
}
