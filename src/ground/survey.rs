//! Looking at a ground without changing it, the rights of its folders aside: what is as it was laid, what may differ, what does not belong.

use super::crowd::Crowd;
use super::entries::{Entries, Entry, Form};
use super::folders;
use super::path::{TreePath, place};
use super::record::{LaidFile, Signature};
use anyhow::{Context, Result, anyhow};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::thread;

/// Below this many files a thread costs more than it saves.
const MANY: usize = 1000;

/// Looking at files is bound by locks of the kernel beyond a few threads.
const WORKERS: usize = 4;

/// What stands in a ground, measured against a tree.
#[derive(Debug, Default)]
pub(super) struct Survey {
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
///
/// Every file is looked at: whatever a suite did to one shows in its stat data.
pub(super) fn survey(
    root: &Path,
    entries: &Entries,
    laid: &BTreeMap<TreePath, LaidFile>,
    spared: &[TreePath],
) -> Result<Survey> {
    let workers = match entries.files.len() < MANY {
        true => 1,
        false => thread::available_parallelism().map_or(1, |n| n.get().min(WORKERS)),
    };
    let crowd = Crowd::new(TreePath::new());
    let walk = || {
        let mut walk = Walk {
            root,
            entries,
            laid,
            spared: spared.iter().map(Vec::as_slice).collect(),
            crowd: &crowd,
            seen: Vec::new(),
            found: Survey::default(),
        };
        while let Some(folder) = crowd.next() {
            walk.folder(&folder.piece)?;
        }
        Ok((walk.seen, walk.found))
    };
    let walks: Vec<Result<_>> = thread::scope(|scope| {
        let others: Vec<_> = (1..workers)
            // Where the system has no more threads to give, this one does it all.
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, walk).ok())
            .collect();
        let own = walk();
        let others = others.into_iter().map(|other| {
            let lost = |_| {
                Err(anyhow!(
                    "a thread that looks at {} panicked",
                    root.display()
                ))
            };
            other.join().unwrap_or_else(lost)
        });
        [own].into_iter().chain(others).collect()
    });
    let mut all: Vec<&TreePath> = Vec::with_capacity(entries.files.len());
    let mut found = Survey::default();
    for one in walks {
        let (seen, some) = one?;
        all.extend(seen);
        found.suspect.extend(some.suspect);
        found.other.extend(some.other);
        found.foreign.extend(some.foreign);
        found.builds.extend(some.builds);
    }
    found.foreign.sort();
    found.builds.sort();
    if all.len() < entries.files.len() {
        let all: HashSet<&TreePath> = all.into_iter().collect();
        let missing = entries.files.keys().filter(|path| !all.contains(path));
        found.missing = missing.cloned().collect();
    }
    Ok(found)
}

struct Walk<'a> {
    root: &'a Path,
    entries: &'a Entries,
    laid: &'a BTreeMap<TreePath, LaidFile>,
    spared: HashSet<&'a [u8]>,
    crowd: &'a Crowd<TreePath>,
    seen: Vec<&'a TreePath>,
    found: Survey,
}

