//! Paths of a tree.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A path relative to a ground's root, as git stores it: bytes, with `/` between its parts.
pub type TreePath = Vec<u8>;

/// Whether `path` is `known` or lies below it.
pub(super) fn covers(known: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(known)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// The place of a tree path below a folder.
pub(super) fn place(root: &Path, path: &[u8]) -> PathBuf {
    root.join(OsString::from_vec(path.to_vec()))
}
