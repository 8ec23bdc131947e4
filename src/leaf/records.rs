//! The files of a launch, and what is written in them.
//!
//! `runs/<launch>.*` is the truth, named by launch id; `<leaf>.*` are further links to the newest launch's
//! files, for people and scripts. Records are written to a temporary file, synced and renamed.

use super::end::KillWhy;
use super::files::{link, make_way, remove};
use super::raw::Raw;
use super::sandbox::Confined;
use super::spec::LaunchId;
use crate::untrusted::whole;
use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::NamedTempFile;

/// The most that is read of a record, in bytes: a leaf of the same user could have put anything there.
const RECORD_LIMIT: u64 = 1024 * 1024;

/// How much longer than wall and grace a shim may take before it is itself taken for hung: more than its
/// sweeps take at their longest.
const BACKSTOP: Duration = Duration::from_secs(30);

/// The version of the records' format.
pub(super) const VERSION: u32 = 1;

/// A folder of leaf records (`.tdd`, or a ground's own), and the program that serves as shim.
#[derive(Debug, Clone)]
pub struct Records {
    dir: PathBuf,
    shim: PathBuf,
    backstop: Duration,
}

impl Records {
    /// The records in a folder, which `start` makes when it is missing. This very program is the shim, so its
    /// `main` must hand `SHIM_COMMAND` to `shim_main`.
    ///
    /// # Errors
    /// When the working folder is gone, or the program's own path cannot be found (never on Linux).
    pub fn new(dir: impl AsRef<Path>) -> anyhow::Result<Records> {
        // On Linux this leads to the running program even after an upgrade has replaced its file.
        let shim = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().context("cannot find this program's own file")?
        };
        Ok(Records {
            dir: std::path::absolute(dir.as_ref())
                .with_context(|| format!("cannot find {}", dir.as_ref().display()))?,
            shim,
            backstop: BACKSTOP,
        })
    }

    /// The same records with another program as shim: for callers that are not `veri` themselves.
    pub fn with_shim(self, shim: impl Into<PathBuf>) -> Records {
        Records {
            shim: shim.into(),
            ..self
        }
    }

    /// The same records with shims taken for hung when they take so much longer than wall and grace.
    pub fn with_backstop(self, backstop: Duration) -> Records {
        Records { backstop, ..self }
    }

    pub(super) fn backstop(&self) -> Duration {
        self.backstop
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn shim(&self) -> &Path {
        &self.shim
    }

    /// What the newest launch's shim wrote before it spawned the leaf.
    pub fn pid(&self, name: &str) -> PathBuf {
        self.plain(name, "pid")
    }

    /// How the newest launch ended.
    pub fn exit(&self, name: &str) -> PathBuf {
        self.plain(name, "exit")
    }

    /// The newest launch's standard output.
    pub fn out(&self, name: &str) -> PathBuf {
        self.plain(name, "out")
    }

    /// The newest launch's standard error.
    pub fn err(&self, name: &str) -> PathBuf {
        self.plain(name, "err")
    }

    /// The leaf's lock: held by its shim as long as that lives.
    pub fn lock(&self, name: &str) -> PathBuf {
        self.plain(name, "lock")
    }

    /// The folder that keeps every launch.
    pub fn runs(&self) -> PathBuf {
        self.dir.join("runs")
    }

    /// A file of one launch: `pid`, `exit`, `out`, `err`, `kill`.
    pub fn run(&self, launch: &LaunchId, what: &str) -> PathBuf {
        self.runs().join(format!("{launch}.{what}"))
    }

    pub(super) fn plain(&self, name: &str, what: &str) -> PathBuf {
        self.dir.join(format!("{name}.{what}"))
    }

    /// What a launch's shim wrote before it spawned the leaf; None when it never came so far.
    ///
    /// # Errors
    /// When the record is there and cannot be read.
    pub fn started(&self, launch: &LaunchId) -> anyhow::Result<Option<Started>> {
        let found: Option<Started> = read(&self.run(launch, "pid"))?;
        Ok(found.filter(|s| s.launch == *launch))
    }

    /// How a launch ended; None when no end is recorded.
    ///
    /// # Errors
    /// When the record is there and cannot be read.
    pub fn ended(&self, launch: &LaunchId) -> anyhow::Result<Option<Exit>> {
        let found: Option<Exit> = read(&self.run(launch, "exit"))?;
        Ok(found.filter(|e| e.launch == *launch))
    }

    /// The newest launch of a leaf that came so far as to write its `.pid`.
    ///
    /// # Errors
    /// When the record is there and cannot be read.
    pub fn newest(&self, name: &str) -> anyhow::Result<Option<Started>> {
        read(&self.pid(name))
    }

    /// Why veri meant to end this launch; None when it did not.
    pub(super) fn kill_intent(&self, launch: &LaunchId) -> anyhow::Result<Option<KillWhy>> {
        let path = self.run(launch, "kill");
        match read::<KillIntent>(&path)? {
            Some(intent) => Ok(Some(intent.why)),
            // Only veri writes the file: a damaged one still tells whose signal it was.
            None if path.exists() => Ok(Some(KillWhy::Stuck)),
            None => Ok(None),
        }
    }

    /// Writes down that veri is about to end this launch; the first reason stands.
    pub(super) fn intend_kill(&self, launch: &LaunchId, why: KillWhy) -> anyhow::Result<()> {
        let path = self.run(launch, "kill");
        let intent = KillIntent {
            v: VERSION,
            launch: launch.clone(),
            why,
            at: now(),
        };
        let context = || format!("cannot write {}", path.display());
        let file = write_synced(&self.runs(), &intent).with_context(context)?;
        match file.persist_noclobber(&path) {
            Ok(_) => Ok(()),
            Err(e) if e.error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(e.error).with_context(context),
        }
    }

    /// Writes a launch's record and gives it its plain name.
    pub(super) fn write<T: Serialize>(
        &self,
        name: &str,
        launch: &LaunchId,
        what: &str,
        record: &T,
    ) -> io::Result<()> {
        let path = self.run(launch, what);
        make_way(&path)?;
        write_synced(&self.runs(), record)?
            .persist(path)
            .map_err(|e| e.error)?;
        self.publish(name, launch, what)
    }

    /// Gives a launch's file its plain name, atomically.
    pub(super) fn publish(&self, name: &str, launch: &LaunchId, what: &str) -> io::Result<()> {
        let from = self.run(launch, what);
        let second = self.run(launch, &format!("{what}.link"));
        remove(&second)?;
        link(&from, &second)?;
        let plain = self.plain(name, what);
        make_way(&plain)?;
        fs::rename(&second, plain)?;
        // Renaming a link over another one to the same file does nothing and leaves it.
        remove(&second)
    }

    /// Makes the folders, readable by their owner alone.
    pub(super) fn make(&self) -> anyhow::Result<()> {
        let runs = self.runs();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&runs)
            .with_context(|| format!("cannot make the folder {}", runs.display()))
    }

    /// Makes the folders again where a leaf has removed them or put something else in their place: how it ended
    /// must be recorded all the same.
    pub(super) fn make_again(&self) -> io::Result<()> {
        for folder in [&self.dir, &self.runs()] {
            match fs::symlink_metadata(folder) {
                Ok(meta) if !meta.is_dir() => fs::remove_file(folder)?,
                _ => {}
            }
        }
        let runs = self.runs();
        DirBuilder::new().recursive(true).mode(0o700).create(runs)
    }
}

