//! Folders that outlive cleaning where the tree ignores them: builds and dependencies.

use super::entries::base_name;
use super::path::TreePath;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Folders that build tools and package managers of the known languages fill and check themselves.
///
/// Not `build`, `dist` and `out`: what stands there is run as it is by some suites, so a stale one could be tested.
const BUILD_FOLDERS: &[&[u8]] = &[
    b"target",
    b"node_modules",
    b".venv",
    b"venv",
    b".tox",
    b".nox",
    b".eggs",
    b"__pycache__",
    b".mypy_cache",
    b".pytest_cache",
    b".ruff_cache",
    b".gradle",
    b".pnpm-store",
    b".turbo",
    b".parcel-cache",
    b".stack-work",
    b"dist-newstyle",
];

/// The first line of a `CACHEDIR.TAG` (bford.info/cachedir).
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Whether an untracked folder holds only what can be built or fetched again.
pub(super) fn is_build_folder(name: &[u8], folder: &Path) -> bool {
    BUILD_FOLDERS.contains(&name) || has_cache_tag(folder)
}

fn has_cache_tag(folder: &Path) -> bool {
    let tag = folder.join("CACHEDIR.TAG");
    // A pipe of that name would hold the reader for ever.
    if !fs::symlink_metadata(&tag).is_ok_and(|stat| stat.is_file()) {
        return false;
    }
    let mut head = Vec::new();
    let read = fs::File::open(&tag).and_then(|file| {
        file.take(CACHE_TAG.len() as u64)
            .read_to_end(&mut head)
            .map(|_| ())
    });
    read.is_ok() && head == CACHE_TAG
}

/// The topmost build folder that a path lies in, with a `/` at its end.
pub(super) fn build_folder_of(path: &[u8]) -> Option<TreePath> {
    path.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| &path[..at])
        .find(|folder| BUILD_FOLDERS.contains(&base_name(folder)))
        .map(|folder| [folder, b"/"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_folders_are_known_by_name_or_tag() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_build_folder(b"target", dir.path()));
        assert!(!is_build_folder(b"data", dir.path()));
        fs::write(dir.path().join("CACHEDIR.TAG"), [CACHE_TAG, b"\n"].concat()).unwrap();
        assert!(is_build_folder(b"data", dir.path()));
        assert_eq!(
            build_folder_of(b"a/target/x/node_modules/y"),
            Some(b"a/target/".to_vec())
        );
        assert_eq!(build_folder_of(b"a/target"), None);
    }
}
