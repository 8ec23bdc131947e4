//! Files that are too large to be given to git: a sparse file of terabytes costs nothing to make, and git reads and packs
//! every byte of it, again at every start.

use super::run::{self, LONG};
use super::stage::{CannotStage, PrivateIndex};
use crate::cause::Bail;
use anyhow::{Context, Result};
use git2::{AttrCheckFlags, Index, Repository};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Git's own files in a working tree, which it reads before anything else.
const RULES: &str = ".gitignore";

/// A file, as a path from the top, with its size in bytes.
struct Large {
    path: Vec<u8>,
    bytes: u64,
}

impl PrivateIndex<'_> {
    /// Refuses what is too large to be staged. In veri's own worktree it is removed, since nothing that git does there
    /// would ever end; in a person's checkout nothing is touched.
    ///
    /// # Errors
    /// `CannotStage` when there was something; needs-user in a person's checkout.
    pub(super) fn refuse_too_large(&self) -> Result<()> {
        let found = self.too_large()?;
        if found.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = found
            .iter()
            .map(|Large { path, bytes }| {
                format!("{}: {bytes} bytes", String::from_utf8_lossy(path))
            })
            .collect();
        let named = named.join("\n");
        if !self.wt.linked {
            return Err(Bail::needs_user(format!(
                "What lies in {} is too large to be staged (more than {} bytes in one file). Move it away or have \
                 git ignore it, then run again:\n{named}",
                self.wt.path.display(),
                self.wt.largest
            ))
            .into());
        }
        for large in &found {
            let path = self.wt.path.join(OsStr::from_bytes(&large.path));
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        let words = format!(
            "more than {} bytes in one file; it was removed: make no such file, or have git ignore it\n{named}",
            self.wt.largest
        );
        Err(CannotStage { words }.into())
    }

    fn too_large(&self) -> Result<Vec<Large>> {
        let repo = &self.wt.git2;
        let mut found = Vec::new();
        for entry in Index::open(&self.file)?.iter() {
            if let Some(bytes) = self.size(&entry.path)
                && repo
                    .odb()?
                    .read_header(entry.id)
                    .map(|(len, _)| len as u64)
                    .ok()
                    != Some(bytes)
            {
                found.push(Large {
                    path: entry.path,
                    bytes,
                });
            }
        }
        let tool = self.quiet(&["ls-files", "-z", "--others", "--exclude-standard"]);
        let listed = match found.iter().any(|large| is_rules(&large.path)) {
            true => None, // git would read it
            false => Some(run::run(tool.deadline(LONG), "listing new files")?),
        };
        match listed.filter(|listed| listed.success()) {
            Some(listed) => {
                for path in run::nul_separated(&listed.stdout) {
                    if let Some(bytes) = self.size(path) {
                        found.push(Large {
                            path: path.to_owned(),
                            bytes,
                        });
                    }
                }
            }
            // Where git cannot list, such a file may be what it fails at; what else there is shows when it is gone.
            None => self.rules_below(Path::new(""), &mut found),
        }
        found.retain(|large| !is_filtered(repo, &large.path));
        Ok(found)
    }

    /// The size of a file that is too large; None of any other, and of what is no file.
    fn size(&self, path: &[u8]) -> Option<u64> {
        let about = fs::symlink_metadata(self.wt.path.join(OsStr::from_bytes(path))).ok()?;
        (about.is_file() && about.len() > self.wt.largest).then(|| about.len())
    }

    fn rules_below(&self, folder: &Path, found: &mut Vec<Large>) {
        let entries = fs::read_dir(self.wt.path.join(folder));
        for entry in entries.into_iter().flatten().flatten() {
            let path = folder.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name() != ".git" {
                    self.rules_below(&path, found);
                }
                continue;
            }
            let path = path.as_os_str().as_bytes();
            if is_rules(path)
                && !found.iter().any(|large| large.path == path)
                && let Some(bytes) = self.size(path)
            {
                found.push(Large {
                    path: path.to_owned(),
                    bytes,
                });
            }
        }
    }
}

fn is_rules(path: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(path)).file_name() == Some(OsStr::new(RULES))
}

/// Whether a filter of the person's (git-lfs) makes something else of the file, whatever its size.
fn is_filtered(repo: &Repository, path: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(path));
    let filter = repo.get_attr(path, "filter", AttrCheckFlags::FILE_THEN_INDEX);
    let (Ok(Some(filter)), Ok(config)) = (filter, repo.config()) else {
        return false;
    };
    ["clean", "process"]
        .iter()
        .any(|key| config.get_entry(&format!("filter.{filter}.{key}")).is_ok())
}
