//! What a git call that was killed leaves: its locks, in which every later call of the same run would be caught.
//!
//! They are known by what they are not: none of them was there when the call began, and each is at a place where nobody
//! but veri has any business. What a conductor left that was killed together with its git is `locks.rs`'s matter.

use super::guard::snapshot::locks_below;
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

    /// Every lock at these places.
    fn locks(&self) -> BTreeSet<PathBuf> {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let refs = self.common_dir.join("refs");
        let mut locks = BTreeSet::new();
        for folder in ["heads/tdd", "veri"] {
            locks.extend(locks_below(&refs.join(folder)));
        }
        for remote in entries(&refs.join("remotes")) {
            locks.extend(locks_below(&remote.path().join("tdd")));
        }
        if let Some(git_dir) = &self.git_dir {
            let here = entries(git_dir).map(|entry| entry.path());
            locks.extend(here.filter(|path| path.extension().is_some_and(|e| e == "lock")));
        }
        locks
    }

    /// To be done when the call that begins now has been killed: removes the locks that it left, and says so.
    pub(super) fn undoing(&self) -> impl FnOnce() -> String + 'static {
        let (own, before) = (self.clone(), self.locks());
        move || {
            let mut said = String::new();
            for lock in own.locks().difference(&before) {
                said += &match fs::remove_file(lock) {
                    Ok(()) => format!("\nthe lock that it left is removed: {}", lock.display()),
                    Err(e) => format!("\nit left the lock {}: {e}", lock.display()),
                };
            }
            said
        }
    }
}
