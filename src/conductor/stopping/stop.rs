//! Stop requests: `.tdd/stop` and the terminal's signals. STOPPING.md is the contract.

use crate::role::StopMode;
use crate::untrusted;
use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What a look at the request file found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Nobody asked.
    None,
    /// A mode.
    Mode(StopMode),
    /// Something is there that is not a mode: counts as at-ledger, and the doubt is said.
    Doubtful(String),
}

impl Request {
    /// The mode that counts.
    pub fn mode(&self) -> Option<StopMode> {
        match self {
            Request::None => None,
            Request::Mode(mode) => Some(*mode),
            Request::Doubtful(_) => Some(StopMode::AtLedger),
        }
    }
}

/// The request file of a working tree.
pub fn file(tdd: &Path) -> PathBuf {
    tdd.join("stop")
}

/// Looks at the request file. Whatever cannot be read as a mode is doubtful, never nothing.
pub fn look(tdd: &Path) -> Request {
    let path = file(tdd);
    match std::fs::symlink_metadata(&path) {
        // Also where a leaf has put a file in the folder's place: nobody asked in that.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Request::None;
        }
        Err(e) => return Request::Doubtful(format!("{}: {e}", path.display())),
        Ok(meta) if !meta.is_file() => {
            return Request::Doubtful(format!("{} is not a file", path.display()));
        }
        Ok(meta) if meta.len() > 64 => {
            return Request::Doubtful(format!("{} is longer than any mode", path.display()));
        }
        Ok(_) => {}
    }
    // What lies there by now need not be what was looked at.
    match untrusted::whole(&path, 64) {
        Ok(None) => Request::Doubtful(format!("{} is not a file", path.display())),
        Ok(Some(bytes)) => {
            let text = String::from_utf8_lossy(&bytes);
            match StopMode::parse(text.trim()) {
                Some(mode) => Request::Mode(mode),
                None if text.trim().is_empty() => {
                    Request::Doubtful(format!("{} is empty", path.display()))
                }
                None => Request::Doubtful(format!("{} holds no known mode", path.display())),
            }
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Request::None,
        Err(e) => Request::Doubtful(format!("{}: {e}", path.display())),
    }
}

/// Writes a request, atomically, unless one is there that asks for more; gives what is asked for by then.
///
/// # Errors
/// When the file cannot be written.
pub fn ask(tdd: &Path, mode: StopMode) -> Result<StopMode> {
    if let Request::Mode(asked) = look(tdd)
        && asked > mode
    {
        return Ok(asked);
    }
    let what = || format!("cannot write the stop request {}", file(tdd).display());
    let mut new = tempfile::NamedTempFile::new_in(tdd).with_context(what)?;
    writeln!(new, "{mode}").with_context(what)?;
    new.as_file().sync_all().with_context(what)?;
    new.persist(file(tdd))
        .map_err(|e| e.error)
        .with_context(what)?;
    Ok(mode)
}

/// Removes a request that has been obeyed.
pub fn clear(tdd: &Path) {
    // A folder that somebody put there is theirs when it holds anything; it counts until they take it away.
    let path = file(tdd);
    let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_and_cleared() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(dir.path()), Request::None);
        for mode in [StopMode::AtLedger, StopMode::AtLeaf, StopMode::Now] {
            ask(dir.path(), mode).unwrap();
            assert_eq!(look(dir.path()), Request::Mode(mode));
        }
        clear(dir.path());
        assert_eq!(look(dir.path()), Request::None);
    }

    #[test]
    fn whatever_is_no_mode_counts_as_at_ledger_and_is_said() {
        let dir = tempfile::tempdir().unwrap();
        for content in [&b""[..], b"soon", b"now now", &[0xff, 0xfe], &[b'x'; 5000]] {
            std::fs::write(file(dir.path()), content).unwrap();
            let found = look(dir.path());
            assert!(matches!(found, Request::Doubtful(_)), "{found:?}");
            assert_eq!(found.mode(), Some(StopMode::AtLedger));
        }
        std::fs::remove_file(file(dir.path())).unwrap();
        std::fs::create_dir(file(dir.path())).unwrap();
        assert!(matches!(look(dir.path()), Request::Doubtful(_)));
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_asks_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let tdd = dir.path().join(".tdd");
        std::fs::write(&tdd, "x").unwrap();
        assert_eq!(look(&tdd), Request::None);
    }
}
