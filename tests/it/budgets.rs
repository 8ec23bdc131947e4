//! Budgets: what is spent on what, how a spent one ends the run, and which a rerun renews.

use crate::branch::{sent_back, walk, was_sent_back};
use crate::scene::{APPROVE, Agent, REJECT, Scene};
use std::fs;
use veri::event::Kind;
use veri::role::Phase;

/// How often a leaf of this role was launched in all starts.
fn launches(scene: &Scene, actor: &str) -> usize {
    let lines = scene.journal();
    lines
        .iter()
        .filter(|l| l.event == Kind::Launch && l.actor == actor)
        .count()
}

/// Nothing of the unfinished phase is on the branch or in the worktree, and all of it is kept.
#[track_caller]
fn only_the_unfinished_is_undone(scene: &Scene, subjects: &[&str]) {
    assert_eq!(scene.subjects(), subjects);
    assert_eq!(
        scene.git_in(&scene.worktree(), &["status", "--porcelain"]),
        ""
    );
    let thread = scene.comments().join("\n");
    assert!(
        thread.contains("veri tdd 42"),
        "how to go on is not in the thread:\n{thread}"
    );
    scene.nothing_is_left_running();
}

#[test]
fn red_has_four_attempts_and_a_rerun_has_four_more() {
    let scene = Scene::new();
    scene.agent(&Agent {
        verify: REJECT.to_owned(),
        red: format!(
            "{}\necho \"# attempt $VERI_ATTEMPT\" >> tests/name.sh",
            Agent::default().red
        ),
        ..Agent::default()
    });
    scene
        .tdd(&[])
        .bails("revise-exhausted")
        .says("too weak")
        .says("each of 4 attempts");
    assert_eq!(launches(&scene, "developer"), 4);
    only_the_unfinished_is_undone(&scene, &["plan: issue 42 in 2 steps"]);
    assert!(
        scene
            .veri(&["discarded", "42"])
            .expect(0)
            .out
            .contains("tests/name.sh")
    );
    scene.tdd(&[]).bails("revise-exhausted");
    assert_eq!(launches(&scene, "developer"), 8);
    scene.agent(&Agent::default());
    scene.tdd(&[]).expect(0);
    walk(&scene);
}

