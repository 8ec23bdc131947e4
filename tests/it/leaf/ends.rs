//! Every way a leaf can end.

use super::*;

#[test]
fn a_leaf_that_ends_by_itself_is_done_with_its_code() {
    let house = House::new();
    for code in [0, 1, 3, 255] {
        let (end, exit) = house.run(&format!("echo out; echo err >&2; exit {code}"));
        assert_eq!(end, End::Done { code });
        assert_eq!((exit.code, exit.signal), (Some(code), None));
        assert!(!exit.signalled_by_us && !exit.signalled_by_others && !exit.truncated);
        assert_eq!((exit.bytes.stdout, exit.bytes.stderr), (4, 4));
        assert_eq!((exit.swept, exit.unswept), (0, 0));
        assert!(exit.max_rss_kib > 0);
        assert_eq!(
            (house.out().as_str(), house.err().as_str()),
            ("out\n", "err\n")
        );
        // Every launch is kept, and found again by its id.
        assert_eq!(house.settle(&exit.launch), end);
        for what in ["pid", "exit", "out", "err"] {
            let kept = fs::metadata(house.records.run(&exit.launch, what)).unwrap();
            assert_eq!(kept.mode() & 0o777, 0o600, "{what}");
        }
    }
    assert_eq!(fs::read_dir(house.records.runs()).unwrap().count(), 16);
}

#[test]
fn a_program_that_is_missing_or_not_executable_is_named() {
    let house = House::new();
    fs::write(house.cwd().join("data"), "x").unwrap();
    for (program, expected) in [
        ("no such program", 127),
        ("./data", 126),
        ("./no/file", 127),
    ] {
        let (end, exit) = house.run_spec(&house.spec(&[program]));
        let End::SpawnFailed { code, message } = &end else {
            panic!("{end:?}");
        };
        assert_eq!((*code, exit.code), (expected, Some(expected)));
        assert!(message.contains(program), "{message}");
        assert_eq!(end.exit_code(), 1);
    }
    let mut spec = house.script("true");
    spec.cwd = house.dir.path().join("gone");
    let (end, _) = house.run_spec(&spec);
    assert!(matches!(end, End::SpawnFailed { code: 126, message } if message.contains("gone")));
}

#[test]
fn a_leaf_that_ignores_term_is_ended_at_its_wall_time() {
    let house = House::new();
    let mut spec = house.script("trap '' TERM; echo $$ >leaf; while :; do sleep 1000; done");
    spec.wall = Duration::from_millis(1500);
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::KilledStuck { why: KillWhy::Wall });
    assert!(exit.signalled_by_us);
    assert_eq!((exit.why, exit.signal), (Some(KillWhy::Wall), Some(9)));
    assert!(exit.wall_ms >= 1500);
    gone(house.pid("leaf"));
    assert!(!house.err().contains("killed-external"));
}

#[test]
fn a_leaf_killed_by_somebody_else_is_external_or_lost() {
    let house = House::new();
    let mut running = house.start("echo $$ >leaf; exec sleep 1000");
    send(house.pid("leaf"), Signal::SIGKILL).unwrap();
    assert_eq!(wait(&mut running), End::KilledExternal { signal: Some(9) });
    assert_eq!(house.err(), "supervise[develop-red]: killed-external\n");
    let exit = running.record().unwrap().unwrap();
    assert!(!exit.signalled_by_us);
    // Who comes later cannot know whether the whole machine was not being killed.
    assert_eq!(house.settle(running.launch()), End::Lost);
}

#[test]
fn somebody_elses_signal_to_the_shim_ends_the_leaf_and_is_not_ours() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let house = House::new();
        let script = "trap 'exit 0' TERM; echo $$ >leaf; while :; do sleep 0.01; done";
        let mut running = house.start(script);
        let leaf = house.pid("leaf");
        send(house.shim(), signal).unwrap();
        let end = wait(&mut running);
        assert_eq!(
            end,
            End::KilledExternal {
                signal: Some(signal as i32)
            }
        );
        assert!(!running.record().unwrap().unwrap().signalled_by_us);
        assert!(!alive(leaf));
    }
}

#[test]
fn a_stop_ends_the_leaf_and_is_told_from_a_watchdog() {
    for (why, expected) in [
        (KillWhy::Stop, End::KilledByStop),
        (KillWhy::Idle, End::KilledStuck { why: KillWhy::Idle }),
    ] {
        let house = House::new();
        let mut running =
            house.start("trap 'exit 0' TERM; echo $$ >leaf; while :; do sleep 0.01; done");
        let leaf = house.pid("leaf");
        let end = running.wait(Some(PATIENCE), &mut || Some(why)).unwrap();
        assert_eq!(end, expected);
        assert!(!alive(leaf));
        assert_eq!(house.settle(running.launch()), expected);
        assert!(!house.err().contains("killed-external"));
    }
}

#[test]
fn a_leaf_that_ended_before_the_kill_arrived_is_done() {
    let house = House::new();
    let mut running = house.start("exit 5");
    until("the end", || running.record().unwrap());
    running.kill(KillWhy::Stop).unwrap();
    assert_eq!(wait(&mut running), End::Done { code: 5 });
}

/// The shim hears of both at once, and the kill first.
#[test]
fn a_leaf_that_ended_just_before_its_shim_heard_of_a_kill_is_done() {
    for ours in [true, false] {
        let house = House::new();
        let mut running =
            house.start("echo $$ >leaf; while [ ! -e go ]; do sleep 0.01; done; exit 5");
        let (leaf, shim) = (house.pid("leaf"), house.shim());
        send(shim, Signal::SIGSTOP).unwrap();
        fs::write(house.cwd().join("go"), "").unwrap();
        gone(leaf);
        if ours {
            running.kill(KillWhy::Stop).unwrap();
        } else {
            send(shim, Signal::SIGTERM).unwrap();
            send(shim, Signal::SIGCONT).unwrap();
        }
        assert_eq!(wait(&mut running), End::Done { code: 5 });
    }
}

