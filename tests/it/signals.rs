//! Signals of every kind, to the conductor and to `veri leaf`: what is answered, ended, ignored and left alone.

use crate::executable::executable;
use crate::scene::{Agent, Scene, VERI};
use crate::terminal::{OnTerminal, ends};
use crate::watching::{all_of, noting, signal, until};
use nix::sys::signal::Signal;
use std::fs::{self, File};
use std::io::Read;
use std::process::{Child, Stdio};
use veri::event::Kind;

impl Scene {
    /// Commit hooks that wait while they are held.
    fn hooks_can_be_held(&self) {
        let hook = self.repo().join(".git/hooks/pre-commit");
        let d = self.path("notes").display().to_string();
        let text = format!(
            "#!/bin/sh\nd='{d}'\necho $$ > \"$d/pid-hook.new\"; mv \"$d/pid-hook.new\" \"$d/pid-hook\"\n\
             while [ -e \"$d/hold-hook\" ]; do sleep 0.03; done\n"
        );
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, text).unwrap();
        executable(&hook);
    }

    /// `veri tdd 42`, standard error into a file.
    fn heard(&self, more: &[&str]) -> Child {
        let mut command = self.command(VERI);
        let err = File::create(self.path("err")).unwrap();
        command.args(self.arguments()).args(more);
        command.stdout(Stdio::null()).stderr(err).spawn().unwrap()
    }

    fn err(&self) -> String {
        fs::read_to_string(self.path("err")).unwrap_or_default()
    }
}

#[test]
fn a_git_call_that_takes_long_is_no_reason_to_wait_for_an_answer_nor_for_the_second_ctrl_c() {
    let scene = Scene::new();
    scene.agent(&noting(Agent::default()));
    scene.hooks_can_be_held();

    // In preflight, which tries whether commits can be made.
    scene.hold("hook");
    let run = scene.heard(&[]);
    let hook = scene.begun("hook");
    signal(run.id(), Signal::SIGINT);
    until("an answer", || scene.err().contains("press Ctrl-C again"));
    assert!(
        all_of(&scene).contains(&hook),
        "a first Ctrl-C ends no call"
    );
    signal(run.id(), Signal::SIGTERM);
    assert_eq!(ends(run), Some(12), "{}", scene.err());
    assert!(
        scene
            .err()
            .lines()
            .last()
            .unwrap()
            .starts_with("stopped: now"),
        "{}",
        scene.err()
    );
    scene.nothing_is_left_running();
    let answers = |scene: &Scene| {
        let said = |l: &&veri::event::Line| l.text("said").contains("press Ctrl-C again");
        scene.lines().iter().filter(said).count()
    };
    assert_eq!(answers(&scene), 1, "it is in the journal, too");

    // In the commit of a step.
    scene.let_go("hook");
    scene.hold("developer-green");
    let run = scene.heard(&[]);
    scene.begun("developer-green");
    scene.forget("hook");
    scene.hold("hook");
    scene.let_go("developer-green");
    let hook = scene.begun("hook");
    for _ in 0..2 {
        signal(run.id(), Signal::SIGINT);
        until("an answer", || scene.err().contains("press Ctrl-C again"));
    }
    assert_eq!(ends(run), Some(12), "{}", scene.err());
    assert!(!all_of(&scene).contains(&hook));
    scene.nothing_is_left_running();
    scene.worktree_is_clean();
    assert_eq!(scene.subjects().len(), 1);

    // Nothing is lost, nothing was spent, nothing is done twice.
    scene.let_go("hook");
    scene.tdd(&[]).expect(0);
    assert_eq!(scene.subjects().len(), 3);
    let spent = |l: &&veri::event::Line| l.event == Kind::Revise;
    assert_eq!(scene.lines().iter().filter(spent).count(), 0);
}

#[test]
fn ctrl_z_stops_the_conductor_alone_and_it_goes_on_where_it_was() {
    let scene = Scene::new();
    scene.agent(&noting(Agent::default()));
    scene.hold("developer-red");
    let mut terminal = OnTerminal::start(
        &scene,
        "",
        "echo has stopped\nread go\nfg > /dev/null\necho code $?",
    );
    let leaf = scene.begun("developer-red");
    terminal.types(b"\x1a");
    terminal.shows("has stopped");
    // Its leaf does not stop.
    scene.let_go("developer-red");
    until("the leaf's end", || !all_of(&scene).contains(&leaf));
    let before = scene.lines().len();
    terminal.types(b"\n");
    let shown = terminal.shows("code ");
    until("the end", || {
        scene
            .lines()
            .last()
            .is_some_and(|l| l.event == Kind::RunEnd)
    });
    assert!(scene.lines().len() > before);
    assert_eq!(
        scene.lines().last().unwrap().text("ending"),
        "done",
        "{shown}"
    );
    scene.nothing_is_left_running();
}

