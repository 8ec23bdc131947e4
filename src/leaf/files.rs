//! Files that a leaf can have put something else in the place of: opened, removed, and given a second name.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file: no link is followed, no pipe waited at.
pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = options.custom_flags(flags.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // The leaf inherits it.
    let set = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(set - OFlag::O_NONBLOCK))?;
    Ok(file)
}

/// Removes a file that may be missing, and a folder that a leaf has put in its place.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match is_folder(path) {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir())
}

/// Makes way for a file that is about to get this name: it can take another file's place, but no folder's.
pub(super) fn make_way(path: &Path) -> io::Result<()> {
    match is_folder(path) {
        true => remove(path),
        false => Ok(()),
    }
}

/// Whether a regular file is there itself, and no link to one.
pub(super) fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

/// Whether both names are the same file's.
pub(super) fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// A second name for a file, or where that cannot be (another file system, one without hard links) a copy that keeps its
/// holes.
pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            // Half a copy would pass for the whole.
            copy_with_holes(from, to).inspect_err(|_| drop(remove(to)))
        }
        other => other,
    }
}

fn copy_with_holes(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = open(OpenOptions::new().read(true), from)?;
    let len = source.metadata()?.len();
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    #[cfg(target_os = "linux")]
    {
        use nix::errno::Errno;
        use nix::unistd::{Whence, lseek};
        use std::io::{Read, Seek, SeekFrom};
        let mut at = 0;
        while at < len {
            let data = match lseek(&source, at as i64, Whence::SeekData) {
                Ok(data) => data as u64,
                Err(Errno::ENXIO) => break, // only a hole is left
                Err(e) => return Err(e.into()),
            };
            let hole = lseek(&source, data as i64, Whence::SeekHole)? as u64;
            source.seek(SeekFrom::Start(data))?;
            target.seek(SeekFrom::Start(data))?;
            io::copy(&mut (&source).take(hole - data), &mut target)?;
            at = hole;
        }
        target.set_len(len)
    }
    #[cfg(not(target_os = "linux"))]
    {
        use std::io::Read;
        io::copy(&mut source.by_ref().take(len), &mut target).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_copy_keeps_the_holes() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let file = File::create(&from).unwrap();
        file.write_all_at(b"head", 0).unwrap();
        file.write_all_at(b"tail", 3 << 20).unwrap();
        copy_with_holes(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), fs::read(&from).unwrap());
        let blocks = |path| fs::metadata(path).unwrap().blocks();
        assert!(blocks(&to) <= blocks(&from) + 8);
    }

    #[test]
    fn neither_a_pipe_nor_a_link_is_copied_and_nothing_is_written_through_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "file").unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        for from in ["pipe", "link"] {
            copy_with_holes(&at(from), &at("new")).unwrap_err();
            assert!(!at("new").exists(), "{from}");
        }
        fs::write(at("other"), "other").unwrap();
        copy_with_holes(&at("other"), &at("link")).unwrap_err();
        assert_eq!(fs::read(at("file")).unwrap(), b"file");
    }
}
