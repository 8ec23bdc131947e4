//! Sending the branch, and asking how it would merge.

use super::repo::Repo;
use super::run;
use super::worktree::WorkTree;
use crate::tool::ToolEnd;
use anyhow::Result;
use git2::Oid;
use std::time::Duration;

/// How a push ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// The remote has it now.
    Done,
    /// The remote had it already.
    UpToDate,
    /// The remote or the pre-push hook refused.
    Rejected {
        /// git's, the hook's or the server's words.
        words: String,
    },
    /// The remote did not answer, did not let us in, or not in time.
    Unreachable {
        /// git's words.
        words: String,
    },
}

/// How two commits would merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// Cleanly; the (full) tree of the result.
    Clean(Oid),
    /// Not: the paths that conflict, in raw bytes.
    Conflict(Vec<Vec<u8>>),
}

impl WorkTree {
    /// Pushes one refspec, with the person's hooks, credentials and ssh configuration. Tags and
    /// submodules are not sent along.
    ///
    /// # Errors
    /// When git cannot be started.
    pub fn push(&self, remote: &str, refspec: &str, deadline: Duration) -> Result<Pushed> {
        // git takes a relative path of a remote from the working tree that it runs in, and means the person's.
        let mut words = Vec::new();
        if let Some((path, whole)) = self.relative_remote(remote) {
            words.extend(["-c".to_owned(), format!("url.{whole}.insteadOf={path}")]);
        }
        let tool = self
            .git
            .with_hooks(words)
            .args([
                "push",
                "--porcelain",
                "--no-follow-tags",
                "--recurse-submodules=no",
            ])
            .args(["--", remote, refspec])
            .deadline(deadline);
        let out = run::run(tool, "pushing")?;
        let words = run::words(&out);
        if out.end == ToolEnd::TimedOut {
            let words = format!("no answer within {} s\n{words}", deadline.as_secs());
            return Ok(Pushed::Unreachable { words });
        }
        let flags: Vec<u8> = out
            .stdout
            .split(|b| *b == b'\n')
            .filter(|line| line.get(1) == Some(&b'\t'))
            .map(|line| line[0])
            .collect();
        Ok(if out.success() {
            if flags.iter().all(|flag| *flag == b'=') {
                Pushed::UpToDate
            } else {
                Pushed::Done
            }
        } else if flags.contains(&b'!') || out.end == ToolEnd::Code(1) {
            // Without a "!" line the pre-push hook refused (git: exit code 1).
            Pushed::Rejected { words }
        } else {
            Pushed::Unreachable { words }
        })
    }
}

impl WorkTree {
    /// The path of a remote that is relative to the checkout, and the same path as an absolute one.
    fn relative_remote(&self, remote: &str) -> Option<(String, String)> {
        let found = self.git2.find_remote(remote).ok()?;
        let path = found.pushurl().ok().flatten().or(found.url().ok())?;
        if !path.starts_with("./") && !path.starts_with("../") {
            return None;
        }
        let checkout = self.common_dir.parent().filter(|_| self.linked)?;
        let whole = checkout.join(path).canonicalize().ok()?;
        Some((path.to_owned(), whole.to_str()?.to_owned()))
    }
}

impl Repo {
    /// Merges two commits without touching anything, by `git merge-tree`.
    ///
    /// # Errors
    /// git-failed: unrelated histories, missing objects.
    pub fn merge_trial(&self, base: Oid, tip: Oid) -> Result<Merge> {
        let (base, tip) = (base.to_string(), tip.to_string());
        let tool = self
            .git
            .quiet([
                "merge-tree",
                "--write-tree",
                "-z",
                "--name-only",
                "--no-messages",
            ])
            .args([&base, &tip])
            .deadline(run::LONG);
        let out = run::run(tool, "trying the merge")?;
        let mut parts = run::nul_separated(&out.stdout);
        match (out.end, parts.next()) {
            (ToolEnd::Code(0), Some(tree)) => {
                Ok(Merge::Clean(Oid::from_str(std::str::from_utf8(tree)?)?))
            }
            (ToolEnd::Code(1), Some(_)) => Ok(Merge::Conflict(parts.map(<[u8]>::to_vec).collect())),
            _ => Err(run::failed(&out, "trying the merge")),
        }
    }
}
