//! Candidates: the tree of what would be committed, staged in an index of veri's own.

pub(super) use super::guard::snapshot::remove_if_there;
use super::run::{self, LONG};
use super::tree;
use super::worktree::WorkTree;
use crate::tool::{Tool, ToolOutput};
use anyhow::{Context, Result};
use git2::{Index, Oid};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Something in the working tree that git cannot stage: the work's fault, not the machine's.
///
/// Found in the chain of `WorkTree::candidate`'s and `WorkTree::pre_commit`'s errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct CannotStage {
    /// What it is, with git's words where they are there: an unreadable file, a clean filter that failed.
    pub words: String,
}

/// What was found in the working tree: trees without `.tdd/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// What would be committed.
    pub candidate: Oid,
    /// The same with what was to be left out.
    pub whole: Oid,
}

/// An index beside the real one, so that neither the person's nor a leaf's staging counts.
pub(super) struct PrivateIndex<'a> {
    pub(super) wt: &'a WorkTree,
    file: PathBuf,
}

impl<'a> PrivateIndex<'a> {
    /// One that holds HEAD, with what the real index knows about the files on disk.
    pub(super) fn of_head(wt: &'a WorkTree) -> Result<PrivateIndex<'a>> {
        let file = wt.git_dir.join("veri-index");
        // Only the holder of the conductor's lock comes here: a lock on it is a dead one.
        for old in [file.with_extension("lock"), file.clone()] {
            remove_if_there(&old)?;
        }
        let real = wt.git_dir.join("index");
        // What is no file (a pipe) holds nothing that is known, either.
        let is_file = fs::symlink_metadata(&real).is_ok_and(|meta| meta.is_file());
        let copied = is_file.then(|| fs::copy(&real, &file)).transpose();
        match copied {
            Ok(None) => {}
            Ok(Some(_)) => {
                // git takes files that are as new as the index for possibly changed: the time is part
                // of what is copied.
                set_modified(&file, fs::metadata(&real)?.modified()?)?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).context("the index cannot be copied"),
        }
        let index = PrivateIndex { wt, file };
        let head = tree::of_commit(&wt.git2, wt.head()?)?;
        if !tree::is_in_index(&wt.git2, &index.file, head) {
            index.read_tree("HEAD")?;
        }
        Ok(index)
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Makes it hold a tree, keeping what is known about unchanged files.
    pub(super) fn read_tree(&self, tree: &str) -> Result<()> {
        run::must(
            self.quiet(&["read-tree", "--reset", tree]),
            "reading a tree",
        )
        .map(drop)
    }

    /// A quiet git call on this index, which is written in a form that libgit2 reads, too.
    pub(super) fn quiet(&self, args: &[&str]) -> Tool {
        self.wt
            .git
            .quiet(["-c", "core.splitIndex=false", "-c", "index.sparse=false"])
            .args(args)
            .env("GIT_INDEX_FILE", &self.file)
            .deadline(LONG)
    }

    /// Stages every change of the working tree.
    fn stage(&self) -> Result<()> {
        self.has_an_end()?;
        let tool = self.quiet(&[
            "-c",
            "advice.addEmbeddedRepo=false",
            "add",
            "--all",
            "--",
            ".",
        ]);
        let out = run::run(tool, "staging the working tree")?;
        match out.success() {
            true => Ok(()),
            false => Err(unstageable(&out)),
        }
    }

    /// Stages of these paths all that git can: whatever fails is halved until single paths are left out.
    fn stage_what_can_be(&self, paths: &[&[u8]]) -> Result<()> {
        let mut specs = Vec::new();
        for path in paths {
            specs.extend_from_slice(b":(top,literal)");
            specs.extend_from_slice(path);
            specs.push(0);
        }
        let tool = self
            .quiet(&["-c", "advice.addEmbeddedRepo=false", "add", "--all"])
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .stdin(specs);
        if paths.is_empty() || run::run(tool, "staging what can be staged")?.success() {
            return Ok(());
        }
        match paths.split_at(paths.len() / 2) {
            ([], _) => Ok(()),
            (first, second) => {
                self.stage_what_can_be(first)?;
                self.stage_what_can_be(second)
            }
        }
    }

    /// Makes veri's own files what HEAD has.
    fn leave_own_out(&self) -> Result<()> {
        // Taken out afterwards: `git add` fails on an excluded path that is also ignored (2.47).
        let mut paths = Vec::new();
        for path in own_paths(self.wt) {
            paths.extend_from_slice(b":(top,literal)");
            paths.extend_from_slice(path);
            paths.push(0);
        }
        let tool = self
            .quiet(&["reset", "--quiet", "--no-refresh", "HEAD"])
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .stdin(paths);
        run::must(tool, "leaving paths out of a candidate").map(drop)
    }

    /// The tree that it holds.
    pub(super) fn write_tree(&self) -> Result<Oid> {
        let mut index = Index::open(&self.file)?;
        Ok(index.write_tree_to(&self.wt.git2)?)
    }

    /// The candidate that it holds: without `.tdd/`, the rest of veri's own files and `leave_out` as HEAD has them.
    fn candidate(&self, leave_out: &[Vec<u8>]) -> Result<Oid> {
        let repo = &self.wt.git2;
        let head = tree::of_commit(repo, self.wt.head()?)?;
        let others = leave_out
            .iter()
            .map(|path| path.strip_suffix(b"/").unwrap_or(path));
        let left_out = own_paths(self.wt).chain(others);
        let tree = tree::with_paths_of(repo, self.write_tree()?, head, left_out)?;
        tree::without_tdd(repo, tree)
    }
}

impl Drop for PrivateIndex<'_> {
    fn drop(&mut self) {
        // What is left is found and removed by the next one.
        let _ = fs::remove_file(&self.file);
    }
}

impl WorkTree {
    /// The tree of everything in the working tree, tracked or untracked but not ignored, without
    /// `.tdd/`. veri's own files and `leave_out` (paths from the top, files or folders) are in it as HEAD
    /// has them. Filters are applied; neither working tree nor index change.
    ///
    /// # Errors
    /// `CannotStage` when something in the working tree is to blame; git-failed.
    pub fn candidate(&self, leave_out: &[Vec<u8>]) -> Result<Oid> {
        Ok(self.take(leave_out)?.candidate)
    }

