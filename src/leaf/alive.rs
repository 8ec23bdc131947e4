//! Whether a launch lives: its shim, by what it has recorded, and the leaf's lock, which that holds.

use super::records::{Records, Started};
use super::tree::process::{self, Handle};
use crate::lock;
use anyhow::Context;
use nix::unistd::Pid;

/// The living shim of a record; None when it has ended, or the machine was started anew since.
pub(super) fn shim_of(started: &Started) -> Option<Handle> {
    if started.boot != process::boot_id() {
        return None;
    }
    Handle::recorded(Pid::from_raw(started.pid), started.start)
}

/// The shim of a leaf's newest launch, if it lives and is told from whatever else has its pid.
pub(super) fn living_shim(records: &Records, name: &str) -> anyhow::Result<Option<Handle>> {
    let newest = records.newest(name)?.filter(|s| s.start.is_some());
    let shim = newest.as_ref().and_then(shim_of);
    Ok(shim.filter(|shim| !shim.ended()))
}

/// Whether a launch of the leaf lives: by its lock, or by its shim where the leaf has removed the file that that has
/// locked.
pub(super) fn is_alive(records: &Records, name: &str) -> anyhow::Result<bool> {
    Ok(lock_is_held(records, name)? || living_shim(records, name)?.is_some())
}

/// Whether a shim lives (or a launcher is about to make one).
pub(super) fn lock_is_held(records: &Records, name: &str) -> anyhow::Result<bool> {
    let path = records.lock(name);
    // For an instant: a launcher tries again.
    lock::is_held(&path).with_context(|| format!("cannot look at the lock {}", path.display()))
}
