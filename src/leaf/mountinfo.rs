//! What is mounted, and where (proc_pid_mountinfo(5)).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// One mount, as `mountinfo` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// The file system: `major:minor`.
    pub(super) device: OsString,
    /// What of the file system is mounted, from its own root.
    pub(super) root: PathBuf,
    /// Where.
    pub(super) at: PathBuf,
    /// Of which kind the file system is: `ext4`, `cgroup2`.
    pub(super) kind: OsString,
}

/// What this process sees.
///
/// # Errors
/// When there is no such list (no /proc).
pub(super) fn list() -> io::Result<Vec<Mount>> {
    fs::read("/proc/self/mountinfo").map(|text| parse(&text))
}

/// Reads `mountinfo`; a line that cannot be read says nothing.
pub(super) fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|b| *b == b'\n').filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|b| *b == b' ').skip(2);
    let (device, root, at) = (words.next()?, words.next()?, words.next()?);
    // Any number of words, up to a lone dash.
    words.by_ref().find(|word| *word == b"-")?;
    Some(Mount {
        device: OsStr::from_bytes(device).to_owned(),
        root: unescaped(root),
        at: unescaped(at),
        kind: OsStr::from_bytes(words.next()?).to_owned(),
    })
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

    #[test]
    fn a_line_that_cannot_be_read_says_nothing() {
        let text =
            b"22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\nnonsense\n\n1 2 8:1 / /x rw ext4\n";
        let root = Mount {
            device: "8:1".into(),
            root: "/".into(),
            at: "/".into(),
            kind: "ext4".into(),
        };
        assert_eq!(parse(text), [root]);
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
