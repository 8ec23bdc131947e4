//! What grounds take on disk, and removing them.

use super::files;
use super::slot::{Kind, SLOTS, hold, name};
use crate::untrusted::whole;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One ground on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// The ground's folder.
    pub path: PathBuf,
    /// Bytes that it and its records take, each file counted once.
    pub bytes: u64,
    /// Whether a process holds it.
    pub in_use: bool,
}

/// What the grounds of a repository take.
///
/// # Errors
/// When a lock cannot be opened. Files that vanish or cannot be read are left out.
pub fn disk_use(home: &Path) -> Result<Vec<Used>> {
    let mut list = Vec::new();
    for (path, records, lock) in grounds(home)? {
        let mut seen = HashSet::new();
        let bytes = bytes_of(&path, &mut seen) + bytes_of(&records, &mut seen);
        let in_use = lock.exists() && hold(&lock, &records)?.is_none();
        list.push(Used {
            path,
            bytes,
            in_use,
        });
    }
    Ok(list)
}

/// Removes every ground that nobody holds; gives what was removed.
///
/// The lock files stay: removing one that a process is about to lock would let two hold the same ground.
///
/// # Errors
/// When something cannot be removed.
pub fn remove_unused(home: &Path) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for (path, records, lock) in grounds(home)? {
        let Some(_held) = hold(&lock, &records)? else {
            continue;
        };
        // The records first: a ground without them is made anew.
        files::remove(&records)?;
        files::remove(&path)?;
        removed.push(path);
    }
    Ok(removed)
}

/// Shows the records of every ground that nobody holds, and holds it meanwhile.
///
/// # Errors
/// When a lock cannot be opened, and what `look` gives.
pub fn each_unused(home: &Path, look: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    for (_, records, lock) in grounds(home)? {
        if let Some(_held) = hold(&lock, &records)? {
            look(&records)?;
        }
    }
    Ok(())
}

/// Every ground that has a folder, with its records and lock.
fn grounds(home: &Path) -> Result<Vec<(PathBuf, PathBuf, PathBuf)>> {
    let folder = home.join("ground");
    let mut list = Vec::new();
    if !folder.is_dir() {
        return Ok(list);
    }
    for kind in [Kind::Check, Kind::Verify] {
        for number in 0..SLOTS {
            let name = name(kind, number);
            let path = folder.join(&name);
            let exists = path
                .try_exists()
                .with_context(|| format!("looking at {}", path.display()))?;
            if exists {
                let records = folder.join(format!("{name}.d"));
                list.push((path, records, folder.join(format!("{name}.lock"))));
            }
        }
    }
    Ok(list)
}

/// Bytes that a folder takes, each file counted once; what vanishes or cannot be read is left out.
pub fn bytes_below(path: &Path) -> u64 {
    bytes_of(path, &mut HashSet::new())
}

fn bytes_of(path: &Path, seen: &mut HashSet<(u64, u64)>) -> u64 {
    let Ok(stat) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !seen.insert((stat.dev(), stat.ino())) {
        return 0;
    }
    // POSIX: blocks are counted in units of 512 bytes, whatever the file system's block size.
    let own = stat.blocks() * 512;
    if !stat.is_dir() {
        return own;
    }
    let inside = fs::read_dir(path).into_iter().flatten().flatten();
    own + inside.map(|item| bytes_of(&item.path(), seen)).sum::<u64>()
}

/// The most that is read of such an answer, in bytes.
const ANSWER: u64 = 16 << 20;

/// Writes a small JSON answer that any slot may reuse, below `ground/`.
pub(super) fn remember<T: serde::Serialize>(home: &Path, place: &str, value: &T) -> Result<()> {
    let path = home.join("ground").join(place);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    files::write_atomic(&path, &serde_json::to_vec(value)?)
}

/// Reads such an answer; none, torn and of another form are the same.
pub(super) fn recall<T: serde::de::DeserializeOwned>(home: &Path, place: &str) -> Option<T> {
    let file = home.join("ground").join(place);
    serde_json::from_slice(&whole(&file, ANSWER).ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::super::hold::Ground;
    use super::*;

    #[test]
    fn a_ground_in_use_is_counted_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(disk_use(home.path()).unwrap(), []);
        let held = Ground::acquire(home.path(), Kind::Check).unwrap();
        let free = Ground::acquire(home.path(), Kind::Check).unwrap();
        fs::write(free.path().join("big"), vec![1u8; 100_000]).unwrap();
        let free_path = free.path().to_owned();
        drop(free);
        let used = disk_use(home.path()).unwrap();
        assert_eq!(used.len(), 2);
        assert!(used[0].in_use && !used[1].in_use);
        assert!(used[1].bytes >= 100_000);
        assert_eq!(remove_unused(home.path()).unwrap().len(), 1);
        assert!(held.path().exists());
        assert!(!free_path.exists());
    }
}
