//! A working tree held by one program, whatever a leaf does to the file of its lock.

use super::worktree::WorkTree;
use crate::lock::Locked;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// How long the locks of a program that was killed may outlive it: until a child that it was just starting has become
/// its program. Ample on a busy machine.
const DYING: Duration = Duration::from_secs(5);

impl WorkTree {
    /// Holds the working tree for this program, beside a lock whose file lies within a leaf's reach: its git folder is
    /// locked, which nobody can take away unnoticed. None when another program holds it; one that has just died is
    /// waited for.
    ///
    /// # Errors
    /// When the folder cannot be locked (a file system on which folders cannot).
    pub(crate) fn hold(&self) -> io::Result<Option<Locked>> {
        let until = Instant::now() + DYING;
        loop {
            if let Some(held) = Locked::alone(fs::File::open(&self.git_dir)?)? {
                return Ok(Some(held));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