    /// As `candidate`, with the tree of everything beside it.
    ///
    /// # Errors
    /// As `candidate`.
    pub fn take(&self, leave_out: &[Vec<u8>]) -> Result<Taken> {
        let index = PrivateIndex::of_head(self)?;
        index.stage()?;
        Ok(Taken {
            candidate: index.candidate(leave_out)?,
            whole: index.candidate(&[])?,
        })
    }

    /// As `candidate` of everything, without what git cannot stage: what is there to be put aside.
    ///
    /// # Errors
    /// git-failed.
    pub fn salvage(&self) -> Result<Oid> {
        let index = PrivateIndex::of_head(self)?;
        match index.stage() {
            Err(error) if error.is::<CannotStage>() => {
                index.read_tree("HEAD")?;
                let endless = index.pass_over_endless()?;
                let listed = index.quiet(&[
                    "ls-files",
                    "-z",
                    "--others",
                    "--modified",
                    "--deleted",
                    "--exclude-standard",
                    "--deduplicate",
                ]);
                let listed = run::must(listed, "listing what changed")?;
                let paths = run::nul_separated(&listed.stdout);
                let paths: Vec<&[u8]> = paths
                    .filter(|path| endless.iter().all(|over| over != path))
                    .collect();
                index.stage_what_can_be(&paths)?;
            }
            other => other?,
        }
        index.candidate(&[])
    }

    /// A private index with everything staged but veri's own files.
    pub(super) fn staged(&self) -> Result<PrivateIndex<'_>> {
        let index = PrivateIndex::of_head(self)?;
        index.stage()?;
        index.leave_own_out()?;
        Ok(index)
    }

    /// Whether the real index holds exactly a tree.
    pub(super) fn index_holds(&self, tree: Oid) -> bool {
        tree::is_in_index(&self.git2, &self.git_dir.join("index"), tree)
    }

    /// The tree of HEAD without `.tdd/`.
    ///
    /// # Errors
    /// When HEAD cannot be read.
    pub fn head_tree(&self) -> Result<Oid> {
        tree::without_tdd(&self.git2, tree::of_commit(&self.git2, self.head()?)?)
    }
}

/// The paths of veri's own files, as git takes them.
pub(super) fn own_paths(wt: &WorkTree) -> impl Iterator<Item = &[u8]> {
    std::iter::once(tree::TDD.as_bytes()).chain(
        wt.own
            .iter()
            .map(|own| own.strip_suffix(b"/").unwrap_or(own)),
    )
}

fn unstageable(out: &ToolOutput) -> anyhow::Error {
    let words = run::words(out);
    let error = run::failed(out, "staging the working tree");
    let machine = error
        .downcast_ref::<crate::cause::Bail>()
        .is_some_and(|bail| bail.cause != crate::cause::Cause::GitFailed);
    let blamed = [
        "adding files failed",
        "unable to index",
        "filter",
        "updating files failed",
        // `working-tree-encoding` of a file that is not written like that.
        "BOM is ",
        "failed to encode",
    ]
    .iter()
    .any(|sign| words.contains(sign));
    if blamed && !machine {
        let words = format!("git cannot stage what is in the working tree:\n{words}");
        CannotStage { words }.into()
    } else {
        error
    }
}

pub(super) fn set_modified(file: &Path, time: SystemTime) -> Result<()> {
    fs::File::options()
        .write(true)
        .open(file)
        .and_then(|open| open.set_modified(time))
        .with_context(|| format!("the time of {} cannot be set", file.display()))
}
