//! A tree's test lines: its test files, the test items in its Rust sources, the test lines in its manifests.

use crate::check::modules::{self, Reach};
use crate::check::runner::{self, Parts};
use crate::check::tree::{self, Entry, Flat};
use crate::suite::paths::{TestKind, TestPaths};
use crate::suite::rust_items::{self, Leaf, LeafKind, RustFile, Unparsable};
use git2::{Oid, Repository};
use std::collections::{BTreeMap, BTreeSet};

/// Everything in a tree that is test, apart from everything that is not.
#[derive(Debug, Clone)]
pub struct TestLines {
    /// Every file of the tree.
    pub all: Flat,
    /// The files that are tests as a whole.
    pub files: BTreeMap<Vec<u8>, TestKind>,
    /// Rust sources that were read: code that holds tests, or declares modules, and Rust test files.
    pub rust: BTreeMap<Vec<u8>, RustFile>,
    /// Test lines in manifests.
    pub parts: BTreeMap<Vec<u8>, Parts>,
    /// Rust sources outside the tests that syn cannot parse, and why.
    pub unparsable: BTreeMap<Vec<u8>, Unread>,
    /// What stands between each Rust source and being compiled.
    pub reach: BTreeMap<Vec<u8>, Reach>,
}

/// A Rust source that syn cannot parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Why.
    pub why: Unparsable,
    /// Everything from its first test on, as far as that can be told from words; empty when there is none. Sources
    /// of an old edition may be valid and yet not parse, and their tests are not fair game.
    pub tests: Vec<u8>,
}

impl TestLines {
    /// Reads the test lines of a tree.
    ///
    /// # Errors
    /// Objects of the tree that cannot be read. A source that does not parse is no error: see `unparsable`.
    pub fn of(repo: &Repository, tree: Oid, paths: &TestPaths) -> anyhow::Result<TestLines> {
        TestLines::read(repo, tree, paths, None)
    }

    /// Reads the test lines of a tree much like this one: sources that are the same are not parsed again.
    ///
    /// # Errors
    /// As [`TestLines::of`].
    pub fn of_next(
        &self,
        repo: &Repository,
        tree: Oid,
        paths: &TestPaths,
    ) -> anyhow::Result<TestLines> {
        TestLines::read(repo, tree, paths, Some(self))
    }

    fn read(
        repo: &Repository,
        tree: Oid,
        paths: &TestPaths,
        known: Option<&TestLines>,
    ) -> anyhow::Result<TestLines> {
        let all = tree::flatten(repo, tree)?;
        let mut parts = BTreeMap::new();
        let mut paths = paths.clone();
        let mut roots = BTreeSet::new();
        for (path, entry) in all
            .iter()
            .filter(|(p, e)| e.is_file() && runner::is_manifest(p))
        {
            let content = tree::content(repo, *entry)?;
            let folder = tree::folder_of(path);
            for script in runner::commands(path, &content) {
                paths = paths.with_command(&script, folder);
            }
            roots.extend(modules::named_roots(path, &content));
            let found = runner::parts(path, &content);
            if !found.is_empty() {
                parts.insert(path.clone(), found);
            }
        }
        let mut files: BTreeMap<Vec<u8>, TestKind> = all
            .keys()
            .filter_map(|path| Some((path.clone(), paths.kind(path)?)))
            .collect();
        let (rust, unparsable) = read_rust(repo, &all, &files, known)?;
        let graph = modules::graph(&all, &rust, &files, &roots);
        let mut lines = TestLines {
            all,
            rust,
            parts,
            unparsable,
            reach: graph.reach,
            files: BTreeMap::new(),
        };
        // Files that a test module declaration pulls in are read again as what they are: tests as a whole.
        for path in graph.declared {
            files.entry(path.clone()).or_insert(TestKind::Declared);
            lines.unparsable.remove(&path);
            if let Some(entry) = lines.all.get(&path) {
                let content = tree::content(repo, *entry)?;
                if let Ok(file) = rust_items::read(&String::from_utf8_lossy(&content), true) {
                    lines.rust.insert(path, file);
                }
            }
        }
        for (path, file) in &lines.rust {
            if file.whole {
                files.entry(path.clone()).or_insert(TestKind::Declared);
            }
        }
        lines.files = files;
        Ok(lines)
    }

    /// The entry of a path.
    pub fn entry(&self, path: &[u8]) -> Option<Entry> {
        self.all.get(path).copied()
    }

    /// Whether the path is a test file as a whole.
    pub fn is_test_file(&self, path: &[u8]) -> bool {
        self.files.contains_key(path)
    }

