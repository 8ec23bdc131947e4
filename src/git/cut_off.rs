//! What a git call leaves that was killed, or of which a child was: its locks, in which every later call of the same run
//! would be caught.
//!
//! They are known by what they are not: none of them was there when the call began, and each is at a place where nobody
//! but veri has any business. What a conductor left that was killed together with its git is `locks.rs`'s matter.

use super::guard::snapshot::{locks_below, remove_if_there};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The places in a repository that are veri's alone.
#[derive(Debug, Clone)]
pub(super) struct Own {
    /// The git folder of veri's own linked worktree; None in the person's checkout.
    git_dir: Option<PathBuf>,
    common_dir: PathBuf,
}

impl Own {
    /// veri's places in the repository whose shared folder this is; with them, of a linked worktree of veri's, its folder.
    pub(super) fn new(common_dir: &Path, git_dir: Option<&Path>) -> Own {
        Own {
            git_dir: git_dir.map(Path::to_owned),
            common_dir: common_dir.to_owned(),
        }
    }

    /// Every lock of the working tree's own.
    fn locks_here(&self) -> BTreeSet<PathBuf> {
        let here = self.git_dir.iter().flat_map(|here| entries(here));
        let paths = here.map(|entry| entry.path());
        paths
            .filter(|path| path.extension().is_some_and(|e| e == "lock"))
            .collect()
    }

    /// Every lock at these places.
    fn locks(&self) -> BTreeSet<PathBuf> {
        let refs = self.common_dir.join("refs");
        let mut locks = self.locks_here();
        for folder in ["heads/tdd", "veri"] {
            locks.extend(locks_below(&refs.join(folder)));
        }
        for remote in entries(&refs.join("remotes")) {
            locks.extend(locks_below(&remote.path().join("tdd")));
        }
        locks
    }

    /// To be done when the call that begins now has ended: removes the locks that it left if it was killed, and says so.
    ///
    /// With `hooks`, those of the working tree's own however it ended: what a hook ran is swept with it, and a hook need
    /// not say that a git of its was killed. Refs are locked by runs of other issues, too.
    pub(super) fn undoing(&self, hooks: bool) -> impl FnOnce(bool) -> String + 'static {
        let (own, before) = (self.clone(), self.locks());
        move |killed| {
            let left = match (killed, hooks) {
                (true, _) => own.locks(),
                (false, true) => own.locks_here(),
                (false, false) => BTreeSet::new(),
            };
            let mut said = String::new();
            for lock in left.difference(&before) {
                said += &match remove_if_there(lock) {
                    Ok(()) => format!("\nthe lock that it left is removed: {}", lock.display()),
                    Err(e) => format!("\nit left the lock {}: {e:#}", lock.display()),
                };
            }
            said
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}
