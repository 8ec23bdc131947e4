//! The way for the refs that a run needs itself: packed refs that can be read, nothing that locks or blocks them.

use super::frame::PACKED;
use super::snapshot::{locks_below, move_aside};
use super::undone::keep_any;
use super::{Guard, Head, STASH, Settling};
use crate::git::worktree::WorkTree;
use crate::git::{saved, stage};
use crate::untrusted::given;
use anyhow::{Context, Result};
use git2::Oid;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// More than this many bytes of packed refs are nobody's: some four million refs.
const LARGEST: u64 = 256 << 20;

/// Whether git can read this as packed refs.
fn is_packed(bytes: &[u8]) -> bool {
    let hex = |b: &[u8]| b.len() >= 40 && b.iter().all(u8::is_ascii_hexdigit);
    let mut lines = bytes.split_inclusive(|b| *b == b'\n');
    lines.all(|line| match line.strip_suffix(b"\n") {
        Some([b'#', ..]) => true,
        Some([b'^', oid @ ..]) => hex(oid),
        Some(line) => {
            let mut halves = line.splitn(2, |b| *b == b' ');
            let (oid, name) = (halves.next(), halves.next());
            oid.is_some_and(hex) && name.is_some_and(|name| name.starts_with(b"refs/"))
        }
        None => false,
    })
}

impl Guard {
    /// Packed refs that are gone or that git cannot read are written anew, from what was known of them.
    pub(in crate::git) fn packed_back(
        &self,
        wt: &WorkTree,
        settled: &mut Settling<'_>,
    ) -> Result<()> {
        let path = wt.common_dir.join(PACKED);
        let what = || format!("{} cannot be put back", path.display());
        let stands = match given(&path, LARGEST) {
            Ok(bytes) if is_packed(&bytes) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.frame.packed => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            _ => true,
        };
        settled.tampered(format!("{} was spoilt", path.display()))?;
        if stands {
            move_aside(&path, &wt.git_dir.join("veri-aside"))?;
        }
        let stash = self.stash.first().map(|oid| (STASH, oid.as_str()));
        let refs = self.refs.iter().map(|(n, o)| (n.as_str(), o.as_str()));
        let mut lines: Vec<String> = refs
            .chain(stash)
            .filter(|(name, _)| !wt.common_dir.join(name).is_file())
            .filter(|(name, _)| {
                !name.starts_with("refs/worktree/") && !name.starts_with("refs/bisect/")
            })
            .map(|(name, oid)| format!("{oid} {name}\n"))
            .collect();
        lines.sort_by(|a, b| a.split(' ').nth(1).cmp(&b.split(' ').nth(1)));
        let mut file = tempfile::Builder::new()
            .permissions(PermissionsExt::from_mode(0o644))
            .tempfile_in(&wt.common_dir)
            .with_context(what)?;
        io::Write::write_all(&mut file, lines.concat().as_bytes()).with_context(what)?;
        file.persist(&path)
            .map_err(|e| e.error)
            .with_context(what)?;
        Ok(())
    }

    /// Clears the way for the refs that the run itself needs: what locks them, what stands where a folder of theirs or
    /// of their logs should be, refs whose names begin with theirs or the other way round.
    pub(in crate::git) fn clear_way(
        &self,
        wt: &WorkTree,
        issue: u64,
        settled: &mut Settling<'_>,
    ) -> Result<()> {
        let refs = wt.refs(issue);
        let own = refs.name("");
        let mut wanted: BTreeSet<String> = self.refs.keys().cloned().collect();
        wanted.retain(|name| name.starts_with(&own));
        wanted.extend(
            ["snapshot", "candidate", "red", "reopened", "discarded/x"].map(|n| refs.name(n)),
        );
        for lock in locks_below(&wt.common_dir.join(own.trim_end_matches('/'))) {
            stage::remove_if_there(&lock)?;
        }
        if let Head::Branch(branch) = &self.head {
            wanted.insert(branch.clone());
            if wt.linked {
                stage::remove_if_there(&wt.common_dir.join(format!("{branch}.lock")))?;
            }
        }
        let aside = wt.git_dir.join("veri-aside");
        for name in &wanted {
            file_way(&wt.common_dir.join("logs"), name, &aside, settled)?;
        }
        file_way(&wt.git_dir.join("logs"), "HEAD", &aside, settled)?;
        let mut blocking = Vec::new();
        for found in wt.git2.references()? {
            let found = found?;
            let Ok(name) = found.name() else { continue };
            let within = |outer: &str, inner: &str| {
                inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.starts_with('/'))
            };
            if wanted.iter().any(|w| {
                within(name, w) || within(w, name) && !name.starts_with(&refs.name("discarded/"))
            }) {
                blocking.push((name.to_owned(), found.target()));
            }
        }
        // All of them first: one may stand where the others are to be kept.
        for (name, _) in &blocking {
            saved::delete(&wt.git2, name)?;
        }
        for (name, target) in &blocking {
            let base = Some(Oid::from_str(&self.commit)?);
            let why = format!("{name}, as a leaf left it");
            let kept = match target {
                Some(oid) => keep_any(refs, wt, *oid, base, &why)?,
                None => "nothing of its own".to_owned(),
            };
            settled.noted(format!(
                "{name} stood in the way of the run's own refs: removed; kept as {kept}"
            ));
        }
        Ok(())
    }
}

/// Moves away what keeps a file of this name from being written below `top`.
fn file_way(top: &Path, name: &str, aside: &Path, settled: &mut Settling<'_>) -> Result<()> {
    let mut path = top.to_owned();
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        let last = parts.peek().is_none();
        // A link that leads there is as good (`git-new-workdir` makes some); one that leads nowhere is not.
        match fs::metadata(&path).or_else(|_| fs::symlink_metadata(&path)) {
            Ok(meta) if last && meta.is_file() || !last && meta.is_dir() => {}
            Ok(meta) if last && meta.is_dir() && is_empty(&path) => {}
            Ok(_) => {
                settled.tampered(format!("{} was made", path.display()))?;
                move_aside(&path, aside)?;
                return Ok(());
            }
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Whether there is no file below a folder: git removes such folders itself.
fn is_empty(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .into_iter()
        .all(|entry| entry.path().is_dir() && is_empty(&entry.path()))
}
