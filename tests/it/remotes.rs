//! Other people on the same repository: a remote that takes and refuses, and commits by hand at any time.

use crate::attempts::{FRESH, NAME_TEST, attempts};
use crate::branch::{walk, walk_with, was_sent_back};
use crate::executable::executable;
use crate::hooks::hook;
use crate::scene::{Agent, Scene};
use std::fs;
use std::path::{Path, PathBuf};
use veri::role::Phase;

/// A bare remote `origin` that has main.
fn origin(scene: &Scene) -> PathBuf {
    let bare = scene.path("origin.git");
    scene.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    scene.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    scene.git(&["push", "-q", "origin", "main"]);
    bare
}

/// A commit by a person on top of a branch of a repository, made in a clone of its own.
fn persons_commit(scene: &Scene, repository: &Path, branch: &str, file: &str) {
    let clone = scene.path("tmp").join(format!("clone-{file}"));
    scene.git(&[
        "clone",
        "-q",
        "-b",
        branch,
        repository.to_str().unwrap(),
        clone.to_str().unwrap(),
    ]);
    fs::write(clone.join(file), "a person's\n").unwrap();
    scene.git_in(&clone, &["add", "-A"]);
    scene.git_in(&clone, &["commit", "-q", "-m", &format!("by hand: {file}")]);
    scene.git_in(&clone, &["push", "-q", "origin", branch]);
}

