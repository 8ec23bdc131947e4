//! Every refusal of preflight, as a user meets it: the cause, the exit code, a message that says what to do,
//! no leaf launched, no branch made, and the checkout byte for byte what it was.

use crate::picture::Picture;
use crate::scene::{Agent, Ran, Scene, VERI, executable, finish, wait};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A scene whose agent leaves a trace when it is launched: in preflight it never is.
fn scene() -> Scene {
    let scene = Scene::new();
    watch_launches(&scene);
    scene
}

fn watch_launches(scene: &Scene) {
    let text = format!("#!/bin/sh\ntouch '{}'\n", scene.path("launched").display());
    fs::write(scene.path("agent"), text).unwrap();
    executable(&scene.path("agent"));
}

/// `veri tdd 42` with some of the scene's flags replaced (Some) or left out (None).
fn tdd(scene: &Scene, flags: &[(&str, Option<&str>)], more: &[&str]) -> Ran {
    let mut arguments = scene.arguments();
    for (flag, value) in flags {
        let at = arguments.iter().position(|a| a == flag).expect("a flag");
        match value {
            Some(value) => arguments[at + 1] = (*value).to_owned(),
            None => drop(arguments.drain(at..at + 2)),
        }
    }
    let mut command = scene.command(VERI);
    command.args(arguments).args(more);
    finish(command)
}

/// Runs something that must be refused: with this cause, these words, and nothing touched.
#[track_caller]
fn refused(scene: &Scene, cause: &str, words: &[&str], run: impl FnOnce() -> Ran) -> Ran {
    let before = Picture::of(&scene.repo());
    let mut ran = run().bails(cause);
    for word in words {
        ran = ran.says(word);
    }
    before.is_still(&Picture::of(&scene.repo()));
    assert!(!scene.path("launched").exists(), "a leaf was launched");
    ran
}

/// A git call that may fail, as one that stops at a conflict does.
fn try_git(scene: &Scene, args: &[&str]) {
    let out = scene.command("git").args(args).output().unwrap();
    drop(out);
}

/// Waits until something holds, or fails the test.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A bare repository as `origin` of the scene's, which has main.
fn with_origin(scene: &Scene) {
    let origin = scene.path("origin.git");
    scene.git(&[
        "init",
        "-q",
        "--bare",
        "-b",
        "main",
        origin.to_str().unwrap(),
    ]);
    scene.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
    scene.git(&["push", "-q", "origin", "main"]);
}

// 1: git and the repository.

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
            let mut path = tools.clone().into_os_string();
            path.push(":");
            path.push(std::env::var_os("PATH").unwrap());
            let mut command = scene.command(VERI);
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

/// What a run adds to the repository: its branch and its refs.
const OF_A_RUN: &[&str] = &[
    ".git/refs/heads/tdd",
    ".git/logs/refs/heads/tdd",
    ".git/refs/veri",
    ".git/logs/refs/veri",
];

// 2: the lock.

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

// 3: a dirty checkout.

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
}

// 4: the issue.

#[test]
fn an_issue_that_is_missing_closed_a_pull_request_or_blank() {
    let scene = scene();
    let body = "`greet Ann` prints `hello Ann`.\n";
    scene.issue("title: Greet\nstate: closed", body);
    refused(
        &scene,
        "needs-user",
        &["Issue 42 is closed", "Reopen"],
        || scene.tdd(&[]),
    );
    scene.issue(
        "title: Greet",
        " \n\t\n<!-- nothing that a reader sees -->\n",
    );
    refused(
        &scene,
        "needs-user",
        &["The body of issue 42 is blank", "veri tdd 42"],
        || scene.tdd(&[]),
    );
    scene.issue("state: open", body);
    refused(
        &scene,
        "needs-user",
        &["title", "issues/42/issue.md"],
        || scene.tdd(&[]),
    );
    fs::write(
        scene.path("forge/issues/42/issue.md"),
        b"---\ntitle: x\n---\n\n\xff\xfe",
    )
    .unwrap();
    refused(
        &scene,
        "needs-user",
        &["issues/42/issue.md", "UTF-8"],
        || scene.tdd(&[]),
    );
    fs::remove_dir_all(scene.path("forge/issues/42")).unwrap();
    refused(
        &scene,
        "needs-user",
        &["is not there", "veri tdd ./issue.md"],
        || scene.tdd(&[]),
    );
    fs::create_dir_all(scene.path("forge/pulls")).unwrap();
    fs::write(
        scene.path("forge/pulls/42.md"),
        "---\ntitle: x\nhead: a\nbase: main\ndraft: true\nstate: open\n---\n\nx\n",
    )
    .unwrap();
    refused(&scene, "needs-user", &["pull request"], || scene.tdd(&[]));
    assert!(
        scene.comments().is_empty(),
        "nobody's text was trusted: {:?}",
        scene.comments()
    );
}

