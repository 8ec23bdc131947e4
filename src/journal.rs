//! The journal: `.tdd/events.jsonl`, append-only, one synced write a line.

use crate::cause::{Bail, Cause};
use crate::event::{Kind, Line, PhaseWord, VERSION};
use crate::lock;
use crate::untrusted::whole;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most that `veri leaf` may tell between two lines of the conductor, in bytes: a file that has grown by more is
/// somebody else's doing, and is not read into memory.
const MOST_TOLD: u64 = 16 << 20;

/// The largest file that is taken for a journal, in bytes: a line is a few thousand, a run some hundred lines.
const LARGEST: u64 = 256 << 20;

/// How long the journal's lock is waited for: it is held for the writing of a line.
const PATIENCE: Duration = Duration::from_secs(5);

/// The wall clock, as the journal writes it: RFC 3339, UTC, milliseconds.
pub fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// What every line of one start of the conductor has in common.
#[derive(Debug, Clone)]
pub struct Source {
    /// The start's own name.
    pub run: String,
    /// The issue's number.
    pub issue: u64,
    /// The snapshot in force.
    pub skill_commit: Option<String>,
}

/// What a line is about.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// The step's number.
    pub step: Option<u32>,
    /// The step's title.
    pub title: String,
    /// The phase.
    pub phase: Option<PhaseWord>,
    /// Who acted; empty means the conductor.
    pub actor: String,
    /// 1 + revisions.
    pub attempt: Option<u32>,
}

/// The open journal of one working tree.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// What is known to be in the file, and the number of the last line in it.
    known: Vec<u8>,
    last_seq: u64,
    /// What was said about the file while opening it.
    torn: Option<PathBuf>,
    /// The copy of what this writer's kind has written, where one is kept.
    copy: Option<kept::Copy>,
    /// Whether the file was put back by a write, and nobody has been told yet.
    put_back: bool,
}

impl Journal {
    /// Opens a journal of which a copy is kept out of its readers' reach: every line stands in the copy before it
    /// stands in the journal. What the copy does not vouch for is not believed.
    ///
    /// # Errors
    /// As `open`, and when the copy cannot be read or written.
    pub fn open_kept(path: &Path, copy: &Path) -> Result<(Journal, Vec<Line>, Vouched)> {
        let vouched = kept::reconcile(path, copy)?;
        let (mut journal, lines) =
            Journal::open(path).map_err(|error| kept::with_remedy(error, path, copy))?;
        journal.copy = Some(kept::Copy::of(copy, &journal.known)?);
        Ok((journal, lines, vouched))
    }

    /// Opens the journal, making it where it is missing, and gives all of its lines.
    ///
    /// A torn last line (a crash in the middle of a write) is moved to a file of its own beside it.
    ///
    /// # Errors
    /// When it cannot be read or written, or a line other than the last is damaged: the error names it.
    pub fn open(path: &Path) -> Result<(Journal, Vec<Line>)> {
        must_be_a_file(path)?;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("cannot open the journal {}", path.display()))?;
        take_lock(&file, path)?;
        let mut bytes = Vec::new();
        (&file)
            .take(LARGEST + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read the journal {}", path.display()))?;
        if bytes.len() as u64 > LARGEST {
            return Err(no_journal(path).into());
        }
        let mut torn = None;
        let whole = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        if whole < bytes.len() {
            let aside = path.with_extension(format!("torn-{whole}"));
            std::fs::write(&aside, &bytes[whole..])
                .with_context(|| format!("cannot set a torn line aside in {}", aside.display()))?;
            file.set_len(whole as u64)?;
            file.sync_data()?;
            torn = Some(aside);
            bytes.truncate(whole);
        }
        let lines = parse(&bytes, path, 0)?;
        file.unlock()?;
        let last_seq = lines.last().map_or(0, |l| l.seq);
        let journal = Journal {
            path: path.to_owned(),
            file,
            known: bytes,
            last_seq,
            torn,
            copy: None,
            put_back: false,
        };
        Ok((journal, lines))
    }

    /// Where a torn last line was put, if there was one.
    pub fn torn(&self) -> Option<&Path> {
        self.torn.as_deref()
    }

