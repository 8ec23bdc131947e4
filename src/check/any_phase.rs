//! What must hold of a candidate whatever its phase: a tree that can be committed, and nothing touched that is not the
//! developer's.

use crate::check::tree::{self, Flat, LINK, SUBMODULE, show};
use crate::git;
use crate::suite::paths::{TestKind, TestPaths};
use git2::{Oid, Repository};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Links followed while one is resolved; the kernel's own bound (MAXSYMLINKS, linux/namei.h) is 40.
const MAX_LINKS: usize = 40;

/// What is asked of any candidate.
pub struct AnyAsk<'a> {
    /// The tree that the phase started from.
    pub base_tree: Oid,
    /// The tree that would be committed.
    pub candidate: Oid,
    /// The largest file that may be committed, in bytes.
    pub max_file_bytes: u64,
    /// Which paths are tests: fixtures may hold conflict markers.
    pub paths: &'a TestPaths,
}

/// What kind of thing must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An unresolved merge.
    ConflictMarkers,
    /// A file over the limit.
    TooLarge,
    /// A new submodule.
    Submodule,
    /// A symbolic link that leads out of the tree.
    Link,
    /// Something of `.tdd/` is in it.
    Tdd,
}

/// One thing that must not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// What was found, where, and what to do; for the developer.
    pub message: String,
}

/// Everything about the candidate that must not be.
///
/// # Errors
/// Objects that cannot be read.
pub fn any_phase(repo: &Repository, ask: &AnyAsk<'_>) -> anyhow::Result<Vec<Finding>> {
    let base = tree::flatten(repo, ask.base_tree)?;
    let candidate = tree::flatten(repo, ask.candidate)?;
    let mut findings = Vec::new();
    let mut found = |kind, message: String| findings.push(Finding { kind, message });
    for (path, entry) in &candidate {
        let name = show(path);
        if path.starts_with(b".tdd/") || path == b".tdd" {
            found(
                FindingKind::Tdd,
                format!("{name}: .tdd/ is veri's; nothing else goes there"),
            );
        }
        if entry.mode == LINK && leaves(repo, &candidate, path)? {
            let known = base.get(path) == Some(entry) && leaves(repo, &base, path)?;
            if !known {
                let message =
                    format!("{name}: this symbolic link leads out of the tree; remove it");
                found(FindingKind::Link, message);
            }
        }
        let before = base.get(path);
        if before == Some(entry) {
            continue;
        }
        if entry.mode == SUBMODULE {
            if before.is_none_or(|before| before.mode != SUBMODULE) {
                let message =
                    format!("{name}: this is a submodule (a repository within); remove it");
                found(FindingKind::Submodule, message);
            }
            continue;
        }
        let content = tree::content(repo, *entry)?;
        if content.len() as u64 > ask.max_file_bytes {
            let message = git::too_large(&name, content.len() as u64, ask.max_file_bytes);
            found(FindingKind::TooLarge, message);
            continue;
        }
        if !entry.is_file() || ask.paths.kind(path) == Some(TestKind::Fixture) {
            continue;
        }
        let old = match before.filter(|before| before.is_file()) {
            Some(before) => tree::content(repo, *before)?,
            None => Vec::new(),
        };
        if let Some(line) = new_conflict(&old, &content) {
            let message = format!("{name}: conflict markers from line {line} on; resolve them");
            found(FindingKind::ConflictMarkers, message);
        }
    }
    Ok(findings)
}

/// The line (from 1) of the first conflict, when there are more of them than before. Only all three markers in their
/// order are one: a line of equals signs alone underlines a heading.
fn new_conflict(old: &[u8], new: &[u8]) -> Option<usize> {
    let (new, old) = (conflicts(new), conflicts(old));
    (new.len() > old.len())
        .then(|| new.first().copied())
        .flatten()
}

/// The lines (from 1) in which conflicts begin.
fn conflicts(content: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    if content.contains(&0) {
        return found;
    }
    let (mut begun, mut divided) = (None, false);
    for (index, line) in content.split(|b| *b == b'\n').enumerate() {
        if line.starts_with(b"<<<<<<< ") {
            (begun, divided) = (Some(index + 1), false);
        } else if line.trim_ascii_end() == b"=======" {
            divided = begun.is_some();
        } else if line.starts_with(b">>>>>>> ") && divided {
            found.extend(begun.take());
            divided = false;
        }
    }
    found
}

/// Whether a link leads out of the tree, or into `.git` or `.tdd`, links on the way followed.
fn leaves(repo: &Repository, flat: &Flat, link: &[u8]) -> anyhow::Result<bool> {
    let mut here: Vec<Vec<u8>> = Vec::new();
    let mut ahead: VecDeque<Vec<u8>> = parts(link).collect();
    let mut followed = 0;
    while let Some(part) = ahead.pop_front() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." => {
                if here.pop().is_none() {
                    return Ok(true);
                }
                continue;
            }
            _ => here.push(part),
        }
        if here.len() == 1 && matches!(here[0].to_ascii_lowercase().as_slice(), b".git" | b".tdd") {
            return Ok(true);
        }
        let Some(entry) = flat
            .get(&here.join(&b'/'))
            .filter(|entry| entry.mode == LINK)
        else {
            continue;
        };
        followed += 1;
        if followed > MAX_LINKS {
            // It leads round in a circle, and so nowhere.
            return Ok(false);
        }
        let target = tree::content(repo, *entry)?;
        if target.starts_with(b"/") {
            return Ok(true);
        }
        here.pop();
        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
            ahead.push_front(part);
        }
    }
    Ok(false)
}

fn parts(path: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    path.split(|b| *b == b'/').map(<[u8]>::to_vec)
}
