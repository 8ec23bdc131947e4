//! The deadlines of a leaf: each ends what it is for, and nothing else.

use super::*;
use veri::leaf::{Means, Pointer, Sign, Stands, Watch};

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn sign(means: Means, when: &str) -> Sign {
    Sign {
        means,
        when: vec![Stands::parse(when).unwrap()],
    }
}

/// The signs of an agent that says `{"type":"open","id":"1"}` and `{"type":"result"}`.
fn signs() -> Vec<Sign> {
    let id = Pointer::parse("/id").unwrap();
    vec![
        sign(Means::Result, "/type=result"),
        sign(Means::ToolOpened { id }, "/type=open"),
    ]
}

/// Idle after the first sign: a shell takes its time to start.
fn idle(after: f64) -> Watch {
    Watch {
        first_sign: Some(PATIENCE),
        idle: Some(seconds(after)),
        signs: signs(),
        ..Watch::default()
    }
}

impl House {
    fn watched(&self, watch: Watch, script: &str) -> (End, leaf::Exit) {
        let mut spec = self.script(script);
        spec.watch = Some(watch);
        let ended = self.run_spec(&spec);
        assert_eq!(marked(&spec.launch), Vec::<String>::new());
        // Why it was ended was written down before it was signalled, and every reader gets the same answer.
        let intent = self.records.run(&spec.launch, "kill");
        assert_eq!(ended.1.signalled_by_us, intent.exists());
        assert_eq!(self.settle(&spec.launch), ended.0);
        ended
    }
}

fn stuck(why: KillWhy) -> End {
    End::KilledStuck { why }
}

#[test]
fn a_leaf_that_gives_no_first_sign_is_ended_and_one_that_does_on_either_stream_is_not() {
    let house = House::new();
    let watch = Watch {
        first_sign: Some(seconds(2.0)),
        ..Watch::default()
    };
    let (end, exit) = house.watched(watch.clone(), "exec sleep 1000");
    assert_eq!(end, stuck(KillWhy::FirstSign));
    assert_eq!(exit.why, Some(KillWhy::FirstSign));
    assert!((2000..60_000).contains(&exit.wall_ms), "{}", exit.wall_ms);
    for stream in ["1", "2"] {
        let script = format!("echo x >&{stream}; sleep 3.5; exit 4");
        let (end, _) = house.watched(watch.clone(), &script);
        assert_eq!(end, End::Done { code: 4 });
    }
}

#[test]
fn a_leaf_that_falls_silent_is_ended_as_idle_and_one_that_goes_on_talking_is_not() {
    let house = House::new();
    let (end, exit) = house.watched(idle(0.7), "echo x; exec sleep 1000");
    assert_eq!(end, stuck(KillWhy::Idle));
    assert!(exit.wall_ms >= 700);
    let (end, exit) = house.watched(
        idle(2.0),
        "for i in 1 2 3 4 5 6; do echo x >&2; sleep 0.5; done",
    );
    assert_eq!(end, End::Done { code: 0 });
    assert!(exit.wall_ms >= 3000);
}

#[test]
fn a_transcript_that_grows_keeps_a_silent_leaf_alive() {
    let house = House::new();
    let watch = Watch {
        transcript: Some(house.cwd().join("sessions")),
        ..idle(2.0)
    };
    let script = "echo x; mkdir -p sessions/a; for i in 1 2 3 4 5 6; do echo x >>sessions/a/b.jsonl; sleep 0.5; done";
    assert_eq!(house.watched(watch, script).0, End::Done { code: 0 });
}

#[test]
fn a_busy_tool_of_an_open_call_extends_idle_once_and_never_again() {
    let house = House::new();
    let tool = "sh -c 'while :; do :; done'";
    let open = r#"echo '{"type":"open","id":"1"}'"#;
    let (end, exit) = house.watched(idle(2.5), &format!("{open}; {tool}"));
    assert_eq!(end, stuck(KillWhy::Idle));
    assert!(exit.wall_ms >= 5000, "{}", exit.wall_ms);
    // Without a call that is open, or with one that does nothing, there is nothing to wait for.
    for script in [
        format!("echo x; {tool}"),
        format!("{open}; sleep 1000 & wait"),
    ] {
        let (end, exit) = house.watched(idle(2.5), &script);
        assert_eq!(end, stuck(KillWhy::Idle));
        assert!((2500..5000).contains(&exit.wall_ms), "{}", exit.wall_ms);
    }
}

