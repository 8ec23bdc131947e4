//! kill -9 of a leaf, of its shim, of the conductor, and of everything.

use crate::processes::parent;
use crate::scene::{Agent, wait};
use crate::watching::{
    ONE_STEP, all_of, is_finished, kill, kill_everything, noting, plain, signal, start, until,
};
use nix::sys::signal::Signal;
use veri::event::Kind;

#[test]
fn a_conductor_that_is_killed_while_leaves_run_takes_them_up_and_launches_none_twice() {
    let scene = plain();
    scene.suite_can_be_held();
    // The planner, watched by three conductors one after another.
    scene.hold("planner-plan");
    let run = start(&scene, &[]);
    let planner = scene.begun("planner-plan");
    kill(run);
    assert!(all_of(&scene).contains(&planner), "it goes on by itself");
    let run = start(&scene, &[]);
    until("the next start to wait", || {
        scene.said("still runs: it is taken up")
    });
    kill(run);
    scene.hold("developer-red");
    let run = start(&scene, &[]);
    scene.let_go("planner-plan");
    // A developer whose answer is there before anybody looks again.
    scene.begun("developer-red");
    kill(run);
    scene.let_go("developer-red");
    until("the leaf to end", || all_of(&scene).is_empty());
    // The suite: what is left of it is ended, and it is run again.
    scene.forget("suite");
    scene.hold("suite");
    let run = start(&scene, &[]);
    let suite = scene.begun("suite");
    kill(run);
    assert!(all_of(&scene).contains(&suite), "it goes on by itself");
    scene.hold("verifier-green");
    let run = start(&scene, &[]);
    until("the suite of the dead conductor to be ended", || {
        !all_of(&scene).contains(&suite)
    });
    scene.let_go("suite");
    // A verifier.
    scene.begun("verifier-green");
    kill(run);
    let run = start(&scene, &[]);
    until("the next start to wait", || {
        scene.said("still runs: it is taken up")
    });
    scene.let_go("verifier-green");
    wait(run).expect(0);
    let launches = [
        "planner plan ",
        "developer red 1",
        "verifier red ",
        "developer green 1",
        "verifier green ",
        "developer refactor 1",
    ];
    assert_eq!(scene.launches(), launches);
    assert_eq!(
        scene.subjects(),
        ["plan: issue 42 in 1 step", "greet takes a name"]
    );
    scene.nothing_is_left_running();
    scene.worktree_is_clean();
}

#[test]
fn a_leaf_that_somebody_kills_bails_and_a_rerun_goes_on_without_spending_anything() {
    let scene = plain();
    for shim in [false, true] {
        let who = if shim {
            "verifier-green"
        } else {
            "developer-green"
        };
        scene.hold(who);
        let run = start(&scene, &[]);
        let leaf = scene.begun(who);
        let victim = if shim { parent(leaf) } else { leaf };
        signal(victim, Signal::SIGKILL);
        wait(run).bails("killed-external");
        scene.nothing_is_left_running();
        scene.let_go(who);
        scene.forget(who);
    }
    assert_eq!(
        scene
            .comments()
            .iter()
            .filter(|c| c.contains("issue-42:bail") && c.contains("killed-external"))
            .count(),
        2
    );
    scene.tdd(&[]).expect(0);
    // Each was launched a second time, as the first attempt that it was.
    let twice = |who: &str| {
        scene
            .launches()
            .iter()
            .filter(|l| l.starts_with(who))
            .count()
    };
    assert_eq!(
        (twice("developer green 1"), twice("verifier green ")),
        (2, 2)
    );
    assert!(!scene.lines().iter().any(|l| l.event == Kind::Revise));
}

