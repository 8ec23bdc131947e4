//! The habits of the house, held: what the pure floor may name, who may import whom, and what no file may
//! hold. Sources are read as tokens, so that neither a comment nor a text in quotes counts as code.

use crate::sources::{Source, read_sources, rust_files, text_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The floors from the top. A room may import rooms of its own floor and of those below it.
const FLOORS: [(&str, &[&str]); 4] = [
    ("door", &["cli"]),
    ("shells", &["conductor"]),
    (
        "effects",
        &[
            "agent",
            "blind",
            "check",
            "config",
            "folder",
            "forge",
            "git",
            "ground",
            "hash",
            "journal",
            "leaf",
            "lock",
            "storage",
            "suite",
            "tool",
            "untrusted",
        ],
    ),
    (
        "pure",
        &[
            "answer", "cause", "event", "exit", "ledger", "machine", "plan", "prompt", "role",
            "verdict",
        ],
    ),
];

/// What the pure floor never names: the outside world, and the clock.
const OUTSIDE: &[&str] = &[
    "git2",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "nix",
    "octocrab",
    "signal_hook",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "tempfile",
    "tokio",
];

/// Above this many lines a file wants to be a folder.
const LONG: usize = 450;

/// Names that say nothing about what is in a room.
const EMPTY_NAMES: &[&str] = &[
    "common", "core", "helper", "helpers", "manager", "misc", "util", "utils",
];

fn floor_of(room: &str) -> usize {
    FLOORS
        .iter()
        .position(|(_, rooms)| rooms.contains(&room))
        .unwrap_or_else(|| panic!("the room {room} is on no floor: add it to FLOORS"))
}

/// Fails with all findings at once.
#[track_caller]
fn none_of(what: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{what}:\n{}", findings.join("\n"));
}

/// The program's own code: test modules and what stands behind `#[cfg(test)]` left out.
fn program() -> Vec<Source> {
    read_sources().into_iter().filter(|s| !s.test).collect()
}

fn begins_with(path: &[String], prefix: &str) -> bool {
    let mut words = path.iter().map(String::as_str);
    prefix.split("::").all(|p| words.next() == Some(p))
}

#[test]
fn every_room_is_on_a_floor_and_every_floor_has_its_rooms() {
    let rooms: BTreeSet<String> = read_sources()
        .iter()
        .filter_map(|s| s.module.first().cloned())
        .collect();
    let placed: BTreeSet<String> = FLOORS
        .iter()
        .flat_map(|(_, rooms)| rooms.iter().map(|r| (*r).to_owned()))
        .collect();
    assert_eq!(rooms, placed);
}

#[test]
fn the_pure_floor_names_nothing_of_the_outside_world() {
    let mut findings = Vec::new();
    let mut looked_at = 0;
    for source in program() {
        let Some(room) = source.module.first() else {
            continue;
        };
        if FLOORS[floor_of(room)].0 != "pure" {
            continue;
        }
        looked_at += 1;
        for (line, path) in &source.paths {
            if OUTSIDE.iter().any(|bad| begins_with(path, bad)) {
                findings.push(format!("{}:{line}: {}", source.name, path.join("::")));
            }
        }
    }
    assert!(looked_at > 20, "only {looked_at} files were looked at");
    none_of("the pure floor may not name these", &findings);
}

#[test]
fn floors_import_only_downwards() {
    let mut findings = Vec::new();
    for source in program() {
        let Some(room) = source.module.first() else {
            continue;
        };
        for (line, path) in &source.paths {
            if path.first().is_some_and(|p| p == "crate")
                && let Some(other) = path.get(1)
                && FLOORS
                    .iter()
                    .any(|(_, rooms)| rooms.contains(&other.as_str()))
                && floor_of(other) < floor_of(room)
            {
                findings.push(format!("{}:{line}: {}", source.name, path.join("::")));
            }
        }
    }
    none_of("these import from a floor above", &findings);
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let sources = program();
    let modules: BTreeSet<Vec<String>> = sources.iter().map(|s| s.module.clone()).collect();
    let mut files = BTreeMap::new();
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in &sources {
        let imports: &mut BTreeSet<String> = files.entry(source.module.join("::")).or_default();
        for (_, path) in &source.paths {
            let Some(target) = resolve(&source.module, path, &modules) else {
                continue;
            };
            // A folder's own file and what lies in the folder are one room.
            if target.starts_with(&source.module) || source.module.starts_with(&target) {
                continue;
            }
            imports.insert(target.join("::"));
            if let (Some(from), Some(to)) = (source.module.first(), target.first())
                && from != to
            {
                rooms.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    assert!(files.values().map(BTreeSet::len).sum::<usize>() > 100);
    let circles: Vec<String> = [circle(&rooms), circle(&files)]
        .into_iter()
        .flatten()
        .map(|path| path.join(" → "))
        .collect();
    none_of("these import each other in a circle", &circles);
}

/// The module that a path leads into: the longest beginning of it that is a file.
fn resolve(
    from: &[String],
    path: &[String],
    modules: &BTreeSet<Vec<String>>,
) -> Option<Vec<String>> {
    let mut at: Vec<String> = from.to_vec();
    let mut rest = path.iter().peekable();
    match rest.peek()?.as_str() {
        "crate" => {
            at.clear();
            rest.next();
        }
        "self" => {
            rest.next();
        }
        "super" => {
            while rest.peek().is_some_and(|word| *word == "super") {
                at.pop();
                rest.next();
            }
        }
        _ => return None,
    }
    at.extend(rest.cloned());
    while !at.is_empty() && !modules.contains(&at) {
        at.pop();
    }
    (!at.is_empty()).then_some(at)
}

/// One circle of a graph, if it has any.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit<'g>(
        at: &'g str,
        graph: &'g BTreeMap<String, BTreeSet<String>>,
        path: &mut Vec<&'g str>,
        done: &mut BTreeSet<&'g str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|p| *p == at) {
            let around = path[start..].iter().chain([&at]);
            return Some(around.map(|p| (*p).to_owned()).collect());
        }
        if done.contains(at) {
            return None;
        }
        path.push(at);
        for next in graph.get(at).into_iter().flatten() {
            if let Some(found) = visit(next, graph, path, done) {
                return Some(found);
            }
        }
        path.pop();
        done.insert(at);
        None
    }
    let mut done = BTreeSet::new();
    graph
        .keys()
        .find_map(|start| visit(start, graph, &mut Vec::new(), &mut done))
}

#[test]
fn the_search_for_circles_finds_one_and_only_one() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in edges {
            graph
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
        }
        graph
    };
    assert_eq!(circle(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let found = circle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap();
    assert_eq!(found, ["b", "c", "b"]);
}

#[test]
fn nothing_is_left_to_do_and_only_the_door_prints() {
    let mut findings = Vec::new();
    for source in program() {
        let door = source.module.first().is_some_and(|room| room == "cli");
        for (line, name) in &source.macros {
            let unfinished = matches!(name.as_str(), "todo" | "unimplemented" | "dbg");
            let prints = matches!(name.as_str(), "print" | "println" | "eprint" | "eprintln");
            if unfinished || (prints && !door) {
                findings.push(format!("{}:{line}: {name}!", source.name));
            }
        }
    }
    none_of("these do not belong here", &findings);
}

#[test]
fn unsafe_code_stays_in_its_one_module() {
    let mut findings = Vec::new();
    for source in read_sources()
        .iter()
        .filter(|s| s.name != "src/leaf/sys.rs")
    {
        for line in source.lines_with("unsafe") {
            findings.push(format!("{}:{line}", source.name));
        }
    }
    none_of("unsafe code is only in src/leaf/sys.rs", &findings);
    let text = std::fs::read_to_string(root().join("src/leaf/sys.rs")).unwrap();
    let blocks = text.lines().filter(|l| l.contains("unsafe {")).count();
    let argued = text.matches("SAFETY").count();
    assert!(
        blocks > 0 && argued >= blocks,
        "{argued} arguments for {blocks} blocks"
    );
}

#[test]
fn every_allow_says_why() {
    let mut findings = Vec::new();
    for (name, text) in rust_files() {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            if !code.starts_with("#[allow(") && !code.starts_with("#![allow(") {
                continue;
            }
            let above = index.checked_sub(1).map_or("", |i| lines[i].trim_start());
            let attribute: String = lines[index..].iter().take(4).copied().collect();
            let reason = attribute
                .split(']')
                .next()
                .is_some_and(|a| a.contains("reason ="));
            // A documentation comment says what a thing is, not why a lint is wrong about it.
            let said_above =
                above.starts_with("//") && !above.starts_with("///") && !above.starts_with("//!");
            // rustfmt puts a long reason on the line below.
            let said_below = lines
                .get(index + 1)
                .is_some_and(|below| below.trim_start().starts_with("// "));
            if !reason && !said_above && !said_below && !line.contains("] //") {
                findings.push(format!("{name}:{}: {code}", index + 1));
            }
        }
    }
    none_of("an allow needs a reason", &findings);
}

