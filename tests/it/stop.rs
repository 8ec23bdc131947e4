//! Stops: asked for by command, by file and by signal, in every kind of wait; and going on afterwards.

use crate::scene::{Agent, Ran, Scene, wait};
use crate::watching::{ONE_STEP, all_of, kill, noting, plain, signal, start, until};
use nix::sys::signal::Signal;
use std::fs;
use veri::event::Kind;

impl Scene {
    /// `veri stop 42` with a mode, which finds the run.
    #[track_caller]
    fn stop(&self, mode: &str) {
        let ran = self.veri(&["stop", "42", "--mode", mode]).expect(0);
        assert!(
            ran.out.contains("asked the run of issue 42 to stop"),
            "{}",
            ran.out
        );
    }

    /// Asserts that no request is left, no revision was spent and nothing runs.
    #[track_caller]
    fn is_stopped(&self, ran: Ran) -> Ran {
        let ran = ran.expect(12).says("goes on");
        assert!(ran.last().starts_with("stopped: "), "{}", ran.err);
        assert!(!self.worktree().join(".tdd/stop").exists());
        self.nothing_is_left_running();
        self.worktree_is_clean();
        ran
    }

    fn spent(&self) -> usize {
        self.lines()
            .iter()
            .filter(|l| l.event == Kind::Revise)
            .count()
    }
}

#[test]
fn each_mode_is_obeyed_while_a_leaf_runs_and_a_rerun_spends_nothing() {
    let scene = Scene::new();
    let mut agent = noting(Agent::default());
    agent.red = format!("echo half > src/half.sh\n{}\nrm src/half.sh", agent.red);
    scene.agent(&agent);

    scene.hold("developer-red");
    let run = start(&scene, &[]);
    let leaf = scene.begun("developer-red");
    until("its work", || scene.worktree().join("src/half.sh").exists());
    scene.stop("now");
    scene.is_stopped(wait(run)).says("stopped: now");
    assert!(!all_of(&scene).contains(&leaf));
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
    let listed = scene.veri(&["discarded", "42"]).expect(0).out;
    assert!(listed.contains("src/half.sh"), "{listed}");
    scene.veri(&["discarded", "42", "--apply"]).expect(0);
    assert_eq!(
        fs::read_to_string(scene.repo().join("src/half.sh")).unwrap(),
        "half\n"
    );
    fs::remove_file(scene.repo().join("src/half.sh")).unwrap();
    // Where it does not fit, what is said to be done is what helps.
    scene.git(&["switch", "-q", "-c", "aside"]);
    scene.write("src/half.sh", "mine\n");
    scene.commit_all("mine");
    let ran = scene.veri(&["discarded", "42", "--apply"]).expect(10);
    assert!(ran.err.contains("conflicts in: src/half.sh"), "{ran:?}");
    let told = ran
        .err
        .split("`git ")
        .nth(1)
        .and_then(|t| t.split('`').next());
    let words: Vec<&str> = told.unwrap().split(' ').collect();
    assert_eq!(words[..2], ["switch", "--detach"]);
    scene.git(&words);
    scene.veri(&["discarded", "42", "--apply"]).expect(0);
    fs::remove_file(scene.repo().join("src/half.sh")).unwrap();
    scene.git(&["switch", "-q", "main"]);
    let thread = scene.comments().join("\n");
    assert!(
        thread.contains("issue-42:stop") && thread.contains("veri tdd 42"),
        "{thread}"
    );

    // The leaf may end, and what it says is used; no other is started.
    scene.forget("developer-red");
    let run = start(&scene, &[]);
    scene.begun("developer-red");
    scene.stop("at-leaf");
    scene.let_go("developer-red");
    scene.is_stopped(wait(run)).says("stopped: at-leaf");
    let red = ["planner plan ", "developer red 1", "developer red 1"];
    assert_eq!(scene.launches(), red);
    // The next start goes on from what it made: that is no discarded work.
    assert_eq!(scene.veri(&["discarded", "42"]).expect(0).out, listed);

    // The step may end: its test, its code, and what there is to tidy.
    scene.hold("verifier-red");
    let run = start(&scene, &[]);
    scene.begun("verifier-red");
    scene.stop("at-ledger");
    scene.let_go("verifier-red");
    scene.is_stopped(wait(run)).says("stopped: at-ledger");
    assert_eq!(
        scene.subjects(),
        ["plan: issue 42 in 2 steps", "greet takes a name"]
    );
    assert_eq!(scene.launches().last().unwrap(), "developer refactor 1");

    scene.tdd(&[]).expect(0);
    assert_eq!(scene.spent(), 0);
    assert!(
        scene.launches().iter().all(|l| !l.ends_with('2')),
        "{:?}",
        scene.launches()
    );
    assert_eq!(scene.subjects().len(), 3);
}

