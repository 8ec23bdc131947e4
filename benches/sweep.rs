//! From the deadline of a leaf to its whole tree gone: 500 descendants in 50 sessions, half of them daemons.
//!
//! Prints times, fails nothing: `cargo bench --bench sweep`.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)] // a measurement, not a program

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use veri::leaf::{self, KillWhy, LaunchId, Records, Spec};

const SESSIONS: usize = 50;
const MEMBERS: usize = 10;

/// How often each is measured; the slowest counts.
const ROUNDS: usize = 3;

/// Other processes on the machine, as a developer's desktop or a build server has them.
const OTHERS: usize = 2000;

fn main() {
    println!(
        "from the deadline to the whole tree gone, {} descendants in {SESSIONS} sessions (the slowest of {ROUNDS}; {})",
        SESSIONS * MEMBERS,
        leaf::reach(),
    );
    let grace = leaf::DEFAULT_GRACE;
    show("heeding TERM", "obeying", grace, Duration::ZERO);
    show("ignoring TERM, after the grace", "ignoring", grace, grace);
    let others: Vec<Others> = std::iter::repeat_with(Others::new).take(OTHERS).collect();
    println!("the same beside {} other processes", others.len());
    show("heeding TERM", "obeying", grace, Duration::ZERO);
    show("ignoring TERM, after the grace", "ignoring", grace, grace);
}

/// One more process that is none of the leaf's.
struct Others(Child);

impl Others {
    fn new() -> Others {
        Others(Command::new("sleep").arg("1000").spawn().unwrap())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn show(what: &str, mode: &str, grace: Duration, without: Duration) {
    let slowest = (0..ROUNDS).map(|_| gone(mode, grace)).max().unwrap();
    println!(
        "{:>10.1} ms  {what} (with the grace of {} s: {:.2} s)",
        slowest.saturating_sub(without).as_secs_f64() * 1e3,
        grace.as_secs(),
        slowest.as_secs_f64(),
    );
}

/// From the deadline to nothing left, as who looks on from outside sees it.
fn gone(mode: &str, grace: Duration) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().join("work");
    fs::create_dir(&cwd).unwrap();
    let records = Records::new(dir.path().join("tdd"))
        .unwrap()
        .with_shim(env!("CARGO_BIN_EXE_veri"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tree.sh");
    let words = [SESSIONS.to_string(), MEMBERS.to_string(), mode.to_owned()];
    let argv = [OsString::from("sh"), script.into()];
    let spec = Spec {
        name: "tree".to_owned(),
        launch: LaunchId::random().unwrap(),
        argv: argv.into_iter().chain(words.map(OsString::from)).collect(),
        cwd: cwd.clone(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        stdin: None,
        stdout: records.out("tree"),
        stderr: records.err("tree"),
        wall: Duration::from_secs(600),
        grace,
        output_cap: None,
        watch: None,
        sandbox: None,
    };
    let mut running = leaf::start(&records, &spec).unwrap();
    let mut deadline = None;
    running
        .wait(None, &mut || {
            let stands = cwd.join("ready").exists();
            deadline = stands.then(Instant::now);
            stands.then_some(KillWhy::Wall)
        })
        .unwrap();
    while members(&cwd) > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = deadline.unwrap().elapsed();
    let swept = running.record().unwrap().unwrap().swept as usize;
    assert!(swept >= SESSIONS * MEMBERS, "only {swept} were there");
    took
}

/// How many processes have this working folder.
fn members(cwd: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter(|p| fs::read_link(p.as_ref().unwrap().path().join("cwd")).is_ok_and(|d| d == cwd))
        .count()
}
