//! What `veri leaf` adds to the journal.

use crate::scene::Scene;
use veri::event::Kind;

#[test]
fn launch_and_exit_are_told_once_when_the_variables_name_an_issue() {
    let mut scene = Scene::bare();
    let run = ["leaf", "run", "develop-red", "--", "sh", "-c", "exit 3"];
    scene.veri(&run).expect(1);
    let journal = scene.repo().join(".tdd/events.jsonl");
    assert!(!journal.exists(), "outside a run nothing is told");
    scene.env = [
        ("VERI_ISSUE", "7"),
        ("VERI_STEP", "a $(b)"),
        ("VERI_ATTEMPT", "2"),
    ]
    .map(|(k, v)| (k.into(), v.into()))
    .to_vec();
    scene.veri(&run).expect(1);
    scene.veri(&["leaf", "wait", "develop-red"]).expect(1);
    let lines = veri::journal::read(&journal).unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|l| (l.event, l.actor.as_str(), l.attempt))
        .collect();
    assert_eq!(
        told,
        [
            (Kind::Launch, "developer", Some(2)),
            (Kind::Exit, "developer", Some(2))
        ]
    );
    assert_eq!((lines[0].issue, lines[0].title.as_str()), (7, "a $(b)"));
    assert_eq!(lines[1].text("end"), "done(3)");
}
