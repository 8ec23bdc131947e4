//! Which Rust sources are compiled, through which module declarations, and behind which `cfg`s.
//!
//! A test that is left as it is and no longer compiled is a test that is gone: `mod bank;` struck out, or put behind
//! `#[cfg(any())]`, one or more files up.

use crate::check::tree::{self, Flat};
use crate::suite::paths::TestKind;
use crate::suite::rust_items::{Declaration, RustFile};
use std::collections::{BTreeMap, BTreeSet};

/// The ways in which a source is reached: what each asks for. Empty: not reached. Unconditional: one empty set.
pub type Reach = Vec<BTreeSet<String>>;

/// Ways of reaching one source that are told apart; more are not followed.
const MAX_WAYS: usize = 16;

/// The modules of a tree.
#[derive(Debug, Default)]
pub struct Graph {
    /// How each Rust source is reached.
    pub reach: BTreeMap<Vec<u8>, Reach>,
    /// Sources that are tests because only test code declares them.
    pub declared: BTreeSet<Vec<u8>>,
}

/// Whether every way that was open before is open still, or one that asks for less.
pub fn still_reached(before: Option<&Reach>, after: Option<&Reach>) -> bool {
    let none = Reach::new();
    let (before, after) = (before.unwrap_or(&none), after.unwrap_or(&none));
    before.is_empty() || after.iter().any(|a| before.iter().any(|b| a.is_subset(b)))
}

/// Follows the module declarations from the crates' roots.
pub fn graph(
    all: &Flat,
    rust: &BTreeMap<Vec<u8>, RustFile>,
    files: &BTreeMap<Vec<u8>, TestKind>,
    named_roots: &BTreeSet<Vec<u8>>,
) -> Graph {
    let mut children: BTreeMap<&[u8], Vec<(Vec<u8>, &Declaration)>> = BTreeMap::new();
    let mut has_parent: BTreeSet<Vec<u8>> = BTreeSet::new();
    for (path, file) in rust {
        for declaration in &file.declares {
            let child = places(path, declaration)
                .into_iter()
                .find(|place| all.contains_key(place) && place != path);
            if let Some(child) = child {
                has_parent.insert(child.clone());
                children.entry(path).or_default().push((child, declaration));
            }
        }
    }
    // From every source that nothing declares: the roots, and others, which say what is test but not what is reached.
    let mut open: Vec<Way> = rust
        .keys()
        .filter_map(|path| {
            let rooted = named_roots.contains(path) || is_root(path);
            let starts = named_roots.contains(path) || !has_parent.contains(path);
            starts.then(|| Way {
                path: path.clone(),
                gates: BTreeSet::new(),
                test: files.contains_key(path),
                rooted,
            })
        })
        .collect();
    let mut seen: BTreeMap<Vec<u8>, Vec<Way>> = BTreeMap::new();
    while let Some(mut way) = open.pop() {
        if let Some(file) = rust.get(&way.path) {
            way.gates.extend(file.gates.iter().cloned());
            way.test |= file.whole;
        }
        let ways = seen.entry(way.path.clone()).or_default();
        if ways.contains(&way) || ways.len() >= MAX_WAYS {
            continue;
        }
        ways.push(way.clone());
        for (child, declaration) in children.get(way.path.as_slice()).into_iter().flatten() {
            let mut gates = way.gates.clone();
            gates.extend(declaration.gates.iter().cloned());
            open.push(Way {
                path: child.clone(),
                gates,
                test: way.test || declaration.test,
                rooted: way.rooted,
            });
        }
    }
    let mut graph = Graph::default();
    for (path, ways) in seen {
        if ways.iter().all(|way| way.test) {
            graph.declared.insert(path.clone());
        }
        let reach = ways
            .into_iter()
            .filter(|way| way.rooted)
            .map(|way| way.gates);
        graph.reach.insert(path, reach.collect());
    }
    graph
}

/// One way in which a source is compiled.
#[derive(Clone, PartialEq)]
struct Way {
    path: Vec<u8>,
    gates: BTreeSet<String>,
    test: bool,
    rooted: bool,
}

/// Where the file of `mod x;` may stand, the likeliest first.
fn places(parent: &[u8], declaration: &Declaration) -> Vec<Vec<u8>> {
    let folder = tree::folder_of(parent);
    let name = tree::name_of(parent);
    let stem = name.strip_suffix(b".rs").unwrap_or(name);
    let mut beside = folder.to_vec();
    let mut below = folder.to_vec();
    push(&mut below, stem);
    let owns_folder = matches!(name, b"mod.rs" | b"lib.rs" | b"main.rs" | b"build.rs");
    // Roots of other names, and files that a #[path] loads, own their folder, too: so both are tried.
    let mut bases = if owns_folder {
        vec![beside.clone()]
    } else {
        vec![below, beside.clone()]
    };
    if let (Some(path), true) = (&declaration.path, declaration.inline.is_empty()) {
        push_path(&mut beside, path);
        return vec![beside];
    }
    let mut places = Vec::new();
    for base in &mut bases {
        for (module, path) in &declaration.inline {
            push_path(base, path.as_deref().unwrap_or(module));
        }
        if let Some(path) = &declaration.path {
            push_path(base, path);
            places.push(base.clone());
            continue;
        }
        push(base, declaration.name.as_bytes());
        places.push([base.as_slice(), b".rs"].concat());
        places.push([base.as_slice(), b"/mod.rs"].concat());
    }
    places
}

fn push(path: &mut Vec<u8>, part: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}

fn push_path(path: &mut Vec<u8>, relative: &str) {
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => *path = tree::folder_of(path).to_vec(),
            part => push(path, part.as_bytes()),
        }
    }
}

/// Whether Cargo finds a crate's root here without being told.
fn is_root(path: &[u8]) -> bool {
    let folder = tree::folder_of(path);
    let above = tree::folder_of(folder);
    let holds_targets = |folder: &[u8]| {
        matches!(tree::name_of(folder), b"tests" | b"benches" | b"examples")
            || folder == b"src/bin"
            || folder.ends_with(b"/src/bin")
    };
    match tree::name_of(path) {
        b"lib.rs" => tree::name_of(folder) == b"src",
        b"main.rs" => tree::name_of(folder) == b"src" || holds_targets(above),
        b"build.rs" => true,
        _ => holds_targets(folder),
    }
}

/// The sources that a Cargo.toml names as targets (`path = "…"`).
pub fn named_roots(manifest: &[u8], content: &[u8]) -> Vec<Vec<u8>> {
    if tree::name_of(manifest) != b"Cargo.toml" {
        return Vec::new();
    }
    let Ok(table) = String::from_utf8_lossy(content).parse::<toml::Table>() else {
        return Vec::new();
    };
    let lib = table.get("lib").into_iter();
    let others = ["bin", "test", "bench", "example"]
        .iter()
        .filter_map(|kind| table.get(*kind)?.as_array())
        .flatten();
    lib.chain(others)
        .filter_map(|target| target.get("path")?.as_str())
        .map(|path| {
            let mut root = tree::folder_of(manifest).to_vec();
            push_path(&mut root, path);
            root
        })
        .collect()
}
