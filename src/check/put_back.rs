//! A candidate with its test lines as they were before it: what is left is what it changed beside the tests.

use crate::check::lines::TestLines;
use crate::check::runner;
use crate::check::tree::{self, Entry, Flat, SUBMODULE};
use crate::suite::paths::TestPaths;
use crate::suite::rust_items::{Container, RustFile, TestItem};
use git2::{Oid, Repository};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The candidate's tree with its test lines as in the base, written to the repository.
///
/// Test files are the base's; in Rust sources the test items are, by their bytes, and the rest is the candidate's; in
/// manifests the test lines are. A source that held tests and is gone comes back as a whole.
///
/// # Errors
/// Objects that cannot be read or written.
pub fn put_test_lines_back(
    repo: &Repository,
    base: Oid,
    candidate: Oid,
    paths: &TestPaths,
) -> anyhow::Result<Oid> {
    let base = TestLines::of(repo, base, paths)?;
    let candidate = base.of_next(repo, candidate, paths)?;
    put_back(repo, &base, &candidate)
}

/// [`put_test_lines_back`] for trees that were read already.
///
/// # Errors
/// Objects that cannot be read or written.
pub fn put_back(repo: &Repository, base: &TestLines, candidate: &TestLines) -> anyhow::Result<Oid> {
    let mut flat = candidate.all.clone();
    let test_files: BTreeSet<&Vec<u8>> = base.files.keys().chain(candidate.files.keys()).collect();
    for path in base.differing(candidate) {
        let (old, new) = (base.entry(path), candidate.entry(path));
        let unread = |lines: &TestLines| lines.unparsable.get(path).map(|u| u.tests.clone());
        if test_files.contains(path) || unread(base) != unread(candidate) {
            restore(&mut flat, path, old);
        } else if base.mixed(path).is_some() || candidate.mixed(path).is_some() {
            match (old, new) {
                (_, Some(new)) if new.is_file() && candidate.rust.contains_key(path) => {
                    let (old_text, new_text) = (text(repo, old)?, text(repo, Some(new))?);
                    let spliced = splice(
                        (&old_text, base.rust.get(path)),
                        (&new_text, candidate.rust.get(path)),
                    );
                    let oid = repo.blob(spliced.as_bytes())?;
                    flat.insert(
                        path.clone(),
                        Entry {
                            oid,
                            mode: new.mode,
                        },
                    );
                }
                (old, _) => restore(&mut flat, path, old),
            }
        } else if base.parts.contains_key(path) || candidate.parts.contains_key(path) {
            match (old, new) {
                (Some(old), Some(new)) if old.is_file() && new.is_file() => {
                    let (was, is) = (tree::content(repo, old)?, tree::content(repo, new)?);
                    if let Some(mended) = runner::put_back(path, &was, &is) {
                        let oid = repo.blob(&mended)?;
                        flat.insert(
                            path.clone(),
                            Entry {
                                oid,
                                mode: new.mode,
                            },
                        );
                    }
                }
                (Some(old), _) => restore(&mut flat, path, Some(old)),
                // A manifest that is new belongs to a package that is new.
                (None, _) => {}
            }
        }
    }
    tree::write(repo, &flat)
}

/// Puts a path back as it was, out of the way of whatever stands in its place.
fn restore(flat: &mut Flat, path: &[u8], entry: Option<Entry>) {
    let Some(entry) = entry else {
        flat.remove(path);
        return;
    };
    let folder = [path, b"/"].concat();
    let below: Vec<Vec<u8>> = flat
        .range(folder.clone()..)
        .map(|(p, _)| p.clone())
        .take_while(|p| p.starts_with(&folder))
        .collect();
    for path in below {
        flat.remove(&path);
    }
    let mut above = tree::folder_of(path);
    while !above.is_empty() {
        flat.remove(above);
        above = tree::folder_of(above);
    }
    flat.insert(path.to_vec(), entry);
}

fn text(repo: &Repository, entry: Option<Entry>) -> anyhow::Result<String> {
    let Some(entry) = entry.filter(|entry| entry.mode != SUBMODULE) else {
        return Ok(String::new());
    };
    let bytes = tree::content(repo, entry)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

type Key<'t> = (Vec<&'t str>, &'t str, usize);

fn keyed(file: Option<&RustFile>) -> BTreeMap<Key<'_>, &TestItem> {
    let mut counted: BTreeMap<(Vec<&str>, &str), usize> = BTreeMap::new();
    let mut items = BTreeMap::new();
    for item in file.into_iter().flat_map(|file| &file.items) {
        let within = names(&item.within);
        let nth = counted.entry((within.clone(), &item.name)).or_insert(0);
        items.insert((within, item.name.as_str(), *nth), item);
        *nth += 1;
    }
    items
}

fn names(within: &[Container]) -> Vec<&str> {
    within
        .iter()
        .map(|container| container.name.as_str())
        .collect()
}

/// The candidate's source with the base's test items.
fn splice(base: (&str, Option<&RustFile>), candidate: (&str, Option<&RustFile>)) -> String {
    let (old, new) = (keyed(base.1), keyed(candidate.1));
    let source = candidate.0;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (key, item) in &new {
        match old.get(key) {
            None => edits.push((whole_lines(source, &item.span), String::new())),
            Some(was) => {
                let was = &base.0[was.span.clone()];
                if was != &source[item.span.clone()] {
                    edits.push((item.span.clone(), was.to_owned()));
                }
            }
        }
    }
    let empty = Vec::new();
    let places = candidate.1.map_or(&empty, |file| &file.places);
    let missing = old.iter().filter(|(key, _)| !new.contains_key(*key));
    let mut missing: Vec<&TestItem> = missing.map(|(_, item)| *item).collect();
    missing.sort_by_key(|item| item.span.start);
    for item in missing {
        let within = &item.within;
        // The innermost of its places that is still there, the very same one before one of the same name (modules
        // for two platforms share theirs); what is missing of them is written anew around it.
        let found = (0..=within.len()).rev().find_map(|depth| {
            let same = |place: &&(Vec<Container>, usize)| place.0 == within[..depth];
            let alike =
                |place: &&(Vec<Container>, usize)| names(&place.0) == names(&within[..depth]);
            let place = places
                .iter()
                .find(same)
                .or_else(|| places.iter().find(alike));
            place.map(|(_, close)| (depth, *close))
        });
        let (depth, at) = found.unwrap_or((0, source.len()));
        let mut text = String::from("\n");
        for container in &item.within[depth..] {
            text.push_str(&container.opening);
            text.push('\n');
        }
        text.push_str(&base.0[item.span.clone()]);
        text.push('\n');
        text.push_str(&"}\n".repeat(item.within.len() - depth));
        edits.push((at..at, text));
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::with_capacity(source.len());
    let mut from = 0;
    for (range, text) in edits {
        out.push_str(&source[from..range.start.max(from)]);
        out.push_str(&text);
        from = range.end.max(from);
    }
    out.push_str(&source[from..]);
    out
}

/// A span with the indentation before it and the line break after it, where nothing else stands in these lines.
fn whole_lines(source: &str, span: &Range<usize>) -> Range<usize> {
    let before = source[..span.start].trim_end_matches([' ', '\t']);
    let after = source[span.end..].trim_start_matches([' ', '\t', '\r']);
    let alone = before.is_empty() || before.ends_with('\n');
    match (alone, after.strip_prefix('\n')) {
        (true, Some(rest)) => before.len()..source.len() - rest.len(),
        _ => span.clone(),
    }
}
