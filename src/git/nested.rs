//! Repositories within the working tree: git would commit of them a name and none of their files.

use super::tree;
use super::worktree::WorkTree;
use anyhow::Result;
use git2::{ErrorCode, ObjectType, Oid, Repository};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files that git reads wherever they stand in a working tree.
const RULES: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// Longer ones git passes over, too (`PATTERN_MAX_FILE_SIZE` and `ATTR_MAX_FILE_SIZE`, since 2.45), in bytes.
const LARGEST: u64 = 100 << 20;

impl WorkTree {
    /// Folders of the working tree that are repositories of their own, neither committed nor ignored.
    ///
    /// What ignores files is read on the way. `odd` is told first of what stands in its place and has no end (a pipe, a
    /// link to one).
    pub(super) fn nested(&self, odd: &mut dyn FnMut(&Path) -> Result<()>) -> Result<Vec<String>> {
        let top = tree::of_commit(&self.git2, self.head()?)?;
        let mut nested = Vec::new();
        let mut folders: Vec<(PathBuf, Option<Oid>)> = vec![(PathBuf::new(), Some(top))];
        while let Some((folder, committed)) = folders.pop() {
            let committed = committed
                .map(|tree| tree::find(&self.git2, tree))
                .transpose()?;
            for rules in RULES {
                let rules = self.path.join(&folder).join(rules);
                if has_no_end(&rules) {
                    odd(&rules)?;
                }
            }
            // git, too, passes over a folder that it cannot read, or that is gone meanwhile.
            let entries = fs::read_dir(self.path.join(&folder));
            for entry in entries.into_iter().flatten().flatten() {
                let name = entry.file_name();
                if name == ".git" || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                let path = folder.join(&name);
                let known = committed.as_ref();
                let known = known.and_then(|tree| tree.get_name_bytes(name.as_bytes()));
                match known.map(|e| (e.kind(), e.id())) {
                    Some((Some(ObjectType::Tree), tree)) => folders.push((path, Some(tree))),
                    Some((Some(ObjectType::Commit), _)) => {}
                    _ if self.git2.is_path_ignored(&path).unwrap_or(false) => {}
                    _ if is_repository(&self.path.join(&path)) => {
                        nested.extend(path.into_os_string().into_string().ok());
                    }
                    _ => folders.push((path, None)),
                }
            }
        }
        nested.sort();
        Ok(nested)
    }
}

/// Whether a reader may wait here for ever, or until its memory is full.
fn has_no_end(path: &Path) -> bool {
    let has_end = |meta: fs::Metadata| meta.is_dir() || meta.is_file() && meta.len() <= LARGEST;
    fs::metadata(path).is_ok_and(|meta| !has_end(meta))
}

/// Whether a folder is the top of a repository, or may be one that libgit2 cannot read.
fn is_repository(folder: &Path) -> bool {
    let absent = |e: git2::Error| e.code() == ErrorCode::NotFound;
    fs::symlink_metadata(folder.join(".git")).is_ok()
        && !Repository::open(folder).is_err_and(absent)
}