#[test]
fn a_conductor_that_is_stopped_from_outside_or_quit_loses_nothing() {
    let scene = Scene::new();
    scene.agent(&noting(Agent::default()));
    scene.hold("developer-red");
    let run = scene.heard(&[]);
    let leaf = scene.begun("developer-red");
    signal(run.id(), Signal::SIGSTOP);
    scene.hold("developer-green");
    scene.let_go("developer-red");
    until("the leaf's end", || !all_of(&scene).contains(&leaf));
    signal(run.id(), Signal::SIGCONT);
    // Ctrl-\ ends it at once, and its leaf goes on.
    let leaf = scene.begun("developer-green");
    signal(run.id(), Signal::SIGQUIT);
    assert_eq!(ends(run), None);
    assert!(all_of(&scene).contains(&leaf));
    let run = scene.heard(&[]);
    until("the next start", || {
        scene.lines().iter().any(|l| l.event == Kind::Resume)
    });
    scene.let_go("developer-green");
    assert_eq!(ends(run), Some(0), "{}", scene.err());
    let greens = scene.launches();
    let greens = greens.iter().filter(|l| l.starts_with("developer green"));
    assert_eq!(
        greens.count(),
        2,
        "the leaf was taken up, not launched again"
    );
    scene.nothing_is_left_running();
}

#[test]
fn ctrl_c_at_veri_leaf_ends_the_wait_and_not_the_leaf() {
    let scene = Scene::bare();
    let script = "echo $$ > pid.new; mv pid.new ../notes/pid-leaf; while [ -e ../notes/hold-leaf ]; do sleep 0.03; done; exit 7";
    scene.hold("leaf");
    let mut command = scene.command(VERI);
    command.args(["leaf", "run", "job", "--", "sh", "-c", script]);
    let run = command.stderr(Stdio::null()).spawn().unwrap();
    let leaf = scene.begun("leaf");
    let wait = || {
        scene
            .command(VERI)
            .args(["leaf", "wait", "job"])
            .spawn()
            .unwrap()
    };
    for (child, sent) in [
        (run, Signal::SIGINT),
        (wait(), Signal::SIGTERM),
        (wait(), Signal::SIGHUP),
    ] {
        signal(child.id(), sent);
        assert_eq!(ends(child), None);
        assert!(all_of(&scene).contains(&leaf));
    }
    scene.let_go("leaf");
    let ran = scene.veri(&["leaf", "wait", "job"]).expect(1);
    assert!(ran.err.contains("supervise[job]: done(7)"), "{ran:?}");
    scene.nothing_is_left_running();
}

#[test]
fn whoever_only_looks_ends_quietly_with_its_reader() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let all = scene.veri(&["log"]).expect(0).out;
    let of = |args: &[&str]| {
        let (from, to) = std::io::pipe().unwrap();
        let err = File::create(scene.path("err")).unwrap();
        let mut command = scene.command(VERI);
        let child = command.args(args).stdout(to).stderr(err).spawn().unwrap();
        (from, child)
    };
    let quietly = |child: Child| {
        assert_eq!(ends(child), Some(0));
        assert_eq!(scene.err(), "");
    };
    // All is printed, and nothing more will ever come.
    let (mut from, child) = of(&["log", "--follow"]);
    let mut shown = vec![0; all.len()];
    from.read_exact(&mut shown).unwrap();
    assert_eq!(String::from_utf8(shown).unwrap(), all);
    drop(from);
    quietly(child);
    for args in [&["log"][..], &["status"], &["status", "--json"]] {
        let (from, child) = of(args);
        drop(from);
        quietly(child);
    }
}

/// The terminal sends it to the whole group in its foreground: the leaf and its supervisor are in none of it.
#[test]
fn a_ctrl_c_that_is_typed_reaches_the_conductor_alone_and_the_agent_finishes() {
    let scene = Scene::unconfined();
    scene.agent(&noting(Agent::default()));
    scene.hold("developer-red");
    let mut terminal = OnTerminal::start(&scene, "", "echo code $?");
    let leaf = scene.begun("developer-red");
    terminal.types(b"\x03");
    terminal.shows("press Ctrl-C again");
    assert!(all_of(&scene).contains(&leaf));
    scene.let_go("developer-red");
    let shown = terminal.shows("code ");
    assert!(shown.contains("stopped: at-leaf"), "{shown}");
    scene.nothing_is_left_running();
    scene.tdd(&[]).expect(0);
    assert_eq!(scene.subjects().len(), 3);
}

/// Whoever closes the terminal, or logs out, asks for nothing.
#[test]
fn a_hangup_is_no_request_however_often_it_comes() {
    let scene = Scene::unconfined();
    scene.agent(&noting(Agent::default()));
    scene.hold("developer-red");
    let run = scene.heard(&[]);
    scene.begun("developer-red");
    // One after the other: signals of one kind that wait are one.
    for _ in 0..3 {
        signal(run.id(), Signal::SIGHUP);
        let pending = || fs::read_to_string(format!("/proc/{}/status", run.id()));
        until("it to be taken", || {
            let status = pending().unwrap_or_default();
            let of = |key: &str| {
                status
                    .lines()
                    .find_map(|l| l.strip_prefix(key).map(str::trim))
            };
            of("ShdPnd:").is_none_or(|set| u64::from_str_radix(set, 16).is_ok_and(|s| s & 1 == 0))
        });
    }
    scene.let_go("developer-red");
    assert_eq!(ends(run), Some(0), "{}", scene.err());
    scene.is_done();
}
