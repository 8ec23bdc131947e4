//! The exit codes of the program: a contract, printed by `veri help exit-codes`.

/// The work is done: a draft pull request is open, or nothing was left to do.
pub const DONE: u8 = 0;
/// An internal error: a bug in veri.
pub const INTERNAL: u8 = 1;
/// Plumbing: a request that cannot be read (`veri stop --check`), a leaf that was killed (`veri leaf`).
pub const PLUMBING_UNREADABLE: u8 = 2;
/// Plumbing: nothing there yet (all steps ticked, no stop request, leaf still running, no test command).
pub const PLUMBING_NOTHING: u8 = 3;
/// Bailed with a cause of class process: the work or its description.
pub const BAIL_PROCESS: u8 = 10;
/// Bailed with a cause of class system: the machine or a service.
pub const BAIL_SYSTEM: u8 = 11;
/// Stopped because somebody asked.
pub const STOPPED: u8 = 12;
/// Another conductor is already running for this working tree.
pub const ALREADY_RUNNING: u8 = 13;
/// The command line was not understood.
pub const USAGE: u8 = 64;
