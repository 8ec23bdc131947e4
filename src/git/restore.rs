//! Putting the working tree back to the last commit, and laying a tree on top.

use super::run::{self, LONG};
use super::stage::{self, PrivateIndex};
use super::tree::{self, TDD};
use super::worktree::WorkTree;
use crate::cause::Bail;
use crate::tool::Tool;
use anyhow::{Context, Result};
use git2::Oid;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

impl WorkTree {
    /// Puts working tree and index back to HEAD, then lays `tree` (without `.tdd/`) on top as plain,
    /// unstaged changes.
    ///
    /// Untracked files that git does not ignore are removed; ignored ones and veri's runtime files stay;
    /// ledgers become HEAD's. In the person's checkout veri's own files (`.veri.toml` …) are not touched.
    ///
    /// # Errors
    /// git-failed; io errors.
    pub fn restore(&self, tree: Option<Oid>) -> Result<()> {
        self.restore_except(tree, None)
    }

    /// The same, but the file `.tdd/<ledger>` stays as it is, to the byte and at any moment.
    ///
    /// # Errors
    /// As `restore`.
    pub fn restore_beside(&self, tree: Option<Oid>, ledger: &str) -> Result<()> {
        self.restore_except(tree, Some(ledger))
    }

    fn restore_except(&self, tree: Option<Oid>, ledger: Option<&str>) -> Result<()> {
        self.back_to_head(ledger)?;
        let Some(wanted) = tree else { return Ok(()) };
        let head = tree::of_commit(&self.git2, self.head()?)?;
        let full = tree::with_tdd_of(&self.git2, wanted, head)?;
        if full != head {
            let index = PrivateIndex::of_head(self)?;
            lay(&index, head, full)?;
        }
        Ok(())
    }

    /// Lays a discarded tree's change on top of what is in the working tree: its difference from
    /// `base` is merged in; index and HEAD stay. Both trees without `.tdd/`. `what_next` ends the words on a conflict.
    ///
    /// # Errors
    /// needs-user when the change does not fit, naming the paths; git-failed.
    pub(super) fn merge_in(
        &self,
        base: Oid,
        theirs: Oid,
        what_next: impl FnOnce() -> String,
    ) -> Result<()> {
        let index = self.staged()?;
        let ours_full = index.write_tree()?;
        let ours = tree::without_tdd(&self.git2, ours_full)?;
        let find = |oid| tree::find(&self.git2, oid);
        let mut merged = self
            .git2
            .merge_trees(&find(base)?, &find(ours)?, &find(theirs)?, None)?;
        if merged.has_conflicts() {
            let mut paths = Vec::new();
            for conflict in merged.conflicts()? {
                let conflict = conflict?;
                let entry = conflict.our.or(conflict.their).or(conflict.ancestor);
                if let Some(entry) = entry {
                    paths.push(String::from_utf8_lossy(&entry.path).into_owned());
                }
            }
            paths.sort();
            paths.dedup();
            return Err(Bail::needs_user(format!(
                "The discarded work does not fit what is in {} any more; it conflicts in: {}. Nothing was changed. {}",
                self.path.display(),
                paths.join(", "),
                what_next()
            ))
            .into());
        }
        let merged = merged.write_tree_to(&self.git2)?;
        let full = tree::with_tdd_of(&self.git2, merged, ours_full)?;
        lay(&index, ours_full, full)
    }

    fn back_to_head(&self, ledger: Option<&str>) -> Result<()> {
        if !self.index_holds(tree::of_commit(&self.git2, self.head()?)?) {
            let tool = self.git.quiet(["read-tree", "--reset", "HEAD"]);
            run::must(tool.deadline(LONG), "putting the index back")?;
        }
        let mut paths = b".\0".to_vec();
        let kept = if self.linked { &[][..] } else { &self.own[..] };
        for own in kept {
            exclude(&mut paths, own.strip_suffix(b"/").unwrap_or(own));
        }
        let mut tracked = paths.clone();
        if let Some(ledger) = ledger {
            exclude(&mut tracked, format!("{TDD}/{ledger}").as_bytes());
        }
        self.check_out(&tracked)?;
        exclude(&mut paths, TDD.as_bytes());
        self.clean(&paths)?;
        self.remove_new_ledgers()
    }

    /// Makes tracked files what the index has.
    fn check_out(&self, paths: &[u8]) -> Result<()> {
        let head = tree::of_commit(&self.git2, self.head()?)?;
        if tree::find(&self.git2, head)?.is_empty() {
            return Ok(()); // git calls "." unknown when nothing is tracked
        }
        let call = || {
            self.git
                .quiet(["restore", "--worktree", "--no-recurse-submodules"])
                .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
                .stdin(paths)
                .deadline(LONG)
        };
        self.twice(&call, "putting the working tree back")
    }

    /// Removes untracked files that are not ignored, nested repositories included.
    fn clean(&self, paths: &[u8]) -> Result<()> {
        use std::os::unix::ffi::OsStrExt;
        let call = || {
            self.git
                .quiet(["clean", "-ffdq", "--"])
                .args(run::nul_separated(paths).map(std::ffi::OsStr::from_bytes))
                .deadline(LONG)
        };
        self.twice(&call, "removing untracked files")
    }

    /// Runs a call; when it fails, once more after folders that forbid it were made writable.
    fn twice(&self, call: &dyn Fn() -> Tool, what: &str) -> Result<()> {
        if run::run(call(), what)?.success() {
            return Ok(());
        }
        make_writable(&self.path)?;
        run::must(call(), what).map(drop)
    }

    /// A ledger that HEAD does not have came from a leaf or a commit that was cut off.
    fn remove_new_ledgers(&self) -> Result<()> {
        let entries = match fs::read_dir(self.tdd()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e).context("the .tdd folder cannot be read"),
        };
        let head = tree::of_commit(&self.git2, self.head()?)?;
        for entry in entries {
            let name = entry?.file_name();
            let Some(text) = name.to_str() else { continue };
            if !tree::is_ledger(text) {
                continue;
            }
            let path = format!("{TDD}/{text}");
            if tree::read_blob(&self.git2, head, path.as_bytes())?.is_none() {
                stage::remove_if_there(&self.path.join(path))?;
            }
        }
        Ok(())
    }
}

/// Changes the working tree from one full tree to another, filters applied, in a private index.
fn lay(index: &PrivateIndex<'_>, from: Oid, to: Oid) -> Result<()> {
    let (from, to) = (from.to_string(), to.to_string());
    let tool = index.quiet(&["read-tree", "-m", "-u", &from, &to]);
    run::must(tool, "laying a tree on the working tree").map(drop)
}

fn exclude(paths: &mut Vec<u8>, path: &[u8]) {
    paths.extend_from_slice(b":(top,exclude,literal)");
    paths.extend_from_slice(path);
    paths.push(0);
}

/// Gives the owner full rights on every folder below, without following links or entering `.git`.
fn make_writable(top: &Path) -> Result<()> {
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        let meta = fs::symlink_metadata(&folder)?;
        let mode = meta.permissions().mode();
        if mode & 0o700 != 0o700 {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode | 0o700))?;
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && entry.file_name() != ".git" {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}