#[test]
fn no_file_is_too_long() {
    let lines = |text: &str| text.lines().count();
    let findings: Vec<String> = rust_files()
        .iter()
        .filter(|(_, text)| lines(text) > LONG)
        .map(|(name, text)| format!("{name} has {} lines; a file may have {LONG}", lines(text)))
        .collect();
    none_of("files too long", &findings);
}

#[test]
fn no_room_has_an_empty_name() {
    let findings: Vec<String> = read_sources()
        .iter()
        .filter(|s| s.module.iter().any(|m| EMPTY_NAMES.contains(&m.as_str())))
        .map(|s| s.name.clone())
        .collect();
    none_of("these names say nothing", &findings);
}

#[test]
fn no_file_names_a_path_of_somebodys_machine() {
    let mut homes = vec![
        "/home/".to_owned(),
        "/Users/".to_owned(),
        "/root/".to_owned(),
    ];
    homes.push(root().display().to_string());
    let mut findings = Vec::new();
    for (name, text) in text_files() {
        // This very file says what it looks for.
        if name == "tests/it/tidy.rs" {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let named = homes.iter().find(|home| {
                line.find(home.as_str()).is_some_and(|at| {
                    // `$HOME/root/x` is no such path, and `/home/ann` in an example is nobody's.
                    let before = line[..at].chars().next_back();
                    let after = &line[at + home.len()..];
                    !before.is_some_and(|c| c.is_alphanumeric() || "~}_.".contains(c))
                        && !["ann", "pat", "me", "somebody", "x", "u"]
                            .iter()
                            .any(|nobody| after.starts_with(nobody))
                })
            });
            if let Some(home) = named {
                findings.push(format!("{name}:{}: {home}", index + 1));
            }
        }
    }
    none_of("paths of a development machine", &findings);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