#[test]
fn a_kill_of_ours_that_somebody_else_finished_is_ours() {
    let house = House::new();
    let mut running = house.start("echo $$ >leaf; exec sleep 1000");
    let leaf = house.pid("leaf");
    let shim = house.shim();
    send(shim, Signal::SIGSTOP).unwrap();
    running.kill(KillWhy::Stop).unwrap();
    send(shim, Signal::SIGKILL).unwrap();
    assert_eq!(wait(&mut running), End::KilledByStop);
    gone(leaf);
}

#[test]
fn a_reason_that_cannot_be_written_down_ends_nobody() {
    let house = House::new();
    let mut running = house.start(
        "trap 'echo x >signalled; exit 0' TERM; echo $$ >leaf; while :; do sleep 0.01; done",
    );
    let leaf = house.pid("leaf");
    let (runs, away) = (house.records.runs(), house.dir.path().join("away"));
    fs::rename(&runs, &away).unwrap();
    let refused = running.kill(KillWhy::Stop);
    fs::rename(&away, &runs).unwrap();
    assert!(refused.is_err());
    // Whatever is asked of a shim now comes after what might have been sent before.
    assert!(alive(leaf) && !house.cwd().join("signalled").exists());
    assert_eq!(house.records.ended(running.launch()).unwrap(), None);
    running.kill(KillWhy::Stop).unwrap();
    assert_eq!(wait(&mut running), End::KilledByStop);
}

#[test]
fn a_deadline_is_written_down_before_anybody_is_signalled_so_that_a_shim_killed_then_hides_nothing()
{
    let house = House::new();
    let script = "trap 'ls \"$RUNS/$VERI_LAUNCH.kill\" >seen 2>&1; echo $? >termed' TERM\n\
                  while :; do sleep 0.01; done";
    let mut spec = house.script(script);
    spec.env.push(("RUNS".into(), house.records.runs().into()));
    (spec.wall, spec.grace) = (Duration::from_secs(1), PATIENCE * 2);
    let mut running = leaf::start(&house.records, &spec).unwrap();
    let shim = house.shim();
    assert_eq!(house.pid("termed").as_raw(), 0, "it was signalled first");
    send(shim, Signal::SIGKILL).unwrap();
    let stuck = End::KilledStuck { why: KillWhy::Wall };
    assert_eq!(wait(&mut running), stuck);
    assert_eq!(house.settle(running.launch()), stuck);
}

#[test]
fn an_end_that_cannot_be_recorded_is_a_storage_failure() {
    let house = House::new();
    // A folder that was only removed is made again; this one cannot be.
    let records = leaf::Records::new(house.dir.path().join("deep/records"))
        .unwrap()
        .with_shim(VERI);
    let mut spec = house.spec(&["sh", "-c", "rm -r ../deep; ln -s /proc ../deep"]);
    (spec.stdout, spec.stderr) = (records.out("develop-red"), records.err("develop-red"));
    let mut running = leaf::start(&records, &spec).unwrap();
    let error = running.wait(Some(PATIENCE), &mut || None).unwrap_err();
    let bail = error.downcast_ref::<Bail>().unwrap();
    assert_eq!(bail.cause, Cause::StorageFailed);
    assert_eq!(marked(&spec.launch), Vec::<String>::new());
}

#[test]
fn a_program_on_no_folder_of_the_path_is_missing_even_if_one_may_not_be_entered() {
    let house = House::new();
    let closed = house.dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    fs::write(house.cwd().join("data"), "x").unwrap();
    for (program, expected) in [("missing", 127), ("data", 126)] {
        let mut spec = house.spec(&[program]);
        let path = std::env::join_paths([closed.clone(), house.cwd()]).unwrap();
        spec.env = vec![("PATH".into(), path)];
        let (end, _) = house.run_spec(&spec);
        assert!(
            matches!(end, End::SpawnFailed { code, .. } if code == expected),
            "{end:?}"
        );
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

/// The program that supervises is veri itself: what keeps it from running is no loss that a relaunch mends.
#[test]
fn a_shim_that_cannot_supervise_is_no_launch_that_was_never_started() {
    let house = House::new();
    let shim = |text: &str| {
        let file = house.dir.path().join("veri");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        house.records.clone().with_shim(&file)
    };
    let launch = |records: &Records| -> anyhow::Result<End> {
        let mut running = leaf::start(records, &house.script("true"))?;
        running.wait(Some(PATIENCE), &mut || None)
    };
    // Killed before it could say who it is.
    let killed = launch(&shim("#!/bin/sh\nkill -KILL $$\n")).unwrap();
    assert_eq!(killed, End::KilledExternal { signal: None });
    // Replaced by another program, or gone.
    let gone = house.records.clone().with_shim("/nowhere/veri");
    for records in [
        shim("#!/bin/sh\nexit 0\n"),
        shim("#!/bin/sh\nexit 3\n"),
        gone,
    ] {
        let error = launch(&records).unwrap_err();
        let bail = error.downcast_ref::<Bail>().expect("a cause");
        assert_eq!(bail.cause, Cause::AgentUnavailable, "{error:#}");
        assert!(bail.detail.contains("own program"), "{}", bail.detail);
    }
}
