//! A person edits the ledger, between runs and during one; a leaf tries to.

use crate::hooks::hook;
use crate::scene::{APPROVE, Agent, REJECT, Scene};
use std::fs;
use std::path::PathBuf;

/// The ledger in the run's worktree.
fn ledger(scene: &Scene) -> PathBuf {
    scene.worktree().join(".tdd/issue-42.md")
}

#[test]
fn a_ledger_with_windows_line_ends_and_notes_keeps_every_byte_but_the_ticks() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let text = fs::read_to_string(ledger(&scene)).unwrap();
    let edited =
        format!("\u{feff}{text}\n## Notes\n\nBy me:  \n\n```\n- [ ] 3. not a step (AC1)\n```\n")
            .replace('\n', "\r\n");
    fs::write(ledger(&scene), &edited).unwrap();
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "ledger: edited by hand",
            "greet takes a name",
            "bye says bye"
        ]
    );
    let ticked = edited
        .replace("- [ ] 1.", "- [x] 1.")
        .replace("- [ ] 2.", "- [x] 2.");
    assert_eq!(fs::read_to_string(ledger(&scene)).unwrap(), ticked);
    let committed = scene
        .command("git")
        .args(["show", "tdd/issue-42:.tdd/issue-42.md"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(committed.stdout).unwrap(), ticked);
}

#[test]
fn a_hand_made_tick_is_honoured_and_an_untick_has_the_step_done_again() {
    let scene = Scene::new();
    scene.agent(&Agent {
        green: Agent::default().green.replace(
            "> src/lib.sh;;\n                bye",
            ">> src/lib.sh;;\n                bye",
        ),
        ..Agent::default()
    });
    scene.tdd(&["--plan-only"]).expect(0);
    let edit = |from: &str, to: &str| {
        let text = fs::read_to_string(ledger(&scene)).unwrap();
        assert!(text.contains(from), "{from:?} is not in\n{text}");
        fs::write(ledger(&scene), text.replace(from, to)).unwrap();
    };
    edit("- [ ] 1.", "- [X] 1.");
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "ledger: edited by hand",
            "bye says bye"
        ]
    );
    let pull = scene.pull().unwrap();
    assert!(pull.contains("Ticked by hand"), "{pull}");
    // What was ticked by hand is not said to have been proven.
    assert!(
        pull.contains("ticked by hand: veri has seen no proof of it"),
        "{pull}"
    );
    assert_eq!(
        pull.matches("failing before the code was written").count(),
        1,
        "{pull}"
    );
    edit("- [X] 1.", "- [ ] 1.");
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.subjects()[3..],
        ["ledger: edited by hand", "greet takes a name"]
    );
}

#[test]
fn a_step_renamed_by_hand_makes_its_approved_test_stale() {
    let scene = Scene::new();
    let good = Agent::default();
    // Stuck in green, once red is approved.
    scene.agent(&Agent {
        green: "exit 1".to_owned(),
        ..Agent::default()
    });
    scene.write(".veri.toml", "[limits]\nrevisions = 0\n");
    scene.tdd(&[]).bails("revise-exhausted");
    let text = fs::read_to_string(ledger(&scene)).unwrap();
    fs::write(
        ledger(&scene),
        text.replace("1. greet takes a name", "1. greet takes any name"),
    )
    .unwrap();
    let prompts = scene.agent_keeping_prompts(&good);
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out
            .contains("the approved test no longer fits the ledger"),
        "{}",
        ran.out
    );
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "ledger: edited by hand",
            "greet takes any name",
            "bye says bye"
        ]
    );
    let first = fs::read_to_string(prompts.join("developer-1")).unwrap();
    assert!(first.contains("greet takes any name"), "{first}");
    let kept = scene.veri(&["discarded", "42"]).expect(0);
    assert!(kept.out.contains("changed by hand"), "{}", kept.out);
}

