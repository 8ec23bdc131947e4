//! A lock that one program at a time can hold: an flock'd file. Whoever holds it writes who it is into the
//! file, for people to read; only the lock itself decides.
//!
//! The file stays when the lock is given back: deleting it would let a third program lock a new file of the
//! same name while a second still holds the old one.

use crate::cause::{Bail, Cause};
use anyhow::Context;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The most that is read of a holder's description, in bytes.
const INFO_LIMIT: u64 = 64 * 1024;

/// How long the lock of a holder that is dead is waited for: a child that it was just starting when it was
/// killed has a copy of the lock until it has become its program, and a killed process lets go of its files
/// after it has gone from the table. Ample for both on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long one is waited for that has not said who it is: somebody's look at whether the lock is held (`veri status`)
/// holds it for an instant, and a program that has just taken it is about to say.
const GLANCE: Duration = Duration::from_millis(500);

/// The most that is read of the kernel's table of locks, in bytes.
const LOCKS: u64 = 16 << 20;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(5);

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

    /// Whether it is known that this process is no more; a process of another host is not known.
    fn is_dead(&self) -> bool {
        let here = nix::unistd::gethostname().unwrap_or_default();
        here.to_str() == Some(self.host.as_str())
            && i32::try_from(self.pid).is_ok_and(|pid| {
                pid > 0
                    && nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None)
                        == Err(Errno::ESRCH)
            })
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

