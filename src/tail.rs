//! The end of a file that an untrusted process wrote.

use anyhow::{Context, bail};
use nix::fcntl::OFlag;
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The last `max` bytes of a file, and whether there were more before them.
///
/// Never follows a symbolic link in the last place, never waits on a pipe or device, and never reads more than `max`, however
/// large the file is or grows.
///
/// # Errors
/// When the file cannot be opened or read, or is not a regular file.
pub fn tail(path: &Path, max: u64) -> anyhow::Result<(Vec<u8>, bool)> {
    let read = || -> anyhow::Result<(Vec<u8>, bool)> {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits())
            .open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            bail!("it is not a regular file");
        }
        let skipped = about.len().saturating_sub(max);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(max).read_to_end(&mut bytes)?;
        Ok((bytes, skipped > 0))
    };
    read().with_context(|| format!("reading the end of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_end_of_a_file_and_whether_there_was_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(tail(&path, 4).unwrap(), (b"6789".to_vec(), true));
        assert_eq!(tail(&path, 10).unwrap(), (b"0123456789".to_vec(), false));
        assert_eq!(tail(&path, 0).unwrap(), (vec![], true));
    }

    #[test]
    fn links_pipes_folders_and_nothing_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("secret");
        fs::write(&secret, "x").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [link, pipe, dir.path().to_owned(), dir.path().join("none")] {
            let error = tail(&path, 9).unwrap_err();
            assert!(
                error.to_string().starts_with("reading the end of "),
                "{error}"
            );
        }
    }
}
