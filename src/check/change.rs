//! What one tree changed against another: tests, the code, and what a verifier and the PR have to be told of.

use crate::check::lines::{TestLines, leaves};
use crate::check::listed::{self, Listed};
use crate::check::runner;
use crate::check::tree::{self, show};
use crate::suite::rust_items::{LeafKind, RustFile};
use git2::Repository;
use serde::{Deserialize, Serialize};

/// A test item in a source that also holds code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestName {
    /// The file, as `tree::show` writes it.
    pub file: String,
    /// Its module path and name: `tests::fn refuses`.
    pub name: String,
}

/// The difference between two trees. Paths are text as `tree::show` writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Test files that are new.
    pub test_files_added: Vec<String>,
    /// Test files whose content, mode or kind changed.
    pub test_files_changed: Vec<String>,
    /// Test files that are gone.
    pub test_files_removed: Vec<String>,
    /// Rust test items that are new.
    pub test_items_added: Vec<TestName>,
    /// Rust test items whose bytes changed.
    pub test_items_changed: Vec<TestName>,
    /// Rust test items that are gone.
    pub test_items_removed: Vec<TestName>,
    /// Test functions that are new or changed in Rust test files, which are named above as a whole.
    #[serde(default)]
    pub test_functions: Vec<TestName>,
    /// Test lines in manifests that changed: `package.json: scripts.test`.
    pub runner_changed: Vec<String>,
    /// Tests that stood before and were changed or removed, not only added to: these need a person's eye.
    pub existing_tests_changed: Vec<String>,
    /// Files with changes outside the tests.
    pub other_files_changed: Vec<String>,
    /// What 15-checks.md lists for the verifier and the PR.
    pub listed: Listed,
    /// Sources that changed and cannot be parsed, with the place and what the parser says.
    pub unparsable: Vec<String>,
}

impl Change {
    /// Whether no file differs.
    pub fn is_empty(&self) -> bool {
        !self.touches_tests() && self.other_files_changed.is_empty() && self.unparsable.is_empty()
    }

    /// Whether test lines were added or changed (a removal alone is neither).
    pub fn adds_test_lines(&self) -> bool {
        !(self.test_files_added.is_empty()
            && self.test_files_changed.is_empty()
            && self.test_items_added.is_empty()
            && self.test_items_changed.is_empty()
            && self.runner_changed.is_empty())
    }

    /// Whether any test line was added, changed or removed.
    pub fn touches_tests(&self) -> bool {
        self.adds_test_lines()
            || !self.test_files_removed.is_empty()
            || !self.test_items_removed.is_empty()
    }
}

