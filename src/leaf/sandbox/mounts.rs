//! The same folder under other names: bind mounts, a file system that is mounted twice, subvolumes.

use crate::leaf::mountinfo::Mount;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folders, and every other path by which they or a part of them can be reached as things are mounted.
pub(super) fn with_aliases(folders: &BTreeSet<PathBuf>, mounts: &[Mount]) -> BTreeSet<PathBuf> {
    let mut all = folders.clone();
    for folder in folders {
        // What is mounted inside is another file system's, and may be mounted elsewhere, too.
        let inside = mounts.iter().filter(|m| m.at.starts_with(folder));
        for place in inside.map(|m| &m.at).chain([folder]) {
            all.extend(aliases(place, mounts));
        }
    }
    all
}

fn aliases(folder: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    // Of several in one place the last covers the others.
    let on = mounts
        .iter()
        .filter(|m| folder.starts_with(&m.at))
        .max_by_key(|m| m.at.components().count());
    let Some((on, below)) = on.and_then(|m| Some((m, folder.strip_prefix(&m.at).ok()?))) else {
        return Vec::new();
    };
    let inner = joined(&on.root, below);
    let others = mounts.iter().filter(|m| m.device == on.device);
    others
        .filter_map(|m| match inner.strip_prefix(&m.root) {
            Ok(rest) => Some(joined(&m.at, rest)),
            Err(_) => m.root.starts_with(&inner).then(|| m.at.clone()),
        })
        .filter(|alias| alias != folder)
        .collect()
}

/// `join` of an empty path would leave a slash at the end.
fn joined(base: &Path, rest: &Path) -> PathBuf {
    base.iter().chain(rest.iter()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::mountinfo::parse;

    const TABLE: &[u8] = b"\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
24 22 8:2 / /data rw - ext4 /dev/sda2 rw
25 22 8:2 /home /home rw - ext4 /dev/sda2 rw
26 22 8:2 /home/u/repo/src /srv/my\\040src rw - ext4 /dev/sda2 rw
27 22 8:1 /var /also rw - ext4 /dev/sda1 rw
28 25 8:3 / /home/u/repo/vendor rw - ext4 /dev/sda3 rw
29 22 8:3 /lib /mnt/lib rw - ext4 /dev/sda3 rw
a line that says nothing
";

    fn of(folder: &str) -> Vec<String> {
        let folders = BTreeSet::from([PathBuf::from(folder)]);
        with_aliases(&folders, &parse(TABLE))
            .iter()
            .map(|p| p.display().to_string())
            .collect()
    }

    #[test]
    fn a_folder_is_hidden_under_every_name_that_a_mount_gives_it() {
        assert_eq!(
            of("/home/u/repo"),
            [
                "/data/home/u/repo",
                "/home/u/repo",
                "/home/u/repo/vendor",
                "/mnt/lib",
                "/srv/my src"
            ]
            .into_iter()
            .filter(|p| *p != "/home/u/repo/vendor")
            .collect::<Vec<_>>()
        );
        assert_eq!(of("/var/lib"), ["/also/lib", "/var/lib"]);
        assert_eq!(of("/home/ann"), ["/data/home/ann", "/home/ann"]);
    }

    #[test]
    fn a_folder_that_is_mounted_once_has_one_name() {
        assert_eq!(of("/etc"), ["/etc"]);
        assert_eq!(of("/data/other"), ["/data/other"]);
    }
}
