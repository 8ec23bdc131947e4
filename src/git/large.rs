//! Files that git would read for longer than anybody waits: one with holes costs its maker nothing.
//!
//! They are known by their names and lengths alone: nothing is read of them.

use super::run;
use super::stage::{CannotStage, PrivateIndex, own_paths};
use super::worktree::WorkTree;
use anyhow::Result;
use git2::{AttrCheckFlags, AttrValue, Index, IndexEntry, IndexTime};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The most bytes of large files that git is let read at once, whatever they are (the objects of Git LFS, what a set-up
/// installs without git ignoring it): a minute or two.
const MOST: u64 = 8 << 30;

/// What git writes of a file may be half of what it reads: line endings, UTF-16. What is in between is judged when it is
/// staged.
const SHRINKS: u64 = 2;

/// What a developer is told of a file that is too large for a candidate.
pub fn too_large(name: &str, bytes: u64, limit: u64) -> String {
    format!(
        "{name}: {bytes} bytes, more than the {limit} of limits.max_file_mib; remove it, or have git ignore it"
    )
}

/// A large file of the working tree that is not as it was committed.
struct Large {
    path: Vec<u8>,
    bytes: u64,
    /// A program of the person's makes something else of it, of any size.
    filtered: bool,
}

impl Large {
    fn said(&self, wt: &WorkTree) -> String {
        let name = String::from_utf8_lossy(&self.path);
        too_large(&name, self.bytes, wt.max_file)
    }
}

impl WorkTree {
    /// Names the largest file that a candidate may have, in bytes.
    pub fn with_max_file(mut self, bytes: u64) -> WorkTree {
        self.max_file = bytes;
        self
    }

    /// The files of the working tree that no candidate can have, by their sizes: told before git reads any of them. Not
    /// those that are `spared` (paths from the top, files or folders), nor veri's own.
    ///
    /// # Errors
    /// git-failed.
    pub fn too_large(&self, spared: &[Vec<u8>]) -> Result<Vec<String>> {
        let index = PrivateIndex::of_head(self)?;
        let is_spared = |path: &[u8]| {
            let mut all = own_paths(self).chain(spared.iter().map(Vec::as_slice));
            all.any(|spared| {
                let rest = path.strip_prefix(spared);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            })
        };
        let mut large = index.large()?;
        large.retain(|file| !file.filtered && !is_spared(&file.path));
        Ok(large.iter().map(|file| file.said(self)).collect())
    }
}

impl PrivateIndex<'_> {
    /// Large files of the working tree that are not known to be as they were committed, the largest first.
    fn large(&self) -> Result<Vec<Large>> {
        // Not `--modified`: to tell that, git may read a file.
        let listed = self.quiet(&[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
        ]);
        let listed = run::must(listed, "listing the files of the working tree")?;
        let least = self.wt.max_file.saturating_mul(SHRINKS);
        let (mut large, mut known) = (Vec::new(), None);
        for path in run::nul_separated(&listed.stdout) {
            let here = Path::new(OsStr::from_bytes(path));
            let Ok(meta) = fs::symlink_metadata(self.wt.path.join(here)) else {
                continue;
            };
            if !meta.is_file() || meta.len() <= least {
                continue;
            }
            if known.is_none() {
                known = Some(Index::open(self.file())?);
            }
            let entry = known.as_ref().and_then(|index| index.get_path(here, 0));
            if !entry.is_some_and(|entry| self.is_committed(&entry, &meta)) {
                large.push(Large {
                    path: path.to_vec(),
                    bytes: meta.len(),
                    filtered: self.is_filtered(here),
                });
            }
        }
        large.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        Ok(large)
    }

    /// Whether git need not read a file, or would read about as much as is committed of it.
    fn is_committed(&self, entry: &IndexEntry, meta: &Metadata) -> bool {
        // As git compares them: times of change cannot be set.
        let at = |time: IndexTime| (i64::from(time.seconds()), i64::from(time.nanoseconds()));
        let same = at(entry.ctime) == (meta.ctime(), meta.ctime_nsec())
            && at(entry.mtime) == (meta.mtime(), meta.mtime_nsec())
            && u64::from(entry.ino) == meta.ino() & u64::from(u32::MAX)
            && entry.file_size != 0
            && u64::from(entry.file_size) == meta.len() & u64::from(u32::MAX);
        let committed = || {
            let odb = self.wt.git2.odb().ok()?;
            Some(odb.read_header(entry.id).ok()?.0 as u64)
        };
        same || committed().is_some_and(|bytes| meta.len() <= bytes.saturating_mul(SHRINKS))
    }

    fn is_filtered(&self, path: &Path) -> bool {
        let flags = AttrCheckFlags::FILE_THEN_INDEX;
        let named = self.wt.git2.get_attr_bytes(path, "filter", flags);
        let named = named.ok().map(AttrValue::from_bytes);
        let (Some(AttrValue::String(name)), Ok(config)) = (named, self.wt.git2.config()) else {
            return false;
        };
        let program = |key| config.get_entry(&format!("filter.{name}.{key}")).is_ok();
        program("clean") || program("process")
    }

    /// Refuses to have git read more than anybody waits for.
    pub(super) fn has_an_end(&self) -> Result<()> {
        let large = self.large()?;
        if large.iter().map(|file| file.bytes).sum::<u64>() <= MOST {
            return Ok(());
        }
        let words: Vec<String> = large.iter().map(|file| file.said(self.wt)).collect();
        let words = words.join("\n");
        Err(CannotStage { words }.into())
    }

    /// Leaves files as HEAD has them until the rest can be read; gives back which.
    pub(super) fn pass_over_endless(&self) -> Result<Vec<Vec<u8>>> {
        let mut large = self.large()?;
        let mut left: u64 = large.iter().map(|file| file.bytes).sum();
        large.retain(|file| {
            let over = left > MOST;
            left -= if over { file.bytes } else { 0 };
            over
        });
        let paths: Vec<Vec<u8>> = large.into_iter().map(|file| file.path).collect();
        let index = Index::open(self.file())?;
        let is_known = |path: &Vec<u8>| index.get_path(Path::new(OsStr::from_bytes(path)), 0);
        let known = paths.iter().filter(|path| is_known(path).is_some());
        let mut lines = Vec::new();
        for path in known {
            lines.extend_from_slice(path);
            lines.push(0);
        }
        if !lines.is_empty() {
            let marked = self.quiet(&["update-index", "--skip-worktree", "-z", "--stdin"]);
            run::must(marked.stdin(lines), "passing over what is too large")?;
        }
        Ok(paths)
    }
}
