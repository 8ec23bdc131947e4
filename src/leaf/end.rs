//! How a launch ended, in the words of the journal.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why veri itself ended a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KillWhy {
    /// Somebody asked for a stop of mode now.
    Stop,
    /// Its wall time is over.
    Wall,
    /// It gave no first sign of life in time.
    FirstSign,
    /// It was silent for too long.
    Idle,
    /// It had given its final result, and did not end.
    Lingering,
    /// One of the deadlines, and which is not known: an earlier version's word, or a damaged record.
    Stuck,
    /// A suite had run and waited for changes of files.
    Waits,
}

impl KillWhy {
    /// The word in records and the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            KillWhy::Stop => "stop",
            KillWhy::Wall => "wall",
            KillWhy::FirstSign => "first-sign",
            KillWhy::Idle => "idle",
            KillWhy::Lingering => "lingering",
            KillWhy::Stuck => "stuck",
            KillWhy::Waits => "waits",
        }
    }
}

impl fmt::Display for KillWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a launch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It ended by itself.
    Done {
        /// Its exit code.
        code: i32,
    },
    /// It had given its final result, and we ended it since it did not go: it has answered.
    Lingered,
    /// A deadline or watchdog of ours ended it.
    KilledStuck {
        /// Which one.
        why: KillWhy,
    },
    /// A stop of mode now ended it.
    KilledByStop,
    /// A signal that was not ours ended it, or its shim, while a live conductor held it.
    KilledExternal {
        /// The signal; None when the shim vanished without a record.
        signal: Option<i32>,
    },
    /// The same, found afterwards: whatever killed the leaf may have killed everything.
    Lost,
    /// It was meant to be launched, and never was.
    NeverStarted,
    /// Its program was not found (127) or could not be executed (126).
    SpawnFailed {
        /// 127 or 126, as in a shell.
        code: i32,
        /// What was attempted and why it failed.
        message: String,
    },
    /// It still runs: only the wait is over.
    StillRunning,
}

impl End {
    /// The exit code of `veri leaf run` and `veri leaf wait`.
    pub fn exit_code(&self) -> u8 {
        match self {
            End::Done { code: 0 } | End::Lingered => 0,
            End::Done { .. } | End::SpawnFailed { .. } => 1,
            End::StillRunning => 3,
            End::KilledStuck { .. }
            | End::KilledByStop
            | End::KilledExternal { .. }
            | End::Lost
            | End::NeverStarted => 2,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Done { code } => write!(f, "done({code})"),
            End::Lingered => f.write_str("done (lingered after its result, and was ended)"),
            End::KilledStuck { why } => write!(f, "killed-stuck ({why})"),
            End::KilledByStop => f.write_str("killed-by-stop"),
            End::KilledExternal { signal: Some(n) } => write!(f, "killed-external (signal {n})"),
            End::KilledExternal { signal: None } => f.write_str("killed-external"),
            End::Lost => f.write_str("lost"),
            End::NeverStarted => f.write_str("never started"),
            End::SpawnFailed { code, message } => write!(f, "spawn-failed ({code}): {message}"),
            End::StillRunning => f.write_str("still running"),
        }
    }
}
