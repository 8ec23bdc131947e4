//! Storage that fails, in whatever words: a full disk, a quota, a read-only file system, a permission that is gone.

use std::io::ErrorKind;

/// What a person does about it, as the end of a message.
pub const ADVICE: &str = "Nothing finished is lost: make room or give access, and run again.";

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

/// Whether another program (git, libgit2) says so, in the C locale. Only its own words will do: those of a hook or a
/// test may say anything.
pub fn is_named_in(words: &str) -> bool {
    const FULL: [&str; 6] = [
        "No space left on device",
        // git, of an index that it could not write whole.
        "Out of diskspace",
        "Read-only file system",
        "Disk quota exceeded",
        "File too large",
        "insufficient permission for adding an object",
    ];
    FULL.iter().any(|full| words.contains(full)) || words.lines().any(is_denied)
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
    fn a_file_that_is_missing_is_no_fault_of_the_storage() {
        assert!(is_to_blame(ErrorKind::StorageFull) && is_to_blame(ErrorKind::PermissionDenied));
        assert!(!has_no_room(ErrorKind::PermissionDenied));
        assert!(!is_to_blame(ErrorKind::NotFound));
    }
}
