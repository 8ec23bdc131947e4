//! The files of a directory forge: bounded reads, atomic writes, and the lock that makes
//! look-then-write one act between processes.

use crate::cause::{Bail, Cause};
use crate::lock::Locked;
use crate::storage;
use anyhow::Context;
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The largest file that is read or written, in bytes (8 MiB): far above any issue that a person
/// reads, and small enough that one file cannot fill the memory.
pub const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// How long another process may hold the lock before that is an error; writes take milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// An I/O error with what was attempted. The `io::Error` stays in the chain; a full, failing or read-only disk
/// is the storage's fault and is classified from it, everything else is the forge's: what may not be written, too.
pub(super) fn failed(error: io::Error, attempted: String) -> anyhow::Error {
    if storage::failed(&error) && error.kind() != ErrorKind::PermissionDenied {
        return anyhow::Error::new(error).context(attempted);
    }
    let detail = format!(
        "{attempted} failed: {error}. Check that the path and its permissions are as they should be, \
         then run the same command again."
    );
    anyhow::Error::new(error).context(Bail::new(Cause::ForgeFailed, detail))
}

/// A file's text; None when there is none.
pub(super) fn read_text(path: &Path) -> anyhow::Result<Option<String>> {
    let reading = || format!("Reading {}", path.display());
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| failed(error, reading()))?,
    };
    if !metadata.is_file() {
        // Opening a pipe would wait for its writer.
        return Err(unusable(path, "it is not a regular file"));
    }
    let file = File::open(path).map_err(|error| failed(error, reading()))?;
    let mut bytes = vec![];
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(error, reading()))?;
    check_size(path, bytes.len())?;
    text_of(path, bytes).map(Some)
}

/// Refuses what is larger than [`MAX_FILE_BYTES`].
pub(super) fn check_size(path: &Path, bytes: usize) -> anyhow::Result<()> {
    if bytes as u64 > MAX_FILE_BYTES {
        let mib = MAX_FILE_BYTES / (1024 * 1024);
        return Err(unusable(path, &format!("it is larger than {mib} MiB")));
    }
    Ok(())
}

/// Bytes as text, or which byte is not UTF-8.
pub(super) fn text_of(path: &Path, bytes: Vec<u8>) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        unusable(
            path,
            &format!("line {line} is not UTF-8 (byte {at}): save it as UTF-8"),
        )
    })
}

/// A file that only a person can put right.
pub(super) fn unusable(path: &Path, why: &str) -> anyhow::Error {
    Bail::needs_user(format!("{} cannot be used: {why}.", path.display())).into()
}

/// What the names of files begin with that are still being written.
const UNFINISHED: &str = ".new-";

/// Writes a file whole or not at all, and durably: a crash leaves the old text or the new. What a writer left beside it
/// that was killed is removed: whoever writes holds the forge's lock, so that nobody else is writing.
pub(super) fn write_atomic(_held: &Lock, path: &Path, text: &str) -> anyhow::Result<()> {
    check_size(path, text.len())?;
    let writing = |error| failed(error, format!("Writing {}", path.display()));
    let folder = path
        .parent()
        .context("a path of a forge's file has a folder")?;
    fs::create_dir_all(folder).map_err(writing)?;
    for entry in fs::read_dir(folder).map_err(writing)?.flatten() {
        if is_unfinished(&entry) {
            // One that stays is in nobody's way: readers take no hidden file for anything.
            let _ = fs::remove_file(entry.path());
        }
    }
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        // The umask decides, as for any file that a person would create here.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(writing)?;
    file.write_all(text.as_bytes()).map_err(writing)?;
    file.as_file().sync_all().map_err(writing)?;
    file.persist(path).map_err(|error| writing(error.error))?;
    sync_folder(folder).map_err(writing)
}

fn is_unfinished(entry: &fs::DirEntry) -> bool {
    entry
        .file_name()
        .as_bytes()
        .starts_with(UNFINISHED.as_bytes())
}

/// Whether a folder is there and holds nothing but what a killed writer left.
pub(super) fn is_begun(folder: &Path) -> bool {
    let is_left = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|e| is_unfinished(&e));
    fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_left))
}

/// Removes a file durably; one that is gone already is fine.
pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    let removing = |error| failed(error, format!("Removing {}", path.display()));
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(removing(error)),
        _ => {}
    }
    path.parent().map_or(Ok(()), sync_folder).map_err(removing)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The entries of a folder that are numbers, with `ending` behind them; none when it does not exist.
/// Hidden files and those with another ending are not looked at; a wrong name is an error, because a
/// comment that is silently not read would be worse.
pub(super) fn numbered(folder: &Path, ending: &str) -> anyhow::Result<BTreeMap<u64, PathBuf>> {
    let reading = |error| failed(error, format!("Reading the folder {}", folder.display()));
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        other => other.map_err(reading)?,
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(reading)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with('.') {
            continue;
        }
        let Some(stem) = name.strip_suffix(ending) else {
            continue;
        };
        match stem.parse::<u64>() {
            Ok(number) if number > 0 && number.to_string() == stem => {
                found.insert(number, path);
            }
            // A stray folder or note beside numbered folders hides nothing.
            _ if ending.is_empty() => {}
            _ => {
                let why = format!(
                    "its name is not a number: call it {}{ending}",
                    found.len() + 1
                );
                return Err(unusable(&path, &why));
            }
        }
    }
    Ok(found)
}

/// Held while a forge is looked at and written; released when dropped, or by the kernel at a crash.
pub(super) struct Lock {
    _held: Locked,
}

impl Lock {
    /// Takes the lock of the forge in `root`, which is created if need be.
    pub fn take(root: &Path) -> anyhow::Result<Lock> {
        let path = root.join(".lock");
        let locking = |error| failed(error, format!("Locking {}", path.display()));
        fs::create_dir_all(root).map_err(locking)?;
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(locking)?;
            if let Some(held) = Locked::alone(file).map_err(locking)? {
                return Ok(Lock { _held: held });
            }
            if Instant::now() >= deadline {
                return Err(locking(io::Error::new(
                    ErrorKind::TimedOut,
                    "another process has held it for 30 seconds",
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
