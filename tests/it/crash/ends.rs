//! Kills between the effects' own points, and ends that are cut off.

use crate::scene::{APPROVE, Agent, wait};
use crate::watching::{
    Came, HANGS, ONE_STEP, eventful, kill_everything, launches_of, noting, plain, start, until,
};

/// Kills at moments between the effects' own points: whatever the journal's n-th line says, everything dies.
#[test]
fn everything_is_killed_at_one_line_of_the_journal_after_another() {
    let mut scene = eventful();
    scene.tdd(&HANGS).expect(0);
    let (reference, mut lines) = (Came::of(&scene), 3);
    scene = eventful();
    let mut kills = 0;
    loop {
        let mut run = start(&scene, &HANGS);
        let mut ended = false;
        until("a line", || {
            ended = run.try_wait().unwrap().is_some();
            ended || scene.lines().len() >= lines
        });
        if ended {
            wait(run).expect(0);
            break;
        }
        kill_everything(&scene, run);
        kills += 1;
        // A resumed run writes some lines before it comes to anything new.
        lines = scene.lines().len() + 7 + kills % 5;
    }
    assert!(kills > 5, "{kills}");
    let came = Came::of(&scene);
    assert_eq!(came.branch, reference.branch);
    assert_eq!(came.ledger, reference.ledger);
    assert_eq!(came.pulls, reference.pulls);
    assert_eq!(came.refs, reference.refs);
}

/// Between the decision to bail and the end: the bail is told by the next start, once, and only then is the
/// work tried again. A stop that was cut off is settled, and the next start goes on.
#[test]
fn an_end_that_was_cut_off_is_told_before_anything_is_tried_again() {
    let story = |crash: Option<&str>| {
        let mut scene = plain();
        scene.agent(&noting(Agent {
            plan: ONE_STEP.to_owned(),
            verify: format!("[ -e \"$d/sensible\" ] || {{ echo prose; exit 0; }}\n{APPROVE}"),
            ..Agent::default()
        }));
        let plain = scene.env.len();
        if let Some(crash) = crash {
            scene.env.push(("VERI_CRASH_AT".into(), crash.into()));
            assert_eq!(scene.tdd(&[]).code, None, "{crash}");
            scene.env.truncate(plain);
        }
        let ran = scene.tdd(&[]).bails("verdict-malformed");
        assert!(
            ran.err.contains("could not be read 2 times in a row"),
            "{}",
            ran.err
        );
        let bailed = Came::of(&scene);
        std::fs::write(scene.note("sensible"), "").unwrap();
        scene.tdd(&[]).expect(0);
        (bailed, Came::of(&scene))
    };
    let (bailed, done) = story(None);
    // Preflight, plan, its commit, the ledger, red, its candidate, its check, two verdicts: the tenth puts back.
    let crashes = [
        "9:journalled",
        "9:told",
        "10:before",
        "10:after",
        "10:journalled",
        "10:told",
    ];
    std::thread::scope(|scope| {
        for crash in crashes {
            let (bailed, done, story) = (&bailed, &done, &story);
            scope.spawn(move || {
                let (told, went_on) = story(Some(crash));
                told.is_what(bailed, crash);
                went_on.is_what(done, crash);
            });
        }
    });

    let mut scene = plain();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: format!("echo at-leaf > .tdd/stop\n{}", Agent::default().red),
        ..Agent::default()
    }));
    let plain = scene.env.len();
    scene.env.push(("VERI_CRASH_AT".into(), "9:before".into()));
    assert_eq!(scene.tdd(&[]).code, None);
    scene.env.truncate(plain);
    scene.tdd(&[]).expect(0);
    assert_eq!(launches_of(&scene, "developer red"), 1);
    assert_eq!(launches_of(&scene, "verifier red"), 1);
}
