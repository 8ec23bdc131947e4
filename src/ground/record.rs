//! What a ground remembers between processes: what was laid with which stat data, its times, its setup.
//!
//! A record that cannot be read, or is torn, counts as none: the ground is then made anew.

use super::clock::{Clock, Stamp};
use super::entries::{Entry, Form};
use super::files::{remove, write_atomic};
use super::path::TreePath;
use crate::untrusted::whole;
use anyhow::{Context, Result};
use git2::{IndexEntry, IndexTime, Oid};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

const STATE: &str = "state.json";
const MANIFEST: &str = "manifest";
const MADE: &str = "made";
const VERSION: u32 = 2;

/// The largest file that is taken for one of them, in bytes: some ten million paths.
const LARGEST: u64 = 2 << 30;

/// What a line begins with whose path is not laid any more.
const GONE: &[u8] = b"- ";

/// Stat data that changes with every write: the change time cannot be set by a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signature {
    mode: u32,
    owner: (u32, u32),
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Signature {
    /// The entry of an index that git takes for this file, unchanged. git keeps the lower 32 bits of each.
    #[allow(clippy::cast_possible_truncation)] // as said
    pub(super) fn index_entry(&self, path: &TreePath, entry: &Entry) -> IndexEntry {
        let time = |(seconds, nanos): (i64, i64)| IndexTime::new(seconds as i32, nanos as u32);
        IndexEntry {
            ctime: time(self.changed),
            mtime: time(self.modified),
            dev: 0,
            ino: self.inode as u32,
            mode: entry.form.mode(),
            uid: self.owner.0,
            gid: self.owner.1,
            file_size: self.size as u32,
            id: entry.oid,
            flags: 0,
            flags_extended: 0,
            path: path.clone(),
        }
    }

    /// The inode's number.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// The modification time.
    pub(super) fn modified(&self) -> Stamp {
        since_epoch(self.modified)
    }

    /// Whether a folder stands there.
    pub(super) fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    /// The change time.
    pub(super) fn changed(&self) -> Stamp {
        since_epoch(self.changed)
    }

    pub(super) fn of(stat: &Metadata) -> Signature {
        Signature {
            mode: stat.mode(),
            owner: (stat.uid(), stat.gid()),
            inode: stat.ino(),
            size: stat.size(),
            modified: (stat.mtime(), stat.mtime_nsec()),
            changed: (stat.ctime(), stat.ctime_nsec()),
        }
    }
}

