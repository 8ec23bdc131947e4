//! What a leaf left running cannot alter what anybody is judged on after it: the next leaf's tree, the candidate, the
//! commit.
#![cfg(target_os = "linux")] // the tree is only swept whole where there is a subreaper

use crate::scene::{Agent, Scene};
use crate::watching::{ONE_STEP, is_finished, kill, noting, plain, start, until};
use std::fs;

/// A daemon of the developer's that writes into the working tree for as long as it lives, once its leaf has ended and
/// `late` says so. It heeds no TERM; nameless, it bears no launch id in its environment either.
fn late(scene: &Scene, nameless: bool) -> String {
    let name = if nameless {
        "env -i \"PATH=$PATH\" "
    } else {
        ""
    };
    let d = scene.path("").display().to_string();
    format!(
        "({name}setsid sh -c 'trap \"\" TERM; echo $$ >\"{d}/daemon\"; while [ ! -e \"{d}/late\" ]; do sleep 0.01; done; \
         while :; do echo late >src/late.sh; echo late >tests/late.sh; echo written >>\"{d}/wrote\"; sleep 0.005; done' <&- >&- 2>&- &)\n\
         while [ ! -s '{d}/daemon' ]; do sleep 0.01; done"
    )
}

/// A run of one step whose developer leaves the daemon in red and does what is said.
fn scene(then: &str, nameless: bool) -> Scene {
    let scene = plain();
    let good = Agent::default();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: format!(
            "{}\nif [ ! -e '{2}' ]; then {1}\n{then}\nfi",
            good.red,
            late(&scene, nameless),
            scene.path("daemon").display()
        ),
        ..good
    }));
    scene
}

/// Nothing that the daemon wrote is in any commit, and it is gone.
fn is_fenced(scene: &Scene) {
    is_finished(scene);
    let pid = fs::read_to_string(scene.path("daemon")).unwrap();
    // Whoever adopted it may be slow to bury it.
    assert!(!crate::processes::alive(pid.trim().parse().unwrap()));
    let branch = scene.git(&[
        "log",
        "--all",
        "--name-only",
        "--format=",
        "--grep",
        "greet",
    ]);
    assert!(!branch.contains("late"), "{branch}");
    scene.nothing_is_left_running();
}

#[test]
fn a_daemon_cannot_write_into_the_tree_once_its_leaf_has_been_judged() {
    for nameless in [false, true] {
        let scene = scene(":", nameless);
        // It may write from the moment at which somebody judges its leaf's work.
        let suite = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
        let tell = format!(
            "[ ! -e '{0}/daemon' ] || touch '{0}/late'",
            scene.path("").display()
        );
        scene.write("run-tests.sh", format!("{tell}\n{suite}"));
        scene.commit_all("the suite lets it write");
        scene.tdd(&[]).expect(0);
        assert!(scene.path("late").exists() && !scene.path("wrote").exists());
        is_fenced(&scene);
    }
}

#[test]
fn a_daemon_of_a_leaf_that_killed_its_shim_is_fenced_off_the_next_leaf() {
    for nameless in [false, true] {
        let scene = scene("kill -9 $PPID; sleep 1000", nameless);
        scene.tdd(&[]).bails("killed-external");
        fs::write(scene.path("late"), "").unwrap();
        scene.tdd(&[]).expect(0);
        assert!(!scene.path("wrote").exists());
        is_fenced(&scene);
    }
}

#[test]
#[allow(clippy::print_stdout)] // a test that is skipped says so
fn a_daemon_that_outlived_everybody_writes_until_the_resume_and_nothing_of_it_is_committed() {
    // Nameless, only a control group tells whose it was.
    for nameless in [false, true] {
        if nameless && !veri::leaf::reach().cgroup {
            println!("skipped: no control group can be made here, so a nameless one is not tried");
            return;
        }
        let scene = scene("echo up >up; sleep 1000", nameless);
        let run = start(&scene, &[]);
        until("the daemon", || {
            scene.path("daemon").exists() && scene.worktree().join("up").exists()
        });
        let text = fs::read_to_string(scene.worktree().join(".tdd/developer-red.pid"));
        let text = text
            .or_else(|_| fs::read_to_string(scene.worktree().join(".tdd/develop-red.pid")))
            .unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let shim = u32::try_from(record["pid"].as_u64().unwrap()).unwrap();
        use nix::sys::signal::Signal;
        crate::watching::signal(run.id(), Signal::SIGSTOP);
        crate::watching::signal(shim, Signal::SIGKILL);
        kill(run);
        fs::write(scene.path("late"), "").unwrap();
        until("it to write", || scene.path("wrote").exists());
        scene.tdd(&[]).expect(0);
        is_fenced(&scene);
    }
}