/// `.pid`: what the shim wrote before it spawned the leaf.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Started {
    /// The format's version.
    pub v: u32,
    /// The launch.
    pub launch: LaunchId,
    /// The leaf's name.
    pub leaf: String,
    /// The shim's process id.
    pub pid: i32,
    /// The shim's start time in clock ticks since boot; None where the system does not tell.
    pub start: Option<u64>,
    /// The boot that pid and start time belong to; empty where the system does not tell.
    pub boot: String,
    /// When (RFC 3339, UTC).
    pub started: String,
    /// The leaf's wall time in milliseconds.
    pub wall_ms: u64,
    /// The time between TERM and KILL in milliseconds.
    pub grace_ms: u64,
    /// The control group that the leaf is started in, if there can be one.
    #[serde(default)]
    pub(super) cgroup: Option<Raw>,
    /// The file for standard output.
    pub(super) stdout: Raw,
    /// The file for standard error.
    pub(super) stderr: Raw,
}

/// `.exit`: how a launch ended, written by its shim after the sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The format's version.
    pub v: u32,
    /// The launch.
    pub launch: LaunchId,
    /// The leaf's name.
    pub leaf: String,
    /// When (RFC 3339, UTC).
    pub ended: String,
    /// The leaf's exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended the leaf, or that somebody else sent to the shim.
    pub signal: Option<i32>,
    /// Whether veri ended it.
    pub signalled_by_us: bool,
    /// Why veri ended it.
    pub why: Option<KillWhy>,
    /// Whether it was ended after its final result, which counts: it has answered.
    #[serde(default)]
    pub lingered: bool,
    /// Somebody else's signal to the shim had the leaf ended, whatever the leaf then made of it.
    pub signalled_by_others: bool,
    /// Why the program could not be started; `code` is then 127 (not found) or 126.
    pub spawn_error: Option<String>,
    /// From the spawn to the leaf's end, in milliseconds.
    pub wall_ms: u64,
    /// Processor time of the whole tree, in milliseconds.
    pub cpu_ms: u64,
    /// The largest resident size of a process in the tree, in KiB.
    pub max_rss_kib: u64,
    /// How much was written.
    pub bytes: Bytes,
    /// Whether the middle of an output file was removed.
    pub truncated: bool,
    /// How many processes of its tree, the leaf aside, had to be ended.
    pub swept: u32,
    /// How many could not be ended.
    pub unswept: u32,
    /// Some of those, as far as they can be named: frozen, stuck in the kernel, or another user's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// Whether the leaf had a control group of its own, by which its tree was ended.
    #[serde(default)]
    pub cgroup: bool,
    /// What it was confined to, if to anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Confined>,
}

