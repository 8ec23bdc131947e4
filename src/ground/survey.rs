//! Looking at a ground without changing it: what is as it was laid, what may differ, what does not belong.

use super::entries::{Entries, Entry, Form};
use super::folders;
use super::path::{TreePath, place};
use super::record::{LaidFile, Signature};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata, ReadDir};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// What stands in a ground, measured against a tree.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Laid from the same object, and untouched since.
    pub(super) same: Vec<TreePath>,
    /// Laid from the same object, but written, touched or chmod'ed since; with its stat data.
    pub(super) suspect: BTreeMap<TreePath, Signature>,
    /// Something else stands in the place; with its stat data.
    pub(super) other: BTreeMap<TreePath, Signature>,
    /// Nothing stands in the place.
    pub(super) missing: Vec<TreePath>,
    /// Neither tracked nor spared: the topmost path of each.
    pub(super) foreign: Vec<TreePath>,
    /// Untracked folders that look like builds or dependencies: the topmost path of each. [`Survey::judge`] says
    /// which of them stay.
    pub(super) builds: Vec<TreePath>,
}

impl Survey {
    /// Takes what looks like a build, but is not ignored by the tree's own rules, for foreign: no clone that was
    /// built in has it, and git would see it.
    pub(super) fn judge(&mut self, ignored: &HashSet<TreePath>, spared: &[TreePath]) {
        let (builds, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.builds)
            .into_iter()
            .partition(|path| ignored.contains(path));
        self.builds = builds;
        self.foreign
            .extend(others.into_iter().filter(|path| !spared.contains(path)));
    }
}

/// Surveys a ground. `spared` are paths that cleaning leaves alone beside build folders.
pub(super) fn survey(
    root: &Path,
    entries: &Entries,
    laid: &BTreeMap<TreePath, LaidFile>,
    spared: &[TreePath],
) -> Result<Survey> {
    let mut walk = Walk {
        root,
        entries,
        laid,
        spared: spared.iter().map(Vec::as_slice).collect(),
        seen: HashSet::new(),
        found: Survey::default(),
    };
    walk.folder(&mut Vec::new())?;
    let Walk {
        seen, mut found, ..
    } = walk;
    found.missing = entries
        .files
        .keys()
        .filter(|path| !seen.contains(*path))
        .cloned()
        .collect();
    Ok(found)
}

struct Walk<'a> {
    root: &'a Path,
    entries: &'a Entries,
    laid: &'a BTreeMap<TreePath, LaidFile>,
    spared: HashSet<&'a [u8]>,
    seen: HashSet<TreePath>,
    found: Survey,
}

impl Walk<'_> {
    fn folder(&mut self, prefix: &mut TreePath) -> Result<()> {
        let folder = place(self.root, prefix);
        let listing =
            list(&folder).with_context(|| format!("reading the ground's {}", folder.display()))?;
        for item in listing {
            let item = item.with_context(|| format!("reading {}", folder.display()))?;
            let name = item.file_name();
            if prefix.is_empty() && name == ".git" {
                continue;
            }
            let stat = item
                .metadata()
                .with_context(|| format!("looking at {}", item.path().display()))?;
            let length = prefix.len();
            prefix.extend_from_slice(name.as_bytes());
            self.item(prefix, name.as_bytes(), &stat)?;
            prefix.truncate(length);
        }
        Ok(())
    }

    fn item(&mut self, path: &mut TreePath, name: &[u8], stat: &Metadata) -> Result<()> {
        if let Some(entry) = self.entries.files.get(path) {
            self.seen.insert(path.clone());
            self.tracked(path, *entry, stat)
        } else if self.entries.folders.contains(path) && stat.is_dir() {
            path.push(b'/');
            self.folder(path)
        } else {
            let build = stat.is_dir()
                && folders::is_build_folder(name, &place(self.root, path))
                && !self.held_files(path);
            if build {
                self.found.builds.push(path.clone());
            } else if !self.spared.contains(path.as_slice()) {
                self.found.foreign.push(path.clone());
            }
            Ok(())
        }
    }

    /// Whether tracked files were laid in a folder: sparing it would keep them in trees that do not have them.
    fn held_files(&self, folder: &[u8]) -> bool {
        let from = [folder, b"/"].concat();
        self.laid
            .range(from.clone()..)
            .next()
            .is_some_and(|(path, _)| path.starts_with(&from))
    }

    fn tracked(&mut self, path: &TreePath, entry: Entry, stat: &Metadata) -> Result<()> {
        let laid = self.laid.get(path).filter(|laid| laid.entry == entry);
        if entry.form == Form::Submodule {
            let empty = stat.is_dir() && list(&place(self.root, path))?.next().is_none();
            if laid.is_some() && empty {
                self.found.same.push(path.clone());
            } else {
                self.found.other.insert(path.clone(), Signature::of(stat));
            }
            return Ok(());
        }
        match laid {
            Some(laid) if laid.signature == Signature::of(stat) => {
                self.found.same.push(path.clone());
            }
            Some(_) if has_form(entry.form, stat) => {
                self.found.suspect.insert(path.clone(), Signature::of(stat));
            }
            _ => {
                self.found.other.insert(path.clone(), Signature::of(stat));
            }
        }
        Ok(())
    }
}

/// Whether what stands there is of the form that the tree says, the executable bit included.
pub(super) fn has_form(form: Form, stat: &Metadata) -> bool {
    let program = stat.mode() & 0o100 != 0;
    match form {
        Form::File => stat.is_file() && !program,
        Form::Program => stat.is_file() && program,
        Form::Link => stat.is_symlink(),
        Form::Submodule => stat.is_dir(),
    }
}

/// Lists a folder, giving back a permission that a suite took away.
fn list(folder: &Path) -> io::Result<ReadDir> {
    fs::read_dir(folder).or_else(|e| {
        if e.kind() != io::ErrorKind::PermissionDenied {
            return Err(e);
        }
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        fs::read_dir(folder)
    })
}