#[test]
fn a_request_without_a_mode_counts_as_at_ledger_and_the_doubt_is_said() {
    let scene = Scene::new();
    scene.agent(&noting(Agent::default()));
    let ask = |who: &str, write: &dyn Fn(&std::path::Path)| {
        scene.hold(who);
        let run = start(&scene, &[]);
        scene.begun(who);
        write(&scene.worktree().join(".tdd/stop"));
        scene.let_go(who);
        scene.forget(who);
        scene.is_stopped(wait(run)).says("stopped: at-ledger")
    };
    // While planning: after the plan is committed.
    let ran = ask("planner-plan", &|file| fs::write(file, "").unwrap());
    assert!(
        ran.out.contains("is empty") && ran.out.contains("counts as at-ledger"),
        "{}",
        ran.out
    );
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
    let ran = ask("developer-green", &|file| {
        fs::write(file, b"\xff soon").unwrap()
    });
    assert!(ran.out.contains("counts as at-ledger"), "{}", ran.out);
    assert_eq!(scene.subjects().len(), 2);
    let ran = ask("developer-green", &|file| fs::create_dir(file).unwrap());
    assert!(ran.out.contains("is not a file"), "{}", ran.out);
    assert_eq!(scene.subjects().len(), 3);
    // Every step was finished; what was left is publishing.
    assert_eq!(scene.pull(), None);
    scene.tdd(&[]).expect(0);
    assert!(scene.pull().is_some());
    assert_eq!(scene.spent(), 0);
}

#[test]
fn signals_and_stops_are_obeyed_in_every_wait_and_publishing_is_finished() {
    let scene = plain();
    scene.suite_can_be_held();
    scene.write("notes.md", "one\n");
    scene.commit_all("notes");

    // The baseline: nothing of the run is on any branch.
    scene.hold("suite");
    let run = start(&scene, &[]);
    let suite = scene.begun("suite");
    scene.stop("now");
    scene.is_stopped(wait(run)).says("stopped: now");
    assert!(!all_of(&scene).contains(&suite));
    assert_eq!(scene.git(&["branch", "--list", "tdd/*"]), "");
    scene.let_go("suite");

    // A planner that is ended.
    scene.hold("planner-plan");
    let run = start(&scene, &[]);
    let planner = scene.begun("planner-plan");
    signal(run.id(), Signal::SIGHUP);
    signal(run.id(), Signal::SIGINT);
    until("how to press on", || scene.said("press Ctrl-C again"));
    assert!(
        all_of(&scene).contains(&planner),
        "a first Ctrl-C lets the leaf end"
    );
    signal(run.id(), Signal::SIGTERM);
    scene.is_stopped(wait(run)).says("stopped: now");
    scene.let_go("planner-plan");

    // The suite of a check.
    scene.hold("developer-red");
    let run = start(&scene, &[]);
    scene.begun("developer-red");
    scene.forget("suite");
    scene.hold("suite");
    scene.let_go("developer-red");
    scene.begun("suite");
    signal(run.id(), Signal::SIGINT);
    until("how to press on", || scene.said("press Ctrl-C again"));
    signal(run.id(), Signal::SIGINT);
    scene.is_stopped(wait(run)).says("stopped: now");
    scene.let_go("suite");

    // A verifier that may end: its verdict is used.
    scene.hold("verifier-red");
    let run = start(&scene, &[]);
    scene.begun("verifier-red");
    signal(run.id(), Signal::SIGTERM);
    until("how to press on", || scene.said("press Ctrl-C again"));
    scene.let_go("verifier-red");
    scene.is_stopped(wait(run)).says("stopped: at-leaf");
    assert!(
        scene.own_refs().iter().any(|r| r.ends_with("/red")),
        "the approved red is kept"
    );

    // A leaf of a conductor that was killed, stopped while the next one waits for it.
    scene.hold("developer-green");
    let run = start(&scene, &[]);
    scene.begun("developer-green");
    kill(run);
    let run = start(&scene, &[]);
    until("the next start to wait", || {
        scene.said("still runs: it is taken up")
    });
    scene.stop("now");
    scene.is_stopped(wait(run)).says("stopped: now");
    scene.let_go("developer-green");
    scene.forget("developer-green");

    // Publishing: main has moved on, so that the merge is tried, and its suite can be held.
    scene.hold("verifier-green");
    let run = start(&scene, &[]);
    scene.begun("verifier-green");
    scene.write("notes.md", "two\n");
    scene.commit_all("main moves on");
    scene.hold("merged");
    scene.let_go("verifier-green");
    scene.begun("merged");
    scene.stop("now");
    until("the answer", || {
        scene.said("publishing has begun: the run is finished first")
    });
    scene.let_go("merged");
    wait(run).expect(0).says("done: ");
    assert!(!scene.worktree().join(".tdd/stop").exists());
    assert!(scene.pull().unwrap().contains("draft: true"));
    assert_eq!(scene.spent(), 0);
    assert!(
        scene.launches().iter().all(|l| !l.ends_with('2')),
        "{:?}",
        scene.launches()
    );
    scene.nothing_is_left_running();
}