    /// The Rust source of code that holds test items; None for test files and sources without any.
    pub fn mixed(&self, path: &[u8]) -> Option<&RustFile> {
        self.rust
            .get(path)
            .filter(|file| !file.items.is_empty() && !self.is_test_file(path))
    }

    /// The paths whose entries differ between this tree and another, sorted.
    pub fn differing<'t>(&'t self, after: &'t TestLines) -> Vec<&'t Vec<u8>> {
        let gone = self
            .all
            .keys()
            .filter(|path| !after.all.contains_key(*path));
        let mut paths: Vec<&Vec<u8>> = after
            .all
            .iter()
            .filter(|(path, entry)| self.all.get(*path) != Some(entry))
            .map(|(path, _)| path)
            .chain(gone)
            .collect();
        paths.sort();
        paths
    }
}

/// The leaves of a source by place, kind and name; several of one name stay apart by their order.
pub fn leaves(file: Option<&RustFile>) -> BTreeMap<(String, LeafKind, usize), &Leaf> {
    let mut counted: BTreeMap<(String, LeafKind), usize> = BTreeMap::new();
    let mut leaves = BTreeMap::new();
    for leaf in file
        .into_iter()
        .flat_map(|file| &file.items)
        .flat_map(|item| &item.leaves)
    {
        let name = place(leaf);
        let nth = counted.entry((name.clone(), leaf.kind)).or_insert(0);
        leaves.insert((name, leaf.kind, *nth), leaf);
        *nth += 1;
    }
    leaves
}

/// A leaf's module path and name, for people.
pub fn place(leaf: &Leaf) -> String {
    if leaf.module.is_empty() {
        leaf.name.clone()
    } else {
        format!("{}::{}", leaf.module, leaf.name)
    }
}

/// Reads the sources that may hold tests or declare modules.
#[allow(clippy::type_complexity)] // two maps, each named where it is taken apart
fn read_rust(
    repo: &Repository,
    all: &Flat,
    files: &BTreeMap<Vec<u8>, TestKind>,
    known: Option<&TestLines>,
) -> anyhow::Result<(BTreeMap<Vec<u8>, RustFile>, BTreeMap<Vec<u8>, Unread>)> {
    let mut texts: Vec<(&Vec<u8>, String, bool)> = Vec::new();
    let mut rust = BTreeMap::new();
    let mut unparsable = BTreeMap::new();
    for (path, entry) in all {
        let kind = files.get(path);
        if !path.ends_with(b".rs") || !entry.is_file() || kind == Some(&TestKind::Fixture) {
            continue;
        }
        let same = known.filter(|known| known.entry(path) == Some(*entry));
        let read = same.and_then(|known| known.rust.get(path));
        if let Some(file) = read.filter(|file| file.whole == kind.is_some()) {
            rust.insert(path.clone(), file.clone());
            continue;
        }
        match String::from_utf8(tree::content(repo, *entry)?) {
            Ok(text) => texts.push((path, text, kind.is_some())),
            Err(error) if kind.is_none() => {
                let upto = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let why = Unparsable {
                    line: 1 + upto.iter().filter(|b| **b == b'\n').count(),
                    column: 0,
                    message: "not UTF-8".to_owned(),
                };
                let tests = from_first_test(error.as_bytes());
                unparsable.insert(path.clone(), Unread { why, tests });
            }
            Err(_) => {}
        }
    }
    let sources = texts
        .iter()
        .map(|(_, text, whole)| (text.as_str(), *whole))
        .collect();
    for ((path, text, whole), read) in texts.iter().zip(rust_items::read_all(sources)) {
        match read {
            Ok(file) => {
                rust.insert((*path).clone(), file);
            }
            // Test files may be meant not to parse (tests of a compiler's errors).
            Err(_) if *whole => {}
            Err(why) => {
                let tests = from_first_test(text.as_bytes());
                unparsable.insert((*path).clone(), Unread { why, tests });
            }
        }
    }
    Ok((rust, unparsable))
}

/// A source from the first line that makes a test on, by words alone.
fn from_first_test(source: &[u8]) -> Vec<u8> {
    let holds = |line: &[u8], word: &[u8]| line.windows(word.len()).any(|w| w == word);
    let mut at = 0;
    for line in source.split_inclusive(|b| *b == b'\n') {
        let attribute = line.trim_ascii_start().starts_with(b"#");
        if attribute && holds(line, b"test") {
            return source[at..].to_vec();
        }
        at += line.len();
    }
    Vec::new()
}
