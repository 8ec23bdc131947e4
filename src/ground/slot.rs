//! Slots: a ground's folder, the folder of its records, and the lock that makes them one process's own.

use crate::lock::{self, Locked};
use anyhow::{Context, Result, bail};
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
    _lock: Locked,
}

impl Slot {
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
            let Some(lock) = try_lock(&lock)? else {
                continue;
            };
            let root = folder.join(&name);
            let records = folder.join(format!("{name}.d"));
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
        bail!(
            "all {SLOTS} grounds in {} are in use: end the runs that hold them, or try later",
            folder.display()
        )
    }
}

/// The folder name of a slot.
pub(super) fn name(kind: Kind, number: u32) -> String {
    match number {
        0 => kind.as_str().to_owned(),
        k => format!("{}-{k}", kind.as_str()),
    }
}

/// Opens and locks a file; None when somebody else holds it.
pub(super) fn try_lock(path: &Path) -> Result<Option<Locked>> {
    let file = lock::open(path).with_context(|| format!("opening the lock {}", path.display()))?;
    Locked::alone(file).with_context(|| format!("locking {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
