//! What is remembered of a suite's runs, and what must be seen anew: leftovers, failures, debris, the environment.

use crate::branch::{sent_back, walk};
use crate::scene::{Agent, Scene};
use crate::watching::ONE_STEP;
use std::fs;
use veri::role::Phase;

/// An agent whose first green leaves a cache behind and fails, and whose second leans on it; the third is right.
fn leaning() -> Agent {
    Agent {
        plan: ONE_STEP.to_owned(),
        green: r#"case "$VERI_ATTEMPT" in
            1) echo 'greet() { mkdir -p .c; echo "Signature: 8a477f597d28d172789f06886806bc55" > .c/CACHEDIR.TAG
                echo "hello Ann" > .c/v; echo hello; }';;
            2) echo 'greet() { if [ $# = 0 ]; then echo hello; else cat .c/v; fi; }';;
            *) echo 'greet() { if [ $# = 0 ]; then echo hello; else echo "hello $1"; fi; }';;
        esac > src/lib.sh"#
            .to_owned(),
        ..Agent::default()
    }
}

#[test]
fn what_an_attempt_left_in_a_cache_of_its_own_does_not_help_the_next_one() {
    let scene = Scene::new();
    scene.agent(&leaning());
    scene.tdd(&[]).expect(0);
    assert_eq!(sent_back(&scene, 1, Phase::Green).len(), 2);
    walk(&scene);
}

#[test]
fn a_tree_that_passes_only_on_what_an_ignored_cache_holds_is_not_accepted() {
    let scene = Scene::new();
    scene.write(".gitignore", ".c/\n");
    scene.commit_all("a cache");
    scene.agent(&leaning());
    scene
        .tdd(&[])
        .bails("acceptance-failed")
        .says("made anew")
        .says("in no commit");
    assert_eq!(
        sent_back(&scene, 1, Phase::Green).len(),
        1,
        "the cache helped the second"
    );
    assert_eq!(scene.pull(), None);
    // The same answer again, until the branch is another.
    scene.tdd(&[]).bails("acceptance-failed");
    scene.nothing_is_left_running();
}

/// A scene whose suite notes each of its runs in a file outside, and fails unless another file is there.
fn counting(env: &str) -> Scene {
    let scene = Scene::new();
    let suite = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    let (runs, mended) = (scene.path("runs"), scene.path("mended"));
    let head = format!(
        "echo run >> '{}'\n[ -e '{}' ] || exit 1\n",
        runs.display(),
        mended.display()
    );
    scene.write("run-tests.sh", format!("{head}{suite}"));
    scene.write(".veri.toml", format!("{env}\npull_request = \"none\"\n"));
    scene.commit_all("counting");
    scene
}

fn runs(scene: &Scene) -> usize {
    let text = fs::read_to_string(scene.path("runs")).unwrap_or_default();
    text.lines().count()
}

#[test]
fn a_baseline_that_was_red_is_looked_at_again_and_one_that_passed_is_not() {
    let mut scene = counting("ground = { pass_env = [\"DATABASE\"] }");
    scene.env.push(("DATABASE".into(), "one".into()));
    scene.tdd(&["--plan-only"]).bails("baseline-red");
    assert_eq!(runs(&scene), 1);
    fs::write(scene.path("mended"), "").unwrap();
    scene.tdd(&["--plan-only"]).expect(0);
    assert_eq!(runs(&scene), 3, "the suite, and the trial of its isolation");
    // The branch has a ledger now, which is no part of what is tested.
    scene.tdd(&["--plan-only"]).expect(0);
    assert_eq!(runs(&scene), 3);
    // What the suite is told to depend on is another.
    scene.env[0].1 = "two".into();
    scene.tdd(&["--plan-only"]).expect(0);
    assert_eq!(runs(&scene), 4);
}

#[test]
fn a_report_that_the_suite_writes_is_not_committed_after_a_restart_and_that_is_said() {
    let scene = Scene::new();
    let suite = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    scene.write(
        "run-tests.sh",
        format!("echo '<testsuite/>' > 'report é.xml'\n{suite}"),
    );
    scene.commit_all("reporting");
    let agent = Agent::default();
    scene.agent(&Agent {
        red: format!("{}\nsh run-tests.sh || :", agent.red),
        ..agent
    });
    scene.tdd(&["--plan-only"]).expect(0);
    let ran = scene.tdd(&[]).expect(0);
    walk(&scene);
    let files = scene.git(&[
        "-c",
        "core.quotePath=false",
        "ls-tree",
        "-r",
        "--name-only",
        "tdd/issue-42",
    ]);
    assert!(!files.contains("report"), "{files}");
    let said = "not part of the candidate, since running the suite or the setup leaves them behind: report";
    assert_eq!(
        ran.out.matches(said).count() + ran.err.matches(said).count(),
        1,
        "{}{}",
        ran.out,
        ran.err
    );
}