#[test]
fn a_ledger_that_cannot_be_read_is_named_by_line_and_column_and_never_rewritten() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let good = fs::read_to_string(ledger(&scene)).unwrap();
    let line = 1 + good
        .lines()
        .position(|l| l.starts_with("- [ ] 2."))
        .unwrap();
    let prompts = scene.agent_keeping_prompts(&Agent::default());
    for (from, to, place) in [
        ("- [ ] 2. ", "- [ ] ", format!("line {line}, column 7")),
        ("- [ ] 2. ", "- [?] 2. ", format!("line {line}, column 4")),
        ("- [ ] 2. ", "- [ ] 1. ", format!("line {line}, column 7")),
        (
            "bye says bye (AC2)",
            "bye says bye (AC9)",
            format!("line {line}, column "),
        ),
        ("<!-- veri ledger v1 -->", "", "line ".to_owned()),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        fs::write(ledger(&scene), &bad).unwrap();
        let ran = scene
            .tdd(&[])
            .bails("plan-invalid")
            .says("issue-42.md")
            .says("run again");
        assert!(ran.err.contains(&place), "{place:?} is not in\n{}", ran.err);
        assert_eq!(
            fs::read_to_string(ledger(&scene)).unwrap(),
            bad,
            "the ledger was rewritten"
        );
    }
    fs::write(ledger(&scene), b"\xff\xfe").unwrap();
    scene
        .tdd(&[])
        .bails("plan-invalid")
        .says("line 1, column 1");
    assert_eq!(fs::read(ledger(&scene)).unwrap(), b"\xff\xfe");
    assert_eq!(
        fs::read_dir(prompts).unwrap().count(),
        0,
        "a leaf was launched"
    );
    // Mended, it goes on.
    fs::write(ledger(&scene), good).unwrap();
    scene.tdd(&[]).expect(0);
}

#[test]
fn an_edit_made_while_the_run_is_at_work_is_kept_and_a_leaf_s_is_undone() {
    // The verifier stands for a person, who writes in the working tree.
    let scene = Scene::unconfined();
    scene.tdd(&["--plan-only"]).expect(0);
    let path = ledger(&scene);
    let good = Agent::default();
    let once = scene.note("saved");
    scene.agent(&Agent {
        verify: format!(
            "[ -e '{0}' ] || {{ touch '{0}'; printf '\nA note of mine.\n' >> '{1}'; }}\n{APPROVE}",
            once.display(),
            path.display()
        ),
        green: format!(
            "{}\nif [ \"$VERI_ATTEMPT\" = 1 ]; then sed -i 's/^- \\[ \\]/- [x]/' .tdd/issue-42.md; else echo '# once more' >> src/lib.sh; fi",
            good.green
        ),
        ..good
    });
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out.contains("only the conductor ticks steps"),
        "{}",
        ran.out
    );
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("- [x]").count(), 2, "{text}");
    assert!(text.ends_with("\nA note of mine.\n"), "{text}");
    let pull = scene.pull().unwrap();
    assert!(!pull.contains("Ticked by hand"), "{pull}");
}

#[test]
fn a_note_saved_while_a_verifier_works_is_committed_before_the_next_step() {
    // The verifier stands for a person, who writes in the working tree.
    let scene = Scene::unconfined();
    scene.tdd(&["--plan-only"]).expect(0);
    let path = ledger(&scene);
    let once = scene.note("saved");
    scene.agent(&Agent {
        verify: format!(
            "[ -e '{0}' ] || [ \"$VERI_PHASE\" != green ] || {{ touch '{0}'; printf '\nA note of mine.\n' >> '{1}'; }}\n{APPROVE}",
            once.display(),
            path.display()
        ),
        ..Agent::default()
    });
    scene.write(".veri.toml", "[cycle]\nrefactor = \"off\"\n");
    scene.tdd(&["--new-templates"]).expect(0);
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "greet takes a name",
            "ledger: edited by hand",
            "bye says bye"
        ]
    );
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("- [x]").count(), 2, "{text}");
    assert!(text.ends_with("\nA note of mine.\n"), "{text}");
}

