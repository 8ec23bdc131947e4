//! Running the test suite and reading what it says.

pub mod paths;
pub mod rust_items;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How one run of a suite (or an extra check) ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum SuiteEnd {
    /// Exit code 0.
    Passed,
    /// A code that means failed tests: not 0, 126, 127 or 128 and above.
    Failed {
        /// The exit code.
        code: i32,
    },
    /// Ended by us at its deadline.
    TimedOut {
        /// The deadline, in seconds.
        seconds: u64,
    },
    /// SEGV, ABRT, BUS, FPE or ILL, or a status of 128+n: a failed check, never red.
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
    /// Where both its streams are kept.
    pub log: PathBuf,
    /// Whether the result is from an earlier run on the same tree, command and dependencies.
    pub remembered: bool,
}

impl SuiteRun {
    /// Whether every test passed.
    pub fn passed(&self) -> bool {
        self.end == SuiteEnd::Passed
    }
}
