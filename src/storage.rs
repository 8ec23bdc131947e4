//! Storage that fails, in whatever words: a full disk, a quota, a read-only file system, a permission that is gone.

use nix::errno::Errno;
use nix::sys::statvfs::{FsFlags, statvfs};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What has to be left on a disk so that it is not full, in bytes and in files: git alone writes more for one commit of a
/// small project.
const LEFT: (u64, u64) = (1 << 20, 16);

/// What a person does about it, as the end of a message.
pub const ADVICE: &str = "Nothing finished is lost: make room or give access, and run again.";

/// What a person does where the system gives no more.
const NO_MORE: &str = "The system gives no more open files, processes or memory: end what holds them or raise the limit \
                       (`ulimit -n`, `ulimit -u`, pids.max of the container), then run again. Nothing finished is lost.";

/// Whether an error of this kind is the storage's.
pub fn is_to_blame(kind: ErrorKind) -> bool {
    use ErrorKind as K;
    kind == K::PermissionDenied || has_no_room(kind)
}

/// Whether nothing can be written there, whoever tries.
pub fn has_no_room(kind: ErrorKind) -> bool {
    use ErrorKind as K;
    matches!(
        kind,
        K::StorageFull | K::QuotaExceeded | K::ReadOnlyFilesystem | K::FileTooLarge
    )
}

/// Whether an error is the storage's: by its kind, or by what the system calls it (a failing disk, a mount whose server is
/// gone, a file system without locks).
pub fn failed(error: &std::io::Error) -> bool {
    let by_name = error.raw_os_error().map(Errno::from_raw);
    is_to_blame(error.kind())
        || by_name.is_some_and(|name| {
            use Errno as E;
            matches!(
                name,
                E::EIO | E::ENXIO | E::ENODEV | E::ESTALE | E::ENOTCONN | E::ENOLCK | E::EUCLEAN
            )
        })
}

/// What a person does about an error that says that the system gives no more files, processes or memory; None of any other.
pub fn has_no_more(error: &std::io::Error) -> Option<&'static str> {
    let name = error.raw_os_error().map(Errno::from_raw)?;
    matches!(
        name,
        Errno::EMFILE | Errno::ENFILE | Errno::EAGAIN | Errno::ENOMEM
    )
    .then_some(NO_MORE)
}

/// Whether another program (git, libgit2) says so, in the C locale. Only its own words will do: those of a hook or a
/// test may say anything.
pub fn is_named_in(words: &str) -> bool {
    const FULL: [&str; 11] = [
        "No space left on device",
        // git, which does not say why.
        "unable to write",
        "couldn't write '",
        // git, of an index that it could not write whole.
        "Out of diskspace",
        "Read-only file system",
        "Disk quota exceeded",
        "File too large",
        "Input/output error",
        "Stale file handle",
        "Transport endpoint is not connected",
        "insufficient permission for adding an object",
    ];
    FULL.iter().any(|full| words.contains(full)) || words.lines().any(is_denied)
}

/// Why next to nothing can be written in one of these folders, in words: asked when a program has failed and does not say
/// why. For a folder that is not there, the one that it would be made in is looked at.
pub fn what_fails(folders: &[PathBuf]) -> Option<String> {
    let there = folders
        .iter()
        .filter_map(|f| f.ancestors().find(|f| f.is_dir()));
    there.into_iter().find_map(what_fails_in)
}

fn what_fails_in(folder: &Path) -> Option<String> {
    let at = folder.display();
    if let Ok(disk) = statvfs(folder) {
        // The types differ between systems.
        #[allow(clippy::unnecessary_cast)]
        let (left, files, of_files) = (
            disk.blocks_available() as u64 * disk.fragment_size() as u64,
            disk.files_available() as u64,
            disk.files() as u64,
        );
        if disk.flags().contains(FsFlags::ST_RDONLY) {
            return Some(format!("{at} lies on a read-only file system"));
        }
        if left < LEFT.0 {
            return Some(format!(
                "the disk under {at} is full: {} KiB are left",
                left / 1024
            ));
        }
        // Some file systems do not count them.
        if of_files > 0 && files < LEFT.1 {
            return Some(format!(
                "the disk under {at} is full: it takes {files} more files"
            ));
        }
    }
    let tried = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(&[b'x'; 4096])?;
        file.as_file().sync_data()
    });
    match tried {
        Err(e) if is_to_blame(e.kind()) => Some(format!("nothing can be written in {at}: {e}")),
        _ => None,
    }
}

