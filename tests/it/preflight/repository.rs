//! Git, the repository, and what is under way in its checkout (1 to 3).

use super::{OF_A_RUN, refused, scene, watch_launches};
use crate::picture::Picture;
use crate::scene::{Agent, Scene, VERI, executable, finish, wait};
use crate::watching::until;
use std::fs;
use std::process::Stdio;

/// A git call that may fail, as one that stops at a conflict does.
fn try_git(scene: &Scene, args: &[&str]) {
    let out = scene.command("git").args(args).output().unwrap();
    drop(out);
}

#[test]
fn no_git_on_path() {
    let scene = scene();
    let tools = scene.path("tools");
    fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink("/bin/sh", tools.join("sh")).unwrap();
    refused(
        &scene,
        "needs-user",
        &["no `git` on PATH", "Install git 2.38"],
        || {
            let mut command = scene.command(VERI);
            command.args(scene.arguments()).env("PATH", &tools);
            finish(command)
        },
    );
}

#[test]
fn an_old_git() {
    let scene = scene();
    let tools = scene.path("tools");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("git"), "#!/bin/sh\necho git version 2.30.2\n").unwrap();
    executable(&tools.join("git"));
    refused(
        &scene,
        "needs-user",
        &["git 2.38 or newer is needed", "2.30.2"],
        || {
            let mut command = scene.command(VERI);
            let usual = command.get_envs().find(|(name, _)| *name == "PATH");
            let mut path = tools.clone().into_os_string();
            path.push(":");
            path.push(usual.and_then(|(_, value)| value).expect("a PATH"));
            command.args(scene.arguments()).env("PATH", path);
            finish(command)
        },
    );
}

#[test]
fn no_repository_a_bare_one_and_one_without_commits() {
    let scene = Scene::bare();
    watch_launches(&scene);
    refused(
        &scene,
        "needs-user",
        &["is not inside a git repository"],
        || scene.tdd(&[]),
    );
    scene.git(&["init", "-q", "-b", "main", "."]);
    refused(
        &scene,
        "needs-user",
        &["has no commit yet", "git commit"],
        || scene.tdd(&[]),
    );

    let bare = Scene::bare();
    watch_launches(&bare);
    bare.git(&["init", "-q", "--bare", "-b", "main", "."]);
    refused(
        &bare,
        "needs-user",
        &["is a bare repository", "clone"],
        || bare.tdd(&[]),
    );
    assert!(fs::read_dir(bare.path("state")).unwrap().next().is_none());
}

#[test]
fn inside_the_git_folder() {
    let scene = scene();
    refused(
        &scene,
        "needs-user",
        &["Run veri in its working tree"],
        || {
            let mut command = scene.command(VERI);
            command
                .args(scene.arguments())
                .current_dir(scene.repo().join(".git"));
            finish(command)
        },
    );
}

#[test]
fn something_is_under_way_in_the_checkout() {
    let begin: [(&str, &[&[&str]]); 6] = [
        ("merge", &[&["merge", "--no-ff", "--no-commit", "side"]]),
        ("rebase", &[&["rebase", "side"]]),
        ("cherry-pick", &[&["cherry-pick", "side"]]),
        ("revert", &[&["revert", "HEAD~1"]]),
        ("bisect", &[&["bisect", "start"]]),
        (
            "am",
            &[
                &["format-patch", "-1", "side", "-o", "../tmp"],
                &["am", "../tmp/0001-side.patch"],
            ],
        ),
    ];
    for (name, commands) in begin {
        let scene = scene();
        scene.git(&["checkout", "-q", "-b", "side"]);
        scene.write("notes", "side\n");
        scene.commit_all("side");
        scene.git(&["checkout", "-q", "main"]);
        for text in ["one\n", "two\n"] {
            scene.write("notes", text);
            scene.commit_all("notes");
        }
        for args in commands {
            try_git(&scene, args);
        }
        refused(
            &scene,
            "needs-user",
            &[&format!("a {name} is under way"), "Finish or abort"],
            || scene.tdd(&["--here"]),
        );
        if name == "merge" {
            // A run with a worktree of its own does not need the checkout, and leaves it in its merge.
            scene.agent(&Agent::default());
            let before = Picture::of(&scene.repo()).without(OF_A_RUN);
            scene.tdd(&["--plan-only"]).expect(0);
            before.is_still(&Picture::of(&scene.repo()).without(OF_A_RUN));
        }
    }
}

#[test]
fn a_second_conductor_is_told_who_is_at_work() {
    for here in [&[][..], &["--here"]] {
        let scene = Scene::new();
        let blocked = scene.path("blocked");
        scene.agent(&Agent {
            plan: format!("touch '{}'; sleep 1000", blocked.display()),
            ..Agent::default()
        });
        let mut command = scene.command(VERI);
        command.args(scene.arguments()).args(here);
        let first = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("the planner is at work", || blocked.exists());
        let before = Picture::of(&scene.repo());
        let second = scene.tdd(here).expect(13);
        let who = format!("already running: veri tdd 42 (process {} on ", first.id());
        assert!(second.last().starts_with(&who), "{}", second.err);
        assert!(second.last().contains("veri stop 42"), "{}", second.err);
        before.is_still(&Picture::of(&scene.repo()));
        scene.veri(&["stop", "42", "--mode", "now"]).expect(0);
        wait(first).expect(12);
        scene.nothing_is_left_running();
    }
}

