//! What a ground remembers between processes: what was laid with which stat data, its latest time, its setup.
//!
//! A record that cannot be read, or is torn, counts as none: the ground is then made anew.

use super::clock::Stamp;
use super::entries::{Entry, Form};
use super::files::{remove, write_atomic};
use super::path::TreePath;
use anyhow::Result;
use git2::{Index, IndexEntry, IndexTime, Oid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

const STATE: &str = "state.json";
const MANIFEST: &str = "manifest";
const MADE: &str = "made";
const VERSION: u32 = 1;

/// Stat data that changes with every write: the change time cannot be set by a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signature {
    mode: u32,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Signature {
    pub(super) fn of(stat: &Metadata) -> Signature {
        Signature {
            mode: stat.mode(),
            inode: stat.ino(),
            size: stat.size(),
            modified: (stat.mtime(), stat.mtime_nsec()),
            changed: (stat.ctime(), stat.ctime_nsec()),
        }
    }

    /// Whether git, which keeps 32 bits of each, took an entry of an index from this file as it is.
    fn is_of(&self, entry: &IndexEntry) -> bool {
        let time = |time: IndexTime| (time.seconds(), time.nanoseconds());
        let cut = |(seconds, nanoseconds): (i64, i64)| (seconds as i32, nanoseconds as u32);
        time(entry.mtime) == cut(self.modified)
            && time(entry.ctime) == cut(self.changed)
            && entry.ino == self.inode as u32
            && entry.file_size == self.size as u32
    }
}

/// What was laid at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaidFile {
    pub(super) entry: Entry,
    pub(super) signature: Signature,
}

/// The setup that the dependency folders come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetupDone {
    pub(super) key: String,
    /// What it made beside the tree: the topmost paths.
    pub(super) made: Vec<TreePath>,
}

/// A ground's record.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    /// Whether there is one: false means that nothing in the ground can be trusted.
    pub(super) known: bool,
    pub(super) stamp: Stamp,
    pub(super) files: BTreeMap<TreePath, LaidFile>,
    pub(super) setup: Option<SetupDone>,
}

#[derive(Serialize, Deserialize)]
struct State {
    version: u32,
    stamp_secs: u64,
    stamp_nanos: u32,
    setup: Option<String>,
}

impl Record {
    /// Reads the record in a folder; none and unreadable are the same.
    pub(super) fn read(folder: &Path) -> Record {
        read(folder).unwrap_or_default()
    }

    /// Writes the times and the setup, before and after files are written.
    pub(super) fn write_state(&self, folder: &Path) -> Result<()> {
        let setup = self.setup.as_ref();
        let made = setup.map_or(Vec::new(), |done| done.made.join(&0));
        write_atomic(&folder.join(MADE), &made)?;
        let state = State {
            version: VERSION,
            stamp_secs: self.stamp.as_secs(),
            stamp_nanos: self.stamp.subsec_nanos(),
            setup: setup.map(|done| done.key.clone()),
        };
        write_atomic(&folder.join(STATE), &serde_json::to_vec(&state)?)
    }

    /// Writes what was laid.
    pub(super) fn write_files(&self, folder: &Path) -> Result<()> {
        let mut text = Vec::with_capacity(self.files.len() * 128);
        for (path, file) in &self.files {
            let s = &file.signature;
            write!(
                text,
                "{} {} {} {} {} {} {} {} {} ",
                file.entry.form.letter(),
                file.entry.oid,
                s.mode,
                s.inode,
                s.size,
                s.modified.0,
                s.modified.1,
                s.changed.0,
                s.changed.1,
            )?;
            text.extend_from_slice(path);
            text.push(0);
        }
        write_atomic(&folder.join(MANIFEST), &text)
    }

    /// Whether an index has of every file the stat data that it was laid with.
    pub(super) fn is_known_to(&self, index: &Path) -> bool {
        let known = |entry: &IndexEntry| {
            let laid = self.files.get(&entry.path);
            laid.is_some_and(|file| file.signature.is_of(entry))
        };
        Index::open(index).is_ok_and(|index| index.iter().all(|entry| known(&entry)))
    }

    /// Forgets everything, so that the next process makes the ground anew.
    pub(super) fn forget(&mut self, folder: &Path) -> Result<()> {
        *self = Record::default();
        for name in [STATE, MANIFEST, MADE] {
            remove(&folder.join(name))?;
        }
        Ok(())
    }
}

fn read(folder: &Path) -> Option<Record> {
    let state: State = serde_json::from_slice(&fs::read(folder.join(STATE)).ok()?).ok()?;
    if state.version != VERSION {
        return None;
    }
    let mut files = BTreeMap::new();
    let manifest = fs::read(folder.join(MANIFEST)).ok()?;
    for line in manifest.split(|byte| *byte == 0).filter(|l| !l.is_empty()) {
        let (path, file) = parse_line(line)?;
        files.insert(path, file);
    }
    let made: Vec<TreePath> = fs::read(folder.join(MADE))
        .ok()?
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    Some(Record {
        known: true,
        stamp: Duration::new(state.stamp_secs, state.stamp_nanos),
        files,
        setup: state.setup.map(|key| SetupDone { key, made }),
    })
}

fn parse_line(line: &[u8]) -> Option<(TreePath, LaidFile)> {
    let mut parts = line.splitn(10, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(parts.next()?).ok();
    let form = Form::parse(word()?)?;
    let oid = Oid::from_str(word()?).ok()?;
    let signature = Signature {
        mode: word()?.parse().ok()?,
        inode: word()?.parse().ok()?,
        size: word()?.parse().ok()?,
        modified: (word()?.parse().ok()?, word()?.parse().ok()?),
        changed: (word()?.parse().ok()?, word()?.parse().ok()?),
    };
    let path = parts.next()?.to_vec();
    let entry = Entry { form, oid };
    Some((path, LaidFile { entry, signature }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_even_with_names_that_are_no_text() {
        let folder = tempfile::tempdir().unwrap();
        let signature = Signature::of(&fs::metadata(folder.path()).unwrap());
        let entry = Entry {
            form: Form::Program,
            oid: Oid::from_str("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391").unwrap(),
        };
        let mut record = Record {
            known: true,
            stamp: Duration::new(7, 9),
            ..Record::default()
        };
        for path in [&b"a b\nc \xff"[..], b"-x"] {
            let file = LaidFile { entry, signature };
            record.files.insert(path.to_vec(), file);
        }
        record.setup = Some(SetupDone {
            key: "k".into(),
            made: vec![b"node_modules".to_vec(), b"\xfe".to_vec()],
        });
        record.write_state(folder.path()).unwrap();
        record.write_files(folder.path()).unwrap();
        let back = Record::read(folder.path());
        assert!(back.known);
        assert_eq!(back.files, record.files);
        assert_eq!(back.setup, record.setup);
        assert_eq!(back.stamp, record.stamp);

        fs::write(folder.path().join(MANIFEST), b"f torn").unwrap();
        assert!(!Record::read(folder.path()).known);
    }
}
