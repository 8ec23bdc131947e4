//! The supervisor: one leaf, its whole process tree, and the truth about how it ended.
//!
//! A launch goes through a shim: this very program, executed again as a small single-threaded process that
//! outlives the conductor. The shim alone enforces the deadlines, sweeps the tree and records the end,
//! so that the same answer is there whoever comes to read it.
//!
//! - `spec`, `end`: what is asked for, and how it ended
//! - `records`, `raw`: the files of a launch, and what is written in them
//! - `files`: files that a leaf can have put something else in the place of
//! - `outcome`: from records to an end
//! - `launch`: starting a leaf and waiting for it
//! - `settle`: taking up or reading a launch that somebody else started; ending one; listing
//! - `alive`, `ending`: whether a launch lives, and how a living one is ended from outside
//! - `watch/`: its deadlines, and what is seen and heard for them
//! - `shim`: what runs between the conductor and the leaf; `order`: what it is told
//! - `signals`: the shim takes its signals one by one
//! - `sandbox/`: what a leaf can read, write and signal
//! - `tree/`: its whole process tree, and ending all of it
//! - `output`: the files a leaf writes to, and keeping them bounded
//! - `sys`: the few system calls that nothing safe wraps
//!
//! **Invariant:** nothing is signalled by a bare pid. A process is ours because it is an unreaped child or a
//! descendant of one, because it is in the session of our unreaped shim, because its environment carries the
//! launch id, because it is in the control group that bears it, or because pid, start time and boot id are those that the shim recorded.
//!
//! On Linux all of this holds. Elsewhere (macOS) there is neither subreaper, parent-death signal, pidfd nor
//! `/proc`: the leaf's process group is ended, and what left the group is not found.

mod alive;
mod end;
mod ending;
mod files;
mod launch;
mod mountinfo;
mod order;
mod outcome;
mod output;
mod raw;
mod records;
mod sandbox;
mod settle;
mod shim;
mod signals;
mod spec;
mod sys;
mod tree;
mod watch;

pub use end::{End, KillWhy};
pub use launch::{Running, start};
pub use records::{Bytes, Exit, Records, Started};
pub use sandbox::{Confined, Offer, Sandbox, probe as probe_sandbox};
pub use settle::{Killed, Listed, end, kill, list, settle, settle_newest};
pub use shim::{SHIM_COMMAND, shim_main};
pub use spec::{AlreadyRunning, BadName, DEFAULT_GRACE, LAUNCH_VAR, LaunchId, Spec, check_name};
pub(crate) use sys::{a_write_too_long_fails, unblocked_and_dying_with_parent};
pub use tree::below::{Below, Seen};
pub use tree::reach::{Reach, reach};
pub use tree::sweep::{Swept, sweep_launch, take_in_orphans};
pub use tree::usage::Used;
pub use watch::signs::{Means, Pointer, Sign, Stands, Wait};
pub use watch::watchdog::Watch;
