//! A working tree held by one program, whatever a leaf does to the file of its lock.

use super::worktree::WorkTree;
use crate::lock::Locked;
use std::fs;
use std::io;

impl WorkTree {
    /// Holds the working tree for this program, beside a lock whose file lies within a leaf's reach: its git folder is
    /// locked, which nobody can take away unnoticed. None when another program holds it; one that has just died is
    /// waited for.
    ///
    /// # Errors
    /// When the folder cannot be locked (a file system on which folders cannot).
    pub(crate) fn hold(&self) -> io::Result<Option<Locked>> {
        Locked::alone_in_time(|| fs::File::open(&self.git_dir))
    }
}
