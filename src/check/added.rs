//! The lines that a candidate added, for the verifier: of tests, and of what is listed.

use crate::check::lines::TestLines;
use crate::check::tree::{self, Entry};
use crate::suite::paths::TestPaths;
use git2::{Oid, Patch, Repository};

/// The added lines of one file; none for what is not text.
pub type AddedLines = (Vec<u8>, Vec<String>);

/// The test lines that a candidate added: of test files all added lines, of Rust sources those in test items, of
/// manifests with changed test lines all. Files in which tests only went are there without lines. Sorted by path.
///
/// # Errors
/// Objects that cannot be read.
pub fn added_test_lines(
    repo: &Repository,
    base: Oid,
    candidate: Oid,
    paths: &TestPaths,
) -> anyhow::Result<Vec<AddedLines>> {
    let before = TestLines::of(repo, base, paths)?;
    let after = before.of_next(repo, candidate, paths)?;
    let mut added = Vec::new();
    for path in before.differing(&after) {
        let lines = numbered(repo, before.entry(path), after.entry(path))?;
        let whole = before.is_test_file(path)
            || after.is_test_file(path)
            || before.parts.get(path) != after.parts.get(path);
        if whole {
            added.push((
                path.clone(),
                lines.into_iter().map(|(_, line)| line).collect(),
            ));
        } else if before.mixed(path).is_some() || after.mixed(path).is_some() {
            let content = match after.entry(path) {
                Some(entry) => tree::content(repo, entry)?,
                None => Vec::new(),
            };
            let spans = after.mixed(path).into_iter().flat_map(|file| &file.items);
            let spans: Vec<_> = spans
                .map(|item| line_of(&content, item.span.start)..=line_of(&content, item.span.end))
                .collect();
            let lines: Vec<String> = lines
                .into_iter()
                .filter(|(number, _)| spans.iter().any(|span| span.contains(number)))
                .map(|(_, line)| line)
                .collect();
            let texts = |lines: &TestLines| {
                let items = lines.mixed(path).into_iter().flat_map(|file| &file.items);
                items
                    .flat_map(|item| item.leaves.clone())
                    .collect::<Vec<_>>()
            };
            if !lines.is_empty() || texts(&before) != texts(&after) {
                added.push((path.clone(), lines));
            }
        }
    }
    Ok(added)
}

/// All lines that a candidate added to the files of these paths (as bytes, from the root). Sorted by path.
///
/// # Errors
/// Objects that cannot be read.
pub fn added_lines(
    repo: &Repository,
    base: Oid,
    candidate: Oid,
    wanted: &dyn Fn(&[u8]) -> bool,
) -> anyhow::Result<Vec<AddedLines>> {
    let before = tree::flatten(repo, base)?;
    let after = tree::flatten(repo, candidate)?;
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let mut paths: Vec<&Vec<u8>> = after
        .keys()
        .chain(gone)
        .filter(|path| wanted(path))
        .collect();
    paths.sort();
    let mut added = Vec::new();
    for path in paths {
        let (old, new) = (before.get(path).copied(), after.get(path).copied());
        if old != new {
            let lines = numbered(repo, old, new)?;
            added.push((
                path.clone(),
                lines.into_iter().map(|(_, line)| line).collect(),
            ));
        }
    }
    Ok(added)
}

/// The line (from 1) that a byte stands in.
fn line_of(content: &[u8], at: usize) -> u32 {
    let upto = content.get(..at).unwrap_or(content);
    let lines = upto.iter().filter(|b| **b == b'\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1)
}

/// The added lines with their numbers (from 1) in the new content; nothing for what is not text.
fn numbered(
    repo: &Repository,
    old: Option<Entry>,
    new: Option<Entry>,
) -> anyhow::Result<Vec<(u32, String)>> {
    let content = |entry: Option<Entry>| entry.map_or(Ok(Vec::new()), |e| tree::content(repo, e));
    let (old, new) = (content(old)?, content(new)?);
    if old.contains(&0) || new.contains(&0) {
        return Ok(Vec::new());
    }
    let patch = Patch::from_buffers(&old, None, &new, None, None)?;
    let mut added = Vec::new();
    for hunk in 0..patch.num_hunks() {
        for index in 0..patch.num_lines_in_hunk(hunk)? {
            let line = patch.line_in_hunk(hunk, index)?;
            if let ('+', Some(number)) = (line.origin(), line.new_lineno()) {
                let text = String::from_utf8_lossy(line.content());
                added.push((number, text.trim_end_matches(['\n', '\r']).to_owned()));
            }
        }
    }
    Ok(added)
}
