//! A person's hooks, filters and signing: git as people have it set up.

use crate::branch::{sent_back, walk, was_sent_back};
use crate::scene::{Agent, Scene, executable};
use std::fs;
use std::path::PathBuf;
use veri::role::Phase;

/// Installs a hook in the person's repository.
pub fn hook(scene: &Scene, name: &str, script: &str) -> PathBuf {
    let file = scene.repo().join(".git/hooks").join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    executable(&file);
    file
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
fn what_hooks_leave_in_sessions_of_their_own_is_ended_and_what_they_write_is_not_held() {
    let scene = Scene::new();
    let daemon = "setsid sh -c 'sleep 1000' < /dev/null > /dev/null 2>&1 &";
    for name in ["pre-commit", "commit-msg", "post-commit"] {
        hook(
            &scene,
            name,
            &format!("{daemon}\nyes loud | head -c 20000000"),
        );
    }
    scene.agent(&Agent {
        plan: crate::watching::ONE_STEP.to_owned(),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    scene.nothing_is_left_running();
    walk(&scene);
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_hook_left_running_is_no_zombie_for_the_rest_of_the_run() {
    let scene = Scene::new();
    hook(&scene, "pre-commit", "sleep 1000 &");
    let found = scene.path("zombies");
    let look = format!(
        "veri=$(cut -d' ' -f4 /proc/$PPID/stat); grep -l \"^PPid:.$veri$\" /proc/[0-9]*/status 2>/dev/null | \
         xargs grep -l '^State:.Z' 2>/dev/null | wc -l >> '{}'; ",
        found.display()
    );
    let mut agent = Agent::default();
    agent.green.insert_str(0, &look);
    scene.agent(&agent);
    scene.tdd(&[]).expect(0);
    let found = fs::read_to_string(found).unwrap();
    assert_eq!(found.split_whitespace().collect::<Vec<_>>(), ["0", "0"]);
}
