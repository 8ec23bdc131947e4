//! The same folder under other names: bind mounts, a file system that is mounted twice, subvolumes.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// One mount, as `/proc/self/mountinfo` tells (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// The file system: `major:minor`.
    device: OsString,
    /// What of the file system is mounted, from its own root.
    root: PathBuf,
    /// Where.
    at: PathBuf,
}

/// Reads `mountinfo`; a line that cannot be read says nothing.
pub(super) fn parse(text: &[u8]) -> Vec<Mount> {
    let lines = text.split(|b| *b == b'\n');
    lines
        .filter_map(|line| {
            let mut words = line.split(|b| *b == b' ').skip(2);
            Some(Mount {
                device: OsStr::from_bytes(words.next()?).to_owned(),
                root: unescaped(words.next()?),
                at: unescaped(words.next()?),
            })
        })
        .collect()
}

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

/// Blanks, tabs, line ends and backslashes stand as octal numbers.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(word.len());
    let mut at = 0;
    while at < word.len() {
        let digits = word.get(at + 1..at + 4).filter(|_| word[at] == b'\\');
        let value = digits.and_then(|d| {
            let text = std::str::from_utf8(d).ok()?;
            u8::from_str_radix(text, 8).ok()
        });
        match value {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(word[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn paths_with_blanks_and_backslashes_are_read() {
        assert_eq!(
            unescaped(b"/a\\040b\\134c\\011"),
            PathBuf::from("/a b\\c\t")
        );
        assert_eq!(unescaped(b"/a\\9\\04"), PathBuf::from("/a\\9\\04"));
        assert_eq!(unescaped(b"\\777"), PathBuf::from("\\777"));
    }
}
