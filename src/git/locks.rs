//! git's lock files: which ones stand in the way of a run, and which of them nobody holds any more.

use super::base::issue_branch_name;
use super::guard::snapshot::locks_below;
use super::stage::remove_if_there;
use super::worktree::WorkTree;
use crate::cause::Bail;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

impl WorkTree {
    /// Removes locks on index, HEAD, issue branch and the issue's own refs that a git call of a dead
    /// conductor left behind: those that `is_its` says so of, by path and time of change. Gives back what was removed.
    ///
    /// # Errors
    /// needs-user in the person's checkout, where any git may hold them; io errors.
    pub fn stale_locks(
        &self,
        issue: u64,
        is_its: &dyn Fn(&Path, SystemTime) -> bool,
    ) -> Result<Vec<PathBuf>> {
        let own = self.own_refs(issue);
        let mut removed = Vec::new();
        for lock in self.locks(issue) {
            let Ok(meta) = fs::symlink_metadata(&lock) else {
                continue;
            };
            if !self.linked && !lock.starts_with(&own) {
                return Err(Bail::needs_user(format!(
                    "{} is there: a git process is at work in this checkout, or one died. If none \
                     is running, remove the file and run again.",
                    lock.display()
                ))
                .into());
            }
            if is_its(&lock, meta.modified()?) {
                remove_if_there(&lock)?;
                removed.push(lock);
            }
        }
        Ok(removed)
    }

    fn own_refs(&self, issue: u64) -> PathBuf {
        self.common_dir.join(format!("refs/veri/issue-{issue}"))
    }

    /// The locks on index, HEAD, issue branch and the issue's own refs that are there.
    pub fn locks(&self, issue: u64) -> Vec<PathBuf> {
        let branch = format!("refs/heads/{}.lock", issue_branch_name(issue));
        let mut locks = vec![
            self.git_dir.join("index.lock"),
            self.git_dir.join("HEAD.lock"),
            self.common_dir.join(branch),
        ];
        locks.extend(locks_below(&self.own_refs(issue)));
        locks.retain(|lock| fs::symlink_metadata(lock).is_ok());
        locks
    }
}
