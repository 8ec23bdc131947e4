//! Files that running suites or setup leaves behind: learnt, kept over restarts, and left out of candidates.

use crate::conductor::run::Run;
use crate::event::Kind;
use crate::git::{Taken, tree};
use crate::ground::TreePath;
use crate::untrusted::whole;
use anyhow::{Context, Result};
use git2::Oid;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// How many paths a message names.
const NAMED: usize = 5;

/// Paths for people: where they are many, by the folder at the top that holds them.
fn named<'a>(paths: impl Iterator<Item = &'a TreePath>) -> Vec<String> {
    let paths: Vec<&TreePath> = paths.collect();
    if paths.len() <= NAMED {
        return paths.iter().map(|path| crate::check::show(path)).collect();
    }
    let mut tops: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths {
        let top = match path.iter().position(|b| *b == b'/') {
            Some(slash) => path.get(..=slash).unwrap_or(path),
            None => path,
        };
        *tops.entry(crate::check::show(top)).or_default() += 1;
    }
    let shown = tops.into_iter().map(|(top, count)| match count {
        1 => top,
        _ => format!("{top} ({count} files)"),
    });
    shown.collect()
}

/// The most that is read of what is known, in bytes.
const LARGEST: u64 = 64 << 20;

impl Run<'_> {
    /// What earlier starts on this issue learnt.
    pub(in crate::conductor) fn known_debris(&self) -> Result<Vec<TreePath>> {
        let file = self.debris_file();
        match whole(&file, LARGEST) {
            Ok(bytes) => Ok(whole_paths(&bytes.unwrap_or_default())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e).with_context(|| format!("reading {}", file.display())),
        }
    }

    /// Learns of files that were left behind, also for later starts.
    pub(in crate::conductor) fn learn_debris(&mut self, found: &[TreePath]) -> Result<()> {
        let file = self.debris_file();
        let ready = self.ready_mut()?;
        let mut line = Vec::new();
        for path in found {
            if !ready.debris.contains(path) {
                ready.debris.push(path.clone());
                line.extend_from_slice(path);
                line.push(0);
            }
        }
        if line.is_empty() {
            return Ok(());
        }
        let append = || {
            match fs::symlink_metadata(&file) {
                Ok(meta) if meta.is_dir() => fs::remove_dir_all(&file)?,
                Ok(meta) if !meta.is_file() => fs::remove_file(&file)?,
                _ => {}
            }
            File::options()
                .create(true)
                .append(true)
                .open(&file)?
                .write_all(&line)
        };
        append().with_context(|| format!("writing {}", file.display()))
    }

    /// What is in the working tree, as a candidate without what is known as debris and was in no commit; what was
    /// left out is said.
    pub(in crate::conductor) fn take_candidate(&mut self) -> Result<Taken> {
        let debris = self.untracked(&self.ready()?.debris)?;
        let mut left_out = named(debris.iter().filter(|path| self.stands(path)));
        let more = left_out.len().saturating_sub(NAMED);
        left_out.truncate(NAMED);
        if !left_out.is_empty() {
            let and_more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let said = format!(
                "not part of the candidate, since running the suite or the setup leaves them behind: {}{and_more}",
                left_out.join(", ")
            );
            if !self.lines.iter().any(|line| line.text("said") == said) {
                self.say(Kind::Check, said)?;
            }
        }
        self.tree.take(&debris)
    }

    /// What is in the working tree without what the suite or the setup left there (a `.venv`), which is nobody's work;
    /// None when nothing is known of any.
    pub(in crate::conductor) fn without_debris(&self) -> Result<Option<Oid>> {
        let debris = match &self.ready {
            Some(ready) => self.untracked(&ready.debris)?,
            None => return Ok(None),
        };
        // Too large for a candidate, say: then it is kept whole.
        Ok((!debris.is_empty())
            .then(|| self.tree.candidate(&debris).ok())
            .flatten())
    }

    /// Those of these paths that HEAD does not have.
    pub(in crate::conductor) fn untracked(&self, paths: &[TreePath]) -> Result<Vec<TreePath>> {
        let (repo, head) = (self.tree.git2(), self.tree.head_tree()?);
        let tracked = |path: &[u8]| tree::read_blob(repo, head, path).is_ok_and(|b| b.is_some());
        Ok(paths
            .iter()
            .filter(|path| !tracked(path))
            .cloned()
            .collect())
    }

    fn stands(&self, path: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::OsStr::from_bytes(path);
        self.tree.path().join(path).symlink_metadata().is_ok()
    }

    fn debris_file(&self) -> PathBuf {
        debris_file(&self.home, self.issue_number)
    }
}

/// The file of what running the suite or the setup of an issue has left behind in its working tree.
pub fn debris_file(home: &Path, issue: u64) -> PathBuf {
    home.join("work").join(format!("issue-{issue}.debris"))
}

/// The paths of a file of them; one that was torn by a crash is none.
fn whole_paths(bytes: &[u8]) -> Vec<TreePath> {
    let mut parts: Vec<TreePath> = bytes.split(|b| *b == 0).map(<[u8]>::to_vec).collect();
    // What follows the last end of a path: nothing, or a part of one.
    parts.pop();
    parts.retain(|path| !path.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_path_is_none_and_any_bytes_are_a_path() {
        assert_eq!(whole_paths(b""), Vec::<TreePath>::new());
        assert_eq!(
            whole_paths(b"a b\n\xff\0c/\0rep"),
            [&b"a b\n\xff"[..], b"c/"]
        );
    }

    #[test]
    fn many_files_are_named_by_their_folders() {
        let paths = |names: &[&str]| -> Vec<TreePath> {
            names.iter().map(|n| n.as_bytes().to_vec()).collect()
        };
        let few = paths(&["a/b", "c"]);
        assert_eq!(named(few.iter()), ["a/b", "c"]);
        let many = paths(&["v/1", "v/2", "v/w/3", "v/4", "c", "w/5"]);
        assert_eq!(named(many.iter()), ["c", "v/ (4 files)", "w/"]);
    }
}