#[test]
fn ticks_of_a_leaf_that_was_lost_with_its_conductor_are_not_a_person_s() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let once = scene.note("killed");
    let home = scene.worktree().parent().unwrap().to_owned();
    scene.agent(&Agent {
        red: format!(
            "if [ ! -e '{0}' ]; then touch '{0}'; sed -i 's/^- \\[ \\]/- [x]/' .tdd/issue-42.md\n\
             kill -9 $(sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/' '{1}/issue-42.lock') $PPID; kill -9 $$; fi\n{2}",
            once.display(),
            home.display(),
            Agent::default().red
        ),
        ..Agent::default()
    });
    assert_eq!(scene.tdd(&[]).code, None, "the conductor was not killed");
    assert_eq!(
        fs::read_to_string(ledger(&scene))
            .unwrap()
            .matches("- [x]")
            .count(),
        2
    );
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "greet takes a name",
            "bye says bye"
        ]
    );
    scene.nothing_is_left_running();
}

#[test]
fn an_edit_made_after_a_commit_had_failed_is_not_taken_back_for_the_one_before_it() {
    // The verifier stands for a person, who writes in the working tree.
    let scene = Scene::unconfined();
    scene.tdd(&["--plan-only"]).expect(0);
    let path = ledger(&scene);
    let refusing = scene.note("refusing");
    hook(
        &scene,
        "pre-commit",
        &format!(
            "if [ -e '{}' ] && git diff --cached --name-only | grep -q '^.tdd/'; then echo 'not .tdd/issue-42.md' >&2; exit 1; fi",
            refusing.display()
        ),
    );
    scene.agent(&Agent {
        verify: format!(
            "[ $VERI_PHASE = red ] || [ -e '{0}' ] || {{ touch '{0}'; printf '\nThe first note.\n' >> '{1}'; }}\n{APPROVE}",
            refusing.display(),
            path.display()
        ),
        ..Agent::default()
    });
    scene
        .tdd(&[])
        .bails("needs-user")
        .says("not .tdd/issue-42.md");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("\nThe first note.\n"), "{text}");
    fs::write(&path, text.replace("The first note.", "The second note.")).unwrap();
    fs::write(scene.repo().join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
    scene.tdd(&[]).expect(0);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("\nThe second note.\n"), "{text}");
    assert_eq!(text.matches("- [x]").count(), 2, "{text}");
}

#[test]
fn a_persons_edit_of_the_ledger_stays_in_its_file_while_the_tree_is_put_back() {
    // The verifier stands for a person, who writes in the working tree.
    let scene = Scene::unconfined();
    scene.tdd(&["--plan-only"]).expect(0);
    let path = ledger(&scene);
    // A second name of the very file that the person has written into: were it taken away and written again, even for
    // a moment, the two would not be one any more.
    let (same, stayed) = (scene.note("same"), scene.note("stayed"));
    let good = Agent::default();
    scene.agent(&Agent {
        red: format!(
            "{}\nif [ \"$VERI_ATTEMPT\" = 2 ]; then echo '# again' >> tests/name.sh; [ .tdd/issue-42.md -ef '{}' ] && touch '{}'; fi",
            good.red,
            same.display(),
            stayed.display()
        ),
        verify: format!(
            "if [ -e '{0}' ]; then {APPROVE}; else printf '\nA note of mine.\n' >> '{1}'; ln '{1}' '{0}'; {REJECT}; fi",
            same.display(),
            path.display()
        ),
        ..good
    });
    scene.tdd(&[]).expect(0);
    assert!(stayed.exists(), "a crash in between would have lost it");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("\nA note of mine.\n"), "{text}");
}

#[test]
fn a_ledger_whose_line_ends_git_changes_on_the_way_is_not_taken_for_an_edited_one() {
    let scene = Scene::new();
    scene.write(".gitattributes", "*.md text eol=crlf\n");
    scene.commit_all("line ends");
    scene.tdd(&["--plan-only"]).expect(0);
    // As another machine gets it: checked out.
    fs::remove_dir_all(scene.worktree()).unwrap();
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "greet takes a name",
            "bye says bye"
        ]
    );
    let tree = scene.worktree();
    assert_eq!(scene.git_in(&tree, &["status", "--porcelain"]), "");
}
