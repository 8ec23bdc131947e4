//! What must stand before anything of git can be compared or put back: folders that are folders, files that end
//! when they are read.

use super::Settling;
use super::snapshot::{Content, Watched, absent, move_aside};
use crate::folder;
use crate::git::worktree::WorkTree;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file of packed refs.
pub(in crate::git) const PACKED: &str = "packed-refs";

/// The socket of the daemon that a leaf's git starts where the person has `core.fsmonitor` on. Nobody reads it, and a
/// pipe of that name blocks no git either: it is only connected to.
const FSMONITOR: &str = "fsmonitor--daemon.ipc";

/// How deep refs and their logs are looked through; names of refs have a few parts.
const DEEPEST: usize = 30;

/// The frame as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::git) struct Frame {
    /// Folders that hold what is watched, the outer before the inner.
    folders: Vec<Watched>,
    /// What no reader comes to the end of (a pipe), and was there already.
    odd: Vec<Watched>,
    /// What its owner could not use already.
    shut: Vec<Watched>,
    /// HEAD here and in the repository.
    heads: Vec<Watched>,
    /// Whether there was a file of packed refs.
    pub(in crate::git) packed: bool,
}

impl Frame {
    /// The frame of a working tree, whose hooks lie in these folders.
    pub(in crate::git) fn of(wt: &WorkTree, hooks: &[PathBuf]) -> Result<Frame> {
        let mut folders = Vec::new();
        for name in [
            "objects",
            "refs",
            "logs",
            "worktrees",
            "info",
            "objects/info",
        ] {
            folders.push(wt.common_dir.join(name));
        }
        folders.push(wt.git_dir.clone());
        folders.push(wt.git_dir.join("logs"));
        folders.extend(hooks.iter().cloned());
        let mut heads = vec![wt.git_dir.join("HEAD")];
        if wt.git_dir != wt.common_dir {
            heads.push(wt.common_dir.join("HEAD"));
        }
        let folders = all(folders)?;
        let look = Look::default().at(wt, &folders)?;
        Ok(Frame {
            folders,
            odd: all(look.odd)?,
            shut: all(look.shut)?,
            heads: all(heads)?,
            packed: wt.common_dir.join(PACKED).exists(),
        })
    }

    /// Puts the frame back; says what was not as it was.
    pub(in crate::git) fn back(&self, wt: &WorkTree, settled: &mut Settling<'_>) -> Result<()> {
        // The git folder of the working tree may be what is gone.
        let aside = wt.common_dir.join("veri-aside");
        let said = |path: &Path, what: &str| format!("{} was {what}", path.display());
        let mut look = Look {
            known: Some(&self.shut),
            ..Look::default()
        };
        for folder in &self.folders {
            let Some(now) = folder.changed()? else {
                // Before a look at the next one, which may lie in it.
                look.usable(&folder.path)?;
                continue;
            };
            match (&folder.content, &now) {
                (Content::Absent, Content::Folder) => continue,
                (_, Content::Absent) => settled.tampered(said(&folder.path, "removed"))?,
                _ => {
                    settled.tampered(said(&folder.path, "replaced"))?;
                    move_aside(&folder.path, &aside)?;
                }
            }
            folder.put_back(&aside)?;
        }
        let look = look.at(wt, &[])?;
        let new = |path: &&PathBuf, known: &[Watched]| known.iter().all(|k| k.path != **path);
        for path in look.shut.iter().filter(|path| new(path, &self.shut)) {
            settled.tampered(said(path, "locked away"))?;
            settled.done.shut |= *path == wt.common_dir;
        }
        for path in look.odd.iter().filter(|path| new(path, &self.odd)) {
            settled.tampered(said(path, "made, which git cannot read"))?;
            move_aside(path, &aside)?;
        }
        for head in &self.heads {
            let now = Content::of(&head.path)?;
            if !names_something(&now) && names_something(&head.content) {
                settled.tampered(said(&head.path, "spoilt"))?;
                head.put_back(&aside)?;
            }
        }
        Ok(())
    }
}

