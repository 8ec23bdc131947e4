//! `veri tdd` from an issue to a draft pull request, as a user runs it.

use crate::scene::{Agent, REJECT, Scene};

#[test]
fn an_issue_becomes_a_draft_pull_request() {
    let scene = Scene::new();
    scene.tdd(&[]).expect(0).says("done: ");
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "greet takes a name",
            "bye says bye"
        ]
    );
    let pull = scene.pull().unwrap();
    assert!(
        pull.contains("draft: true") && pull.contains("Closes #42"),
        "{pull}"
    );
    scene.nothing_is_left_running();
}

#[test]
fn a_reject_is_revised_and_a_stuck_leaf_is_launched_again() {
    let scene = Scene::new();
    let seen = scene.note("seen");
    scene.agent(&Agent {
        green: format!(
            "if [ ! -e {0}.stuck ]; then touch {0}.stuck; sleep 1000; fi\n{1}",
            seen.display(),
            Agent::default().green
        ),
        verify: format!(
            "if [ \"$VERI_PHASE\" = red ] && [ ! -e /proc/self/veri ] && [ \"$(cat tests/name.sh | wc -c)\" -lt 60 ] && [ ! -e tests/bye.sh ]; then {REJECT}; else {}; fi",
            Agent::default().verify
        ),
        red: format!("{}\n[ $VERI_ATTEMPT = 1 ] || echo '# the whole greeting is compared with what the issue says' >> tests/name.sh", Agent::default().red),
        ..Agent::default()
    });
    scene.tdd(&["--timeout", "3"]).expect(0);
    let pull = scene.pull().unwrap();
    assert!(pull.contains("too weak"), "{pull}");
    scene.nothing_is_left_running();
}