#[test]
fn a_stranger_s_issue_is_not_worked_on_under_ci_and_gets_no_comment() {
    let mut scene = scene();
    scene.env.push(("CI".into(), "true".into()));
    scene.issue(
        "title: Greet\nauthor: mallory\nauthor_association: NONE",
        "`greet Ann` prints `hello Ann`.\n",
    );
    refused(&scene, "needs-user", &["mallory", "--trust"], || {
        scene.tdd(&[])
    });
    assert!(scene.comments().is_empty());
    // A person at a terminal vouches for it.
    scene.env.clear();
    scene.issue(
        "title: Greet\nauthor: mallory\nauthor_association: NONE",
        "`greet Ann` prints `hello Ann`. `bye` prints `bye`.\n",
    );
    scene.agent(&Agent::default());
    scene.tdd(&["--plan-only"]).expect(0);
}

#[test]
fn an_issue_of_a_mebibyte_is_worked_on() {
    let scene = Scene::new();
    let mut body = "`greet Ann` prints `hello Ann`.\n".to_owned();
    body.push_str(&"All work and no play {\"nonce\": \n".repeat(32 * 1024));
    body.push_str("`bye` prints `bye`.\n");
    assert!(body.len() > 1024 * 1024);
    scene.issue("title: Greet people by name", &body);
    let prompts = scene.agent_keeping_prompts(&Agent::default());
    scene.tdd(&["--plan-only"]).expect(0);
    assert!(fs::metadata(prompts.join("planner-1")).unwrap().len() > 1024 * 1024);
}

// 5: the base and the issue branch.

#[test]
fn a_base_that_cannot_be_worked_from() {
    let scene = scene();
    scene.git(&["checkout", "-q", "--detach"]);
    refused(
        &scene,
        "needs-user",
        &["HEAD is detached", "--base"],
        || scene.tdd(&[]),
    );
    refused(&scene, "needs-user", &["gone", "--base"], || {
        scene.tdd(&["--base", "gone"])
    });
    refused(&scene, "needs-user", &["--base"], || {
        scene.tdd(&["--base=--upload-pack=touch launched"])
    });
    scene.git(&["checkout", "-q", "-b", "tdd/issue-7", "main"]);
    refused(&scene, "needs-user", &["tdd/issue-7", "--base"], || {
        scene.tdd(&[])
    });
}

#[test]
fn a_base_that_is_not_where_its_remote_is() {
    let scene = scene();
    with_origin(&scene);
    scene.commit_all("only here");
    refused(
        &scene,
        "needs-user",
        &["main is ahead of origin/main", "--base"],
        || scene.tdd(&[]),
    );
    scene.git(&["push", "-q", "origin", "main"]);
    scene.git(&["reset", "-q", "--hard", "HEAD~1"]);
    scene.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    scene.commit_all("another");
    refused(
        &scene,
        "needs-user",
        &[
            "main is diverged from origin/main",
            "1 commits are only here",
        ],
        || scene.tdd(&[]),
    );
    // Behind: the remote's tip is what counts, and the local branch stays where it is.
    scene.git(&["reset", "-q", "--hard", "HEAD~1"]);
    scene.agent(&Agent::default());
    let before = Picture::of(&scene.repo()).without(OF_A_RUN);
    let ran = scene.tdd(&["--plan-only"]).expect(0);
    assert!(
        ran.out.contains("1 commits behind origin/main"),
        "{}",
        ran.out
    );
    assert_eq!(
        scene.git(&["rev-parse", "tdd/issue-42~1"]),
        scene.git(&["rev-parse", "origin/main"])
    );
    before.is_still(&Picture::of(&scene.repo()).without(OF_A_RUN));
}

#[test]
fn a_remote_that_does_not_answer() {
    let scene = scene();
    scene.git(&[
        "remote",
        "add",
        "origin",
        scene.path("nowhere.git").to_str().unwrap(),
    ]);
    refused(
        &scene,
        "git-failed",
        &["Fetching", "origin", "nowhere.git"],
        || scene.tdd(&[]),
    );
}

#[test]
fn an_issue_branch_that_veri_cannot_go_on_with() {
    let scene = scene();
    scene.git(&["branch", "tdd/issue-42"]);
    scene.git(&["checkout", "-q", "tdd/issue-42"]);
    refused(
        &scene,
        "needs-user",
        &["tdd/issue-42 is checked out in", "/repo"],
        || scene.tdd(&["--base", "main"]),
    );
    scene.commit_all("somebody's own");
    scene.git(&["checkout", "-q", "main"]);
    refused(
        &scene,
        "needs-user",
        &["no ledger", "Rename or delete"],
        || scene.tdd(&[]),
    );
    let elsewhere = scene.path("elsewhere");
    scene.git(&[
        "worktree",
        "add",
        "-q",
        elsewhere.to_str().unwrap(),
        "tdd/issue-42",
    ]);
    refused(
        &scene,
        "needs-user",
        &["checked out in", "/elsewhere"],
        || scene.tdd(&[]),
    );
}

#[test]
fn an_issue_branch_that_has_diverged_from_its_remote() {
    let scene = scene();
    with_origin(&scene);
    scene.git(&["checkout", "-q", "-b", "tdd/issue-42"]);
    scene.commit_all("there");
    scene.git(&["push", "-q", "origin", "tdd/issue-42"]);
    scene.git(&["reset", "-q", "--hard", "main"]);
    scene.commit_all("here");
    scene.git(&["checkout", "-q", "main"]);
    refused(
        &scene,
        "needs-user",
        &["has diverged", "1 commits are only here, 1 only there"],
        || scene.tdd(&[]),
    );
}

