//! What must stand before anything of git can be compared or put back: folders that are folders, files that end
//! when they are read, and nothing in the way of the refs that a run needs.

use super::guard::{Guard, Head, STASH, Settled};
use super::snapshot::{Content, Watched, move_aside};
use super::undone::keep_commit;
use super::worktree::{WorkTree, locks_below};
use super::{saved, stage};
use anyhow::{Context, Result};
use git2::Oid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file of packed refs.
const PACKED: &str = "packed-refs";

/// How deep refs and their logs are looked through; names of refs have a few parts.
const DEEPEST: usize = 30;

/// The frame as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Frame {
    /// Folders that hold what is watched, the outer before the inner.
    folders: Vec<Watched>,
    /// What no reader comes to the end of (a pipe), and was there already.
    odd: Vec<Watched>,
    /// What its owner could not use already.
    shut: Vec<Watched>,
    /// HEAD here and in the repository.
    heads: Vec<Watched>,
    /// Whether there was a file of packed refs.
    packed: bool,
}

impl Frame {
    /// The frame of a working tree, whose hooks lie in these folders.
    pub(super) fn of(wt: &WorkTree, hooks: &[PathBuf]) -> Result<Frame> {
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

    /// Puts the frame back.
    pub(super) fn back(&self, wt: &WorkTree, settled: &mut Settled) -> Result<()> {
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
                (_, Content::Absent) => settled.tampered.push(said(&folder.path, "removed")),
                _ => {
                    settled.tampered.push(said(&folder.path, "replaced"));
                    move_aside(&folder.path, &aside)?;
                }
            }
            folder.put_back(&aside)?;
        }
        let look = look.at(wt, &[])?;
        let new = |path: &&PathBuf, known: &[Watched]| known.iter().all(|k| k.path != **path);
        for path in look.shut.iter().filter(|path| new(path, &self.shut)) {
            settled.tampered.push(said(path, "locked away"));
        }
        for path in look.odd.iter().filter(|path| new(path, &self.odd)) {
            settled
                .tampered
                .push(said(path, "made, which git cannot read"));
            move_aside(path, &aside)?;
        }
        for head in &self.heads {
            let now = Content::of(&head.path)?;
            if !names_something(&now) && names_something(&head.content) {
                settled.tampered.push(said(&head.path, "spoilt"));
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
            line.starts_with(b"ref: refs/")
                || line.len() >= 40 && line.iter().all(u8::is_ascii_hexdigit)
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
            Err(e) if is_absent(&e) => return Ok(()),
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
            } else if !kind.is_file() && !kind.is_dir() {
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

fn is_absent(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Whether git can read this as packed refs.
fn is_packed(bytes: &[u8]) -> bool {
    let hex = |b: &[u8]| b.len() >= 40 && b.iter().all(u8::is_ascii_hexdigit);
    let mut lines = bytes.split_inclusive(|b| *b == b'\n');
    lines.all(|line| match line.strip_suffix(b"\n") {
        Some([b'#', ..]) => true,
        Some([b'^', oid @ ..]) => hex(oid),
        Some(line) => {
            let mut halves = line.splitn(2, |b| *b == b' ');
            let (oid, name) = (halves.next(), halves.next());
            oid.is_some_and(hex) && name.is_some_and(|name| name.starts_with(b"refs/"))
        }
        None => false,
    })
}

impl Guard {
    /// Packed refs that are gone or that git cannot read are written anew, from what was known of them.
    pub(super) fn packed_back(&self, wt: &WorkTree, settled: &mut Settled) -> Result<()> {
        let path = wt.common_dir.join(PACKED);
        let what = || format!("{} cannot be put back", path.display());
        match fs::read(&path) {
            Ok(bytes) if is_packed(&bytes) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.frame.packed => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            _ => move_aside(&path, &wt.git_dir.join("veri-aside"))?,
        }
        settled
            .tampered
            .push(format!("{} was spoilt", path.display()));
        let stash = self.stash.first().map(|oid| (STASH, oid.as_str()));
        let refs = self.refs.iter().map(|(n, o)| (n.as_str(), o.as_str()));
        let mut lines: Vec<String> = refs
            .chain(stash)
            .filter(|(name, _)| !wt.common_dir.join(name).is_file())
            .filter(|(name, _)| {
                !name.starts_with("refs/worktree/") && !name.starts_with("refs/bisect/")
            })
            .map(|(name, oid)| format!("{oid} {name}\n"))
            .collect();
        lines.sort_by(|a, b| a.split(' ').nth(1).cmp(&b.split(' ').nth(1)));
        let mut file = tempfile::NamedTempFile::new_in(&wt.common_dir).with_context(what)?;
        io::Write::write_all(&mut file, lines.concat().as_bytes()).with_context(what)?;
        file.persist(&path)
            .map_err(|e| e.error)
            .with_context(what)?;
        Ok(())
    }

    /// Clears the way for the refs that the run itself needs: what locks them, what stands where a folder of theirs or
    /// of their logs should be, refs whose names begin with theirs or the other way round.
    pub(super) fn clear_way(&self, wt: &WorkTree, issue: u64, settled: &mut Settled) -> Result<()> {
        let refs = wt.refs(issue);
        let own = refs.name("");
        let mut wanted: BTreeSet<String> = self.refs.keys().cloned().collect();
        wanted.retain(|name| name.starts_with(&own));
        wanted.extend(
            ["snapshot", "candidate", "red", "reopened", "discarded/x"].map(|n| refs.name(n)),
        );
        for lock in locks_below(&wt.common_dir.join(own.trim_end_matches('/'))) {
            stage::remove_if_there(&lock)?;
        }
        if let Head::Branch(branch) = &self.head {
            wanted.insert(branch.clone());
            if wt.linked {
                stage::remove_if_there(&wt.common_dir.join(format!("{branch}.lock")))?;
            }
        }
        let aside = wt.git_dir.join("veri-aside");
        for name in &wanted {
            file_way(&wt.common_dir.join("logs"), name, &aside, settled)?;
        }
        file_way(&wt.git_dir.join("logs"), "HEAD", &aside, settled)?;
        let mut blocking = Vec::new();
        for found in wt.git2.references()? {
            let found = found?;
            let Ok(name) = found.name() else { continue };
            let within = |outer: &str, inner: &str| {
                inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.starts_with('/'))
            };
            if wanted.iter().any(|w| {
                within(name, w) || within(w, name) && !name.starts_with(&refs.name("discarded/"))
            }) {
                blocking.push((name.to_owned(), found.target()));
            }
        }
        // All of them first: one may stand where the others are to be kept.
        for (name, _) in &blocking {
            saved::delete(&wt.git2, name)?;
        }
        for (name, target) in &blocking {
            let base = Oid::from_str(&self.commit)?;
            let kept = match target {
                Some(oid) if wt.git2.find_commit(*oid).is_ok() => {
                    keep_commit(refs, wt, *oid, base, &format!("{name}, as a leaf left it"))
                }
                Some(oid) => refs.keep(*oid),
                None => Ok("nothing of its own".to_owned()),
            };
            settled.noted.push(format!(
                "{name} stood in the way of the run's own refs: removed; kept as {}",
                kept?
            ));
        }
        Ok(())
    }
}

/// Moves away what keeps a file of this name from being written below `top`.
fn file_way(top: &Path, name: &str, aside: &Path, settled: &mut Settled) -> Result<()> {
    let mut path = top.to_owned();
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        let last = parts.peek().is_none();
        match fs::symlink_metadata(&path) {
            Ok(meta) if last && meta.is_file() || !last && meta.is_dir() => {}
            Ok(meta) if last && meta.is_dir() && is_empty(&path) => {}
            Ok(_) => {
                move_aside(&path, aside)?;
                settled
                    .tampered
                    .push(format!("{} was made", path.display()));
                return Ok(());
            }
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Whether there is no file below a folder: git removes such folders itself.
fn is_empty(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .into_iter()
        .all(|entry| entry.path().is_dir() && is_empty(&entry.path()))
}