    /// Appends one line by a single write and syncs it; gives it back as written.
    ///
    /// Where a copy is kept, the line vouches for all before it: a file that somebody else has written into since, more
    /// than `veri leaf` does, is put back first. The next `mend` tells.
    ///
    /// # Errors
    /// When it cannot be written or synced.
    pub fn append(
        &mut self,
        source: &Source,
        subject: &Subject,
        event: Kind,
        fields: Map<String, Value>,
    ) -> Result<Line> {
        let path = self.path.clone();
        let what = || format!("cannot write to the journal {}", path.display());
        let is_as_written = match &self.copy {
            None => take_lock(&self.file, &path).map(|()| true)?,
            // A lock that is not given back is one more way to spoil it.
            Some(_) => {
                let free = lock::lock_in_time(&self.file, PATIENCE).with_context(what)?;
                free && self.is_as_written().with_context(what)?
            }
        };
        if !is_as_written {
            self.replace_file().with_context(what)?;
            self.put_back = true;
            take_lock(&self.file, &path)?;
        }
        let result = self.append_locked(source, subject, event, fields);
        let unlocked = self.file.unlock();
        let line = result.with_context(what)?;
        unlocked?;
        Ok(line)
    }

    fn append_locked(
        &mut self,
        source: &Source,
        subject: &Subject,
        event: Kind,
        fields: Map<String, Value>,
    ) -> Result<Line> {
        let length = self.file.metadata()?.len();
        let known = self.known.len() as u64;
        if length < known {
            bail!("it was cut short from {known} to {length} bytes while a run was using it");
        }
        if length > known {
            self.read_on(length)?;
        }
        if let Some(key) = fields.keys().find(|key| Line::KEYS.contains(&key.as_str())) {
            bail!("a field of its own is named {key} like one that every line has");
        }
        let actor = if subject.actor.is_empty() {
            "conductor"
        } else {
            &subject.actor
        };
        let line = Line {
            v: VERSION,
            seq: self.last_seq + 1,
            ts: now(),
            run: source.run.clone(),
            issue: source.issue,
            step: subject.step,
            title: subject.title.clone(),
            phase: subject.phase,
            actor: actor.to_owned(),
            attempt: subject.attempt,
            event,
            skill_commit: source.skill_commit.clone(),
            fields,
        };
        let mut bytes = serde_json::to_vec(&line)?;
        bytes.push(b'\n');
        let known_now = self.known.len() as u64;
        if let Some(copy) = &mut self.copy {
            copy.append(&self.known, &bytes)?;
        }
        let written = self.file.write(&bytes)?;
        if written < bytes.len() {
            // A full disk: take the torn line back, so that the next start has nothing to set aside.
            self.file.set_len(known_now)?;
            if let Some(copy) = &mut self.copy {
                copy.take_back(known_now)?;
            }
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
        }
        self.file.sync_data()?;
        self.known.extend_from_slice(&bytes);
        self.last_seq = line.seq;
        Ok(line)
    }

    fn read_on(&mut self, length: u64) -> Result<()> {
        let known = self.known.len() as u64;
        self.file.seek(SeekFrom::Start(known))?;
        let mut bytes = Vec::new();
        (&self.file).take(length - known).read_to_end(&mut bytes)?;
        if let Some(last) = parse(&bytes, &self.path, self.last_seq)?.last() {
            self.last_seq = last.seq;
        }
        self.known.extend_from_slice(&bytes);
        Ok(())
    }

    /// Whether the file is still the one that was opened, has all that is known to be in it, by its length, and nothing
    /// after that but what tells.
    fn is_as_written(&self) -> Result<bool> {
        let (length, known) = (self.file.metadata()?.len(), self.known.len() as u64);
        if !self.is_in_place()? || length < known || length - known > MOST_TOLD {
            return Ok(false);
        }
        let mut more = vec![0; usize::try_from(length - known)?];
        self.file.read_exact_at(&mut more, known)?;
        Ok(more.is_empty() || only_tells(&more, &self.path, self.last_seq))
    }

    /// Whether the path still leads to the file that is open.
    fn is_in_place(&self) -> Result<bool> {
        let found = std::fs::symlink_metadata(&self.path).ok();
        let own = self.file.metadata()?;
        Ok(found.is_some_and(|f| (f.dev(), f.ino()) == (own.dev(), own.ino())))
    }

