//! The journal: `.tdd/events.jsonl`, append-only, one synced write a line.

use crate::cause::{Bail, Cause};
use crate::event::{Kind, Line, PhaseWord, VERSION};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

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
    /// How many bytes of the file are known, and the number of the last line in them.
    known: u64,
    last_seq: u64,
    /// What was said about the file while opening it.
    torn: Option<PathBuf>,
}

impl Journal {
    /// Opens the journal, making it where it is missing, and gives all of its lines.
    ///
    /// A torn last line (a crash in the middle of a write) is moved to a file of its own beside it.
    ///
    /// # Errors
    /// When it cannot be read or written, or a line other than the last is damaged: the error names it.
    pub fn open(path: &Path) -> Result<(Journal, Vec<Line>)> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("cannot open the journal {}", path.display()))?;
        file.lock()
            .with_context(|| format!("cannot lock the journal {}", path.display()))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .with_context(|| format!("cannot read the journal {}", path.display()))?;
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
            known: bytes.len() as u64,
            last_seq,
            torn,
        };
        Ok((journal, lines))
    }

    /// Where a torn last line was put, if there was one.
    pub fn torn(&self) -> Option<&Path> {
        self.torn.as_deref()
    }

    /// Appends one line by a single write and syncs it; gives it back as written.
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
        let what = || format!("cannot write to the journal {}", self.path.display());
        self.file.lock().with_context(what)?;
        let result = self.append_locked(source, subject, event, fields);
        let unlocked = self.file.unlock();
        let line = result
            .with_context(|| format!("cannot write to the journal {}", self.path.display()))?;
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
        if length < self.known {
            bail!(
                "it was cut short from {} to {length} bytes while a run was using it",
                self.known
            );
        }
        if length > self.known {
            self.read_on(length)?;
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
        let written = self.file.write(&bytes)?;
        if written < bytes.len() {
            // A full disk: take the torn line back, so that the next start has nothing to set aside.
            self.file.set_len(self.known)?;
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
        }
        self.file.sync_data()?;
        self.known += bytes.len() as u64;
        self.last_seq = line.seq;
        Ok(line)
    }

    fn read_on(&mut self, length: u64) -> Result<()> {
        self.file.seek(SeekFrom::Start(self.known))?;
        let mut bytes = Vec::new();
        (&self.file)
            .take(length - self.known)
            .read_to_end(&mut bytes)?;
        if let Some(last) = parse(&bytes, &self.path, self.last_seq)?.last() {
            self.last_seq = last.seq;
        }
        self.known = length;
        Ok(())
    }
}

/// Reads a journal without opening it for writing; a torn last line is left out.
///
/// # Errors
/// When it cannot be read, or a line other than the last is damaged.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    let mut bytes = std::fs::read(path)
        .with_context(|| format!("cannot read the journal {}", path.display()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source {
            run: "r1".to_owned(),
            issue: 42,
            skill_commit: None,
        }
    }

    fn append(journal: &mut Journal, event: Kind) -> Line {
        journal
            .append(&source(), &Subject::default(), event, Map::new())
            .unwrap()
    }

    #[test]
    fn lines_come_back_as_they_were_written_and_are_numbered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let (mut journal, before) = Journal::open(&path).unwrap();
        assert!(before.is_empty());
        let first = append(&mut journal, Kind::RunStart);
        let second = append(&mut journal, Kind::RunEnd);
        assert_eq!((first.seq, second.seq), (1, 2));
        assert_eq!(Journal::open(&path).unwrap().1, vec![first, second]);
    }

    #[test]
    fn a_torn_last_line_is_set_aside_and_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        append(&mut Journal::open(&path).unwrap().0, Kind::RunStart);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"{\"v\":1,\"se"].concat()).unwrap();
        let (mut journal, lines) = Journal::open(&path).unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(
            std::fs::read(journal.torn().unwrap()).unwrap(),
            b"{\"v\":1,\"se"
        );
        assert_eq!(append(&mut journal, Kind::RunEnd).seq, 2);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_named_and_never_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        append(&mut Journal::open(&path).unwrap().0, Kind::RunStart);
        let good = std::fs::read(&path).unwrap();
        for damaged in [&b"garbage\n"[..], &good] {
            std::fs::write(&path, [&good[..], damaged, &good[..]].concat()).unwrap();
            let error = Journal::open(&path).unwrap_err();
            assert!(
                format!("{error:#}").contains("line 2 of the journal"),
                "{error:#}"
            );
            let bail = error.downcast_ref::<Bail>().unwrap();
            assert_eq!(bail.cause, Cause::StorageFailed);
        }
    }

    #[test]
    fn two_writers_number_their_lines_in_one_row() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut one = Journal::open(&path).unwrap().0;
        let mut two = Journal::open(&path).unwrap().0;
        append(&mut one, Kind::RunStart);
        append(&mut two, Kind::Launch);
        append(&mut one, Kind::RunEnd);
        let seqs: Vec<u64> = read(&path).unwrap().iter().map(|l| l.seq).collect();
        assert_eq!(seqs, [1, 2, 3]);
    }
}