fn all(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<Watched>> {
    paths.into_iter().map(Watched::of).collect()
}

/// Whether this can be a HEAD.
fn names_something(content: &Content) -> bool {
    match content {
        Content::File { bytes, .. } => {
            let line = bytes.trim_ascii_end();
            let leads = line.starts_with(b"ref: refs/") && line.len() < 5000;
            leads || line.len() >= 40 && line.iter().all(u8::is_ascii_hexdigit)
        }
        Content::Link { .. } => true,
        Content::Absent | Content::Folder | Content::Other => false,
    }
}

/// A look through git's folders.
#[derive(Default)]
struct Look<'a> {
    /// What a reader would wait at for ever.
    odd: BTreeSet<PathBuf>,
    /// What its owner cannot use.
    shut: BTreeSet<PathBuf>,
    /// Where this is known, all else that is shut is opened on the way.
    known: Option<&'a [Watched]>,
}

impl Look<'_> {
    fn at(mut self, wt: &WorkTree, folders: &[Watched]) -> Result<Self> {
        for folder in folders {
            self.usable(&folder.path)?;
        }
        // git writes an object into any of these, by its name.
        let fans = fs::read_dir(wt.common_dir.join("objects"));
        for fan in fans.into_iter().flatten().flatten() {
            if fan.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.usable(&fan.path())?;
            }
        }
        for top in [&wt.common_dir, &wt.git_dir] {
            self.through(top, 0)?;
            for name in ["refs", "logs"] {
                self.through(&top.join(name), DEEPEST)?;
            }
        }
        Ok(self)
    }

    fn through(&mut self, folder: &Path, deep: usize) -> Result<()> {
        let what = || format!("{} cannot be read", folder.display());
        self.usable(folder)?;
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) if absent(&e) => return Ok(()),
            Err(e) => return Err(e).with_context(what),
        };
        for entry in entries {
            let entry = entry.with_context(what)?;
            let (path, kind) = (entry.path(), entry.file_type().with_context(what)?);
            if kind.is_dir() && deep > 1 {
                self.through(&path, deep - 1)?;
            } else if kind.is_file() && deep > 0 {
                self.usable(&path)?;
            } else if kind.is_symlink() {
                let ends = fs::metadata(&path).map_or(true, |m| m.is_file() || m.is_dir());
                if !ends {
                    self.odd.insert(path);
                }
            } else if !kind.is_file() && !kind.is_dir() && entry.file_name() != FSMONITOR {
                self.odd.insert(path);
            }
        }
        Ok(())
    }

    /// Looks at the rights that the owner has of a folder or file.
    fn usable(&mut self, path: &Path) -> Result<()> {
        let Ok(meta) = fs::symlink_metadata(path) else {
            return Ok(());
        };
        let wanted = match meta.is_dir() {
            true => 0o700,
            false => 0o600,
        };
        let mode = meta.permissions().mode();
        if mode & wanted == wanted || meta.is_symlink() {
            return Ok(());
        }
        if self.known.is_some_and(|k| k.iter().all(|w| w.path != path)) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode | wanted))
                .with_context(|| format!("{} cannot be opened again", path.display()))?;
        }
        self.shut.insert(path.to_owned());
        Ok(())
    }
}

impl WorkTree {
    /// Takes the working tree back where a link was put in its place: what that leads to is somebody else's. It is
    /// empty then, and says true. To be called before anything is read or written there after a leaf.
    ///
    /// # Errors
    /// storage-failed: it leads elsewhere all the same.
    pub fn regain(&self) -> Result<bool> {
        if !self.linked {
            return folder::leads_to_itself(&self.path).map(|()| false);
        }
        let replaced = folder::unlinked(&self.path)?;
        if replaced {
            // The journal is the first to be put back.
            fs::create_dir_all(self.tdd())
                .with_context(|| format!("{} cannot be made again", self.tdd().display()))?;
        }
        Ok(replaced)
    }
}

/// What stands in `.tdd/` where a record of a leaf should be, and is no file: the next launch would wait at it.
pub(in crate::git) fn no_records(tdd: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for folder in [tdd.to_owned(), tdd.join("runs")] {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e).with_context(|| format!("{}", folder.display())),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            // The journal and a stop request are their readers' to judge.
            let others = ["runs", "stop"].iter().any(|other| name == *other)
                || name.to_string_lossy().starts_with("events.");
            if !entry.file_type()?.is_file() && !others {
                paths.push(entry.path());
            }
        }
    }
    Ok(paths)
}