// 6: the test command.

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

// 7: agents.

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

// 8: commits.

#[test]
fn nobody_to_commit_as() {
    let scene = scene();
    fs::write(
        scene.path("home/.gitconfig"),
        "[user]\nuseConfigOnly = true\n",
    )
    .unwrap();
    refused(
        &scene,
        "needs-user",
        &["git does not know who commits", "user.email"],
        || scene.tdd(&[]),
    );
}

#[test]
fn a_signing_key_that_does_not_exist() {
    let scene = scene();
    scene.git(&["config", "commit.gpgSign", "true"]);
    scene.git(&["config", "gpg.format", "ssh"]);
    scene.git(&[
        "config",
        "user.signingKey",
        scene.path("no.key").to_str().unwrap(),
    ]);
    refused(
        &scene,
        "needs-user",
        &["cannot be signed", "no.key"],
        || scene.tdd(&[]),
    );
}

#[test]
fn hooks_that_no_commit_of_veri_s_can_pass() {
    let scene = scene();
    let hook = |name: &str, text: &str| {
        let path = scene.repo().join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        executable(&path);
    };
    hook(
        "commit-msg",
        "#!/bin/sh\ngrep -q '^JIRA-' \"$1\" || { echo 'no ticket number' >&2; exit 1; }\n",
    );
    refused(
        &scene,
        "needs-user",
        &[
            "commit-msg hook refuses",
            "no ticket number",
            "commit.subject",
        ],
        || scene.tdd(&[]),
    );
    scene.write(".veri.toml", "[limits]\nhook_timeout = 1\n");
    hook("commit-msg", "#!/bin/sh\nsleep 1000\n");
    refused(
        &scene,
        "needs-user",
        &["commit-msg hook does not end"],
        || scene.tdd(&[]),
    );
    scene.nothing_is_left_running();
    fs::remove_file(scene.repo().join(".git/hooks/commit-msg")).unwrap();
    hook("pre-commit", "#!/no/such/interpreter\n");
    refused(
        &scene,
        "needs-user",
        &["pre-commit hook cannot run"],
        || scene.tdd(&[]),
    );
}

// 10: the ground.

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

// Configuration and the command line.

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

// A run of its own, and the checkout that it was started from.

#[test]
fn a_checkout_in_full_use_is_byte_for_byte_what_it_was() {
    let scene = Scene::new();
    // The repository ignores .tdd/ itself: the ledger is committed all the same.
    scene.write(".gitignore", ".tdd/\n*.log\n");
    scene.write("kept", "kept\n");
    scene.commit_all("ignore");
    scene.write("kept", "stashed\n");
    scene.git(&["stash", "-q"]);
    scene.write("src/lib.sh", "greet() { echo half of my own change; }\n");
    scene.write("kept", "staged\n");
    scene.git(&["add", "kept"]);
    scene.write("kept", "staged, and then changed\n");
    scene.write("scratch/notes", "mine\n");
    scene.write("build.log", "ignored\n");
    scene.write("-leading", "mine\n");
    std::os::unix::fs::symlink("/nowhere", scene.repo().join("dangling")).unwrap();
    fs::write(scene.repo().join(".git/index.lock"), "").unwrap();
    scene.agent(&Agent {
        // A leaf that uses the stash, branches and tags of the repository that it shares with the person.
        green: format!(
            "{}\necho mine > stashed.txt; git add -A; git stash -q; git stash apply -q; git tag leaf-tag; git branch leaf-branch",
            Agent::default().green
        ),
        ..Agent::default()
    });
    let before = Picture::of(&scene.repo()).without(OF_A_RUN);
    let stash = scene.git(&["stash", "list"]);
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out
            .contains("uncommitted changes of the checkout are not part of this run"),
        "{}",
        ran.out
    );
    before.is_still(&Picture::of(&scene.repo()).without(OF_A_RUN));
    assert_eq!(scene.git(&["stash", "list"]), stash);
    assert_eq!(scene.git(&["tag"]), "");
    assert!(!scene.git(&["branch", "--list"]).contains("leaf-branch"));
    let files = scene.git(&["ls-tree", "-r", "--name-only", "tdd/issue-42"]);
    assert!(
        files.contains(".tdd/issue-42.md") && !files.contains(".tdd/events.jsonl"),
        "{files}"
    );
    assert!(
        !files.contains("scratch") && !files.contains("-leading"),
        "{files}"
    );
    scene.nothing_is_left_running();
}

#[test]
fn the_state_folder_that_cannot_be_written() {
    let scene = scene();
    let state = scene.path("state");
    fs::remove_dir(&state).unwrap();
    fs::write(&state, "a file").unwrap();
    refused(&scene, "storage-failed", &["/state", "run again"], || {
        scene.tdd(&[])
    });
    assert!(Path::new(&state).is_file());
}
