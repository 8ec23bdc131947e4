//! One launch as it is asked for.

use super::sandbox::Sandbox;
use super::watch::watchdog::Watch;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

/// The environment variable that marks every process of a launch.
pub const LAUNCH_VAR: &str = "VERI_LAUNCH";

/// How long a leaf that was asked to end (TERM) has until it is made to (KILL), unless said otherwise.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// The id of one launch: 128 random bits as 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LaunchId(String);

impl LaunchId {
    /// A fresh id.
    ///
    /// # Errors
    /// When the machine has no `/dev/urandom`.
    pub fn random() -> anyhow::Result<LaunchId> {
        use anyhow::Context;
        let mut bits = [0u8; 16];
        File::open("/dev/urandom")
            .and_then(|mut f| f.read_exact(&mut bits))
            .context("cannot draw a launch id from /dev/urandom")?;
        Ok(LaunchId(format!("{:032x}", u128::from_be_bytes(bits))))
    }

    /// Reads an id; None for anything that `random` cannot have made.
    pub fn parse(text: &str) -> Option<LaunchId> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 32 && text.bytes().all(hex)).then(|| LaunchId(text.to_owned()))
    }

    /// The id as text: safe as a file name and in an environment.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for LaunchId {
    type Error = String;
    fn try_from(text: String) -> Result<LaunchId, String> {
        LaunchId::parse(&text).ok_or_else(|| format!("not a launch id: {text:?}"))
    }
}

impl From<LaunchId> for String {
    fn from(id: LaunchId) -> String {
        id.0
    }
}

impl fmt::Display for LaunchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One launch, described before it is made.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The leaf's name: its files' name in the records folder.
    pub name: String,
    /// A fresh id, already in the journal.
    pub launch: LaunchId,
    /// Program and arguments; a program without a slash is looked up on the PATH of `env`.
    pub argv: Vec<OsString>,
    /// The leaf's working folder.
    pub cwd: PathBuf,
    /// The leaf's whole environment; `start` adds `VERI_LAUNCH`.
    pub env: Vec<(OsString, OsString)>,
    /// A file to read standard input from; None: `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// The file for standard output: made anew, readable by its owner alone.
    pub stdout: PathBuf,
    /// The file for standard error; may be the same as `stdout`.
    pub stderr: PathBuf,
    /// How long the leaf may run, by a clock that stands still while the machine is suspended.
    pub wall: Duration,
    /// The time between TERM and KILL when a leaf is ended.
    pub grace: Duration,
    /// Further deadlines, for leaves that stream what they do; None: the wall time alone, they may be silent to the end.
    pub watch: Option<Watch>,
    /// Disk that each output file may take, in bytes; beyond it the middle is removed and the leaf goes on.
    pub output_cap: Option<u64>,
    /// What the leaf is confined to; None: to nothing.
    pub sandbox: Option<Sandbox>,
}

/// The launch was refused: another of the same leaf is alive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the leaf {name} is already running: wait for it (`veri leaf wait {name}`) or end it first (`veri leaf kill {name}`)"
)]
pub struct AlreadyRunning {
    /// The leaf's name.
    pub name: String,
}

/// The leaf's name cannot be one of its files' names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is not a leaf's name: letters, digits, '-', '_' and '.', at most 64, beginning with a letter or digit"
)]
pub struct BadName {
    /// What was given.
    pub name: String,
}

/// Checks a leaf's name.
///
/// # Errors
/// `BadName` when it could not be the name of the leaf's files.
pub fn check_name(name: &str) -> Result<(), BadName> {
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let first = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric());
    if first && name.len() <= 64 && name.bytes().all(fine) {
        Ok(())
    } else {
        Err(BadName {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_ids_are_read_back_and_nothing_else_is() {
        let id = LaunchId::random().unwrap();
        assert_eq!(LaunchId::parse(id.as_str()), Some(id.clone()));
        assert_ne!(LaunchId::random().unwrap(), id);
        for bad in [
            "",
            "../../etc/passwd",
            &"A".repeat(32),
            &"0".repeat(31),
            &"0".repeat(33),
        ] {
            assert_eq!(LaunchId::parse(bad), None, "{bad}");
        }
        assert!(serde_json::from_str::<LaunchId>("\"../x\"").is_err());
    }

    #[test]
    fn a_name_stays_a_file_name() {
        for good in ["plan", "develop-red", "suite", "a.b_c", "9"] {
            check_name(good).unwrap();
        }
        for bad in [
            "",
            ".",
            "..",
            "-x",
            ".hidden",
            "a/b",
            "a b",
            "é",
            "a\0",
            &"x".repeat(65),
        ] {
            check_name(bad).unwrap_err();
        }
    }
}
