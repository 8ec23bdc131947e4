//! The supervisor, with real processes.
#![cfg(target_os = "linux")] // the tree is only swept whole where there is a subreaper
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // the helpers of tests are tests, too

mod beyond;
mod cgroups;
mod command;
mod crowd;
mod deadlines;
mod ends;
mod frozen;
mod journal;
mod sandbox;
mod streams;
mod takeover;
mod tampered;
mod trees;

use crate::watching::found as until;
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
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
            watch: None,
            output_cap: None,
            sandbox: None,
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

fn wait(running: &mut Running) -> End {
    let end = running.wait(Some(PATIENCE), &mut || None).unwrap();
    assert_ne!(end, End::StillRunning);
    end
}

/// Zombies count as dead.
fn alive(pid: Pid) -> bool {
    crate::processes::alive(pid.as_raw().unsigned_abs())
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
