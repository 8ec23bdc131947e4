//! What stands where veri's worktree should be, and git's record of it: made, made again, led to where it is.

use super::repo::{self, Repo};
use super::run::{self, LONG};
use crate::untrusted;
use anyhow::{Context, Result};
use git2::Oid;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most that is read of a file that ties a worktree to its repository, in bytes.
const TIE: u64 = 64 << 10;

/// What stands where veri's worktree should be.
pub(super) enum Found {
    Nothing,
    Ours,
    /// `git worktree add` was cut off.
    CutOff,
    /// The folder is there, git's record of it is not.
    Unregistered,
    /// git's record of the folder is there, its own `.git` is not: `git worktree remove` was cut off, or a leaf removed it.
    Unlinked(PathBuf),
    /// git's record of it names a place where there is nothing: it was moved, or registering it again was cut off.
    Elsewhere,
    Foreign(&'static str),
}

pub(super) fn state(repo: &Repo, path: &Path) -> Result<Found> {
    let link = path.join(".git");
    let meta = match fs::symlink_metadata(&link) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(match fs::read_dir(path) {
                Ok(mut entries) => match entries.next() {
                    None => Found::Nothing,
                    Some(_) => match record_of(repo, path) {
                        Some(record) => Found::Unlinked(record),
                        None => Found::Foreign("files that are not veri's"),
                    },
                },
                Err(e) if e.kind() == io::ErrorKind::NotFound => Found::Nothing,
                Err(e) if e.kind() == io::ErrorKind::NotADirectory => Found::Foreign("a file"),
                Err(e) => {
                    return Err(e).with_context(|| format!("{} cannot be read", path.display()));
                }
            });
        }
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Ok(Found::Foreign("a file")),
        Err(e) => return Err(e).with_context(|| format!("{} cannot be read", link.display())),
    };
    if meta.is_dir() {
        return Ok(Found::Foreign("a repository of its own"));
    }
    let content = untrusted::whole(&link, TIE)?.unwrap_or_default();
    // Empty: its writing was cut off, or had no room.
    if let Some(record) = record_of(repo, path).filter(|_| content.is_empty()) {
        return Ok(Found::Unlinked(record));
    }
    let Some(admin) = content.strip_prefix(b"gitdir: ") else {
        return Ok(Found::Foreign("a .git file that is not a worktree's"));
    };
    // Relative to the folder when git was told so (2.48); join leaves an absolute path as it is.
    let admin = path.join(std::ffi::OsStr::from_bytes(admin.trim_ascii_end()));
    let ours = admin
        .parent()
        .and_then(|p| {
            if p.exists() {
                p.canonicalize().ok()
            } else {
                Some(p.to_owned())
            }
        })
        .is_some_and(|parent| parent == repo.common_dir().join("worktrees"));
    if !ours {
        return Ok(Found::Foreign("a worktree of another repository"));
    }
    if !admin.join("HEAD").exists() {
        return Ok(Found::Unregistered);
    }
    let locked = untrusted::whole(&admin.join("locked"), TIE);
    if matches!(locked, Ok(Some(why)) if why.starts_with(b"initializing")) {
        return Ok(Found::CutOff);
    }
    let recorded = untrusted::whole(&admin.join("gitdir"), TIE)?.unwrap_or_default();
    let recorded = std::ffi::OsStr::from_bytes(recorded.trim_ascii_end());
    // Without its index, the repair of its registration was cut off.
    match admin.join(recorded).exists() && admin.join("index").exists() {
        true => Ok(Found::Ours),
        false => Ok(Found::Elsewhere),
    }
}

/// Which of git's records of worktrees is of this folder.
fn record_of(repo: &Repo, path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let records = fs::read_dir(repo.common_dir().join("worktrees")).ok()?;
    records
        .flatten()
        .map(|record| record.path())
        .find(|record| {
            // Relative to the record when git was told so (2.48).
            let folder = |link: Vec<u8>| {
                let link = record.join(std::ffi::OsStr::from_bytes(link.trim_ascii_end()));
                link.parent()?.canonicalize().ok()
            };
            let recorded = untrusted::whole(&record.join("gitdir"), TIE);
            recorded.ok().flatten().and_then(folder).as_ref() == Some(&path)
        })
}

pub(super) fn add(repo: &Repo, path: &Path, at: Oid) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("{} cannot be made", parent.display()))?;
    }
    // --force twice: a registration of this very path whose folder has vanished, locked or not.
    let tool = repo
        .git
        .quiet(["worktree", "add", "--force", "--force", "--detach", "--"])
        .arg(path)
        .arg(at.to_string())
        .deadline(LONG);
    run::must(tool, "making veri's worktree").map(drop)
}

/// The folder in which git makes a new record for one that has lost its own.
fn fresh(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Registers a folder again whose record under `worktrees/` has vanished, keeping its files.
pub(super) fn register_again(repo: &Repo, path: &Path, at: Oid) -> Result<()> {
    let fresh = fresh(path);
    // A start that was killed here has left the link, and nothing else.
    match fs::remove_file(fresh.join(".git")) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
        _ => {}
    }
    let tool = repo
        .git
        .quiet([
            "worktree",
            "add",
            "--force",
            "--force",
            "--detach",
            "--no-checkout",
            "--",
        ])
        .arg(&fresh)
        .arg(at.to_string());
    run::must(tool, "registering veri's worktree again")?;
    fs::rename(fresh.join(".git"), path.join(".git"))?;
    repair(repo, path)
}

/// Has git's record of a folder name the place where it is.
pub(super) fn repair(repo: &Repo, path: &Path) -> Result<()> {
    match fs::remove_dir(fresh(path)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
        _ => {}
    }
    run::must(
        repo.git.quiet(["worktree", "repair"]).arg(path),
        "registering veri's worktree again",
    )?;
    if repo::open(path)?.path().join("index").exists() {
        return Ok(());
    }
    // What keeps git from it (its HEAD spoilt, a lock in the way) is found and mended by whoever comes to that.
    let git = repo.git.at(path);
    let what = "reading the index of veri's worktree";
    run::run(git.quiet(["read-tree", "HEAD"]), what).map(drop)
}