#[test]
fn when_everything_is_killed_the_leaf_is_launched_again_and_its_partial_work_is_kept() {
    let scene = plain();
    let mut agent = noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    });
    // What it has done before it is held: half of the code, and a tick that it has no business with.
    agent.green = format!(
        "if [ -e \"$(dirname \"$0\")/notes/hold-developer-green\" ]; then echo half > src/half.sh; sed -i 's/- \\[ \\]/- [x]/' .tdd/issue-42.md; fi\n{}",
        agent.green
    );
    scene.agent(&agent);
    scene.hold("developer-green");
    let run = start(&scene, &[]);
    scene.begun("developer-green");
    kill_everything(&scene, run);
    scene.let_go("developer-green");
    // The tick of the dead leaf is not a person's.
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out.contains("was lost while no conductor watched"),
        "{}",
        ran.out
    );
    let kept = scene.veri(&["discarded", "42"]).expect(0).out;
    assert!(kept.contains("src/half.sh"), "{kept}");
    assert_eq!(
        scene.subjects(),
        ["plan: issue 42 in 1 step", "greet takes a name"]
    );
    scene.nothing_is_left_running();
}

#[test]
fn a_leaf_of_a_persons_own_in_the_worktree_is_not_taken_for_a_stray_one() {
    let scene = plain();
    scene.tdd(&["--plan-only"]).expect(0);
    let dir = scene.worktree().join(".tdd").display().to_string();
    let leaf = |args: &[&str]| scene.veri(&[&["leaf", "--dir", &dir], args].concat());
    for name in ["setup-db", "develop-notes"] {
        leaf(&["start", name, "--", "sleep", "1000"]).expect(0);
    }
    scene.tdd(&[]).expect(0);
    for name in ["setup-db", "develop-notes"] {
        leaf(&["wait", name, "--max-seconds", "0"]).expect(3);
        leaf(&["kill", name]).expect(0);
        leaf(&["wait", name]).expect(2);
    }
    is_finished(&scene);
}

#[test]
fn whichever_command_of_a_ground_somebody_kills_nobody_is_said_to_have_asked_for_a_stop() {
    let scene = plain();
    let d = scene.path("notes").display().to_string();
    // `kill-…` is taken by the run that it kills: its shell or its shim.
    let deadly = |what: &str| format!("rm '{d}/kill-{what}'; kill -9 $PPID; exec sleep 1000");
    let tests = std::fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    scene.write("notes.md", "one\n");
    scene.write(
        "run-tests.sh",
        format!(
            "if [ -e '{d}/kill-isolation' ] && ! grep -q greet src/lib.sh; then {}; fi\n\
             if [ -e '{d}/kill-merged' ] && grep -q two notes.md; then {}; fi\n{tests}",
            deadly("isolation"),
            deadly("merged")
        ),
    );
    scene.write(
        ".veri.toml",
        format!("[ground]\nsetup = [\"if [ -e '{d}/kill-setup' ]; then rm '{d}/kill-setup'; kill -9 $$; fi\"]\n"),
    );
    scene.commit_all("deadly tests");
    let kills = |what: &str| {
        let mark = scene.note(&format!("kill-{what}"));
        std::fs::write(&mark, "").unwrap();
        let ran = scene.tdd(&[]);
        assert!(!mark.exists(), "{what}: {ran:?}");
        let ran = ran.bails("killed-external");
        assert!(!ran.err.contains("stopped"), "{what}: {ran:?}");
        scene.nothing_is_left_running();
    };
    kills("setup");
    kills("isolation");
    // The base moves on while the run is at work: what both come to is tried before the pull request.
    scene.hold("verifier-green");
    let run = start(&scene, &[]);
    scene.begun("verifier-green");
    scene.write("notes.md", "two\n");
    scene.commit_all("the base moves");
    std::fs::write(scene.note("kill-merged"), "").unwrap();
    scene.let_go("verifier-green");
    wait(run).bails("killed-external");
    assert!(!scene.note("kill-merged").exists());
    // A trial that was cut off is no result: nothing of it is told in the pull request.
    assert!(scene.pull().is_none());
    scene.tdd(&[]).expect(0);
    is_finished(&scene);
    let pull = scene.pull().unwrap();
    assert!(!pull.contains("does not pass"), "{pull}");
}