impl Exit {
    /// A record of this moment, with nothing in it yet but whose it is.
    pub(super) fn of(launch: &LaunchId, leaf: &str) -> Exit {
        Exit {
            v: VERSION,
            launch: launch.clone(),
            leaf: leaf.to_owned(),
            ended: now(),
            code: None,
            signal: None,
            signalled_by_us: false,
            why: None,
            lingered: false,
            signalled_by_others: false,
            spawn_error: None,
            wall_ms: 0,
            cpu_ms: 0,
            max_rss_kib: 0,
            bytes: Bytes::default(),
            truncated: false,
            swept: 0,
            unswept: 0,
            left: Vec::new(),
            cgroup: false,
            sandbox: None,
        }
    }
}

/// How much a leaf wrote, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bytes {
    /// To standard output; to both when they are one file.
    pub stdout: u64,
    /// To standard error; 0 when both are one file.
    pub stderr: u64,
}

#[derive(Serialize, Deserialize)]
struct KillIntent {
    v: u32,
    launch: LaunchId,
    why: KillWhy,
    at: String,
}

/// The wall clock, for people: nothing is decided by it.
pub(super) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

fn write_synced<T: Serialize>(dir: &Path, record: &T) -> io::Result<NamedTempFile> {
    let mut text = serde_json::to_vec(record)?;
    text.push(b'\n');
    let mut file = NamedTempFile::new_in(dir)?; // readable by its owner alone
    file.write_all(&text)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Reads a record; None when it is missing or is not one (a damaged record tells nothing).
fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    match whole(path, RECORD_LIMIT) {
        Ok(text) => Ok(text.and_then(|text| serde_json::from_slice(&text).ok())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_to_kill_stands_and_a_damaged_one_is_still_ours() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().join("a b")).unwrap();
        records.make().unwrap();
        let launch = LaunchId::random().unwrap();
        assert_eq!(records.kill_intent(&launch).unwrap(), None);
        records.intend_kill(&launch, KillWhy::Stop).unwrap();
        records.intend_kill(&launch, KillWhy::Wall).unwrap();
        assert_eq!(records.kill_intent(&launch).unwrap(), Some(KillWhy::Stop));
        fs::write(records.run(&launch, "kill"), "{").unwrap();
        assert_eq!(records.kill_intent(&launch).unwrap(), Some(KillWhy::Stuck));
    }

    #[test]
    fn a_record_is_found_under_both_names_and_only_by_its_own_launch() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path()).unwrap();
        records.make().unwrap();
        let (launch, other) = (LaunchId::random().unwrap(), LaunchId::random().unwrap());
        let started = Started {
            v: VERSION,
            launch: launch.clone(),
            leaf: "x".to_owned(),
            pid: 1,
            start: Some(2),
            boot: "b".to_owned(),
            started: now(),
            wall_ms: 1,
            grace_ms: 1,
            cgroup: None,
            stdout: Raw::new("o"),
            stderr: Raw::new("e"),
        };
        for _ in 0..2 {
            records.write("x", &launch, "pid", &started).unwrap();
        }
        assert_eq!(records.newest("x").unwrap().unwrap().launch, launch);
        assert_eq!(records.started(&launch).unwrap().unwrap().pid, 1);
        // A record of another launch under this one's name says nothing about this one.
        fs::copy(records.run(&launch, "pid"), records.run(&other, "pid")).unwrap();
        assert!(records.started(&other).unwrap().is_none());
        let exit = format!(
            r#"{{"v":1,"launch":"{launch}","leaf":"x","ended":"","code":0,"signal":null,"signalled_by_us":false,"why":null,
            "signalled_by_others":false,"spawn_error":null,"wall_ms":0,"cpu_ms":0,"max_rss_kib":0,
            "bytes":{{"stdout":0,"stderr":0}},"truncated":false,"swept":0,"unswept":0}}"#
        );
        fs::write(records.run(&launch, "exit"), &exit).unwrap();
        assert!(records.ended(&launch).unwrap().is_some());
        fs::write(records.run(&other, "exit"), &exit).unwrap();
        assert!(records.ended(&other).unwrap().is_none());
        fs::remove_file(records.run(&other, "exit")).unwrap();
        fs::write(records.run(&launch, "exit"), "\0\0").unwrap();
        assert!(records.ended(&launch).unwrap().is_none());
        let left: Vec<_> = fs::read_dir(records.runs()).unwrap().collect();
        assert_eq!(left.len(), 3, "{left:?}");
    }
}
