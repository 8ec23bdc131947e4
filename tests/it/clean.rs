//! `veri clean`: what it removes, and what it never takes away with it.

use crate::scene::{Agent, Scene, finish};
use crate::watching::{ONE_STEP, all_of, kill, noting, plain, start, until};
use std::fs;
use std::path::PathBuf;

impl Scene {
    /// A file of what is kept of worktrees that were cleaned away.
    fn kept(&self, name: &str) -> PathBuf {
        let home = self.worktree();
        home.ancestors().nth(2).unwrap().join("journals").join(name)
    }
}

#[test]
fn a_worktree_in_which_a_leaf_still_runs_is_kept_and_then_its_work_and_its_journal_are() {
    let scene = plain();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: format!(
            "[ -e \"$d/once\" ] || git config core.hooksPath /dev/null; touch \"$d/once\"\n{}",
            Agent::default().red
        ),
        ..Agent::default()
    }));
    scene.hold("developer-red");
    let run = start(&scene, &[]);
    let leaf = scene.begun("developer-red");
    kill(run);
    for more in [&["--unfinished"][..], &["--unfinished", "--dry-run"]] {
        let ran = scene.veri(&[&["clean", "42"], more].concat()).expect(0);
        assert!(
            ran.out
                .contains("kept     issue 42: the leaf develop-red still runs"),
            "{}",
            ran.out
        );
        assert!(scene.worktree().join(".git").exists());
        assert!(all_of(&scene).contains(&leaf), "it was ended");
    }
    scene.let_go("developer-red");
    until("the leaf to end", || all_of(&scene).is_empty());
    let journal = fs::read(scene.worktree().join(".tdd/events.jsonl")).unwrap();
    let (first, second) = (scene.kept("issue-42.jsonl"), scene.kept("issue-42.1.jsonl"));
    let ran = scene.veri(&["clean", "42", "--unfinished"]).expect(0);
    assert!(ran.out.contains("removed  issue 42"), "{}", ran.out);
    assert!(
        ran.out.contains(&first.display().to_string()),
        "{}",
        ran.out
    );
    assert_eq!(fs::read(&first).unwrap(), journal);
    let config = fs::read_to_string(scene.repo().join(".git/config")).unwrap();
    assert!(!config.contains("hooksPath"), "{config}");
    let kept = scene.veri(&["discarded", "42"]).expect(0).out;
    assert!(kept.contains("tests/name.sh"), "{kept}");
    // A second journal does not take the place of the first.
    scene.tdd(&[]).expect(0);
    scene.veri(&["clean"]).expect(0);
    assert_eq!(fs::read(&second).unwrap(), journal);
    assert!(
        fs::read_to_string(&first)
            .unwrap()
            .contains("\"ending\":\"done\"")
    );
}

#[test]
fn an_edit_of_the_ledger_that_is_in_no_commit_survives_the_cleaning() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let ledger = scene.worktree().join(".tdd/issue-42.md");
    let edited = fs::read_to_string(&ledger).unwrap() + "\nA note of mine.\n";
    fs::write(&ledger, &edited).unwrap();
    let kept = scene.kept("issue-42.md");
    let ran = scene.veri(&["clean", "42", "--unfinished"]).expect(0);
    assert!(!ledger.exists(), "{}", ran.out);
    assert!(ran.out.contains(&kept.display().to_string()), "{}", ran.out);
    assert_eq!(fs::read_to_string(kept).unwrap(), edited);
}

#[test]
fn a_worktree_that_is_made_anew_is_furnished_anew() {
    let scene = Scene::new();
    scene.write(".gitignore", "deps/\n");
    scene.write(
        ".veri.toml",
        "[ground]\nsetup = ['mkdir -p deps; touch deps/made']\n[limits]\nrevisions = 0\n",
    );
    scene.commit_all("dependencies");
    let with = |red: &str| {
        scene.agent(&Agent {
            red: format!("[ -e deps/made ] || exit 9\n{red}"),
            ..Agent::default()
        });
    };
    with("exit 1");
    scene
        .tdd(&[])
        .bails("revise-exhausted")
        .says("exited with code 1");
    scene.veri(&["clean", "42", "--unfinished"]).expect(0);
    with("exit 1");
    scene
        .tdd(&[])
        .bails("revise-exhausted")
        .says("exited with code 1");
    fs::remove_dir_all(scene.worktree()).unwrap();
    with(&Agent::default().red);
    scene.tdd(&[]).expect(0);
}

#[test]
fn what_stays_of_a_finished_run_is_named_with_what_removes_it() {
    let scene = plain();
    let follow = |said: &str, word: &str| {
        let at = said.find(word).unwrap_or_else(|| panic!("{said}"));
        let line = said[at..].lines().next().unwrap();
        let ran = finish({
            let mut command = scene.command("sh");
            command.args(["-c", line]);
            command
        });
        ran.expect(0);
    };
    let refs = || scene.git(&["for-each-ref", "refs/veri/"]);
    scene.tdd(&[]).expect(0);
    let said = scene.veri(&["clean", "42"]).expect(0).out;
    assert_ne!(refs(), "");
    follow(&said, "git for-each-ref");
    assert_eq!(refs(), "");
    // The branch is finished all the same.
    scene.tdd(&["--here"]).expect(0);
    let said = scene.veri(&["clean", "42"]).expect(0).out;
    follow(&said, "rm -f ");
    follow(&said, "git for-each-ref");
    let status = scene.veri(&["status"]).expect(0).out;
    assert!(status.contains("no run is known here"), "{status}");
    assert_eq!(refs(), "");
    scene.tdd(&["--here"]).expect(0);
}

#[test]
fn a_ground_in_use_is_not_said_to_be_removed_by_a_flag_that_leaves_it_alone() {
    let scene = plain();
    scene.tdd(&["--plan-only"]).expect(0);
    let home = scene.worktree();
    let home = home.ancestors().nth(2).unwrap();
    let held = veri::ground::Ground::acquire(home, veri::ground::Kind::Check).unwrap();
    for flags in [&[][..], &["--grounds"]] {
        let ran = scene.veri(&[&["clean"], flags].concat()).expect(0);
        let line = ran.out.lines().find(|l| l.starts_with("kept     ground"));
        let line = line.unwrap_or_else(|| panic!("{}", ran.out));
        assert!(
            line.contains("in use") && !line.contains("--grounds"),
            "{line}"
        );
    }
    assert!(held.path().exists());
}

#[test]
fn what_was_noted_of_files_that_the_suite_leaves_goes_with_the_worktree() {
    let scene = Scene::new();
    let suite = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    scene.write("run-tests.sh", format!("touch report.xml\n{suite}"));
    scene.commit_all("a suite that leaves a report");
    scene.tdd(&["--plan-only"]).expect(0);
    let noted = scene.worktree().with_extension("debris");
    assert!(noted.exists());
    scene.veri(&["clean", "42", "--unfinished"]).expect(0);
    assert!(!noted.exists());
}