#[test]
fn a_leaf_that_lingers_after_its_result_has_answered() {
    let house = House::new();
    let watch = Watch {
        lingering: Some(seconds(0.3)),
        ..idle(100.0)
    };
    // However it takes it to be made to go.
    for trap in ["exit 143", "exit 0", ""] {
        let script = format!(
            r#"trap '{trap}' TERM; echo '{{"type":"result"}}'; sleep 1000 & while :; do wait; done"#
        );
        let (end, exit) = house.watched(watch.clone(), &script);
        assert_eq!(end, End::Lingered);
        assert_eq!(end.exit_code(), 0);
        assert!(exit.lingered && exit.signalled_by_us);
        assert_eq!(exit.why, Some(KillWhy::Lingering));
        assert!(!house.err().contains("killed-external"));
    }
    let script = r#"echo '{"type":"result"}'; exit 7"#;
    assert_eq!(house.watched(watch, script).0, End::Done { code: 7 });
}

#[test]
fn a_result_without_a_line_break_after_it_is_the_result() {
    let house = House::new();
    let watch = Watch {
        lingering: Some(seconds(0.3)),
        ..idle(2.0)
    };
    let script = r#"printf 'x\n{"type":'; sleep 0.1; printf '"result"}'; exec sleep 1000"#;
    let (end, exit) = house.watched(watch, script);
    assert_eq!((end, exit.lingered), (End::Lingered, true));
}

#[test]
fn a_result_at_the_end_of_more_output_than_can_be_caught_up_with_is_heard() {
    let house = House::new();
    let mut spec = house.script(
        r#"kill -STOP $PPID; yes '{"type":"x"}' | head -c 80000000; echo; echo '{"type":"result"}'; kill -CONT $PPID; exec sleep 1000"#,
    );
    spec.watch = Some(Watch {
        lingering: Some(seconds(0.1)),
        ..idle(5.0)
    });
    assert_eq!(house.run_spec(&spec).0, End::Lingered);
}

#[test]
fn a_result_is_found_behind_output_that_is_too_long_to_keep() {
    let house = House::new();
    let mut spec = house.script(
        r#"yes '{"type":"x"}' | head -c 8000000; echo; echo '{"type":"result"}'; exec sleep 1000"#,
    );
    spec.output_cap = Some(64 * 1024);
    spec.watch = Some(Watch {
        lingering: Some(seconds(0.1)),
        ..idle(100.0)
    });
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::Lingered);
    assert!(exit.truncated);
}

#[test]
fn an_idle_leaf_has_its_grace_and_no_more() {
    let house = House::new();
    // It is asked first,
    let script = "trap 'echo asked; exit 0' TERM; echo x; sleep 1000 & while :; do wait; done";
    let mut spec = house.script(script);
    spec.watch = Some(idle(0.3));
    spec.grace = PATIENCE;
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, stuck(KillWhy::Idle));
    assert_eq!((exit.code, house.out().as_str()), (Some(0), "x\nasked\n"));
    // and then made to.
    let mut spec = house.script("trap '' TERM; echo x; while :; do sleep 1000; done");
    spec.watch = Some(idle(0.3));
    spec.grace = seconds(0.5);
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, stuck(KillWhy::Idle));
    assert_eq!(exit.signal, Some(9));
    assert!(exit.wall_ms >= 800, "{}", exit.wall_ms);
}

#[test]
fn a_leaf_that_is_suspended_and_continued_was_neither_idle_nor_without_a_first_sign() {
    let house = House::new();
    let watch = Watch {
        first_sign: Some(seconds(2.0)),
        ..idle(2.0)
    };
    for before in ["", "echo x;"] {
        let script = format!(
            "{before} (exec >&- 2>&-; sleep 4.5; kill -CONT $$) & kill -STOP $$; echo awake; exit 3"
        );
        assert_eq!(
            house.watched(watch.clone(), &script).0,
            End::Done { code: 3 }
        );
        assert!(house.out().ends_with("awake\n"));
    }
}