/// Compares two trees of one repository.
///
/// # Errors
/// Objects that cannot be read.
pub fn changed(repo: &Repository, before: &TestLines, after: &TestLines) -> anyhow::Result<Change> {
    let mut change = Change::default();
    // New sources that hold nothing but tests: changed outside the tests, but nobody's stub.
    let mut only_tests = Vec::new();
    for path in before.differing(after) {
        let shown = show(path);
        let (old, new) = (before.entry(path), after.entry(path));
        if before.is_test_file(path) || after.is_test_file(path) {
            functions(
                &mut change,
                &shown,
                before.rust.get(path),
                after.rust.get(path),
            );
            match (old, new) {
                (None, _) => change.test_files_added.push(shown),
                (_, None) => {
                    change
                        .existing_tests_changed
                        .push(format!("{shown} (removed)"));
                    change.test_files_removed.push(shown);
                }
                (Some(old), Some(new)) => {
                    let (old, new) = (tree::content(repo, old)?, tree::content(repo, new)?);
                    if removes_lines(&old, &new)? {
                        change.existing_tests_changed.push(shown.clone());
                    }
                    change.test_files_changed.push(shown);
                }
            }
            continue;
        }
        // A source that did not parse before either (of an old edition) is not the candidate's doing.
        match (before.unparsable.get(path), after.unparsable.get(path)) {
            (None, Some(unread)) => change.unparsable.push(format!("{shown}: {}", unread.why)),
            (Some(old), Some(new)) if old.tests != new.tests => {
                change.existing_tests_changed.push(shown.clone());
                change.test_files_changed.push(shown);
                continue;
            }
            _ => {}
        }
        let content = |entry: Option<tree::Entry>| {
            entry.map_or(Ok(Vec::new()), |entry| tree::content(repo, entry))
        };
        let same_beside = if before.mixed(path).is_some() || after.mixed(path).is_some() {
            items(
                &mut change,
                &shown,
                before.rust.get(path),
                after.rust.get(path),
            );
            let new_file = old.is_none();
            let (old, new) = (content(old)?, content(new)?);
            if new_file && beside(&new, after.rust.get(path)).is_empty() {
                only_tests.push(shown.clone());
            }
            beside(&old, before.rust.get(path)) == beside(&new, after.rust.get(path))
        } else if runner::is_manifest(path) {
            let (was, is) = (before.parts.get(path), after.parts.get(path));
            let (was, is) = (
                was.cloned().unwrap_or_default(),
                is.cloned().unwrap_or_default(),
            );
            for name in was
                .keys()
                .chain(is.keys().filter(|name| !was.contains_key(*name)))
            {
                if was.get(name) != is.get(name) {
                    change.runner_changed.push(format!("{shown}: {name}"));
                    if was.contains_key(name) {
                        change
                            .existing_tests_changed
                            .push(format!("{shown}: {name}"));
                    }
                }
            }
            runner::others(path, &content(old)?) == runner::others(path, &content(new)?)
        } else {
            false
        };
        // A file that is only there for its tests, or that changed its mode, changed outside them, too.
        let same_kind = old.map(|e| e.mode) == new.map(|e| e.mode);
        if !(same_beside && same_kind) {
            change.other_files_changed.push(shown);
        }
    }
    change.listed = listed::of(before, after, &change.other_files_changed);
    change
        .listed
        .stubs
        .retain(|path| !only_tests.contains(path));
    change
        .listed
        .new_tests
        .extend(change.test_files_added.iter().cloned());
    let named = |item: &TestName| format!("{}: {}", item.file, item.name);
    change
        .listed
        .new_tests
        .extend(change.test_items_added.iter().map(named));
    Ok(change)
}

fn functions(change: &mut Change, file: &str, before: Option<&RustFile>, after: Option<&RustFile>) {
    let old = leaves(before);
    let new_or_changed = leaves(after)
        .into_iter()
        .filter(|(key, leaf)| {
            leaf.kind == LeafKind::Test && old.get(key).is_none_or(|known| known.text != leaf.text)
        })
        .map(|((name, ..), _)| TestName {
            file: file.to_owned(),
            name,
        });
    change.test_functions.extend(new_or_changed);
}

fn items(change: &mut Change, file: &str, before: Option<&RustFile>, after: Option<&RustFile>) {
    let (old, new) = (leaves(before), leaves(after));
    let name = |name: &str| TestName {
        file: file.to_owned(),
        name: name.to_owned(),
    };
    for (key, leaf) in &old {
        match new.get(key) {
            None => change.test_items_removed.push(name(&key.0)),
            Some(other) if other.text != leaf.text || other.gates != leaf.gates => {
                change.test_items_changed.push(name(&key.0));
            }
            Some(_) => continue,
        }
        change
            .existing_tests_changed
            .push(format!("{file}: {}", key.0));
    }
    let added = new.keys().filter(|key| !old.contains_key(*key));
    change
        .test_items_added
        .extend(added.map(|key| name(&key.0)));
}

/// What of a source stands beside its test items: its lines without theirs, blank ones and indentation aside.
fn beside(content: &[u8], file: Option<&RustFile>) -> Vec<u8> {
    let mut rest = Vec::with_capacity(content.len());
    let mut from = 0;
    for item in file.into_iter().flat_map(|file| &file.items) {
        rest.extend_from_slice(content.get(from..item.span.start).unwrap_or_default());
        rest.push(b'\n');
        from = item.span.end;
    }
    rest.extend_from_slice(content.get(from..).unwrap_or_default());
    let mut lines = Vec::with_capacity(rest.len());
    for line in rest
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|l| !l.is_empty())
    {
        lines.extend_from_slice(line);
        lines.push(b'\n');
    }
    lines
}

/// Whether lines of the old content are missing from the new; for what is not text, any change counts.
fn removes_lines(old: &[u8], new: &[u8]) -> anyhow::Result<bool> {
    if old.contains(&0) || new.contains(&0) {
        return Ok(old != new);
    }
    let patch = git2::Patch::from_buffers(old, None, new, None, None)?;
    Ok(patch.line_stats()?.2 > 0)
}