impl Walk<'_> {
    /// Looks at a folder: the root, or one with a `/` at its end. Folders in it are left to whoever is free.
    fn folder(&mut self, prefix: &TreePath) -> Result<()> {
        let folder = place(self.root, prefix);
        open_up(&folder)?;
        let listing = fs::read_dir(&folder)
            .with_context(|| format!("reading the ground's {}", folder.display()))?;
        let tracked = children(&self.entries.files, prefix);
        let laid = children(self.laid, prefix);
        let mut path = prefix.clone();
        for item in listing {
            let item = item.with_context(|| format!("reading {}", folder.display()))?;
            let name = item.file_name();
            if prefix.is_empty() && name == ".git" {
                continue;
            }
            let stat = item
                .metadata()
                .with_context(|| format!("looking at {}", item.path().display()))?;
            let name = name.as_bytes();
            if let Some((path, entry)) = named(&tracked, prefix, name) {
                self.seen.push(path);
                let laid = named(&laid, prefix, name).map(|(_, laid)| laid);
                self.tracked(path, *entry, laid, &stat)?;
                continue;
            }
            path.extend_from_slice(name);
            self.untracked(&path, name, &stat);
            path.truncate(prefix.len());
        }
        Ok(())
    }

    fn untracked(&mut self, path: &TreePath, name: &[u8], stat: &Metadata) {
        if self.entries.folders.contains(path) && stat.is_dir() {
            self.crowd.add([path, &b"/"[..]].concat());
        } else {
            let build = stat.is_dir()
                && folders::is_build_folder(name, &place(self.root, path))
                && !self.held_files(path);
            if build {
                self.found.builds.push(path.clone());
            } else if !self.spared.contains(path.as_slice()) {
                self.found.foreign.push(path.clone());
            }
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

    fn tracked(
        &mut self,
        path: &TreePath,
        entry: Entry,
        laid: Option<&LaidFile>,
        stat: &Metadata,
    ) -> Result<()> {
        let laid = laid.filter(|laid| laid.entry == entry);
        if entry.form == Form::Submodule {
            let at = place(self.root, path);
            let empty = stat.is_dir() && {
                open_up(&at)?;
                fs::read_dir(at)?.next().is_none()
            };
            if laid.is_none() || !empty {
                self.found.other.insert(path.clone(), Signature::of(stat));
            }
            return Ok(());
        }
        match laid {
            Some(laid) if laid.signature == Signature::of(stat) => {}
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

/// What a map has directly in a folder, whose path is empty or has a `/` at its end; in order.
///
/// One look-up a folder, where one a file would take as long as looking at the files themselves.
fn children<'a, V>(map: &'a BTreeMap<TreePath, V>, folder: &[u8]) -> Vec<(&'a TreePath, &'a V)> {
    let mut list = Vec::new();
    let mut from = folder.to_vec();
    'seek: loop {
        for (path, value) in map.range(from.clone()..) {
            let Some(rest) = path.strip_prefix(folder) else {
                return list;
            };
            if let Some(end) = rest.iter().position(|byte| *byte == b'/') {
                // On to the first path after all that lie in this folder.
                from.truncate(folder.len());
                from.extend_from_slice(&rest[..end]);
                from.push(b'/' + 1);
                continue 'seek;
            }
            list.push((path, value));
        }
        return list;
    }
}

/// The one of these children that has a name.
fn named<'a, V>(
    children: &[(&'a TreePath, &'a V)],
    folder: &[u8],
    name: &[u8],
) -> Option<(&'a TreePath, &'a V)> {
    let found = children.binary_search_by(|(path, _)| path[folder.len()..].cmp(name));
    found.ok().map(|at| children[at])
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

/// Gives back what a suite took of the rights that a folder's owner has: to list it, to look at what is in it, and to
/// move files into it.
fn open_up(folder: &Path) -> Result<()> {
    let open = || -> io::Result<()> {
        let mode = fs::symlink_metadata(folder)?.mode();
        match mode & 0o700 {
            0o700 => Ok(()),
            _ => fs::set_permissions(folder, fs::Permissions::from_mode(mode & 0o7777 | 0o700)),
        }
    };
    open().with_context(|| format!("opening the ground's {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folders_children_are_found_among_those_of_folders_with_like_names() {
        let paths = ["a", "a.b", "a/x", "a/y/z", "a0", "b/c", "b/d", "b0"];
        let map: BTreeMap<TreePath, usize> = paths
            .iter()
            .map(|p| p.as_bytes().to_vec())
            .zip(0..)
            .collect();
        let names = |folder: &str| -> Vec<usize> {
            children(&map, folder.as_bytes())
                .into_iter()
                .map(|(_, n)| *n)
                .collect()
        };
        assert_eq!(names(""), [0, 1, 4, 7]);
        assert_eq!(names("a/"), [2]);
        assert_eq!(names("a/y/"), [3]);
        assert_eq!(names("b/"), [5, 6]);
        assert_eq!(names("c/"), [0usize; 0]);
        let of_a = children(&map, b"a/");
        assert!(named(&of_a, b"a/", b"x").is_some());
        assert!(named(&of_a, b"a/", b"y").is_none());
    }
}
