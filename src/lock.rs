//! A lock that one program at a time can hold: an flock'd file. Whoever holds it writes who it is into the
//! file, for people to read; only the lock itself decides.
//!
//! The file stays when the lock is given back: deleting it would let a third program lock a new file of the
//! same name while a second still holds the old one.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The most that is read of a holder's description, in bytes.
const INFO_LIMIT: u64 = 64 * 1024;

/// Who holds a lock: information for people, never evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockInfo {
    /// Its process id, on its own host.
    pub pid: u32,
    /// The host that it runs on.
    pub host: String,
    /// What it is doing, in a few words.
    pub what: String,
}

impl LockInfo {
    /// This process, doing `what`.
    pub fn new(what: &str) -> LockInfo {
        let host = nix::unistd::gethostname().unwrap_or_default();
        LockInfo {
            pid: std::process::id(),
            host: host.to_string_lossy().into_owned(),
            what: what.to_owned(),
        }
    }
}

/// Somebody else holds the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// What the file says of it; None while it has not written that yet.
    pub info: Option<LockInfo>,
}

impl Holder {
    /// Who it is, in words.
    pub fn describe(&self) -> String {
        match &self.info {
            Some(info) => format!("{} (process {} on {})", info.what, info.pid, info.host),
            None => "another process that has not said who it is".to_owned(),
        }
    }
}

/// A held lock; given back when this goes away, and by the kernel when the program dies in any way.
///
/// The file is close-on-exec: no child of the holder keeps the lock alive.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock if nobody holds it. The folder must exist; the file is made when it is missing.
    ///
    /// # Errors
    /// When the file cannot be opened, locked (a file system without locks) or written.
    pub fn try_acquire(path: &Path, info: &LockInfo) -> anyhow::Result<Result<Lock, Holder>> {
        let context = || format!("cannot take the lock {}", path.display());
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .with_context(context)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(Err(Holder {
                    info: read_info(&mut file),
                }));
            }
            Err(TryLockError::Error(e)) => return Err(e).with_context(context),
        }
        let text = serde_json::to_vec(info).with_context(context)?;
        file.set_len(0)
            .and_then(|()| file.write_all(&text))
            .with_context(context)?;
        Ok(Ok(Lock { file }))
    }
}

impl Lock {
    /// Whether somebody holds the lock. A file that is not there or cannot be opened is not held.
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = File::open(path) else {
            return false;
        };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // So that nobody reads an old holder's name; a file that cannot be emptied misleads nobody, since the
        // lock itself is asked first.
        let _ = self.file.set_len(0);
    }
}

fn read_info(file: &mut File) -> Option<LockInfo> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.take(INFO_LIMIT).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(what: &str) -> LockInfo {
        LockInfo {
            pid: 7,
            host: "here".to_owned(),
            what: what.to_owned(),
        }
    }

    /// A child that another test is just starting holds every lock until it has become its program.
    fn soon(path: &Path, who: &LockInfo) -> Lock {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            match Lock::try_acquire(path, who).unwrap() {
                Ok(lock) => return lock,
                Err(holder) => assert!(std::time::Instant::now() < until, "{holder:?}"),
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_second_one_is_told_who_holds_it_and_gets_it_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a lock");
        let first = Lock::try_acquire(&path, &info("a much longer description"))
            .unwrap()
            .unwrap();
        let holder = Lock::try_acquire(&path, &info("b")).unwrap().unwrap_err();
        assert_eq!(holder.info, Some(info("a much longer description")));
        drop(first);
        let second = soon(&path, &info("b"));
        let holder = Lock::try_acquire(&path, &info("c")).unwrap().unwrap_err();
        assert_eq!(holder.info, Some(info("b")));
        drop(second);
        assert!(path.exists());
    }

    #[test]
    fn a_holder_that_has_not_written_its_name_is_a_holder_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = File::create(&path).unwrap();
        file.lock().unwrap();
        let holder = Lock::try_acquire(&path, &info("b")).unwrap().unwrap_err();
        assert_eq!(holder.info, None);
    }

    #[test]
    fn no_child_keeps_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = Lock::try_acquire(&path, &info("a")).unwrap().unwrap();
        #[allow(clippy::disallowed_methods)] // a child like any other
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        drop(lock);
        drop(soon(&path, &info("b")));
        assert!(child.try_wait().unwrap().is_none(), "it still runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let error = Lock::try_acquire(&dir.path().join("gone/lock"), &info("a")).unwrap_err();
        assert!(format!("{error:#}").contains("gone/lock"), "{error:#}");
    }
}