#[test]
fn a_leaf_that_stays_suspended_is_ended_at_its_wall_time() {
    let house = House::new();
    let mut spec = house.script("echo x; kill -STOP $$");
    spec.watch = Some(idle(1.0));
    spec.wall = seconds(3.0);
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, stuck(KillWhy::Wall));
    assert!(exit.wall_ms >= 3000);
}

#[test]
fn a_shim_that_was_stopped_and_continued_does_not_take_the_gap_for_idleness() {
    let house = House::new();
    let script =
        "echo x; sleep 0.5; kill -STOP $PPID; sleep 5; kill -CONT $PPID; sleep 0.3; exit 6";
    assert_eq!(house.watched(idle(3.0), script).0, End::Done { code: 6 });
}

#[test]
fn a_shim_that_hangs_is_ended_with_its_tree_after_wall_and_grace_and_backstop() {
    let house = House::new();
    let records = house.records.clone().with_backstop(seconds(0.3));
    let script =
        "setsid sleep 1000 & echo $! >daemon; echo $$ >leaf; kill -STOP $PPID; exec sleep 1000";
    let spec = |wall: f64| {
        let mut spec = house.script(script);
        spec.wall = seconds(wall);
        spec
    };
    let gone_all = |spec: &Spec| {
        for file in ["leaf", "daemon"] {
            gone(house.pid(file));
            fs::remove_file(house.cwd().join(file)).unwrap();
        }
        assert_eq!(marked(&spec.launch), Vec::<String>::new());
        assert!(!house.err().contains("killed-external"));
    };
    // By who launched it,
    let launched = spec(1.0);
    let mut running = leaf::start(&records, &launched).unwrap();
    assert_eq!(wait(&mut running), stuck(KillWhy::Wall));
    gone_all(&launched);
    // by who takes it up,
    let taken_up = spec(1.0);
    drop(leaf::start(&records, &taken_up).unwrap());
    let name = "develop-red";
    let end = leaf::settle(
        &records,
        name,
        &taken_up.launch,
        Some(PATIENCE),
        &mut || None,
    );
    assert_eq!(end.unwrap(), stuck(KillWhy::Wall));
    gone_all(&taken_up);
    // and when it does not do what it is asked to.
    let stopped = spec(1000.0);
    let mut running = leaf::start(&records, &stopped).unwrap();
    house.pid("leaf");
    let end = running.wait(Some(PATIENCE), &mut || Some(KillWhy::Stop));
    assert_eq!(end.unwrap(), End::KilledByStop);
    gone_all(&stopped);
}

#[test]
fn the_plumbing_takes_every_deadline_and_says_which_one_was_passed() {
    let house = House::new();
    let run = |args: &[&str], script: &str| {
        let mut all = vec!["run", "develop-red", "--grace", "0"];
        if !args.contains(&"--timeout") {
            all.extend(["--timeout", "60"]);
        }
        all.extend(args);
        all.extend(["--", "sh", "-c", script]);
        let (code, output) = house.leaf(&all);
        (code, String::from_utf8(output.stderr).unwrap())
    };
    for (args, script, code, said) in [
        (
            &["--first-sign", "1"][..],
            "exec sleep 1000",
            2,
            "killed-stuck (first-sign)",
        ),
        (
            &["--idle", "1"],
            "echo x; exec sleep 1000",
            2,
            "killed-stuck (idle)",
        ),
        (
            &[
                "--result",
                "/type=done",
                "--result",
                "/type=result",
                "--lingering",
                "0",
            ],
            r#"echo '{"type":"result"}'; exec sleep 1000"#,
            0,
            "lingered",
        ),
        (
            &["--timeout", "1"],
            "exec sleep 1000",
            2,
            "killed-stuck (wall)",
        ),
        (&["--result", "type"], "true", 64, "POINTER=VALUE"),
        (&["--lingering", "1"], "true", 64, "--result"),
    ] {
        let (got, err) = run(args, script);
        assert_eq!(got, code, "{args:?}: {err}");
        assert!(err.contains(said), "{args:?}: {err}");
    }
}
