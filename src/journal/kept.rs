//! The copy of a journal that is kept where no developer has any business, and what it vouches for.
//!
//! A line is written to the copy first. So a line that stands in the journal alone is not the conductor's, however
//! well it is formed; and one that stands in the copy alone is, whose writing was cut off.

use super::{LARGEST, MOST_TOLD, clear_the_way, only_tells, parse, replace};
use crate::cause::Bail;
use crate::event::{Kind, Line};
use crate::role::Role;
use crate::untrusted::whole;
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What a look at a journal and its copy has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vouched {
    /// The journal is as it was written.
    Whole,
    /// It was not, and was put back from the copy.
    PutBack,
    /// The copy is gone while a developer was at work: what was written since its launch is not believed.
    CutBack,
}

/// The open copy.
#[derive(Debug)]
pub(super) struct Copy {
    path: PathBuf,
    file: File,
    /// How much of the journal stands in it, in bytes.
    length: u64,
}

impl Copy {
    /// The copy of a journal that holds `known`.
    pub(super) fn of(path: &Path, known: &[u8]) -> Result<Copy> {
        let what = || format!("cannot keep the copy {} of the journal", path.display());
        let held = whole(path, known.len() as u64).ok().flatten();
        if held.as_deref() != Some(known) {
            clear_the_way(path).with_context(what)?;
            replace(path, known).with_context(what)?;
        }
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .with_context(what)?;
        Ok(Copy {
            path: path.to_owned(),
            file,
            length: known.len() as u64,
        })
    }

    /// Adds a line to the copy of a journal that holds `known`, and syncs it.
    pub(super) fn append(&mut self, known: &[u8], line: &[u8]) -> Result<()> {
        let path = self.path.clone();
        let what = || format!("cannot keep the copy {} of the journal", path.display());
        // Somebody's `veri leaf` may have told something meanwhile; and the file may have been removed.
        let held = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        if self.length != known.len() as u64 || held != self.length {
            *self = Copy::of(&path, known)?;
        }
        let written = self.file.write(line).with_context(what)?;
        if written < line.len() {
            self.take_back(known.len() as u64)?;
            return Err(std::io::Error::from(ErrorKind::StorageFull)).with_context(what);
        }
        self.file.sync_data().with_context(what)?;
        self.length += line.len() as u64;
        Ok(())
    }

    pub(super) fn take_back(&mut self, length: u64) -> Result<()> {
        self.file.set_len(length)?;
        self.length = length;
        Ok(())
    }
}

/// Brings the journal to what its copy vouches for.
pub(super) fn reconcile(path: &Path, copy: &Path) -> Result<Vouched> {
    let what = || {
        format!(
            "cannot put the journal {} back from {}",
            path.display(),
            copy.display()
        )
    };
    let kept = match whole(copy, LARGEST) {
        Ok(kept) => whole_lines(&kept.unwrap_or_default()).to_vec(),
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e).with_context(what),
    };
    let most = kept.len() as u64 + MOST_TOLD;
    let most = if kept.is_empty() { LARGEST } else { most };
    let there = match whole(path, most) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        other => other.with_context(what)?,
    };
    let regular = there.is_some();
    let there = there.unwrap_or_default();
    let now = whole_lines(&there);
    let Some(vouched) = parse(&kept, copy, 0).ok().filter(|lines| !lines.is_empty()) else {
        return without_copy(path, &there, now);
    };
    let at_work = at_work(&vouched).is_some();
    let last = vouched.last().map_or(0, |l| l.seq);
    if let Some(more) = now.strip_prefix(kept.as_slice())
        && (more.is_empty() || only_tells(more, path, last))
    {
        return Ok(Vouched::Whole);
    }
    // The line that was being written when the conductor was killed.
    let cut_off = kept.strip_prefix(now);
    if regular && cut_off.is_some_and(|rest| rest.iter().filter(|b| **b == b'\n').count() == 1) {
        replace(path, &kept).with_context(what)?;
        return Ok(Vouched::Whole);
    }
    if !at_work {
        // Moved away by a person, to go on from the ledger alone; or damaged, which is said and not mended.
        if std::fs::symlink_metadata(path).is_err() {
            std::fs::remove_file(copy).with_context(what)?;
            return Ok(Vouched::Whole);
        }
        if regular && parse(now, path, 0).is_err() {
            return Ok(Vouched::Whole);
        }
    }
    set_aside(path).with_context(what)?;
    replace(path, &kept).with_context(what)?;
    Ok(Vouched::PutBack)
}

/// An error of a journal that is damaged, with what mends it where the copy is whole: a person may have damaged it on
/// purpose, so that nobody else decides.
pub(super) fn with_remedy(error: anyhow::Error, path: &Path, copy: &Path) -> anyhow::Error {
    let mends =
        super::read(copy).is_ok_and(|lines| !lines.is_empty()) && super::read(path).is_err();
    match error.downcast_ref::<Bail>() {
        Some(bail) if mends => Bail::new(
            bail.cause,
            format!(
                "{} veri's own copy of it is whole: `cp '{}' '{}'` repairs it.",
                bail.detail,
                copy.display(),
                path.display()
            ),
        )
        .into(),
        _ => error,
    }
}

/// No copy vouches for anything: what was written after a developer was let loose may be anybody's.
fn without_copy(path: &Path, there: &[u8], now: &[u8]) -> Result<Vouched> {
    let Ok(lines) = parse(now, path, 0) else {
        return Ok(Vouched::Whole);
    };
    let Some(launch) = at_work(&lines) else {
        return Ok(Vouched::Whole);
    };
    let upto: usize = now
        .split_inclusive(|b| *b == b'\n')
        .filter(|line| *line != b"\n")
        .take(launch + 1)
        .map(<[u8]>::len)
        .sum();
    let (believed, rest) = there.split_at_checked(upto).unwrap_or((there, &[]));
    if rest.is_empty() {
        return Ok(Vouched::CutBack);
    }
    set_aside(path)?;
    replace(path, believed)?;
    Ok(Vouched::CutBack)
}

/// The place of the newest launch of a developer after which nothing was settled.
pub(super) fn at_work(lines: &[Line]) -> Option<usize> {
    let launch = lines.iter().rposition(|l| {
        l.event == Kind::Launch
            && l.text("intent") == "launch"
            && l.actor == Role::Developer.as_str()
    })?;
    let settled = |l: &Line| l.fields.contains_key("settled");
    let since = lines.split_at_checked(launch).map(|(_, since)| since);
    (!since.is_some_and(|since| since.iter().any(settled))).then_some(launch)
}

fn set_aside(path: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => std::fs::rename(path, path.with_extension("tampered")),
        _ => clear_the_way(path),
    }
}

fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    bytes.get(..end).unwrap_or_default()
}
