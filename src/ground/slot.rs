//! Slots: a ground's folder, the folder of its records, and the lock that makes them one process's own.

use super::files;
use crate::cause::{Bail, Cause};
use crate::folder;
use crate::lock::{self, Locked};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How many grounds of one kind a repository may have in use at once.
pub(super) const SLOTS: u32 = 64;

/// What a ground is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The conductor's own checks, and the planner's folder.
    Check,
    /// One verifier's folder, made fresh for each.
    Verify,
}

impl Kind {
    /// The name of the folder of slot 0.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Check => "check",
            Kind::Verify => "verify",
        }
    }
}

/// A slot that is taken. The lock ends with this value or with the process, whatever ends it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: u32,
    pub(super) root: PathBuf,
    pub(super) records: PathBuf,
    _lock: Held,
}

impl Slot {
    /// Puts the ground and its records back where links were put in their place; says whether there were any.
    pub(super) fn regain(&self) -> Result<bool> {
        let mut replaced = false;
        for own in [&self.root, &self.records] {
            replaced |= folder::unlinked(own)?;
        }
        // Where the folder that holds both was replaced, only the first is there again.
        for own in [&self.root, &self.records].into_iter().filter(|_| replaced) {
            fs::create_dir_all(own).with_context(|| format!("making {}", own.display()))?;
        }
        Ok(replaced)
    }

    /// Takes the first slot that nobody holds.
    pub(super) fn take(home: &Path, kind: Kind) -> Result<Slot> {
        let folder = home.join("ground");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        // Links on the way (a home on another disk) are resolved once, so that tools which compare paths agree.
        let folder = folder
            .canonicalize()
            .with_context(|| format!("finding {}", folder.display()))?;
        for number in 0..SLOTS {
            let name = name(kind, number);
            let lock = folder.join(format!("{name}.lock"));
            let root = folder.join(&name);
            let records = folder.join(format!("{name}.d"));
            // A slot is held by its records, too; what stands in their place is a matter of whoever holds it.
            let _ = fs::create_dir_all(&records);
            let Some(lock) = hold(&lock, &records)? else {
                continue;
            };
            // Once it is held nobody removes them.
            for made in [&root, &records] {
                fs::create_dir_all(made).with_context(|| format!("making {}", made.display()))?;
            }
            return Ok(Slot {
                number,
                root,
                records,
                _lock: lock,
            });
        }
        Err(all_in_use(&folder, kind).into())
    }
}

/// The folder name of a slot.
pub(super) fn name(kind: Kind, number: u32) -> String {
    match number {
        0 => kind.as_str().to_owned(),
        k => format!("{}-{k}", kind.as_str()),
    }
}

fn all_in_use(folder: &Path, kind: Kind) -> Bail {
    let mut holders = BTreeMap::new();
    for number in 0..SLOTS {
        let lock = folder.join(format!("{}.lock", name(kind, number)));
        if let Ok(file) = lock::open(&lock) {
            *holders.entry(lock::holder_of(&file)).or_insert(0) += 1;
        }
    }
    let holders: Vec<String> = holders
        .iter()
        .map(|(who, n)| format!("{n} by {who}"))
        .collect();
    Bail::new(
        Cause::StorageFailed,
        format!(
            "all {SLOTS} grounds in {} are in use: {}. End those that are stuck (`veri status` lists the runs), or wait \
             until one has ended; then run again.",
            folder.display(),
            holders.join(", ")
        ),
    )
}

/// A ground that is held: by the file of its lock, and by the folder of its records, since that file lies within a leaf's
/// reach.
#[derive(Debug)]
pub(super) struct Held {
    _file: Locked,
    _folder: Option<Locked>,
}

/// Holds a ground; None when somebody else does. What was put in the place of the lock, and is no file, is removed: the
/// place is veri's own.
pub(super) fn hold(path: &Path, records: &Path) -> Result<Option<Held>> {
    if fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        files::remove(path)?;
    }
    let file = lock::open(path).with_context(|| format!("opening the lock {}", path.display()))?;
    let file = Locked::alone(file).with_context(|| format!("locking {}", path.display()))?;
    let Some(file) = file else { return Ok(None) };
    // Where folders cannot be locked, the file alone has to do.
    let folder = fs::File::open(records).and_then(Locked::alone);
    Ok(match folder {
        Ok(None) => None,
        folder => Some(Held {
            _file: file,
            _folder: folder.ok().flatten(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_all_are_in_use_it_is_said_by_whom() {
        let home = tempfile::tempdir().unwrap();
        let all: Vec<Slot> = (0..SLOTS)
            .map(|_| Slot::take(home.path(), Kind::Check).unwrap())
            .collect();
        let error = Slot::take(home.path(), Kind::Check).unwrap_err();
        let bail = error.downcast_ref::<Bail>().unwrap();
        assert_eq!(bail.cause, Cause::StorageFailed);
        let me = format!("64 by process {}", std::process::id());
        let said = bail.detail.contains(&me) || !Path::new("/proc/locks").exists();
        assert!(said && bail.detail.contains("run again"), "{}", bail.detail);
        drop(all);
    }

    #[test]
    fn what_was_put_in_the_place_of_a_lock_is_removed_and_frees_no_ground_in_use() {
        let home = tempfile::tempdir().unwrap();
        let lock = home.path().join("ground/check.lock");
        let pipe = |lock: &Path| nix::unistd::mkfifo(lock, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let folder = |lock: &Path| fs::create_dir_all(lock.join("full")).unwrap();
        for put in [&pipe as &dyn Fn(&Path), &folder] {
            let held = Slot::take(home.path(), Kind::Check).unwrap();
            assert_eq!(held.number, 0);
            fs::remove_file(&lock).unwrap();
            put(&lock);
            assert_eq!(Slot::take(home.path(), Kind::Check).unwrap().number, 1);
            drop(held);
        }
        folder(&home.path().join("ground/verify.lock"));
        assert_eq!(Slot::take(home.path(), Kind::Verify).unwrap().number, 0);
    }

    #[test]
    fn a_second_taker_gets_the_next_slot_and_a_freed_one_is_taken_again() {
        let home = tempfile::tempdir().unwrap();
        let first = Slot::take(home.path(), Kind::Check).unwrap();
        let second = Slot::take(home.path(), Kind::Check).unwrap();
        assert_eq!((first.number, second.number), (0, 1));
        assert!(second.root.ends_with("ground/check-1"));
        drop(first);
        assert_eq!(Slot::take(home.path(), Kind::Check).unwrap().number, 0);
        assert_eq!(Slot::take(home.path(), Kind::Verify).unwrap().number, 0);
    }
}
