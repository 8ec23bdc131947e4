//! Processes that are stopped (SIGSTOP) for a while and go on: one of a run, or all of it.

use crate::processes::{alive, parent, stat};
use crate::scene::{Agent, executable, wait};
use crate::watching::{
    ONE_STEP, all_of, is_finished, launches_of, noting, plain, signal, start, until,
};
use nix::sys::signal::Signal::{SIGCONT, SIGSTOP};
use std::time::{Duration, Instant};

/// Stops processes for a while that any watch would notice, and lets them go on.
fn suspend(pids: &[u32]) {
    for pid in pids {
        signal(*pid, SIGSTOP);
    }
    // Whoever ended first stays a zombie for as long as his parent is stopped.
    let still = |pid: &u32| stat(*pid).first().is_none_or(|s| s == "T" || s == "Z");
    until("all to be stopped", || pids.iter().all(still));
    let began = Instant::now();
    until("a while to pass", || {
        began.elapsed() > Duration::from_millis(700)
    });
    for pid in pids {
        signal(*pid, SIGCONT);
    }
}

#[test]
fn whoever_of_a_run_is_suspended_and_goes_on_the_run_ends_as_if_nothing_had_been() {
    for who in ["conductor", "shim", "leaf", "everything"] {
        let scene = plain();
        scene.hold("developer-green");
        let run = start(&scene, &[]);
        let leaf = scene.begun("developer-green");
        let pids = match who {
            "conductor" => vec![run.id()],
            "shim" => vec![parent(leaf)],
            "leaf" => vec![leaf],
            _ => all_of(&scene),
        };
        suspend(&pids);
        scene.let_go("developer-green");
        wait(run).expect(0);
        assert_eq!(launches_of(&scene, "developer green"), 1, "{who}");
        is_finished(&scene);
    }
}

#[test]
fn an_answer_that_comes_while_conductor_or_shim_is_suspended_is_waited_for() {
    for who in ["conductor", "shim"] {
        let scene = plain();
        scene.hold("developer-green");
        let run = start(&scene, &[]);
        let leaf = scene.begun("developer-green");
        let pid = if who == "shim" {
            parent(leaf)
        } else {
            run.id()
        };
        signal(pid, SIGSTOP);
        scene.let_go("developer-green");
        until("the leaf to end", || !alive(leaf));
        if who == "conductor" {
            // It is suspended, not dead: nobody takes its place.
            scene.tdd(&[]).expect(13).says("already running");
        }
        signal(pid, SIGCONT);
        wait(run).expect(0);
        assert_eq!(launches_of(&scene, "developer green"), 1, "{who}");
        is_finished(&scene);
    }
}

#[test]
fn a_suite_that_is_suspended_and_goes_on_is_no_failed_check() {
    let scene = plain();
    scene.suite_can_be_held();
    scene.hold("developer-green");
    let run = start(&scene, &[]);
    scene.begun("developer-green");
    scene.forget("suite");
    scene.hold("suite");
    scene.let_go("developer-green");
    let suite = scene.begun("suite");
    suspend(&[suite, parent(suite)]);
    suspend(&all_of(&scene));
    scene.let_go("suite");
    wait(run).expect(0);
    assert_eq!(launches_of(&scene, "developer green"), 1);
    is_finished(&scene);
}

#[test]
fn a_git_that_is_suspended_in_the_middle_of_a_commit_and_goes_on_commits_once() {
    let scene = plain();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    let hook = scene.repo().join(".git/hooks/commit-msg");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(
        &hook,
        "#!/bin/sh\n(sleep 0.5; kill -CONT $PPID) &\nkill -STOP $PPID\n",
    )
    .unwrap();
    executable(&hook);
    scene.tdd(&[]).expect(0);
    is_finished(&scene);
}
