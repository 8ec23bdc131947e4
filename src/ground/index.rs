//! The ground's index: what git in the ground goes by, with the stat data of what was laid.
//!
//! A process that takes a ground writes it anew, whatever is on disk, and keeps it by difference from then on.

use super::entries::Entry;
use super::files;
use super::path::TreePath;
use super::record::LaidFile;
use anyhow::Result;
use git2::{ErrorCode, Index, IndexEntry, IndexTime};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name of the file, among the records and in a repository.
pub(super) const INDEX: &str = "index";

/// The index as this process last wrote it, if it did, and the paths that were laid or removed since.
#[derive(Default)]
pub(super) struct KeptIndex {
    written: Option<Index>,
    since: BTreeSet<TreePath>,
}

impl fmt::Debug for KeptIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.written.as_ref().map(Index::len);
        f.debug_struct("KeptIndex")
            .field("entries", &entries)
            .field("since", &self.since)
            .finish()
    }
}

impl KeptIndex {
    /// Notes paths that were laid or removed.
    pub(super) fn note<'a>(&mut self, paths: impl IntoIterator<Item = &'a TreePath>) {
        if self.written.is_some() {
            self.since.extend(paths.into_iter().cloned());
        }
    }

    /// Brings the file to hold exactly what is laid.
    pub(super) fn write(&mut self, path: &Path, laid: &BTreeMap<TreePath, LaidFile>) -> Result<()> {
        remove_lock(path)?;
        let since = std::mem::take(&mut self.since);
        // Kept again only when all went well: half of an update is no update.
        let mut index = match self.written.take() {
            Some(index) if since.is_empty() && is_file(path) => {
                self.written = Some(index);
                return Ok(());
            }
            Some(mut index) => {
                // Removals first: a folder may have become a file, or a file a folder.
                for path in since.iter().filter(|path| !laid.contains_key(*path)) {
                    match index.remove(Path::new(OsStr::from_bytes(path)), 0) {
                        // Laid and removed again before it was ever written.
                        Err(e) if e.code() == ErrorCode::NotFound => {}
                        done => done?,
                    }
                }
                for path in &since {
                    if let Some(file) = laid.get(path) {
                        index.add(&file.signature.index_entry(path, &file.entry))?;
                    }
                }
                index
            }
            None => {
                files::remove(path)?;
                let mut index = Index::open(path)?;
                for (path, file) in laid {
                    index.add(&file.signature.index_entry(path, &file.entry))?;
                }
                index
            }
        };
        index.write()?;
        self.written = Some(index);
        Ok(())
    }
}

/// Removes what a process that was killed left of its lock of an index: whoever holds the ground's own lock is the
/// only one that may be writing.
fn remove_lock(path: &Path) -> Result<()> {
    files::remove(&path.with_extension("lock"))
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Writes an index of some paths, without stat data: enough to check them out from.
pub(super) fn write_few<'a>(
    path: &Path,
    entries: impl IntoIterator<Item = (&'a TreePath, &'a Entry)>,
) -> Result<()> {
    remove_lock(path)?;
    files::remove(path)?;
    let mut index = Index::open(path)?;
    let zero = IndexTime::new(0, 0);
    for (path, entry) in entries {
        index.add(&IndexEntry {
            ctime: zero,
            mtime: zero,
            dev: 0,
            ino: 0,
            mode: entry.form.mode(),
            uid: 0,
            gid: 0,
            file_size: 0,
            id: entry.oid,
            flags: 0,
            flags_extended: 0,
            path: path.clone(),
        })?;
    }
    Ok(index.write()?)
}