/// An flock'd file, unlocked when this goes away, and by the kernel when the program dies in any way.
///
/// Unlocked, not just closed: a child that another thread is starting has a copy of every open file until it
/// has become its program, and a lock lasts as long as any copy does unless it is given back in so many words.
/// (nix's `Flock` does that too, and panics where the file system refuses.)
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Locked {
    /// Locks the file for this holder alone; None when anybody else holds it.
    pub fn alone(file: File) -> io::Result<Option<Locked>> {
        Locked::unless_held(file.try_lock(), file)
    }

    /// As [`Locked::alone`], of a file that `open` opens, with patience for a holder that has just died.
    pub fn alone_in_time(open: impl Fn() -> io::Result<File>) -> io::Result<Option<Locked>> {
        let began = Instant::now();
        loop {
            let locked = Locked::alone(open()?)?;
            if locked.is_some() || began.elapsed() >= PATIENCE {
                return Ok(locked);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Locks the file together with others who do the same; None when somebody holds it alone.
    pub fn shared(file: File) -> io::Result<Option<Locked>> {
        Locked::unless_held(file.try_lock_shared(), file)
    }

    fn unless_held(tried: Result<(), TryLockError>, file: File) -> io::Result<Option<Locked>> {
        match tried {
            Ok(()) => Ok(Some(Locked(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // What fails here is given back all the same when the last copy is closed.
        let _ = self.0.unlock();
    }
}

/// Locks an open file for this process alone, which gives it back by `unlock`; false when somebody else has held it all
/// the time that was to be waited.
pub(crate) fn lock_in_time(file: &File, patience: Duration) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if began.elapsed() >= patience => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Who has locked a file, in words, as far as the kernel tells (Linux).
pub(crate) fn holder_of(file: &File) -> String {
    let found = || {
        let inode = format!(":{}", file.metadata().ok()?.ino());
        let mut locks = String::new();
        let table = File::open("/proc/locks").ok()?;
        table.take(LOCKS).read_to_string(&mut locks).ok()?;
        // `1: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> …`; those that wait have an arrow (proc_locks(5)).
        let pid = locks.lines().find_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                [_, "FLOCK", _, _, pid, at, ..] if at.ends_with(&inode) => Some(pid.to_owned()),
                _ => None,
            }
        })?;
        let mut name = String::new();
        let comm = File::open(format!("/proc/{pid}/comm")).ok();
        let _ = comm.map(|comm| comm.take(64).read_to_string(&mut name));
        Some(match name.trim() {
            "" => format!("process {pid}, or one that it started"),
            name => format!("process {pid} ({})", name.escape_debug()),
        })
    };
    found().unwrap_or_else(|| "another process".to_owned())
}

/// A held lock; given back when this goes away, and by the kernel when the program dies in any way.
///
/// The file is close-on-exec: no child of the holder keeps the lock alive.
#[derive(Debug)]
pub struct Lock {
    file: Locked,
}

impl Lock {
    /// Takes the lock if nobody holds it; one whose holder has died, or has not said who it is, is waited for. The
    /// folder must exist; the file is made when it is missing.
    ///
    /// # Errors
    /// When the file cannot be opened, locked (a file system without locks) or written.
    pub fn try_acquire(path: &Path, info: &LockInfo) -> anyhow::Result<Result<Lock, Holder>> {
        Lock::acquire(path, info, &mut || std::thread::sleep(PAUSE))
    }

    fn acquire(
        path: &Path,
        info: &LockInfo,
        pause: &mut dyn FnMut(),
    ) -> anyhow::Result<Result<Lock, Holder>> {
        let context = || format!("cannot take the lock {}", path.display());
        let began = Instant::now();
        let mut locked = loop {
            let file = open(path).with_context(context)?;
            if let Some(locked) = Locked::alone(file).with_context(context)? {
                break locked;
            }
            let info = read_info(&mut open(path).with_context(context)?);
            let patience = match &info {
                None => GLANCE,
                Some(info) if info.is_dead() => PATIENCE,
                Some(_) => Duration::ZERO,
            };
            if began.elapsed() >= patience {
                return Ok(Err(Holder { info }));
            }
            pause();
        };
        let text = serde_json::to_vec(info).with_context(context)?;
        locked
            .0
            .set_len(0)
            .and_then(|()| locked.0.write_all(&text))
            .with_context(context)?;
        Ok(Ok(Lock { file: locked }))
    }

    /// Whether somebody holds the lock. A file that is not there or cannot be opened is not held.
    pub fn is_held(path: &Path) -> bool {
        is_held(path).unwrap_or(false)
    }
}

/// Whether somebody holds the lock of a file alone. It is looked at for an instant, by which other lookers are not
/// disturbed. Nobody holds what is not there or is no file, and a pipe in its place is not waited at.
///
/// # Errors
/// When the file is there and cannot be opened or locked.
pub(crate) fn is_held(path: &Path) -> io::Result<bool> {
    let options = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(options.bits())
        .open(path);
    match opened {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        // A socket, or a device that is not there.
        Err(e) if e.raw_os_error() == Some(Errno::ENXIO as i32) => Ok(false),
        Err(e) => Err(e),
        Ok(file) if !file.metadata()?.is_file() => Ok(false),
        Ok(file) => Ok(Locked::shared(file)?.is_none()),
    }
}

/// Opens the file of a lock, making it where it is missing.
///
/// # Errors
/// storage-failed when something else stands in its place, which nobody waits at; plain I/O errors.
pub(crate) fn open(path: &Path) -> anyhow::Result<File> {
    if std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        let said = format!(
            "{} is to be a lock, and is no file: move it away, then run again.",
            path.display()
        );
        return Err(Bail::new(Cause::StorageFailed, said).into());
    }
    Ok(OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?)
}

impl Drop for Lock {
    fn drop(&mut self) {
        // So that nobody reads an old holder's name; a file that cannot be emptied misleads nobody, since the
        // lock itself is asked first.
        let _ = self.file.0.set_len(0);
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
        let second = Lock::try_acquire(&path, &info("b")).unwrap().unwrap();
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
        drop(Lock::try_acquire(&path, &info("b")).unwrap().unwrap());
        assert!(child.try_wait().unwrap().is_none(), "it still runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_is_unlocked_is_free_although_a_copy_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = Lock::try_acquire(&path, &info("a")).unwrap().unwrap();
        let copy = lock.file.0.try_clone().unwrap();
        drop(lock);
        assert!(!Lock::is_held(&path));
        drop(Lock::try_acquire(&path, &info("b")).unwrap().unwrap());
        drop(copy);
    }

    #[test]
    fn the_lock_of_a_dead_holder_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        #[allow(clippy::disallowed_methods)] // a process that is gone
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let last = LockInfo {
            pid: dead.id(),
            ..LockInfo::new("a run that was killed")
        };
        let mut file = File::create(&path).unwrap();
        file.lock().unwrap();
        file.write_all(&serde_json::to_vec(&last).unwrap()).unwrap();
        let mut pauses = 0;
        let taken = Lock::acquire(&path, &info("b"), &mut || {
            pauses += 1;
            file.unlock().unwrap();
        });
        assert!(taken.unwrap().is_ok());
        assert_eq!(pauses, 1);
    }

    #[test]
    fn what_stands_in_the_place_of_a_lock_is_named_and_holds_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        for make in [
            |path: &Path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            |path: &Path| std::fs::create_dir(path).unwrap(),
        ] {
            make(&path);
            assert!(!Lock::is_held(&path));
            let error = Lock::try_acquire(&path, &info("a")).unwrap_err();
            let bail = error.downcast_ref::<Bail>().unwrap();
            assert_eq!(bail.cause, Cause::StorageFailed);
            assert!(bail.detail.contains("move it away"), "{}", bail.detail);
            let _ = std::fs::remove_file(&path);
        }
    }

    #[test]
    fn somebodys_look_at_the_lock_is_not_taken_for_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        drop(Lock::try_acquire(&path, &info("a")).unwrap().unwrap());
        let looking = File::open(&path).unwrap();
        looking.lock_shared().unwrap();
        let taken = Lock::acquire(&path, &info("b"), &mut || looking.unlock().unwrap());
        assert!(taken.unwrap().is_ok());
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let error = Lock::try_acquire(&dir.path().join("gone/lock"), &info("a")).unwrap_err();
        assert!(format!("{error:#}").contains("gone/lock"), "{error:#}");
    }
}
