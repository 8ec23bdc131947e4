//! `veri status`, `veri log` and `veri clean` on runs in every state.

use crate::scene::{Agent, Ran, Scene, VERI, wait};
use crate::watching::{ONE_STEP, kill, noting, plain, signal, start, until};
use nix::sys::signal::Signal;

#[test]
fn the_run_is_shown_as_it_stands_and_cleaned_away_when_it_is_done() {
    let scene = plain();
    let shown = |words: &[&str]| {
        let ran = scene.veri(&["status"]).expect(0);
        for word in words {
            assert!(ran.out.contains(word), "{word:?} is not in\n{}", ran.out);
        }
        let json: serde_json::Value =
            serde_json::from_str(&scene.veri(&["status", "--json"]).expect(0).out).unwrap();
        json
    };
    assert!(
        scene
            .veri(&["status"])
            .expect(0)
            .out
            .contains("no run is known here")
    );
    scene.hold("developer-red");
    let run = start(&scene, &[]);
    scene.begun("developer-red");
    shown(&[
        "issue 42: running, 0 of 1 steps done",
        "step 1, red: greet takes a name",
    ]);
    let ran = scene.veri(&["clean"]).expect(0);
    assert!(ran.out.contains("kept     issue 42"), "{}", ran.out);
    let ran = scene.veri(&["clean", "42"]).expect(0);
    assert!(ran.out.contains("a run is going on"), "{}", ran.out);
    // A second conductor is refused and told who has it.
    scene
        .tdd(&[])
        .expect(13)
        .says("already running: veri tdd 42 (process ");

    // Followed by somebody who sees what happens from here on, too.
    let followed = scene.path("followed");
    let mut follow = scene.command(VERI);
    let mut follow = follow
        .args(["log", "--follow", "--json"])
        .stdout(std::fs::File::create(&followed).unwrap())
        .spawn()
        .unwrap();
    kill(run);
    shown(&["issue 42: interrupted"]);
    let run = start(&scene, &[]);
    until("the next start to wait", || {
        scene.said("still runs: it is taken up")
    });
    scene.veri(&["stop", "--mode", "now"]).expect(0);
    wait(run).expect(12);
    shown(&["issue 42: stopped"]);
    let ran = scene.veri(&["clean", "42"]).expect(0);
    assert!(
        ran.out.contains("kept     issue 42: not done"),
        "{}",
        ran.out
    );
    assert!(scene.worktree().exists());

    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: "kill -9 $$".to_owned(),
        ..Agent::default()
    }));
    scene.let_go("developer-red");
    scene.tdd(&[]).bails("killed-external");
    let json = shown(&["issue 42: bailed (killed-external)"]);
    assert_eq!(json[0]["cause"], "killed-external");

    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    scene.tdd(&[]).expect(0);
    shown(&["issue 42: done, 1 of 1 steps done", "pull"]);
    let lines = scene.lines().len();
    let read = || std::fs::read_to_string(&followed).unwrap();
    until("the last line", || read().lines().count() == lines);
    signal(follow.id(), Signal::SIGINT);
    follow.wait().unwrap();
    let followed = read();
    let log = scene
        .veri(&["log", "--json", "--issue", "42"])
        .expect(0)
        .out;
    assert_eq!(log, followed);
    let plain = scene.veri(&["log"]).expect(0).out;
    assert!(plain.contains("was killed by somebody else"), "{plain}");

    let ran = scene.veri(&["clean"]).expect(0);
    assert!(ran.out.contains("removed  issue 42"), "{}", ran.out);
    assert_eq!(scene.subjects().len(), 2, "the branch stays");
    let trees = scene.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(trees.matches("worktree ").count(), 1, "{trees}");
}

#[test]
fn the_end_of_a_run_is_told_once() {
    let scene = Scene::new();
    let pull = scene.path("forge/pulls/1.md");
    let told = |ran: &Ran, words: &str| {
        let all = format!("{}{}", ran.out, ran.err);
        all.lines().filter(|l| l.contains(words)).count()
    };
    scene.agent(&Agent {
        plan: r#"echo "{\"nonce\":\"$VERI_NONCE\",\"needs_user\":\"red or blue?\"}""#.to_owned(),
        ..Agent::default()
    });
    for style in [&[][..], &["-q"], &["-v"]] {
        let ran = scene.tdd(style).bails("needs-user");
        assert_eq!(told(&ran, "bail: "), 1, "{ran:?}");
        assert_eq!(told(&ran, "bailed"), 0, "{ran:?}");
        assert_eq!(told(&ran, "red or blue?"), 1, "{ran:?}");
    }
    scene.agent(&Agent::default());
    for style in [&[][..], &["-q"], &["-v"]] {
        let ran = scene.tdd(style).expect(0);
        let last = format!("done: draft pull request 1: {}", pull.display());
        assert_eq!(ran.last(), last);
        assert_eq!(told(&ran, "done: "), 1, "{ran:?}");
        assert_eq!(told(&ran, "pulls/1.md"), 1, "{ran:?}");
    }
    // One clock everywhere, and no name of the journal's.
    let status = scene.veri(&["status"]).expect(0).out;
    let last = status.lines().find(|l| l.starts_with("  last")).unwrap();
    assert!(last.ends_with(" UTC  done"), "{last}");
    let log = scene.veri(&["log"]).expect(0).out;
    let at = last.split_whitespace().nth(2).unwrap();
    assert!(log.contains(&format!("{at}  done")), "{last}\n{log}");
    assert!(log.contains(", times are UTC)"), "{log}");
    // The journal has it all.
    assert!(log.contains("bailed") && log.contains("  draft pull request 1: "));
}