/// Whether a file is named that may not be written: a remote denies, too, and names none.
fn is_denied(line: &str) -> bool {
    line.contains("': Permission denied")
        && ["fatal: ", "error: "].iter().any(|p| line.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gits_words_for_a_failing_disk_are_known_and_a_remote_that_denies_is_none() {
        for words in [
            "fatal: sha1 file '/r/.git/index.lock' write error. Out of diskspace",
            "error: unable to write file x\nfatal: unable to write loose object file: No space left on device",
            "fatal: Unable to create '/r/.git/index.lock': Permission denied",
            "error: insufficient permission for adding an object to repository database .git/objects",
            "fatal: cannot lock ref 'HEAD': Unable to create '/r/.git/HEAD.lock': Read-only file system",
        ] {
            assert!(is_named_in(words), "{words}");
        }
        for words in [
            "git@example.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "hint: '.git/hooks/pre-commit': Permission denied",
            "fatal: not a git repository",
        ] {
            assert!(!is_named_in(words), "{words}");
        }
    }

    #[test]
    fn a_folder_that_can_be_written_or_made_does_not_fail_and_one_that_cannot_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let folders = [dir.path().join("gone"), dir.path().to_owned()];
        assert_eq!(what_fails(&folders), None);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        #[cfg(target_os = "linux")]
        if let Some(why) = what_fails(&[PathBuf::from("/proc")]) {
            assert!(why.contains("/proc"), "{why}");
        } else {
            panic!("nobody writes in /proc");
        }
    }

    #[test]
    fn every_way_in_which_a_disk_refuses_a_write_is_the_storages_fault() {
        use nix::errno::Errno;
        let kind = |errno: Errno| std::io::Error::from(errno).kind();
        for errno in [Errno::ENOSPC, Errno::EDQUOT, Errno::EROFS, Errno::EFBIG] {
            assert!(
                has_no_room(kind(errno)) && is_to_blame(kind(errno)),
                "{errno}"
            );
        }
        for errno in [Errno::EACCES, Errno::EPERM] {
            assert!(
                !has_no_room(kind(errno)) && is_to_blame(kind(errno)),
                "{errno}"
            );
        }
        for errno in [Errno::ENOENT, Errno::EPIPE, Errno::ETIMEDOUT] {
            assert!(!is_to_blame(kind(errno)), "{errno}");
        }
    }

    #[test]
    fn each_of_gits_words_for_a_failing_disk_tells_it_alone() {
        for words in [
            "fatal: write error: No space left on device",
            "fatal: unable to write new index file",
            "error: couldn't write '.git/rebase-merge/done'",
            "fatal: sha1 file 'x' write error. Out of diskspace",
            "fatal: Unable to create '/r/.git/HEAD.lock': Read-only file system",
            "error: file write error: Disk quota exceeded",
            "fatal: write failure: File too large",
            "error: insufficient permission for adding an object to repository database .git/objects",
            "error: cannot open '/r/.git/FETCH_HEAD': Permission denied",
        ] {
            assert!(is_named_in(words), "{words}");
        }
    }

    #[test]
    fn a_dying_disk_a_mount_without_its_server_and_one_without_locks_are_the_storages_fault() {
        for name in [Errno::EIO, Errno::ESTALE, Errno::ENOTCONN, Errno::ENOLCK] {
            assert!(failed(&name.into()), "{name}");
        }
        for name in [Errno::ENOENT, Errno::EMFILE, Errno::EAGAIN] {
            assert!(!failed(&name.into()), "{name}");
        }
        assert!(is_named_in("fatal: mmap failed: Input/output error"));
    }

    #[test]
    fn a_file_that_is_missing_is_no_fault_of_the_storage() {
        assert!(is_to_blame(ErrorKind::StorageFull) && is_to_blame(ErrorKind::PermissionDenied));
        assert!(!has_no_room(ErrorKind::PermissionDenied));
        assert!(!is_to_blame(ErrorKind::NotFound));
    }
}
