//! What a checkout holds, byte for byte: so that a test can say that nothing of it was touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Every file below a checkout, `.git` included: its kind, mode and content.
///
/// Left out is what does not count as touching: `.tdd/`, `info/exclude`, the registration of worktrees and what
/// was fetched. Objects may be added, since nothing refers to them.
#[derive(Debug, PartialEq, Eq)]
pub struct Picture(BTreeMap<PathBuf, (u32, Vec<u8>)>);

/// Paths below a checkout that may change.
const MAY_CHANGE: &[&str] = &[
    ".tdd",
    ".git/info/exclude",
    ".git/worktrees",
    ".git/refs/remotes",
    ".git/logs/refs/remotes",
];

impl Picture {
    /// Takes the picture of a checkout.
    pub fn of(checkout: &Path) -> Picture {
        let mut files = BTreeMap::new();
        walk(checkout, Path::new(""), &mut files);
        Picture(files)
    }

    /// Without the paths below these.
    pub fn without(mut self, prefixes: &[&str]) -> Picture {
        self.0
            .retain(|path, _| !prefixes.iter().any(|p| path.starts_with(p)));
        self
    }

    /// Asserts that a later picture shows the same.
    #[track_caller]
    pub fn is_still(&self, later: &Picture) {
        let mut changes = Vec::new();
        for (path, before) in &self.0 {
            match later.0.get(path) {
                None => changes.push(format!("{} is gone", path.display())),
                Some(after) if after != before => {
                    changes.push(format!("{} has changed", path.display()));
                }
                Some(_) => {}
            }
        }
        for path in later.0.keys().filter(|path| !self.0.contains_key(*path)) {
            if !path.starts_with(".git/objects") {
                changes.push(format!("{} is new", path.display()));
            }
        }
        assert!(changes.is_empty(), "the checkout was touched: {changes:?}");
    }
}

fn walk(top: &Path, below: &Path, files: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(top.join(below)).expect("a folder").flatten() {
        let path = below.join(entry.file_name());
        if MAY_CHANGE.iter().any(|may| path.starts_with(may)) {
            continue;
        }
        let meta = entry.metadata().expect("a file");
        if meta.is_dir() {
            walk(top, &path, files);
            continue;
        }
        let content = if meta.is_symlink() {
            let to = fs::read_link(entry.path()).expect("a link");
            to.into_os_string().into_encoded_bytes()
        } else {
            fs::read(entry.path()).expect("a readable file")
        };
        files.insert(path, (meta.permissions().mode(), content));
    }
}

#[test]
fn a_picture_shows_every_kind_of_touch() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
        fs::write(dir.path().join(path), text).unwrap();
    };
    write("a", "1");
    write(".git/index", "1");
    let before = Picture::of(dir.path());
    write(".git/info/exclude", "x");
    write(".git/objects/aa/bb", "x");
    write(".tdd/events.jsonl", "x");
    before.is_still(&Picture::of(dir.path()));
    for (path, text) in [
        ("a", "2"),
        ("b", "1"),
        (".git/index", "2"),
        (".git/refs/heads/x", "1"),
    ] {
        let old = fs::read(dir.path().join(path)).ok();
        write(path, text);
        assert_ne!(
            before,
            Picture::of(dir.path()).without(&[".git/objects"]),
            "{path}"
        );
        match old {
            Some(old) => fs::write(dir.path().join(path), old).unwrap(),
            None => fs::remove_file(dir.path().join(path)).unwrap(),
        }
    }
}
