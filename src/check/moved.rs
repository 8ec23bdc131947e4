//! Refactor: every test that stood at green stands somewhere, the same but for indentation and module path.

use crate::check::lines::{TestLines, place};
use crate::check::protect::{runner_changes, unreached, unread};
use crate::check::tree::{Entry, show};
use crate::suite::paths::TestKind;
use crate::suite::rust_items::{Leaf, LeafKind};
use std::collections::{BTreeMap, BTreeSet};

/// A leaf in a file, and the ways in which it is compiled.
struct Located<'t> {
    file: &'t [u8],
    leaf: &'t Leaf,
    ways: Vec<BTreeSet<String>>,
}

impl Located<'_> {
    /// Whether it is compiled wherever the other was, or asks for less.
    fn runs_as(&self, before: &Located<'_>) -> bool {
        if before.ways.is_empty() {
            return self.leaf.gates.is_subset(&before.leaf.gates);
        }
        self.ways
            .iter()
            .any(|a| before.ways.iter().any(|b| a.is_subset(b)))
    }
}

/// What of `before`'s tests is neither in its place in `after` nor moved unchanged: one sentence for each.
pub fn moved(before: &TestLines, after: &TestLines) -> Vec<String> {
    let mut broken = Vec::new();
    let mut arrivals: BTreeMap<(Entry, Vec<u8>), usize> = BTreeMap::new();
    for path in after
        .files
        .keys()
        .filter(|path| !before.all.contains_key(*path))
    {
        if let Some(entry) = after.entry(path) {
            *arrivals.entry((entry, class(after, path))).or_default() += 1;
        }
    }
    for path in before.files.keys() {
        let (was, now) = (before.entry(path), after.entry(path));
        if was == now {
            broken.extend(unreached(path, before, after));
            continue;
        }
        if by_item(before, path) && now.is_none_or(|_| by_item(after, path)) {
            continue;
        }
        let arrived = was.and_then(|was| arrivals.get_mut(&(was, class(before, path))));
        match arrived {
            Some(count) if *count > 0 && now.is_none() => *count -= 1,
            _ if now.is_none() => broken.push(format!(
                "{}: this test file is gone, and is nowhere else as it was",
                show(path)
            )),
            _ => broken.push(format!("{}: this test file was changed", show(path))),
        }
    }
    for path in before
        .rust
        .keys()
        .filter(|path| before.mixed(path).is_some())
    {
        if before.entry(path) == after.entry(path) {
            broken.extend(unreached(path, before, after));
        }
    }
    broken.extend(items(before, after));
    broken.extend(unread(before, after));
    broken.extend(runner_changes(before, after));
    broken
}

/// What a test file that moves has to keep: why it is one, and the end of its name. Runner configuration and files
/// that the command names are found by their place, so that they cannot move.
fn class(lines: &TestLines, path: &[u8]) -> Vec<u8> {
    match lines.files.get(path) {
        Some(TestKind::Runner | TestKind::Command) | None => path.to_vec(),
        Some(kind) => {
            let name = crate::check::tree::name_of(path);
            let end = name.rsplit(|b| *b == b'.').next().unwrap_or(name);
            [format!("{kind:?}.").as_bytes(), end].concat()
        }
    }
}

/// Whether a test file's items are compared one by one: a Rust source that is compiled, not data for a test.
fn by_item(lines: &TestLines, path: &[u8]) -> bool {
    lines.rust.contains_key(path) && lines.reach.get(path).is_some_and(|ways| !ways.is_empty())
}

fn located<'t>(lines: &'t TestLines, differing: &BTreeSet<&Vec<u8>>) -> Vec<Located<'t>> {
    let mut all = Vec::new();
    for (path, file) in &lines.rust {
        let compared = lines.mixed(path).is_some() || by_item(lines, path);
        if !compared || !differing.contains(path) {
            continue;
        }
        let reach = lines.reach.get(path).cloned().unwrap_or_default();
        for leaf in file.items.iter().flat_map(|item| &item.leaves) {
            let ways = reach
                .iter()
                .map(|way| way.union(&leaf.gates).cloned().collect());
            all.push(Located {
                file: path,
                leaf,
                ways: ways.collect(),
            });
        }
    }
    all
}

fn items(before: &TestLines, after: &TestLines) -> Vec<String> {
    let differing: BTreeSet<&Vec<u8>> = before.differing(after).into_iter().collect();
    let (old, new) = (located(before, &differing), located(after, &differing));
    let mut broken = Vec::new();
    let mut by_form: BTreeMap<(LeafKind, &str), Vec<usize>> = BTreeMap::new();
    for (index, located) in new.iter().enumerate() {
        by_form
            .entry((located.leaf.kind, &located.leaf.form))
            .or_default()
            .push(index);
    }
    let mut taken = BTreeSet::new();
    // Where old tests stand now, and whether all of their place is old.
    let mut homes: BTreeSet<(&[u8], &str)> = BTreeSet::new();
    for was in &old {
        let kind = was.leaf.kind;
        if !matches!(kind, LeafKind::Test | LeafKind::Helper) {
            continue;
        }
        let mut found = by_form
            .get(&(kind, was.leaf.form.as_str()))
            .into_iter()
            .flatten()
            .filter(|index| kind == LeafKind::Helper || !taken.contains(*index))
            .filter(|index| new[**index].runs_as(was))
            .collect::<Vec<_>>();
        found.sort_by_key(|index| {
            let now = &new[**index];
            (now.file != was.file, now.leaf.module != was.leaf.module)
        });
        match found.first() {
            Some(index) => {
                taken.insert(**index);
                if kind == LeafKind::Test {
                    homes.insert((new[**index].file, &new[**index].leaf.module));
                }
            }
            None => broken.push(format!(
                "{}: the test item `{}` is neither what it was nor the same in another place that is compiled alike",
                show(was.file),
                place(was.leaf)
            )),
        }
    }
    let helpers: BTreeSet<&str> = forms(&old, LeafKind::Helper);
    let imports: BTreeSet<&str> = forms(&old, LeafKind::Import)
        .into_iter()
        .flat_map(str::lines)
        .collect();
    for now in &new {
        let beside_old_tests = homes
            .iter()
            .any(|(file, module)| *file == now.file && encloses(&now.leaf.module, module));
        let known = match now.leaf.kind {
            LeafKind::Helper => helpers.contains(now.leaf.form.as_str()),
            LeafKind::Import => now.leaf.form.lines().all(|name| imports.contains(name)),
            _ => true,
        };
        if beside_old_tests && !known {
            broken.push(format!(
                "{}: `{}` is new beside tests that stood before, and could stand in for what they use",
                show(now.file),
                place(now.leaf)
            ));
        }
    }
    broken
}

fn forms<'t>(leaves: &[Located<'t>], kind: LeafKind) -> BTreeSet<&'t str> {
    leaves
        .iter()
        .filter(|located| located.leaf.kind == kind)
        .map(|located| located.leaf.form.as_str())
        .collect()
}

/// Whether `module` is `inner` or one of the modules around it.
fn encloses(module: &str, inner: &str) -> bool {
    module.is_empty()
        || inner
            .strip_prefix(module)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}
