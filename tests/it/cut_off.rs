//! What was done behind a conductor that was killed meanwhile: the next start decides on it as the one that was killed
//! would have done.

use crate::branch::{sent_back, walk};
use crate::hooks::hook;
use crate::scene::{APPROVE, Agent, Scene};
use crate::scripted::KILL_CONDUCTOR;
use crate::watching::{ONE_STEP, noting, plain};
use veri::event::Kind;
use veri::role::Phase;

/// What every verifier answered, in order.
fn verdicts(scene: &Scene) -> Vec<String> {
    let lines = scene.lines();
    let verdicts = lines.iter().filter(|l| l.event == Kind::Verdict);
    verdicts.map(|l| l.text("verdict").to_owned()).collect()
}

#[test]
fn a_verifier_that_meddles_with_git_approves_nothing_whether_or_not_its_conductor_is_killed() {
    for killed in [false, true] {
        let scene = plain();
        // A sandbox keeps a verifier from all of it.
        scene.configure_alone("sandbox = \"off\"\n");
        let (once, git) = (scene.path("once"), scene.repo().join(".git"));
        scene.agent(&noting(Agent {
            plan: ONE_STEP.to_owned(),
            red: format!(
                "{}\n[ \"$VERI_ATTEMPT\" = 1 ] || echo '# again' >> tests/name.sh",
                Agent::default().red
            ),
            verify: format!(
                "if [ ! -e '{0}' ]; then touch '{0}'; echo 'exit 0' > '{1}/hooks/post-merge'; {2}; fi\n{APPROVE}",
                once.display(),
                git.display(),
                if killed { KILL_CONDUCTOR } else { ":" },
            ),
            ..Agent::default()
        }));
        if killed {
            assert_eq!(scene.tdd(&[]).code, None);
        }
        scene.tdd(&[]).expect(0);
        assert_eq!(
            verdicts(&scene),
            ["reject", "approve", "approve"],
            "{killed}"
        );
        let why = sent_back(&scene, 1, Phase::Red).join("\n");
        assert!(why.contains("post-merge was written"), "{killed}: {why}");
        walk(&scene);
        scene.nothing_is_left_running();
    }
}

/// A hook that, in the commit of the step itself, changes the code once more.
fn meddles(scene: &Scene, how: &str) {
    let code = "git diff --cached --quiet HEAD -- src";
    hook(
        scene,
        "pre-commit",
        &format!(
            "case \"$GIT_INDEX_FILE\" in *veri-index) exit 0;; esac\n{code} || {{ {how}; git add src; }}"
        ),
    );
}

/// A start that is killed when git has made the commit of the step, and before anybody has looked at it.
fn killed_in_the_commit(scene: &Scene) {
    let code = "git diff --quiet HEAD~1 HEAD -- src";
    hook(
        scene,
        "post-commit",
        &format!("{code} || {{ rm \"$0\"; {KILL_CONDUCTOR}; }}"),
    );
    assert_eq!(scene.tdd(&[]).code, None);
}

#[test]
fn a_commit_that_a_hook_spoilt_is_sent_back_whether_or_not_the_conductor_is_killed_in_it() {
    for killed in [false, true] {
        let scene = plain();
        let spoilt = scene.path("spoilt").display().to_string();
        meddles(
            &scene,
            &format!("[ -e '{spoilt}' ] || {{ touch '{spoilt}'; echo 'exit 1' >> src/lib.sh; }}"),
        );
        if killed {
            killed_in_the_commit(&scene);
        }
        scene.tdd(&[]).expect(0);
        let why = sent_back(&scene, 1, Phase::Green).join("\n");
        assert!(why.contains("sh run-tests.sh"), "{killed}: {why}");
        walk(&scene);
    }
}

#[test]
fn a_persons_edit_of_the_ledger_outlives_a_commit_that_is_taken_back() {
    let scene = plain();
    let spoilt = scene.path("spoilt").display().to_string();
    meddles(
        &scene,
        &format!("[ -e '{spoilt}' ] || {{ touch '{spoilt}'; echo 'exit 1' >> src/lib.sh; }}"),
    );
    killed_in_the_commit(&scene);
    let ledger = scene.worktree().join(".tdd/issue-42.md");
    let text = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, format!("{text}\nA note of mine.\n")).unwrap();
    scene.tdd(&[]).expect(0);
    let committed = scene.git(&["show", "tdd/issue-42:.tdd/issue-42.md"]);
    assert!(committed.contains("A note of mine."), "{committed}");
    walk(&scene);
}

#[test]
fn a_commit_that_a_hook_made_another_is_checked_once_more_whether_or_not_the_conductor_is_killed_in_it()
 {
    for killed in [false, true] {
        let scene = plain();
        meddles(
            &scene,
            "grep -q stamped src/lib.sh || echo '# stamped' >> src/lib.sh",
        );
        if killed {
            killed_in_the_commit(&scene);
        }
        scene.tdd(&[]).expect(0);
        let lines = scene.lines();
        let rechecks = lines.iter().filter(|l| l.fields.contains_key("recheck"));
        assert!(
            rechecks.count() > 0,
            "{killed}: the stamped tree is checked"
        );
        walk(&scene);
    }
}

#[test]
fn what_a_leaf_did_to_git_counts_although_the_conductor_is_killed_while_it_is_undone() {
    let mut scene = plain();
    let red = Agent::default().red;
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        // The other setting is nobody's business: so the file is mended setting by setting, by git.
        red: format!(
            "{red}\n[ \"$VERI_ATTEMPT\" != 1 ] || {{ git config core.hooksPath x; git config branch.x.note y; }}"
        ),
        ..Agent::default()
    }));
    let mut which = scene.command("sh");
    let git = which
        .args(["-c", "command -v git"])
        .output()
        .unwrap()
        .stdout;
    let (git, once) = (String::from_utf8(git).unwrap(), scene.path("once"));
    std::fs::create_dir(scene.path("bin")).unwrap();
    let program = format!(
        "#!/bin/sh\ncase \"$*\" in *--unset-all*) [ -e '{1}' ] || {{ touch '{1}'; '{0}' \"$@\"; kill -9 $PPID; }};; esac\n\
         exec '{0}' \"$@\"\n",
        git.trim(),
        once.display()
    );
    std::fs::write(scene.path("bin/git"), program).unwrap();
    crate::scene::executable(&scene.path("bin/git"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", scene.path("bin").display());
    scene.env.push(("PATH".into(), path.into()));
    assert_eq!(scene.tdd(&[]).code, None);
    let config = scene.git(&["config", "--local", "--list"]);
    assert!(!config.contains("hookspath"), "it is undone: {config}");
    scene.tdd(&[]).expect(0);
    let why = sent_back(&scene, 1, Phase::Red).join("\n");
    assert!(why.contains("core.hookspath changed"), "{why}");
    walk(&scene);
}
