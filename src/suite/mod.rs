//! Running the test suite and reading what it says.

pub mod detect;
pub mod paths;
pub mod results;
pub mod run;
pub mod rust_items;
mod waiters;
pub mod waiting;

pub use detect::{Detection, detect};
pub use paths::TestPaths;
pub use results::{ResultKey, Results};

use serde::{Deserialize, Serialize, Serializer};
use std::path::{Path, PathBuf};

/// How one run of a suite (or an extra check) ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum SuiteEnd {
    /// Exit code 0.
    Passed,
    /// A code that means failed tests: not 0, 126, 127 or 129 to 192.
    Failed {
        /// The exit code.
        code: i32,
    },
    /// Ended by us at its deadline.
    TimedOut {
        /// The deadline, in seconds.
        seconds: u64,
    },
    /// Ended by us since it had run and waited for changes of files: a failed check, never red.
    WaitsForChanges {
        /// The program that waits.
        tool: String,
        /// What to run instead.
        instead: String,
    },
    /// SEGV, ABRT, BUS, FPE, ILL and the like, or a status of 128+n (n up to 64): a failed check, never red.
    Crashed {
        /// The signal's number.
        signal: i32,
    },
    /// 126 or 127: the shell could not run the command.
    Unrunnable {
        /// The exit code.
        code: i32,
    },
    /// KILL, TERM, INT or HUP that were not ours.
    KilledExternal {
        /// The signal's number.
        signal: i32,
    },
    /// Ended by us for a stop request of mode now.
    Stopped,
}

/// One run of a suite on one tree, or its remembered result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteRun {
    /// The tree that was tested (hexadecimal object id, without `.tdd/`).
    pub tree: String,
    /// The command, as given to `sh -c`.
    pub command: String,
    /// How it ended.
    pub end: SuiteEnd,
    /// Wall time in milliseconds.
    pub wall_ms: u64,
    /// Where both its streams are kept. Stored as text for people: the path itself is found again by name.
    #[serde(serialize_with = "as_text")]
    pub log: PathBuf,
    /// Whether the result is from an earlier run on the same tree, command and dependencies.
    pub remembered: bool,
}

/// A path that is not UTF-8 has no other form in JSON.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl SuiteRun {
    /// Whether every test passed.
    pub fn passed(&self) -> bool {
        self.end == SuiteEnd::Passed
    }
}