#[test]
fn a_stop_of_nothing_writes_nothing_and_the_plumbing_tells_what_is_asked() {
    let scene = Scene::new();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    let ran = scene.veri(&["stop"]).expect(0);
    assert!(ran.out.contains("nothing to stop"), "{}", ran.out);
    assert!(!scene.repo().join(".tdd").exists());
    assert_eq!(fs::read_dir(scene.path("state")).unwrap().count(), 0);
    scene.tdd(&["--plan-only"]).expect(0);
    let ran = scene.veri(&["stop", "42", "--mode", "now"]).expect(0);
    assert!(
        ran.out.contains("no run is going on for issue 42"),
        "{}",
        ran.out
    );
    let file = scene.worktree().join(".tdd/stop");
    assert!(!file.exists());

    let check = || {
        let mut command = scene.command(crate::scene::VERI);
        command
            .current_dir(scene.worktree())
            .args(["stop", "--check"]);
        crate::scene::finish(command)
    };
    check().expect(3);
    fs::write(&file, "at-leaf\n").unwrap();
    assert_eq!(check().expect(0).out, "at-leaf\n");
    fs::write(&file, "soonish").unwrap();
    check().expect(2).says("at-ledger");
    scene.veri(&["stop", "--mode", "tomorrow"]).expect(64);
}

/// The stop comes while a leaf that ignores TERM is being ended at its deadline: the stop is what counts, and
/// the leaf's budget is not touched.
#[test]
fn a_leaf_that_hangs_when_a_stop_comes_is_stopped_and_not_stuck() {
    let scene = plain();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: "trap '' TERM; while :; do sleep 0.05; done".to_owned(),
        ..Agent::default()
    }));
    // Whoever does what it should has as long as it takes.
    scene.tdd(&["--plan-only"]).expect(0);
    let run = start(&scene, &["--timeout", "1"]);
    scene.begun("developer-red");
    until("the deadline", || {
        let runs = fs::read_dir(scene.worktree().join(".tdd/runs"))
            .unwrap()
            .flatten();
        runs.map(|e| e.path())
            .any(|p| p.extension().is_some_and(|e| e == "kill"))
    });
    scene.stop("now");
    scene.is_stopped(wait(run)).says("stopped: now");
    let stuck = |l: &veri::event::Line| l.text("end") == "killed-stuck";
    assert!(!scene.lines().iter().any(stuck));
}

#[test]
fn a_weaker_request_takes_back_none_that_was_made_before() {
    let scene = plain();
    scene.hold("developer-red");
    let run = start(&scene, &[]);
    scene.begun("developer-red");
    scene.stop("at-leaf");
    let file = scene.worktree().join(".tdd/stop");
    let ran = scene.veri(&["stop", "42"]).expect(0);
    assert!(
        ran.out.starts_with("already asked for more: "),
        "{}",
        ran.out
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "at-leaf\n");
    let told = |l: &veri::event::Line| l.event == Kind::Stop && l.text("mode") == "at-leaf";
    until("the stop to be heard", || scene.lines().iter().any(told));
    // Nor by hand.
    fs::write(&file, "at-ledger\n").unwrap();
    scene.let_go("developer-red");
    scene.is_stopped(wait(run)).says("stopped: at-leaf");
    let launched = scene.launches();
    assert!(
        !launched.iter().any(|l| l.starts_with("verifier")),
        "{launched:?}"
    );
}

#[test]
fn a_request_that_the_runs_own_end_overtakes_is_removed_and_that_is_said() {
    let scene = plain();
    scene.agent(&Agent {
        plan: ONE_STEP.to_owned(),
        red: "echo half > tests/half.sh; echo at-ledger > .tdd/stop; echo '{\"needs_user\":\"Which?\"}'".to_owned(),
        ..Agent::default()
    });
    let ran = scene.tdd(&[]).bails("needs-user");
    assert!(ran.out.contains("the request is removed"), "{}", ran.out);
    assert!(!scene.worktree().join(".tdd/stop").exists());
}

#[test]
fn a_developer_that_was_stopped_is_told_so_by_the_next_start_and_where_its_work_is() {
    let scene = plain();
    let prompts = scene.agent_keeping_prompts(&Agent {
        plan: ONE_STEP.to_owned(),
        red: format!(
            "[ $LAUNCHES != 1 ] || {{ echo half > tests/half.sh; echo now > .tdd/stop; sleep 1000; }}\n{}",
            Agent::default().red
        ),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(12);
    scene.tdd(&[]).expect(0);
    let told = fs::read_to_string(prompts.join("developer-2")).unwrap();
    assert!(told.contains("was cut off before it ended"), "{told}");
    let kept = scene.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/veri/issue-42/discarded",
    ]);
    assert!(
        kept.lines().any(|name| told.contains(name)),
        "{kept}\n{told}"
    );
    let next = fs::read_to_string(prompts.join("developer-3")).unwrap();
    assert!(!next.contains("What came of the work"), "{next}");
}
