//! The supervisor, with real processes.
#![cfg(target_os = "linux")] // the tree is only swept whole where there is a subreaper
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // the helpers of tests are tests, too

use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use veri::cause::{Bail, Cause};
use veri::leaf::{self, AlreadyRunning, End, KillWhy, Killed, LaunchId, Records, Running, Spec};

const VERI: &str = env!("CARGO_BIN_EXE_veri");

/// Longer than any step here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder for one test: the leaf's working folder, with blanks in its name, and the records beside it.
struct House {
    dir: TempDir,
    records: Records,
}

impl House {
    fn new() -> House {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work here")).unwrap();
        let records = Records::new(dir.path().join("a .tdd"))
            .unwrap()
            .with_shim(VERI);
        House { dir, records }
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().join("work here")
    }

    fn spec(&self, argv: &[&str]) -> Spec {
        Spec {
            name: "develop-red".to_owned(),
            launch: LaunchId::random().unwrap(),
            argv: argv.iter().map(OsString::from).collect(),
            cwd: self.cwd(),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            stdin: None,
            stdout: self.records.out("develop-red"),
            stderr: self.records.err("develop-red"),
            wall: PATIENCE * 2,
            grace: Duration::from_millis(200),
            output_cap: None,
        }
    }

    fn script(&self, script: &str) -> Spec {
        self.spec(&["sh", "-c", script])
    }

    fn start(&self, script: &str) -> Running {
        leaf::start(&self.records, &self.script(script)).unwrap()
    }

    fn run(&self, script: &str) -> (End, leaf::Exit) {
        self.run_spec(&self.script(script))
    }

    fn run_spec(&self, spec: &Spec) -> (End, leaf::Exit) {
        let mut running = leaf::start(&self.records, spec).unwrap();
        let end = wait(&mut running);
        (end, running.record().unwrap().unwrap())
    }

    fn settle(&self, launch: &LaunchId) -> End {
        leaf::settle(
            &self.records,
            "develop-red",
            launch,
            Some(PATIENCE),
            &mut || None,
        )
        .unwrap()
    }

    /// The shim's pid, once it has said it.
    fn shim(&self) -> Pid {
        let newest = || self.records.newest("develop-red").unwrap();
        Pid::from_raw(until("the shim's .pid", newest).pid)
    }

    fn shim_launch(&self) -> LaunchId {
        self.shim();
        self.records.newest("develop-red").unwrap().unwrap().launch
    }

    /// A pid that the leaf wrote into a file of its working folder.
    fn pid(&self, file: &str) -> Pid {
        let path = self.cwd().join(file);
        until(file, || {
            let text = fs::read_to_string(&path).ok()?;
            Some(Pid::from_raw(text.strip_suffix('\n')?.parse().ok()?))
        })
    }

    fn out(&self) -> String {
        fs::read_to_string(self.records.out("develop-red")).unwrap()
    }

    fn err(&self) -> String {
        fs::read_to_string(self.records.err("develop-red")).unwrap()
    }

    fn veri(&self, args: &[&str]) -> Command {
        let mut command = Command::new(VERI);
        command
            .args(["leaf", "--dir"])
            .arg(self.records.dir())
            .args(args)
            .current_dir(self.cwd())
            .env_remove("VERI_TIMEOUT")
            .env_remove("VERI_LAUNCH");
        command
    }

    fn leaf(&self, args: &[&str]) -> (i32, Output) {
        let output = self.veri(args).output().unwrap();
        (output.status.code().unwrap(), output)
    }
}