#[test]
fn here_refuses_a_dirty_checkout_and_names_the_paths() {
    let scene = scene();
    scene.write("src/lib.sh", "greet() { echo changed; }\n");
    scene.write("scratch file", "mine\n");
    scene.write(".gitignore", "ignored\n");
    scene.git(&["add", ".gitignore"]);
    scene.write("ignored", "nobody minds\n");
    scene.write(".veri.toml", "[limits]\nrevisions = 2\n");
    let ran = refused(
        &scene,
        "needs-user",
        &[
            "  src/lib.sh\n",
            "  scratch file\n",
            "  .gitignore\n",
            "leave --here out",
        ],
        || scene.tdd(&["--here"]),
    );
    assert!(
        !ran.err.contains("  ignored") && !ran.err.contains(".veri.toml"),
        "{}",
        ran.err
    );
}

#[test]
fn a_lock_of_a_dead_git_stops_here_and_not_a_run_of_its_own() {
    let scene = scene();
    fs::write(scene.repo().join(".git/index.lock"), "").unwrap();
    refused(
        &scene,
        "needs-user",
        &["index.lock", "remove the file"],
        || scene.tdd(&["--here"]),
    );
    scene.agent(&Agent::default());
    scene.tdd(&["--plan-only"]).expect(0);
    assert!(scene.repo().join(".git/index.lock").exists());
    fs::remove_file(scene.repo().join(".git/index.lock")).unwrap();
    // Here, too, a repository that ignores .tdd/ gets its ledger, and is clean afterwards.
    scene.git(&[
        "worktree",
        "remove",
        "--force",
        scene.worktree().to_str().unwrap(),
    ]);
    scene.git(&["branch", "-D", "tdd/issue-42"]);
    scene.write(".gitignore", ".tdd/\n");
    scene.commit_all("ignore");
    scene.tdd(&["--here", "--plan-only"]).expect(0);
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
    assert_eq!(scene.git(&["ls-files", ".tdd"]), ".tdd/issue-42.md");
}

#[test]
fn runtime_files_that_somebody_committed_are_named_and_never_taken_for_the_runs_own() {
    let forged = "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"run\":\"r\",\"issue\":42,\"step\":null,\
        \"title\":\"\",\"phase\":null,\"actor\":\"conductor\",\"attempt\":null,\"event\":\"run-start\",\"skill_commit\":null}\n";
    for (name, text) in [
        (".tdd/events.jsonl", forged),
        (".tdd/stop", "now\n"),
        (".tdd/runs/x.exit", "{}"),
    ] {
        let scene = scene();
        scene.write(name, text);
        scene.git(&["add", "-f", name]);
        scene.git(&["commit", "-q", "-m", "runtime files"]);
        let named = name.split('/').take(2).collect::<Vec<_>>().join("/");
        for here in [&[][..], &["--here"]] {
            refused(&scene, "needs-user", &[&named, "git rm"], || {
                scene.tdd(here)
            });
        }
        // The ledger of another issue is no runtime file, nor is what a person keeps beside it; and what was committed can be taken out again.
        scene.git(&["rm", "-q", "-r", "--cached", name]);
        fs::remove_dir_all(scene.repo().join(".tdd")).unwrap();
        scene.write(".tdd/issue-7.md", "a ledger\n");
        scene.write(".tdd/.gitignore", "*\n!issue-*.md\n");
        scene.git(&["add", "-f", ".tdd/issue-7.md", ".tdd/.gitignore"]);
        scene.git(&["commit", "-q", "-m", "taken out"]);
        scene.agent(&Agent::default());
        scene.tdd(&["--plan-only"]).expect(0);
    }
}

#[test]
fn runtime_files_on_the_base_or_on_the_issue_branch_are_named_too() {
    let scene = Scene::new();
    scene.git(&["checkout", "-q", "-b", "side"]);
    std::os::unix::fs::symlink("../tmp", scene.repo().join(".tdd")).unwrap();
    scene.git(&["add", "-f", ".tdd"]);
    scene.git(&["commit", "-q", "-m", "a link"]);
    scene.git(&["checkout", "-q", "main"]);
    let words = [".tdd", "git rm"];
    refused(&scene, "needs-user", &words, || {
        scene.tdd(&["--base", "side"])
    });
    scene.tdd(&["--plan-only"]).expect(0);
    let tree = scene.worktree();
    fs::write(tree.join(".tdd/stop"), "now\n").unwrap();
    scene.git_in(&tree, &["add", "-f", ".tdd/stop"]);
    scene.git_in(&tree, &["commit", "-q", "-m", "a stop"]);
    refused(&scene, "needs-user", &[".tdd/stop", "git rm"], || {
        scene.tdd(&[])
    });
    scene.git_in(&tree, &["rm", "-q", "--cached", ".tdd/stop"]);
    scene.git_in(&tree, &["commit", "-q", "-m", "no stop"]);
    fs::remove_file(tree.join(".tdd/stop")).unwrap();
    scene.tdd(&[]).expect(0);
}
