//! A person's hooks, filters, signing and remotes: git as people have it set up.

use crate::branch::{sent_back, walk, walk_with, was_sent_back};
use crate::scene::{Agent, Scene, executable};
use std::fs;
use std::path::{Path, PathBuf};
use veri::role::Phase;

/// Installs a hook in the person's repository.
fn hook(scene: &Scene, name: &str, script: &str) -> PathBuf {
    let file = scene.repo().join(".git/hooks").join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    executable(&file);
    file
}

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
fn what_a_pre_commit_hook_refuses_goes_to_the_developer_in_its_words() {
    let scene = Scene::new();
    hook(
        &scene,
        "pre-commit",
        "if git diff --cached | grep -q TODO; then echo \"no TODO in this house: $(git diff --cached --name-only)\" >&2; exit 1; fi",
    );
    let prompt = scene.path("prompt");
    scene.agent(&Agent {
        red: format!("{}\ncp .tdd/runs/$VERI_LAUNCH.prompt {}-$VERI_ATTEMPT\n[ $VERI_ATTEMPT != 1 ] || [ -e tests/bye.sh ] || echo '# TODO' >> tests/name.sh", Agent::default().red, prompt.display()),
        green: format!("{}\n[ $VERI_ATTEMPT != 1 ] || [ -e tests/bye.sh ] || echo '# TODO' >> src/lib.sh", Agent::default().green),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    was_sent_back(
        &scene,
        1,
        Phase::Red,
        &["no TODO in this house: tests/name.sh"],
    );
    was_sent_back(&scene, 1, Phase::Green, &["no TODO in this house"]);
    let second = fs::read_to_string(scene.path("prompt-2")).unwrap();
    assert!(second.contains("no TODO in this house"), "{second}");
    walk(&scene);
}

#[test]
fn what_a_pre_commit_hook_formats_belongs_to_the_candidate() {
    let scene = Scene::new();
    hook(
        &scene,
        "pre-commit",
        "for f in $(git diff --cached --name-only --diff-filter=AM -- '*.sh'); do sed -i -e '/# formatted/d' \"$f\"; echo '# formatted' >> \"$f\"; git add \"$f\"; done",
    );
    scene.tdd(&[]).expect(0);
    assert_eq!(sent_back(&scene, 1, Phase::Red), Vec::<String>::new());
    for file in ["tests/name.sh", "tests/bye.sh", "src/lib.sh"] {
        let text = scene.git(&["show", &format!("tdd/issue-42:{file}")]);
        assert_eq!(text.matches("# formatted").count(), 1, "{file}: {text}");
    }
    walk(&scene);
}

#[test]
fn a_hook_that_never_gives_the_same_twice_ends_the_run() {
    let scene = Scene::new();
    hook(
        &scene,
        "pre-commit",
        "f=src/lib.sh; git diff --cached --quiet -- src || { echo \"# $(date +%N)$$\" >> $f; git add $f; }",
    );
    scene
        .tdd(&[])
        .bails("git-failed")
        .says("changes what is committed each time");
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
    assert_eq!(
        scene.git_in(&scene.worktree(), &["status", "--porcelain"]),
        ""
    );
}

#[test]
fn a_hook_that_hangs_is_ended_and_named() {
    let scene = Scene::new();
    scene.write(".veri.toml", "[limits]\nhook_timeout = 2\n");
    let file = hook(&scene, "pre-commit", "sleep 1000");
    scene
        .tdd(&[])
        .bails("git-failed")
        .says("limits.hook_timeout");
    scene.nothing_is_left_running();
    // Only on some content: the developer is told.
    fs::write(
        &file,
        "#!/bin/sh\ngit diff --cached | grep -q SLOW && sleep 1000 & wait; exit 0\n",
    )
    .unwrap();
    scene.agent(&Agent {
        red: format!("{}\nif [ $VERI_ATTEMPT = 1 ] && [ ! -e tests/bye.sh ]; then echo '# SLOW' >> tests/name.sh; fi", Agent::default().red),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    was_sent_back(&scene, 1, Phase::Red, &["did not end within 2 seconds"]);
    walk(&scene);
    scene.nothing_is_left_running();
}

#[test]
fn a_hook_that_cannot_run_here_is_never_skipped() {
    let scene = Scene::new();
    let file = hook(&scene, "pre-commit", "exit 0");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    scene.tdd(&[]).bails("needs-user").says("not executable");
    fs::remove_file(&file).unwrap();
    scene.git(&["config", "core.hooksPath", ".husky/_"]);
    scene.tdd(&[]).bails("needs-user").says(".husky/_");
    scene.git(&["config", "--unset", "core.hooksPath"]);
    hook(&scene, "pre-commit", "no-such-program --at all");
    scene.tdd(&[]).bails("needs-user").says("no-such-program");
    hook(&scene, "pre-commit", "exit 0");
    hook(&scene, "commit-msg", "echo 'JIRA key missing' >&2; exit 1");
    scene.tdd(&[]).bails("needs-user").says("JIRA key missing");
    // A template of subjects answers that.
    hook(
        &scene,
        "commit-msg",
        "head -1 \"$1\" | grep -q '^ACME-42 ' || { echo 'JIRA key missing' >&2; exit 1; }",
    );
    scene.write(
        ".veri.toml",
        "[commit]\nsubject = \"ACME-{{ issue }} {{ subject }}\"\n",
    );
    scene.tdd(&["--new-templates"]).expect(0);
    assert_eq!(
        scene.subjects(),
        [
            "ACME-42 plan: issue 42 in 2 steps",
            "ACME-42 greet takes a name",
            "ACME-42 bye says bye"
        ]
    );
}

#[test]
fn what_a_hook_that_broke_down_could_not_look_at_is_developed_again() {
    let scene = Scene::new();
    let broken = scene.path("broken");
    hook(
        &scene,
        "pre-commit",
        &format!("[ ! -e {} ] || exec no-such-program", broken.display()),
    );
    scene.agent(&Agent {
        green: format!("{}\ntouch {}", Agent::default().green, broken.display()),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("needs-user").says("no-such-program");
    assert!(
        scene
            .veri(&["discarded", "42"])
            .expect(0)
            .out
            .contains("src/lib.sh")
    );
    fs::remove_file(&broken).unwrap();
    scene.agent(&Agent::default());
    scene.tdd(&[]).expect(0);
    assert_eq!(sent_back(&scene, 1, Phase::Green), Vec::<String>::new());
    walk(&scene);
}

#[test]
fn a_hook_that_touches_the_ledger_is_told_to_leave_it_or_kept_when_it_does_no_harm() {
    let scene = Scene::new();
    // It refuses a file by its name.
    let file = hook(
        &scene,
        "pre-commit",
        "if git diff --cached --name-only | grep -q '^.tdd/'; then echo 'do not commit .tdd/issue-42.md' >&2; exit 1; fi",
    );
    scene.tdd(&[]).bails("needs-user").says(".tdd/issue-42.md");
    // It takes out what the ledger is.
    fs::write(
        &file,
        "#!/bin/sh\necho broken > .tdd/issue-42.md; git add -f .tdd/issue-42.md\n",
    )
    .unwrap();
    scene.tdd(&[]).bails("needs-user").says(".tdd/issue-42.md");
    // It unticks.
    fs::write(&file, "#!/bin/sh\nif [ -e .tdd/issue-42.md ]; then sed -i 's/- \\[x\\]/- [ ]/' .tdd/issue-42.md; git add -f .tdd/issue-42.md; fi\n").unwrap();
    scene.tdd(&[]).bails("needs-user").says(".tdd/issue-42.md");
    // It adds a newline at the end, as formatters do.
    fs::write(&file, "#!/bin/sh\nif [ -e .tdd/issue-42.md ]; then echo >> .tdd/issue-42.md; git add -f .tdd/issue-42.md; fi\n").unwrap();
    scene.tdd(&[]).expect(0);
    walk(&scene);
}

#[test]
fn filters_and_line_endings_of_the_person_are_applied() {
    let scene = Scene::new();
    scene.git(&["config", "core.autocrlf", "input"]);
    scene.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    scene.git(&["config", "filter.upper.smudge", "tr A-Z a-z"]);
    scene.git(&["config", "filter.fussy.clean", "grep -v BAD"]);
    scene.git(&["config", "filter.fussy.required", "true"]);
    scene.write(
        ".gitattributes",
        "*.up filter=upper\n*.fussy filter=fussy\n",
    );
    scene.commit_all("filters");
    scene.agent(&Agent {
        red: format!("{}\nif [ $VERI_ATTEMPT = 1 ]; then echo BAD > x.fussy; else rm -f x.fussy; fi; printf 'one\\r\\ntwo\\r\\n' > notes.txt; echo loud > loud.up", Agent::default().red),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    was_sent_back(&scene, 1, Phase::Red, &["x.fussy"]);
    assert_eq!(scene.git(&["show", "tdd/issue-42:loud.up"]), "LOUD");
    assert_eq!(scene.git(&["show", "tdd/issue-42:notes.txt"]), "one\ntwo");
    walk(&scene);
}

#[test]
fn commits_are_signed_as_the_person_signs() {
    let scene = Scene::new();
    let key = scene.path("home/key");
    let made = scene
        .command("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: there is no ssh-keygen here");
        return;
    }
    let public = fs::read_to_string(scene.path("home/key.pub")).unwrap();
    fs::write(
        scene.path("home/allowed"),
        format!("pat@example.com {public}"),
    )
    .unwrap();
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("commit.gpgsign", "true"),
        ("user.signingkey", key.to_str().unwrap()),
        (
            "gpg.ssh.allowedSignersFile",
            scene.path("home/allowed").to_str().unwrap(),
        ),
    ] {
        scene.git(&["config", name, value]);
    }
    scene.tdd(&[]).expect(0);
    let signed = scene.git(&["log", "--format=%G?", "main..tdd/issue-42"]);
    assert_eq!(signed.replace('\n', ""), "GGG");
    walk(&scene);
    // A key that is not there stops the next run before any work.
    fs::remove_file(&key).unwrap();
    scene.git(&[
        "worktree",
        "remove",
        "--force",
        scene.worktree().to_str().unwrap(),
    ]);
    scene.git(&["branch", "-D", "tdd/issue-42"]);
    scene.tdd(&[]).bails("needs-user").says("sign");
    assert_eq!(scene.git(&["branch", "--list", "tdd/issue-42"]), "");
}

#[test]
fn each_step_is_pushed_and_a_pre_push_hook_that_refuses_is_heard_at_the_end() {
    let scene = Scene::new();
    let bare = origin(&scene);
    let seen = scene.path("seen");
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
        // By hand in the worktree, on the branch: other files, and a test of their own.
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
fn a_commit_that_a_person_makes_under_a_step_about_to_be_committed_is_not_undone() {
    let scene = Scene::new();
    let once = scene.path("once");
    let by_hand = format!(
        "if [ $VERI_PHASE = green ] && [ ! -e {0} ]; then touch {0}; t=$(ls -d {1}/*/work/issue-42); git -C \"$t\" stash -q -u; echo mine > \"$t/mine.txt\"; git -C \"$t\" add mine.txt; git -C \"$t\" -c user.name=Pat -c user.email=pat@example.com commit -qm 'by hand: mine'; fi",
        once.display(),
        scene.path("state").display()
    );
    scene.agent(&Agent {
        verify: format!("{by_hand}\n{}", crate::scene::APPROVE),
        ..Agent::default()
    });
    scene
        .tdd(&[])
        .bails("git-failed")
        .says("while a step was under way");
    assert_eq!(
        scene.subjects(),
        ["plan: issue 42 in 2 steps", "by hand: mine"]
    );
    scene.tdd(&[]).expect(0);
    walk_with(&scene, &["by hand: mine"]);
    assert_eq!(scene.git(&["show", "tdd/issue-42:mine.txt"]), "mine");
}