/// A test that fails leaves no leaf behind either.
impl Drop for House {
    fn drop(&mut self) {
        for listed in leaf::list(&self.records).unwrap_or_default() {
            let (name, launch) = (&listed.started.leaf, &listed.started.launch);
            if listed.end == End::StillRunning {
                let _ = leaf::kill(&self.records, name, KillWhy::Stop);
                let _ = leaf::settle(&self.records, name, launch, Some(PATIENCE), &mut || None);
            }
        }
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn wait(running: &mut Running) -> End {
    let end = running.wait(Some(PATIENCE), &mut || None).unwrap();
    assert_ne!(end, End::StillRunning);
    end
}

/// Zombies count as dead.
fn alive(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|s| !s.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

fn gone(pid: Pid) {
    until("a process to be gone", || (!alive(pid)).then_some(()));
}

/// Everything that carries the launch id in its environment.
fn marked(launch: &LaunchId) -> Vec<String> {
    let entry = format!("VERI_LAUNCH={launch}");
    let processes = fs::read_dir("/proc").unwrap().map(|e| e.unwrap().path());
    processes
        .filter(|p| {
            fs::read(p.join("environ"))
                .is_ok_and(|env| env.split(|b| *b == 0).any(|e| e == entry.as_bytes()))
        })
        .map(|p| p.display().to_string())
        .collect()
}

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
fn the_wall_time_holds_when_the_launcher_is_dead() {
    let house = House::new();
    let script = "echo $$ >leaf; exec sleep 1000";
    let mut launcher = house
        .veri(&[
            "run",
            "develop-red",
            "--timeout",
            "2",
            "--",
            "sh",
            "-c",
            script,
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let leaf = house.pid("leaf");
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    gone(leaf);
    let launch = house.records.newest("develop-red").unwrap().unwrap().launch;
    assert_eq!(
        house.settle(&launch),
        End::KilledStuck { why: KillWhy::Wall }
    );
}

/// A daemon in a session of its own whose parents are gone, and which ignores TERM.
const DAEMON: &str = "setsid sh -c 'trap \"\" TERM; sh -c \"echo \\$\\$ >daemon; while :; do sleep 1000; done\" & exit' & \
     wait; while [ ! -s daemon ]; do sleep 0.01; done; ";

/// The same with an empty environment.
const BARE_DAEMON: &str = "env -i \"PATH=$PATH\" setsid sh -c 'trap \"\" TERM; sh -c \"echo \\$\\$ >bare; while :; do sleep 1000; done\" & exit' & \
     wait; while [ ! -s bare ]; do sleep 0.01; done; ";

#[test]
fn nothing_is_left_of_a_hanging_leaf_with_a_daemon_in_its_own_session() {
    let house = House::new();
    let spec = house.script(&format!(
        "{DAEMON}{BARE_DAEMON} echo $$ >leaf; exec sleep 1000"
    ));
    let mut running = leaf::start(&house.records, &spec).unwrap();
    let (daemon, bare, leaf) = (house.pid("daemon"), house.pid("bare"), house.pid("leaf"));
    assert!(alive(daemon) && alive(bare));
    let stuck = KillWhy::Stuck;
    let end = running.wait(Some(PATIENCE), &mut || Some(stuck)).unwrap();
    assert_eq!(end, End::KilledStuck { why: stuck });
    // Already, not soon.
    assert!(!alive(daemon) && !alive(bare) && !alive(leaf));
    assert_eq!(marked(&spec.launch), Vec::<String>::new());
    assert!(running.record().unwrap().unwrap().swept >= 2);
}

#[test]
fn nothing_is_left_of_a_daemon_after_a_normal_end() {
    let house = House::new();
    let (end, exit) = house.run(&format!("{DAEMON}{BARE_DAEMON} exit 4"));
    assert_eq!(end, End::Done { code: 4 });
    assert!(!alive(house.pid("daemon")) && !alive(house.pid("bare")));
    assert_eq!(marked(&exit.launch), Vec::<String>::new());
    assert!(exit.swept >= 2, "{exit:?}");
    assert_eq!(exit.unswept, 0);
}

#[test]
fn a_killed_shim_is_external_to_who_watched_and_everything_of_its_leaf_is_ended() {
    let house = House::new();
    let script = format!("{DAEMON} env -i sleep 1001 & echo $! >bare; echo $$ >leaf; wait");
    let mut running = house.start(&script);
    let (daemon, bare, leaf) = (house.pid("daemon"), house.pid("bare"), house.pid("leaf"));
    send(house.shim(), Signal::SIGKILL).unwrap();
    assert_eq!(wait(&mut running), End::KilledExternal { signal: None });
    gone(leaf);
    // No environment betrays it, but it is in the session of a shim that was not yet reaped.
    assert!(!alive(daemon) && !alive(bare));
    assert_eq!(marked(running.launch()), Vec::<String>::new());
    assert!(
        house
            .err()
            .ends_with("supervise[develop-red]: killed-external\n")
    );
    assert_eq!(running.record().unwrap(), None);
}

#[test]
fn a_killed_shim_is_lost_to_who_comes_later() {
    let house = House::new();
    let script = format!("{DAEMON} echo $$ >leaf; exec sleep 1000");
    let (code, output) = house.leaf(&["start", "develop-red", "--", "sh", "-c", &script]);
    assert_eq!(code, 0);
    let launch = LaunchId::parse(String::from_utf8(output.stdout).unwrap().trim()).unwrap();
    let (daemon, leaf) = (house.pid("daemon"), house.pid("leaf"));
    let shim = house.shim();
    send(shim, Signal::SIGKILL).unwrap();
    gone(shim);
    assert_eq!(house.settle(&launch), End::Lost);
    assert!(!alive(daemon));
    gone(leaf);
    assert_eq!(house.settle(&launch), End::Lost);
    assert!(!house.err().contains("killed-external"));
    assert_eq!(house.leaf(&["wait", "develop-red"]).0, 2);
}

#[test]
fn a_shim_that_is_killed_after_it_was_taken_up_is_external() {
    let house = House::new();
    let (code, _) = house.leaf(&["start", "develop-red", "--", "sleep", "1000"]);
    assert_eq!(code, 0);
    let shim = house.shim();
    let launch = house.records.newest("develop-red").unwrap().unwrap().launch;
    let mut killed = false;
    let end = leaf::settle(
        &house.records,
        "develop-red",
        &launch,
        Some(PATIENCE),
        &mut || {
            if !std::mem::replace(&mut killed, true) {
                send(shim, Signal::SIGKILL).unwrap();
            }
            None
        },
    );
    assert_eq!(end.unwrap(), End::KilledExternal { signal: None });
    assert_eq!(marked(&launch), Vec::<String>::new());
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
        (
            KillWhy::Stuck,
            End::KilledStuck {
                why: KillWhy::Stuck,
            },
        ),
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
fn another_takes_up_what_a_killed_launcher_left_and_gets_the_same_answer() {
    let house = House::new();
    let script = "echo $$ >leaf; while [ ! -e go ]; do sleep 0.01; done; echo answer; exit 7";
    let mut launcher: Child = house
        .veri(&["run", "develop-red", "--", "sh", "-c", script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    house.pid("leaf");
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    let launch = house.records.newest("develop-red").unwrap().unwrap().launch;
    let short = Some(Duration::from_millis(1));
    let end = leaf::settle(&house.records, "develop-red", &launch, short, &mut || None).unwrap();
    assert_eq!(end, End::StillRunning);
    fs::write(house.cwd().join("go"), "").unwrap();
    assert_eq!(house.settle(&launch), End::Done { code: 7 });
    assert_eq!(house.out(), "answer\n");
    // And whoever comes later still.
    assert_eq!(house.settle(&launch), End::Done { code: 7 });
}

#[test]
fn a_taken_up_leaf_can_be_ended() {
    let house = House::new();
    house.leaf(&["start", "develop-red", "--", "sleep", "1000"]);
    let launch = house.shim_launch();
    let stop = &mut || Some(KillWhy::Stop);
    let end = leaf::settle(&house.records, "develop-red", &launch, Some(PATIENCE), stop);
    assert_eq!(end.unwrap(), End::KilledByStop);
    assert_eq!(marked(&launch), Vec::<String>::new());
}

#[test]
fn records_of_another_launch_say_nothing_about_this_one() {
    let house = House::new();
    let (_, old) = house.run("exit 0");
    let fresh = LaunchId::random().unwrap();
    // The plain names are the old launch's.
    assert_eq!(house.settle(&fresh), End::NeverStarted);
    // Even under this launch's own name.
    for what in ["exit", "pid"] {
        fs::copy(
            house.records.run(&old.launch, what),
            house.records.run(&fresh, what),
        )
        .unwrap();
    }
    assert_eq!(house.settle(&fresh), End::NeverStarted);
    for what in ["exit", "pid"] {
        fs::write(house.records.run(&fresh, what), b"\xff{").unwrap();
    }
    assert_eq!(house.settle(&fresh), End::NeverStarted);
    // A new launch does not take the old end for its own.
    let mut running = house.start("while [ ! -e go ]; do sleep 0.01; done; exit 6");
    assert!(!house.records.exit("develop-red").exists());
    fs::write(house.cwd().join("go"), "").unwrap();
    assert_eq!(wait(&mut running), End::Done { code: 6 });
    assert_eq!(house.settle(&old.launch), End::Done { code: 0 });
}

#[test]
fn an_old_launch_is_over_when_another_is_alive() {
    let house = House::new();
    let old = LaunchId::random().unwrap();
    let mut running = house.start("echo $$ >leaf; exec sleep 1000");
    house.pid("leaf");
    assert_eq!(house.settle(&old), End::NeverStarted);
    let end = running
        .wait(Some(PATIENCE), &mut || Some(KillWhy::Stop))
        .unwrap();
    assert_eq!(end, End::KilledByStop);
}

#[test]
fn a_second_launch_of_a_living_leaf_is_refused_and_changes_nothing() {
    let house = House::new();
    let mut running = house.start("while [ ! -e go ]; do sleep 0.01; done; echo done");
    house.shim();
    let error = leaf::start(&house.records, &house.script("echo second")).unwrap_err();
    assert!(error.is::<AlreadyRunning>(), "{error:#}");
    let (code, output) = house.leaf(&["run", "develop-red", "--", "echo", "third"]);
    assert_eq!(code, 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("already running"));
    // Another leaf is not concerned.
    assert_eq!(house.leaf(&["run", "suite", "--", "true"]).0, 0);
    fs::write(house.cwd().join("go"), "").unwrap();
    assert_eq!(wait(&mut running), End::Done { code: 0 });
    assert_eq!(house.out(), "done\n");
}

#[test]
fn of_many_launches_at_once_one_is_made() {
    let house = House::new();
    let starts: Vec<_> = std::thread::scope(|scope| {
        let start = || leaf::start(&house.records, &house.script("exec sleep 1000"));
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut made: Vec<Running> = starts
        .into_iter()
        .filter_map(|s| {
            s.map_err(|e| assert!(e.is::<AlreadyRunning>(), "{e:#}"))
                .ok()
        })
        .collect();
    assert_eq!(made.len(), 1);
    made[0].kill(KillWhy::Stop).unwrap();
    assert_eq!(wait(&mut made[0]), End::KilledByStop);
}

#[test]
fn standard_input_is_the_prompt_or_nothing() {
    let house = House::new();
    let prompt = house.dir.path().join("the prompt");
    let text = "Write a test.\n".repeat(100_000);
    fs::write(&prompt, &text).unwrap();
    let mut spec = house.spec(&["cat"]);
    spec.stdin = Some(prompt);
    assert_eq!(house.run_spec(&spec).0, End::Done { code: 0 });
    assert_eq!(house.out(), text);
    assert_eq!(
        house.run_spec(&house.spec(&["cat"])).0,
        End::Done { code: 0 }
    );
    assert_eq!(house.out(), "");
}

#[test]
fn output_takes_bounded_disk_and_keeps_head_and_tail() {
    let house = House::new();
    let (cap, total) = (4u64 << 20, 50u64 << 20);
    let mut spec = house.script("echo first; yes 0123456789abcde | head -c 52428800; echo last");
    spec.output_cap = Some(cap);
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::Done { code: 0 });
    assert!(exit.truncated);
    assert_eq!(exit.bytes.stdout, total + 11);
    let path = house.records.out("develop-red");
    assert!(fs::metadata(&path).unwrap().blocks() * 512 <= cap + (64 << 10));
    let text = fs::read(&path).unwrap();
    assert!(text.starts_with(b"first\n0123456789abcde\n"));
    assert!(text.ends_with(b"0123456789abcde\nlast\n"));
}

#[test]
fn both_streams_may_be_one_file() {
    let house = House::new();
    let mut spec = house.script("for i in 1 2 3; do echo out$i; echo err$i >&2; done");
    spec.stderr = spec.stdout.clone();
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::Done { code: 0 });
    assert_eq!(house.out(), "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    assert_eq!((exit.bytes.stdout, exit.bytes.stderr), (30, 0));
    assert!(!house.records.err("develop-red").exists());
}

#[test]
fn output_elsewhere_is_brought_to_the_records_after_the_end_and_not_before() {
    // Another file system where there is one: then it has to be copied.
    let shared = Path::new("/dev/shm");
    let elsewhere = tempfile::tempdir_in(shared)
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    for killed in [false, true] {
        let house = House::new();
        let mut spec =
            house.script("echo $$ >leaf; echo verdict; while [ ! -e go ]; do sleep 0.01; done");
        spec.stdout = elsewhere.path().join("o");
        spec.stderr = elsewhere.path().join("e");
        let mut running = leaf::start(&house.records, &spec).unwrap();
        house.pid("leaf");
        assert!(!house.records.out("develop-red").exists());
        assert!(!house.records.run(&spec.launch, "out").exists());
        if killed {
            until("its words", || {
                (fs::read(&spec.stdout).unwrap() == b"verdict\n").then_some(())
            });
            send(house.shim(), Signal::SIGKILL).unwrap();
        }
        fs::write(house.cwd().join("go"), "").unwrap();
        let end = wait(&mut running);
        assert_eq!(end == End::Done { code: 0 }, !killed, "{end:?}");
        assert_eq!(house.out(), "verdict\n");
        assert_eq!(house.err().contains("killed-external"), killed);
    }
}

#[test]
fn arguments_and_variables_of_any_bytes_arrive_unchanged() {
    let house = House::new();
    let odd = OsStr::from_bytes(b"\xff\xfe a'\"$(x)`\n*");
    let mut spec = house.spec(&[
        "sh",
        "-c",
        "printf '%s|%s|%s' \"$1\" \"$ODD\" \"$VERI_LAUNCH\"",
        "--",
    ]);
    spec.argv.push(odd.to_owned());
    spec.env.push(("ODD".into(), odd.to_owned()));
    spec.env
        .push(("VERI_LAUNCH".into(), "of somebody else".into()));
    let folder = house
        .dir
        .path()
        .join(OsString::from_vec(b"f\xff older".to_vec()));
    fs::create_dir(&folder).unwrap();
    spec.cwd = folder;
    let records = Records::new(house.dir.path().join(OsStr::from_bytes(b"r\xfe ecords")))
        .unwrap()
        .with_shim(VERI);
    spec.stdout = records.out("develop-red");
    spec.stderr = records.err("develop-red");
    let mut running = leaf::start(&records, &spec).unwrap();
    assert_eq!(wait(&mut running), End::Done { code: 0 });
    let out = fs::read(records.out("develop-red")).unwrap();
    let launch = spec.launch.as_str().as_bytes();
    assert_eq!(out, [odd.as_bytes(), odd.as_bytes(), launch].join(&b'|'));
}

#[test]
fn the_leaf_inherits_its_environment_and_no_other_files() {
    let house = House::new();
    let script = "env | cut -d= -f1 | grep -vx -e _ -e PWD -e SHLVL -e OLDPWD | sort; \
         for fd in /proc/$$/fd/*; do n=${fd##*/}; [ $n -le 2 ] || readlink $fd; done; exit 0";
    // A launcher that has an open file to hand on; bash would keep a copy of its own in the leaf.
    let sh = if Path::new("/bin/dash").exists() {
        "dash"
    } else {
        "sh"
    };
    let outer = format!(
        "exec 7<{VERI}; exec env -i \"PATH=$PATH\" {VERI} leaf --dir tdd run develop-red -- {sh} -c \"$1\""
    );
    let mut command = Command::new("sh");
    command.args(["-c", &outer, "--", script]);
    assert!(
        command
            .current_dir(house.cwd())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let out = fs::read_to_string(house.cwd().join("tdd/develop-red.out")).unwrap();
    assert_eq!(
        out,
        "BASH_DEFAULT_TIMEOUT_MS\nBASH_MAX_TIMEOUT_MS\nPATH\nVERI_LAUNCH\n"
    );
}

#[test]
fn the_leaf_starts_with_no_signal_blocked_or_ignored() {
    // A shell that finds SIGCHLD blocked waits for ever, and one that finds it ignored sees no exit codes.
    let house = House::new();
    let outer = format!(
        "trap '' HUP INT TERM; exec {VERI} leaf --dir tdd run develop-red -- \
         grep -E '^Sig(Blk|Ign)' /proc/self/status"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &outer]);
    assert!(
        command
            .current_dir(house.cwd())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let out = fs::read_to_string(house.cwd().join("tdd/develop-red.out")).unwrap();
    let sets: Vec<u64> = out
        .lines()
        .map(|l| u64::from_str_radix(l.rsplit('\t').next().unwrap(), 16).unwrap())
        .collect();
    // Numbers above 31 are the C library's own.
    assert_eq!(
        sets.iter().map(|s| s & 0x7fff_ffff).collect::<Vec<_>>(),
        [0, 0],
        "{out}"
    );
}

#[test]
fn two_hundred_quick_launches_leave_no_process() {
    let house = House::new();
    let mut launches = Vec::new();
    for i in 0..200 {
        let mut running = house.start(&format!("sleep 1000 & exit {}", i % 2));
        assert_eq!(wait(&mut running), End::Done { code: i % 2 });
        launches.push(running.launch().clone());
    }
    let entries: Vec<String> = launches.iter().flat_map(marked).collect();
    assert_eq!(entries, Vec::<String>::new());
    for launch in &launches {
        let shim = house.records.started(launch).unwrap().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", shim.pid)).unwrap_or_default();
        let start = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_ascii_whitespace()
            .nth(19);
        let start = start.map(|s| s.parse::<u64>().unwrap());
        assert!(
            start.is_none() || start != shim.start,
            "a shim or its zombie is left"
        );
    }
}

#[test]
fn a_sweep_signals_nothing_that_does_not_carry_the_launch() {
    let launch = LaunchId::random().unwrap();
    let sleeper = |value: &str| {
        Command::new("sleep")
            .arg("1000")
            .env("VERI_LAUNCH", value)
            .spawn()
            .unwrap()
    };
    let mut ours = sleeper(launch.as_str());
    let mut others = [
        sleeper(LaunchId::random().unwrap().as_str()),
        sleeper(&launch.as_str()[..31]),
        sleeper(&format!("{launch}0")),
        Command::new("sleep")
            .arg("1000")
            .env("X", format!("VERI_LAUNCH={launch}"))
            .spawn()
            .unwrap(),
    ];
    let swept = leaf::sweep_launch(&launch);
    assert_eq!((swept.ended, swept.left), (1, 0));
    assert!(ours.wait().unwrap().code().is_none());
    for other in &mut others {
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

#[test]
fn an_end_that_cannot_be_recorded_is_a_storage_failure() {
    let house = House::new();
    let runs = house.records.runs();
    let mut spec = house.spec(&["sh", "-c", "rm -r \"$1\"", "--"]);
    spec.argv.push(runs.into());
    let mut running = leaf::start(&house.records, &spec).unwrap();
    let error = running.wait(Some(PATIENCE), &mut || None).unwrap_err();
    let bail = error.downcast_ref::<Bail>().unwrap();
    assert_eq!(bail.cause, Cause::StorageFailed);
    assert_eq!(marked(&spec.launch), Vec::<String>::new());
}

#[test]
fn a_supervisor_within_a_leaf_goes_with_it() {
    let house = House::new();
    let script = format!(
        "{VERI} leaf --dir inner run suite -- sh -c 'trap \"\" TERM; {}echo $$ >leaf; while :; do sleep 1000; done'",
        DAEMON.replace('\'', "'\\''")
    );
    let mut running = house.start(&script);
    let (daemon, leaf) = (house.pid("daemon"), house.pid("leaf"));
    assert!(alive(daemon) && alive(leaf));
    let end = running
        .wait(Some(PATIENCE), &mut || Some(KillWhy::Stop))
        .unwrap();
    assert_eq!(end, End::KilledByStop);
    assert!(!alive(daemon) && !alive(leaf));
}

#[test]
fn the_commands_exit_codes_are_the_promised_ones() {
    let house = House::new();
    for (command, expected) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 9"], 1),
        (&["no such program"], 1),
        (&["sh", "-c", "kill -KILL $$"], 2),
    ] {
        let args = [&["run", "develop-red", "--"], command].concat();
        assert_eq!(house.leaf(&args).0, expected, "{command:?}");
        // The same again for who only waits; a death by a signal is then lost, which is 2 as well.
        assert_eq!(
            house.leaf(&["wait", "develop-red"]).0,
            expected,
            "{command:?}"
        );
    }
    assert_eq!(house.leaf(&["run", "a/b", "--", "true"]).0, 64);
    assert_eq!(house.leaf(&["run", "develop-red"]).0, 64);
    assert_eq!(house.leaf(&["wait", "nobody"]).0, 2);
    assert_eq!(house.leaf(&["kill", "develop-red"]).0, 3);

    assert_eq!(
        house
            .leaf(&["start", "develop-red", "--", "sleep", "1000"])
            .0,
        0
    );
    assert_eq!(
        house.leaf(&["wait", "develop-red", "--max-seconds", "0"]).0,
        3
    );
    let launch = house.shim_launch();
    let listed = String::from_utf8(house.leaf(&["list"]).1.stdout).unwrap();
    assert_eq!(listed, format!("develop-red\t{launch}\tstill running\n"));
    assert_eq!(house.leaf(&["kill", "develop-red"]).0, 0);
    assert_eq!(marked(&launch), Vec::<String>::new());
    let listed = String::from_utf8(house.leaf(&["list"]).1.stdout).unwrap();
    assert_eq!(listed, format!("develop-red\t{launch}\tkilled-by-stop\n"));
    assert_eq!(house.leaf(&["wait", "develop-red"]).0, 2);
    let killed = leaf::kill(&house.records, "develop-red", KillWhy::Stop).unwrap();
    assert_eq!(killed, Killed::NotRunning);
}

#[test]
fn a_stop_request_refuses_a_launch_or_ends_the_wait() {
    let house = House::new();
    fs::create_dir_all(house.records.dir()).unwrap();
    let stop = house.records.dir().join("stop");
    for (mode, expected) in [
        ("at-leaf\n", 2),
        ("now", 2),
        ("at-ledger", 0),
        ("", 0),
        ("\u{1f6d1}", 0),
    ] {
        fs::write(&stop, mode).unwrap();
        let (code, output) = house.leaf(&["run", "develop-red", "--", "true"]);
        assert_eq!(code, expected, "{mode:?}");
        let said = String::from_utf8_lossy(&output.stderr).contains("refused");
        assert_eq!(said, expected == 2, "{mode:?}");
    }
    fs::remove_file(&stop).unwrap();
    let script = "echo $$ >leaf; exec sleep 1000";
    let waiting = house
        .veri(&["run", "develop-red", "--", "sh", "-c", script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let leaf = house.pid("leaf");
    fs::write(&stop, "now\n").unwrap();
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stderr, b"supervise[develop-red]: killed-by-stop\n");
    assert!(!alive(leaf));
}