/// One before the epoch counts as the epoch.
fn since_epoch((seconds, nanos): (i64, i64)) -> Stamp {
    match (u64::try_from(seconds), u32::try_from(nanos)) {
        (Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
        _ => Duration::ZERO,
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
    pub(super) clock: Clock,
    pub(super) files: BTreeMap<TreePath, LaidFile>,
    /// Lines of the file that later ones in it replace.
    added: usize,
    pub(super) setup: Option<SetupDone>,
}

#[derive(Serialize, Deserialize)]
struct State {
    version: u32,
    clock: Clock,
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
            clock: self.clock.clone(),
            setup: setup.map(|done| done.key.clone()),
        };
        write_atomic(&folder.join(STATE), &serde_json::to_vec(&state)?)
    }

    /// Writes what was laid, where it is not what was written before.
    ///
    /// Changes are added at the end, until they are half of it: then the whole is written anew.
    pub(super) fn write_files(
        &mut self,
        folder: &Path,
        changed: &BTreeSet<TreePath>,
    ) -> Result<()> {
        let manifest = folder.join(MANIFEST);
        let mut text = Vec::new();
        self.added += changed.len();
        let in_place = fs::symlink_metadata(&manifest).is_ok_and(|meta| meta.is_file());
        if !self.known || !in_place || self.added > self.files.len() / 2 + 100 {
            self.added = 0;
            text.reserve(self.files.len() * 128);
            for (path, file) in &self.files {
                write_line(&mut text, path, Some(file))?;
            }
            return write_atomic(&manifest, &text);
        }
        if changed.is_empty() {
            return Ok(());
        }
        for path in changed {
            write_line(&mut text, path, self.files.get(path))?;
        }
        File::options()
            .append(true)
            .open(&manifest)
            .and_then(|mut file| file.write_all(&text))
            .with_context(|| format!("writing {}", manifest.display()))
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

/// One of the files; a suite can have put anything in its place.
fn record(folder: &Path, name: &str) -> Option<Vec<u8>> {
    whole(&folder.join(name), LARGEST).ok()?
}

fn read(folder: &Path) -> Option<Record> {
    let state: State = serde_json::from_slice(&record(folder, STATE)?).ok()?;
    if state.version != VERSION {
        return None;
    }
    let mut files = BTreeMap::new();
    let mut lines = 0;
    let manifest = record(folder, MANIFEST)?;
    // What was added last may be torn.
    let whole = manifest.strip_suffix(&[0]).unwrap_or(&manifest);
    if whole.len() == manifest.len() && !manifest.is_empty() {
        return None;
    }
    for line in whole.split(|byte| *byte == 0).filter(|l| !l.is_empty()) {
        lines += 1;
        if let Some(path) = line.strip_prefix(GONE) {
            files.remove(path);
        } else {
            let (path, file) = parse_line(line)?;
            files.insert(path, file);
        }
    }
    let made: Vec<TreePath> = record(folder, MADE)?
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    Some(Record {
        known: true,
        clock: state.clock,
        added: lines - files.len(),
        files,
        setup: state.setup.map(|key| SetupDone { key, made }),
    })
}

fn write_line(text: &mut Vec<u8>, path: &TreePath, file: Option<&LaidFile>) -> Result<()> {
    match file {
        None => text.extend_from_slice(GONE),
        Some(LaidFile {
            entry,
            signature: s,
        }) => write!(
            text,
            "{} {} {} {} {} {} {} {} {} {} {} ",
            entry.form.letter(),
            entry.oid,
            s.mode,
            s.owner.0,
            s.owner.1,
            s.inode,
            s.size,
            s.modified.0,
            s.modified.1,
            s.changed.0,
            s.changed.1,
        )?,
    }
    text.extend_from_slice(path);
    text.push(0);
    Ok(())
}

fn parse_line(line: &[u8]) -> Option<(TreePath, LaidFile)> {
    let mut parts = line.splitn(12, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(parts.next()?).ok();
    let form = Form::parse(word()?)?;
    let oid = Oid::from_str(word()?).ok()?;
    let signature = Signature {
        mode: word()?.parse().ok()?,
        owner: (word()?.parse().ok()?, word()?.parse().ok()?),
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
        let mut clock = Clock::default();
        clock.read(Duration::new(7, 9));
        clock.removed(b"gone\xff");
        clock.give(b"given", &[]);
        let mut record = Record {
            known: true,
            clock,
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
        record.known = false;
        record.write_files(folder.path(), &BTreeSet::new()).unwrap();
        let back = Record::read(folder.path());
        assert!(back.known);
        assert_eq!(back.files, record.files);
        assert_eq!(back.setup, record.setup);
        assert_eq!(back.clock, record.clock);

        // Changes are added.
        let size = || fs::metadata(folder.path().join(MANIFEST)).unwrap().len();
        let (before, mut record) = (size(), back);
        record.files.remove(&b"-x"[..]);
        record
            .files
            .insert(b"new".to_vec(), LaidFile { entry, signature });
        let changed = BTreeSet::from([b"-x".to_vec(), b"new".to_vec()]);
        record.write_files(folder.path(), &changed).unwrap();
        assert!(size() > before);
        assert_eq!(Record::read(folder.path()).files, record.files);
        for _ in 0..100 {
            record.write_files(folder.path(), &changed).unwrap();
        }
        assert!(size() < 100 * before, "written anew now and then");
        assert_eq!(Record::read(folder.path()).files, record.files);

        let manifest = fs::read(folder.path().join(MANIFEST)).unwrap();
        for torn in [&manifest[..manifest.len() - 1], b"f torn\0"] {
            fs::write(folder.path().join(MANIFEST), torn).unwrap();
            assert!(!Record::read(folder.path()).known);
        }
    }
}
