//! Green: every test that stood at red stands where it stood, byte for byte, and is still compiled and run.

use crate::check::lines::{TestLines, leaves, place};
use crate::check::modules::still_reached;
use crate::check::runner;
use crate::check::tree::{folder_of, show};
use crate::suite::paths::{TestKind, default_kind};
use crate::suite::rust_items::{Leaf, LeafKind, RustFile};
use std::collections::{BTreeMap, BTreeSet};

/// What of `before`'s tests is not in `after` as it was: one sentence for each, for the developer. New test files, new
/// test modules and new test functions are welcome; anything new beside old tests that could stand in for what they
/// use (a function, a macro, an import) is not, nor is new configuration of their runner.
pub fn in_place(before: &TestLines, after: &TestLines) -> Vec<String> {
    let mut broken = Vec::new();
    for path in before.files.keys() {
        match after.entry(path) {
            None => broken.push(format!("{}: this test file is gone", show(path))),
            now if now != before.entry(path) => {
                broken.push(format!("{}: this test file was changed", show(path)));
            }
            Some(_) => broken.extend(unreached(path, before, after)),
        }
    }
    for path in before
        .rust
        .keys()
        .filter(|path| before.mixed(path).is_some())
    {
        match after.entry(path) {
            None => broken.push(format!(
                "{}: this file, which holds tests, is gone",
                show(path)
            )),
            Some(_) => {
                if after.entry(path) != before.entry(path) {
                    let (old, new) = (before.rust.get(path), after.rust.get(path));
                    broken.extend(changed_items(&show(path), old, new));
                }
                broken.extend(unreached(path, before, after));
            }
        }
    }
    broken.extend(unread(before, after));
    broken.extend(runner_changes(before, after));
    broken
}

/// Sources that could not be parsed before either, and are not the same from their first test on.
pub fn unread(before: &TestLines, after: &TestLines) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, old) in &before.unparsable {
        let kept = match after.unparsable.get(path) {
            Some(new) => new.tests == old.tests,
            None => old.tests.is_empty(),
        };
        if !kept && before.entry(path) != after.entry(path) {
            broken.push(format!(
                "{}: this source cannot be parsed ({}), so that it has to stay as it is from its first test on",
                show(path),
                old.why
            ));
        }
    }
    broken
}

/// Test lines in manifests that are not what they were, and new runner configuration.
pub fn runner_changes(before: &TestLines, after: &TestLines) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, parts) in &before.parts {
        let now = after.parts.get(path);
        for (name, value) in parts {
            match now.and_then(|now| now.get(name)) {
                None => broken.push(format!("{}: {name} is gone", show(path))),
                Some(other) if other != value => {
                    broken.push(format!("{}: {name} was changed", show(path)));
                }
                Some(_) => {}
            }
        }
    }
    for (path, parts) in &after.parts {
        let was = before.parts.get(path);
        // A manifest that is new may configure a package that is new; not one whose tests were there before it.
        let new_package = !before.all.contains_key(path) && !holds_tests(before, path);
        for (name, value) in parts {
            let known = was.is_some_and(|was| was.contains_key(name));
            if !known && !new_package && !runner::may_appear(name, value) {
                broken.push(format!(
                    "{}: {name} is new, and can change how the tests before it are run",
                    show(path)
                ));
            }
        }
    }
    for path in new_runners(before, after) {
        broken.push(format!(
            "{}: this runner configuration is new, and can change how the tests before it are run",
            show(&path)
        ));
    }
    broken
}

/// Whether tests stand in a manifest's folder or below it; never for a manifest that is itself test data.
fn holds_tests(lines: &TestLines, manifest: &[u8]) -> bool {
    let folder = folder_of(manifest);
    if default_kind(manifest) == Some(TestKind::Fixture) {
        return false;
    }
    let mixed = lines.rust.keys().filter(|path| lines.mixed(path).is_some());
    lines.files.keys().chain(mixed).any(|path| {
        folder.is_empty()
            || path
                .strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with(b"/"))
    })
}

/// Says so when a source is no longer compiled, or only behind a condition that is new.
pub fn unreached(path: &[u8], before: &TestLines, after: &TestLines) -> Option<String> {
    let kept = still_reached(before.reach.get(path), after.reach.get(path));
    (!kept).then(|| {
        format!(
            "{}: its tests are no longer compiled as they were (a `mod` declaration or a `cfg` above them changed)",
            show(path)
        )
    })
}

fn changed_items(file: &str, before: Option<&RustFile>, after: Option<&RustFile>) -> Vec<String> {
    let (old, new) = (leaves(before), leaves(after));
    let mut broken = Vec::new();
    let mut named: BTreeMap<(&str, LeafKind), Vec<&Leaf>> = BTreeMap::new();
    for ((name, kind, _), leaf) in &new {
        named.entry((name, *kind)).or_default().push(leaf);
    }
    for ((name, kind, _), leaf) in &old {
        let same = |now: &&Leaf| now.text == leaf.text && now.gates.is_subset(&leaf.gates);
        match named.get(&(name.as_str(), *kind)) {
            None => broken.push(format!("{file}: the test item `{name}` is gone")),
            Some(now) if now.iter().any(same) => {}
            Some(_) => broken.push(format!("{file}: the test item `{name}` was changed")),
        }
    }
    let places: BTreeSet<&str> = old.values().map(|leaf| leaf.module.as_str()).collect();
    for (key, leaf) in &new {
        let extra = matches!(leaf.kind, LeafKind::Helper | LeafKind::Import);
        if extra && !old.contains_key(key) && places.contains(leaf.module.as_str()) {
            broken.push(format!(
                "{file}: `{}` is new beside tests that stood there before, and could stand in for what they use; \
                 put it in a test module or file of its own",
                place(leaf)
            ));
        }
    }
    broken
}

/// Runner configuration and files that the command names, which are new: they can change how old tests are run.
fn new_runners(before: &TestLines, after: &TestLines) -> Vec<Vec<u8>> {
    after
        .files
        .iter()
        .filter(|(_, kind)| matches!(kind, TestKind::Runner | TestKind::Command))
        .filter(|(path, _)| !before.all.contains_key(*path))
        .map(|(path, _)| path.clone())
        .collect()
}