#[test]
fn each_step_is_pushed_and_a_pre_push_hook_that_refuses_is_heard_at_the_end() {
    let scene = Scene::new();
    let bare = origin(&scene);
    let seen = scene.note("seen");
    scene.agent(&Agent {
        red: format!(
            "git ls-remote origin tdd/issue-42 >> {}\n{}",
            seen.display(),
            Agent::default().red
        ),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    walk(&scene);
    let tip = scene.git(&["rev-parse", "tdd/issue-42"]);
    assert_eq!(scene.git_in(&bare, &["rev-parse", "tdd/issue-42"]), tip);
    let seen = fs::read_to_string(seen).unwrap();
    let expected: Vec<String> = ["tdd/issue-42~2", "tdd/issue-42~1"]
        .iter()
        .map(|c| format!("{}\trefs/heads/tdd/issue-42", scene.git(&["rev-parse", c])))
        .collect();
    assert_eq!(
        seen.lines().collect::<Vec<_>>(),
        expected,
        "what the remote had when each step began"
    );

    let scene = Scene::new();
    let bare = origin(&scene);
    hook(
        &scene,
        "pre-push",
        "echo 'no pushing on Mondays' >&2; exit 1",
    );
    scene
        .tdd(&[])
        .bails("needs-user")
        .says("no pushing on Mondays")
        .says("never forced");
    assert_eq!(
        scene.subjects().len(),
        3,
        "the work is finished all the same"
    );
    assert_eq!(scene.git_in(&bare, &["branch", "--list", "tdd/*"]), "");
    assert!(scene.pull().is_none());
    fs::remove_file(scene.repo().join(".git/hooks/pre-push")).unwrap();
    scene.tdd(&[]).expect(0);
    walk(&scene);
    assert!(scene.pull().is_some());
}

#[test]
fn a_persons_commit_on_the_remote_branch_between_runs_is_taken_in_and_named() {
    let scene = Scene::new();
    let bare = origin(&scene);
    scene.agent(&Agent {
        green: "echo '{\"needs_user\":\"Shall it shout?\"}'".to_owned(),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("needs-user").says("Shall it shout?");
    persons_commit(&scene, &bare, "tdd/issue-42", "by-hand.txt");
    scene.agent(&Agent::default());
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.git(&["show", "tdd/issue-42:by-hand.txt"]),
        "a person's"
    );
    walk_with(&scene, &["by hand: by-hand.txt"]);
    let pull = scene.pull().unwrap();
    assert!(
        pull.contains("Committed by hand") && pull.contains("by hand: by-hand.txt"),
        "{pull}"
    );
}

#[test]
fn a_remote_branch_that_has_diverged_is_never_overwritten() {
    let scene = Scene::new();
    let bare = origin(&scene);
    // The person pushes while the second step is under way.
    let push = format!(
        "if [ ! -e {0} ]; then git clone -q -b tdd/issue-42 {1} {0}; (cd {0}; echo x > theirs.txt; git add -A; git commit -qm theirs; git push -q origin tdd/issue-42); fi",
        scene.path("tmp/theirs").display(),
        bare.display()
    );
    scene.agent(&Agent {
        green: format!(
            "case \"$VERI_STEP\" in bye*) {push};; esac\n{}",
            Agent::default().green
        ),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("needs-user").says("never forced");
    let theirs = scene.git_in(&bare, &["rev-parse", "tdd/issue-42"]);
    assert_eq!(
        scene.git_in(&bare, &["log", "-1", "--format=%s", "tdd/issue-42"]),
        "theirs"
    );
    assert_eq!(scene.subjects().len(), 3);
    scene.tdd(&[]).bails("needs-user").says("diverged");
    assert_eq!(scene.git_in(&bare, &["rev-parse", "tdd/issue-42"]), theirs);
    assert_eq!(scene.subjects().len(), 3, "nothing finished is lost");
}

#[test]
fn a_person_at_work_in_the_same_repository_is_not_disturbed() {
    let scene = Scene::new();
    scene.git(&["checkout", "-q", "-b", "mine"]);
    scene.write("scratch.txt", "not committed\n");
    let repo = scene.repo();
    scene.agent(&Agent {
        // The person, not the leaf: with an identity and reflog of their own.
        green: format!(
            "{}\n(unset GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_CONFIG_COUNT; cd {}; date > mine-$$.txt; git add mine-$$.txt; git commit -qm 'my own work'; git branch my-branch-$$; git tag my-tag-$$)",
            Agent::default().green,
            repo.display()
        ),
        ..Agent::default()
    });
    scene.tdd(&["--base", "main"]).expect(0);
    walk(&scene);
    assert_eq!(
        scene.git(&["log", "--format=%s", "main..mine"]),
        "my own work\nmy own work"
    );
    assert_eq!(
        scene
            .git(&["branch", "--list", "my-branch-*"])
            .lines()
            .count(),
        2
    );
    assert_eq!(scene.git(&["tag"]).lines().count(), 2);
    assert_eq!(scene.git(&["status", "--porcelain"]), "?? scratch.txt");
    assert_eq!(
        fs::read_to_string(repo.join("scratch.txt")).unwrap(),
        "not committed\n"
    );
}

#[test]
fn a_persons_commit_under_unfinished_work_is_not_undone_by_it() {
    for stop in ["red", "green"] {
        let scene = Scene::new();
        let good = Agent::default();
        let verify = format!(
            "if [ $VERI_PHASE = {stop} ]; then echo \"{{\\\"nonce\\\":\\\"$VERI_NONCE\\\",\\\"needs_user\\\":\\\"How?\\\"}}\"; else {}; fi",
            crate::scene::APPROVE
        );
        scene.agent(&Agent {
            verify,
            ..Agent::default()
        });
        scene.tdd(&[]).bails("needs-user");
        // By hand in the worktree, on the issue's branch: other files, and a test of their own.
        let tree = scene.worktree();
        fs::write(
            tree.join("src/lib.sh"),
            "greet() { echo hello; }\nshout() { echo HELLO; }\n",
        )
        .unwrap();
        fs::write(
            tree.join("tests/shout.sh"),
            ". src/lib.sh; [ \"$(shout)\" = HELLO ]\n",
        )
        .unwrap();
        scene.git_in(&tree, &["add", "-A"]);
        scene.git_in(&tree, &["commit", "-q", "-m", "by hand: shout"]);
        scene.agent(&Agent {
            green: "case \"$VERI_STEP\" in\ngreet*) sed -i '/^greet/d' src/lib.sh; echo 'greet() { if [ $# -gt 0 ]; then echo \"hello $1\"; else echo hello; fi; }' >> src/lib.sh;;\n*) echo 'bye() { echo bye; }' >> src/lib.sh;;\nesac".to_owned(),
            ..good
        });
        scene.tdd(&[]).expect(0);
        let code = scene.git(&["show", "tdd/issue-42:src/lib.sh"]);
        assert!(code.contains("shout()"), "stopped in {stop}: {code}");
        scene.git(&["show", "tdd/issue-42:tests/shout.sh"]);
        walk_with(&scene, &["by hand: shout"]);
        assert!(scene.pull().unwrap().contains("by hand: shout"));
    }
}

#[test]
fn a_commit_that_is_made_in_veris_worktree_under_a_verifier_is_kept_and_said() {
    // The verifier stands for a person, who writes in the working tree.
    let scene = Scene::unconfined();
    let once = scene.note("once");
    let by_hand = format!(
        "if [ $VERI_PHASE = green ] && [ ! -e {0} ]; then touch {0}; t=$(ls -d {1}/*/work/issue-42); git -C \"$t\" stash -q -u; echo mine > \"$t/mine.txt\"; git -C \"$t\" add mine.txt; git -C \"$t\" -c user.name=Pat -c user.email=pat@example.com commit -qm 'by hand: mine'; fi",
        once.display(),
        scene.path("state").display()
    );
    scene.agent(&Agent {
        verify: format!("{by_hand}\n{}", crate::scene::APPROVE),
        ..Agent::default()
    });
    // Whose it is cannot be told: it may be the verifier's. It is put aside, and the step is committed as judged.
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out.contains("kept as refs/veri/issue-42/discarded/"),
        "{}",
        ran.out
    );
    walk(&scene);
    let kept = scene.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/veri/issue-42/discarded",
    ]);
    let holds = |name: &str| {
        scene
            .git(&["ls-tree", "-r", "--name-only", name])
            .contains("mine.txt")
    };
    assert!(kept.lines().any(holds), "{kept}");
}

#[test]
fn a_remote_that_is_a_relative_path_is_where_the_persons_own_push_finds_it() {
    let scene = Scene::new();
    let bare = origin(&scene);
    scene.git(&["remote", "set-url", "origin", "../origin.git"]);
    scene.git(&["push", "-q", "origin", "main"]);
    scene.tdd(&[]).expect(0);
    let tip = scene.git(&["rev-parse", "tdd/issue-42"]);
    assert_eq!(scene.git_in(&bare, &["rev-parse", "tdd/issue-42"]), tip);
}

#[test]
fn a_remote_that_a_leaf_made_gets_no_push_and_none_of_its_hooks_run() {
    let scene = Scene::new();
    let evil = scene.path("evil.git");
    scene.git(&["init", "-q", "--bare", evil.to_str().unwrap()]);
    let ran = scene.path("ran");
    let script = format!("#!/bin/sh\ntouch '{}'\n", ran.display());
    fs::write(evil.join("hooks/pre-receive"), script).unwrap();
    executable(&evil.join("hooks/pre-receive"));
    let good = Agent::default();
    scene.agent(&Agent {
        red: attempts(
            FRESH,
            &[&format!(
                "{NAME_TEST}; git remote add origin '{}'",
                evil.display()
            )],
            &good.red,
        ),
        ..good
    });
    scene.tdd(&[]).expect(0);
    was_sent_back(&scene, 1, Phase::Red, &["remote.origin.url"]);
    walk(&scene);
    assert!(!ran.exists(), "a hook of a leaf's repository was run");
    assert_eq!(scene.git_in(&evil, &["for-each-ref"]), "");
    assert_eq!(scene.git(&["remote"]), "");
}