    fn replace_file(&mut self) -> Result<()> {
        clear_the_way(&self.path)?;
        replace(&self.path, &self.known)?;
        self.file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&self.path)?;
        Ok(())
    }

    /// Puts the file back to what is known to be in it, after somebody who has no business with it had the
    /// chance to write, move or remove it. True when there was something to put back, now or at a write since.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn mend(&mut self) -> Result<bool> {
        let path = self.path.clone();
        let what = || format!("cannot put the journal {} back", path.display());
        let put_back = std::mem::take(&mut self.put_back);
        let length = self.file.metadata().with_context(what)?.len();
        if self.is_in_place().with_context(what)? && length <= self.known.len() as u64 + MOST_TOLD {
            let mut bytes = vec![0; length as usize];
            self.file.read_exact_at(&mut bytes, 0).with_context(what)?;
            if let Some(more) = bytes.strip_prefix(self.known.as_slice())
                && (more.is_empty() || only_tells(more, &path, self.last_seq))
            {
                return Ok(put_back);
            }
        }
        self.replace_file().with_context(what)?;
        Ok(true)
    }
}

/// The name under which `veri leaf` writes, which is no start of a conductor.
pub const LEAF_RUN: &str = "veri-leaf";

/// What `veri leaf` tells of a launch or its end. Every other field of an older line is the run's own word to
/// itself: an edit that was kept, a tree that was put back.
const TOLD: [&str; 3] = ["leaf", "launch", "end"];

/// Whether these are whole lines that nothing is read from, as `veri leaf` writes them.
fn only_tells(bytes: &[u8], path: &Path, before: u64) -> bool {
    let tells = |l: &Line| {
        matches!(l.event, Kind::Launch | Kind::Exit)
            && l.run == LEAF_RUN
            && l.fields.keys().all(|key| TOLD.contains(&key.as_str()))
    };
    bytes.ends_with(b"\n") && parse(bytes, path, before).is_ok_and(|lines| lines.iter().all(tells))
}

fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Nobody waits at a pipe that stands in the place of a journal.
fn must_be_a_file(path: &Path) -> Result<()> {
    if is_file(path) || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    Err(no_journal(path).into())
}

fn no_journal(path: &Path) -> Bail {
    Bail::new(
        Cause::StorageFailed,
        format!(
            "the journal {} is no file, or larger than any run's; move away what stands there, and the run goes on \
             from the ledger alone.",
            path.display()
        ),
    )
}

/// Locks the journal for the writing of a line or the reading of all of them, which nobody does for long.
fn take_lock(file: &File, path: &Path) -> Result<()> {
    let taken = lock::lock_in_time(file, PATIENCE);
    if taken.with_context(|| format!("cannot lock the journal {}", path.display()))? {
        return Ok(());
    }
    let said = format!(
        "the journal {} has been locked for {} seconds by {}. veri locks it for the writing of one line: unless that is a veri \
         on a slow disk, end it; then run again.",
        path.display(),
        PATIENCE.as_secs(),
        lock::holder_of(file)
    );
    Err(Bail::new(Cause::StorageFailed, said).into())
}

/// Removes what cannot be replaced by a file.
fn clear_the_way(path: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        _ => Ok(()),
    }
}

/// Writes a whole file in one step.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Reads a journal without opening it for writing; a torn last line is left out.
///
/// # Errors
/// When it cannot be read, or a line other than the last is damaged.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    let mut bytes = whole(path, LARGEST)
        .with_context(|| format!("cannot read the journal {}", path.display()))?
        .ok_or_else(|| no_journal(path))?;
    let whole = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    bytes.truncate(whole);
    parse(&bytes, path, 0)
}

fn parse(bytes: &[u8], path: &Path, mut before: u64) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (index, text) in bytes.split(|b| *b == b'\n').enumerate() {
        if text.is_empty() {
            continue;
        }
        let damaged = |how: &str| {
            Bail::new(
                Cause::StorageFailed,
                format!(
                    "line {} of the journal {} {how}. It is not skipped, since what it said would be forgotten; \
                     repair it, or move the journal away to go on from the ledger alone.",
                    index + 1,
                    path.display()
                ),
            )
        };
        let line: Line =
            serde_json::from_slice(text).map_err(|e| damaged(&format!("is damaged ({e})")))?;
        if line.v != VERSION {
            let how = format!(
                "has version {}, and this program knows version {VERSION}",
                line.v
            );
            return Err(damaged(&how).into());
        }
        if line.seq != before + 1 {
            let how = format!("is number {}, and {} was due", line.seq, before + 1);
            return Err(damaged(&how).into());
        }
        before = line.seq;
        lines.push(line);
    }
    Ok(lines)
}

mod kept;
pub use kept::Vouched;

#[cfg(test)]
mod cuts;
#[cfg(test)]
mod tests;