#[test]
fn green_has_four_attempts_and_the_approved_red_outlives_them() {
    let scene = Scene::new();
    scene.agent(&Agent {
        green: "echo \"# $VERI_ATTEMPT\" >> src/lib.sh".to_owned(),
        ..Agent::default()
    });
    scene
        .tdd(&[])
        .bails("revise-exhausted")
        .says("the suite fails");
    was_sent_back(&scene, 1, Phase::Green, &["the suite fails"; 3]);
    only_the_unfinished_is_undone(&scene, &["plan: issue 42 in 2 steps"]);
    let reds = |scene: &Scene| {
        let lines = scene.journal();
        lines
            .iter()
            .filter(|l| l.event == Kind::Launch && l.phase == Some(Phase::Red.into()))
            .count()
    };
    let before = reds(&scene);
    // In the rerun red is not asked again: green goes on from the approved test.
    scene.agent(&Agent {
        red: format!(
            "case \"$VERI_STEP\" in greet*) exit 9;; esac\n{}",
            Agent::default().red
        ),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    assert_eq!(
        reds(&scene),
        before + 2,
        "the second step's red and its verifier"
    );
    walk(&scene);
}

#[test]
fn a_leaf_that_is_stuck_three_times_ends_the_run_and_spends_no_revision() {
    let scene = Scene::new();
    scene.agent(&Agent {
        red: "echo half > tests/half.sh; sleep 1000".to_owned(),
        ..Agent::default()
    });
    // Whoever does what it should has as long as it takes.
    scene.tdd(&["--plan-only"]).expect(0);
    scene
        .tdd(&["--timeout", "1"])
        .bails("killed-stuck")
        .says("3 launches");
    assert_eq!(launches(&scene, "developer"), 3);
    assert_eq!(sent_back(&scene, 1, Phase::Red), Vec::<String>::new());
    only_the_unfinished_is_undone(&scene, &["plan: issue 42 in 2 steps"]);
    assert!(
        scene
            .veri(&["discarded", "42"])
            .expect(0)
            .out
            .contains("tests/half.sh")
    );
    // Two more launches would do: the rerun has all three again.
    let count = scene.note("count");
    scene.agent(&Agent {
        red: format!(
            "echo >> {0}; [ $(wc -l < {0}) -gt 2 ] || sleep 1000\n{1}",
            count.display(),
            Agent::default().red
        ),
        ..Agent::default()
    });
    scene.tdd(&["--timeout", "3"]).expect(0);
    walk(&scene);
}

#[test]
fn a_stuck_verifier_spends_its_own_retries() {
    let scene = Scene::new();
    // Whoever does what it should has as long as it takes.
    scene.agent(&Agent {
        verify: "kill -9 $$".to_owned(),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("killed-external");
    scene.agent(&Agent {
        verify: "sleep 1000".to_owned(),
        ..Agent::default()
    });
    scene
        .tdd(&["--timeout", "1"])
        .bails("killed-stuck")
        .says("the verifier");
    assert_eq!(
        (launches(&scene, "developer"), launches(&scene, "verifier")),
        (1, 4)
    );
    only_the_unfinished_is_undone(&scene, &["plan: issue 42 in 2 steps"]);
    scene.agent(&Agent::default());
    scene.tdd(&["--timeout", "60"]).expect(0);
    // The red that waited for its verdict was not written again.
    let reds: Vec<_> = scene
        .journal()
        .into_iter()
        .filter(|l| {
            l.event == Kind::Launch && l.actor == "developer" && l.phase == Some(Phase::Red.into())
        })
        .collect();
    assert_eq!(reds.len(), 2);
    walk(&scene);
}

#[test]
fn a_spent_refactor_drops_its_change_and_the_step_stands() {
    // Rejected each time, then stuck each time; a verifier that only talks, then a suite that the change breaks.
    let rejects = format!("if [ $VERI_PHASE = refactor ]; then {REJECT}; else {APPROVE}; fi");
    let talks = format!("if [ $VERI_PHASE = refactor ]; then echo fine by me; else {APPROVE}; fi");
    for (first, second, verify, why) in [
        (
            "echo \"# $VERI_ATTEMPT\" >> src/lib.sh",
            "echo '# half' >> src/lib.sh; sleep 1000",
            rejects,
            ["too weak", "stuck"],
        ),
        (
            "echo '# x' >> src/lib.sh",
            "echo 'greet() { :; }' > src/lib.sh",
            talks,
            ["could not be read", "the suite fails"],
        ),
    ] {
        let scene = Scene::new();
        scene.write(".veri.toml", "[limits]\nrevisions = 1\nstuck_retries = 1\n");
        scene.agent(&Agent {
            refactor: format!("case \"$VERI_STEP\" in greet*) {first};; *) {second};; esac"),
            verify,
            ..Agent::default()
        });
        let timeout = if second.contains("sleep") { "3" } else { "60" };
        let ran = scene.tdd(&["--timeout", timeout]).expect(0);
        assert!(
            ran.out.contains("the refactor is dropped; the step stands"),
            "{}",
            ran.out
        );
        assert_eq!(
            scene.subjects(),
            [
                "plan: issue 42 in 2 steps",
                "greet takes a name",
                "bye says bye"
            ]
        );
        walk(&scene);
        let lines = scene.journal();
        let dropped: Vec<&str> = lines
            .iter()
            .filter(|l| l.text("what") == "refactor-dropped")
            .map(|l| l.text("why"))
            .collect();
        assert_eq!(dropped.len(), 2, "{dropped:#?}");
        for (dropped, why) in dropped.iter().zip(why) {
            assert!(dropped.contains(why), "{why}: {dropped}");
        }
        assert!(
            scene
                .veri(&["discarded", "42"])
                .expect(0)
                .out
                .contains("src/lib.sh")
        );
    }
}

#[test]
fn all_budgets_are_renewed_on_request() {
    let scene = Scene::new();
    let fails = Agent {
        red: "[ $VERI_ATTEMPT -lt 3 ] || { echo '{\"needs_user\":\"Which greeting?\"}'; exit; }\necho \"# $VERI_ATTEMPT\" >> src/lib.sh".to_owned(),
        ..Agent::default()
    };
    scene.agent(&fails);
    scene.tdd(&[]).bails("needs-user").says("Which greeting?");
    let attempts = |scene: &Scene| -> Vec<u32> {
        let lines = scene.journal();
        lines
            .iter()
            .filter(|l| l.event == Kind::Launch && l.actor == "developer")
            .filter_map(|l| l.attempt)
            .collect()
    };
    assert_eq!(attempts(&scene), [1, 2, 3]);
    // A bail for another reason leaves the revisions spent.
    scene.tdd(&[]).bails("needs-user");
    assert_eq!(attempts(&scene), [1, 2, 3, 3]);
    scene.tdd(&["--reset-budgets"]).bails("needs-user");
    assert_eq!(attempts(&scene), [1, 2, 3, 3, 1, 2, 3]);
    scene.agent(&Agent::default());
    scene.tdd(&[]).expect(0);
    walk(&scene);
}

#[test]
fn answers_that_cannot_be_read_are_asked_again_once() {
    let scene = Scene::new();
    scene.agent(&Agent {
        plan: "echo let me think".to_owned(),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("plan-invalid");
    assert_eq!(launches(&scene, "planner"), 2);
    assert_eq!(
        scene.git(&["branch", "--list", "tdd/issue-42", "--format=%(objectname)"]),
        scene.git(&["rev-parse", "main"])
    );
    // The budget is renewed; and prose from a verifier is no verdict.
    scene.agent(&Agent {
        verify: "echo 'I approve.'".to_owned(),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("verdict-malformed");
    assert_eq!(
        (launches(&scene, "planner"), launches(&scene, "verifier")),
        (3, 2)
    );
    only_the_unfinished_is_undone(&scene, &["plan: issue 42 in 2 steps"]);
    // One that cannot be read, then one that can, and so on: they are counted in a row.
    let odd = scene.note("odd");
    scene.agent(&Agent {
        verify: format!(
            "if [ -e {0} ]; then rm {0}; {APPROVE}; else touch {0}; echo hm; fi",
            odd.display()
        ),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    walk(&scene);
}

#[test]
fn no_time_at_all_ends_the_run_at_a_leafs_boundary() {
    let scene = Scene::new();
    scene.write(".veri.toml", "[limits]\nwall_minutes = 0\n");
    scene
        .tdd(&[])
        .bails("budget-exhausted")
        .says("limits.wall_minutes");
    assert_eq!(launches(&scene, "planner"), 0);
    fs::remove_file(scene.repo().join(".veri.toml")).unwrap();
    scene.tdd(&["--new-templates"]).expect(0);
    walk(&scene);
}

#[test]
fn a_stuck_relaunch_is_told_what_was_refused_before_and_where_its_unfinished_work_is() {
    let scene = Scene::new();
    let prompts = scene.agent_keeping_prompts(&Agent {
        red: format!(
            "case $VERI_STEP-$LAUNCHES in greet*-1) echo : > tests/name.sh;; greet*-2) echo half > tests/half.sh; sleep 1000;; \
             *)\n{}\n;; esac",
            Agent::default().red
        ),
        ..Agent::default()
    });
    scene.tdd(&["--timeout", "3"]).expect(0);
    walk(&scene);
    let prompt = |n: u32| std::fs::read_to_string(prompts.join(format!("developer-{n}"))).unwrap();
    let evidence = "What was seen:";
    assert!(!prompt(1).contains("What came of the work"));
    assert!(prompt(2).contains(evidence) && !prompt(2).contains("/discarded/"));
    let told = prompt(3);
    assert!(told.contains(evidence), "{told}");
    assert!(told.contains("did not end within 3 seconds"), "{told}");
    assert!(told.contains("refs/veri/issue-42/discarded/"), "{told}");
}
