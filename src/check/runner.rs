//! Test lines in manifests: the tables and keys by which a runner is chosen, configured or switched off.
//!
//! A manifest is more than runner configuration, so that green may change the rest of it. What counts:
//! package.json: the scripts `test`, `test:*`, `pretest`, `posttest`, those that they run, and the tables of runners;
//! Cargo.toml: `[[test]]`, what `[lib]`, `[[bin]]`, `[[bench]]` and `[[example]]` say of tests and paths, `autotests`,
//! `[profile.test]`, the members of a workspace; pyproject.toml: the tables of pytest, tox, hatch environments, pdm and
//! poe scripts; setup.cfg: `tool:pytest` and `testenv`; composer.json: the scripts of package.json's kind; pom.xml,
//! Gradle, MSBuild and mix.exs, which no parser here reads: the lines that speak of tests; vite.config: all of it when
//! it speaks of tests.

use crate::check::tree;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What counts as test lines in one manifest, by a name for each, in a form that layout does not change.
pub type Parts = BTreeMap<String, String>;

enum Manifest {
    Json,
    Cargo,
    PyProject,
    Ini,
    Lines,
    Whole,
}

fn manifest(path: &[u8]) -> Option<Manifest> {
    let name = String::from_utf8_lossy(tree::name_of(path));
    Some(match name.as_ref() {
        "package.json" | "composer.json" => Manifest::Json,
        "Cargo.toml" => Manifest::Cargo,
        "pyproject.toml" => Manifest::PyProject,
        "setup.cfg" => Manifest::Ini,
        "pom.xml"
        | "build.gradle"
        | "build.gradle.kts"
        | "mix.exs"
        | "Directory.Build.props"
        | "Directory.Build.targets" => Manifest::Lines,
        _ if name.ends_with(".csproj") || name.ends_with(".fsproj") => Manifest::Lines,
        _ if name.starts_with("vite.config.") => Manifest::Whole,
        _ => return None,
    })
}

/// Whether a path is a manifest that may hold test lines.
pub fn is_manifest(path: &[u8]) -> bool {
    manifest(path).is_some()
}

/// The test lines of a manifest; none when it holds none, is no manifest or cannot be read (a manifest that its tool
/// cannot read fails the suite).
pub fn parts(path: &[u8], content: &[u8]) -> Parts {
    let text = String::from_utf8_lossy(content);
    match manifest(path) {
        Some(Manifest::Json) => json(&text).map(|v| json_parts(&v)).unwrap_or_default(),
        Some(Manifest::Cargo) => toml(&text).map(|t| cargo_parts(&t)).unwrap_or_default(),
        Some(Manifest::PyProject) => toml(&text).map(|t| python_parts(&t)).unwrap_or_default(),
        Some(Manifest::Ini) => ini_parts(&text),
        Some(Manifest::Lines) => line_parts(&text),
        Some(Manifest::Whole) if text.contains("test") => {
            Parts::from([("all of it".to_owned(), text.into_owned())])
        }
        Some(Manifest::Whole) | None => Parts::new(),
    }
}

/// The shell commands among a manifest's test lines: the scripts, whose words may name files.
pub fn commands(path: &[u8], content: &[u8]) -> Vec<String> {
    match manifest(path) {
        Some(Manifest::Json) => parts(path, content)
            .into_iter()
            .filter(|(name, _)| name.starts_with("scripts."))
            .filter_map(|(_, text)| serde_json::from_str(&text).ok())
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether a part that was not there before may appear while tests are protected: a new `[[test]]` target that is
/// only named, a new member of a workspace. Anything else may change how the tests before it are run.
pub fn may_appear(name: &str, value: &str) -> bool {
    name.starts_with("workspace.members.")
        || name.starts_with("[[test]] ")
            && toml(value).is_some_and(|t| t.keys().all(|k| matches!(k.as_str(), "name" | "path")))
}

/// The manifest with its test lines as in `base`; None when they are the same already. Layout may be lost: the
/// result is for a suite to run on, not for a person. A manifest that is read by lines is put back as a whole.
pub fn put_back(path: &[u8], base: &[u8], candidate: &[u8]) -> Option<Vec<u8>> {
    if parts(path, base) == parts(path, candidate) {
        return None;
    }
    let (old, new) = (
        String::from_utf8_lossy(base),
        String::from_utf8_lossy(candidate),
    );
    let mended = match manifest(path)? {
        Manifest::Json => json(&old)
            .zip(json(&new))
            .and_then(|(old, new)| serde_json::to_vec_pretty(&json_put_back(&old, new)).ok()),
        Manifest::Cargo => toml(&old)
            .zip(toml(&new))
            .and_then(|(old, new)| toml_put_back(&old, new, CARGO_KEYS)),
        Manifest::PyProject => toml(&old)
            .zip(toml(&new))
            .and_then(|(old, new)| toml_put_back(&old, new, PYTHON_KEYS)),
        Manifest::Ini | Manifest::Lines | Manifest::Whole => None,
    };
    Some(
        mended
            .filter(|bytes| parts(path, bytes) == parts(path, base))
            .unwrap_or_else(|| base.to_vec()),
    )
}

/// What of a manifest is not test lines, in a form that layout does not change.
pub fn others(path: &[u8], content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let none = || text.clone().into_owned();
    match manifest(path) {
        Some(Manifest::Json) => json(&text).map_or_else(none, |v| {
            json_put_back(&Value::Object(serde_json::Map::new()), v).to_string()
        }),
        Some(Manifest::Cargo) => toml(&text)
            .and_then(|t| toml_put_back(&toml::Table::new(), t, CARGO_KEYS))
            .map_or_else(none, |b| String::from_utf8_lossy(&b).into_owned()),
        Some(Manifest::PyProject) => toml(&text)
            .and_then(|t| toml_put_back(&toml::Table::new(), t, PYTHON_KEYS))
            .map_or_else(none, |b| String::from_utf8_lossy(&b).into_owned()),
        Some(Manifest::Ini) => sections(&text)
            .filter(|(name, _)| !is_test_section(name))
            .map(|(_, lines)| lines)
            .collect(),
        Some(Manifest::Lines) => text.lines().filter(|l| !speaks_of_tests(l)).collect(),
        Some(Manifest::Whole) if text.contains("test") => String::new(),
        Some(Manifest::Whole) | None => none(),
    }
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
}

fn toml(text: &str) -> Option<toml::Table> {
    text.trim_start_matches('\u{feff}').parse().ok()
}

/// Tables of package.json that configure runners.
const JSON_TABLES: &[&str] = &[
    "jest", "vitest", "mocha", "ava", "jasmine", "tap", "cypress",
];

/// The scripts that are test lines: the test script with its hooks, and every script that one of these runs.
fn test_scripts(manifest: &Value) -> BTreeSet<String> {
    let Some(scripts) = manifest.get("scripts").and_then(Value::as_object) else {
        return BTreeSet::new();
    };
    let mut names: BTreeSet<String> = scripts
        .keys()
        .filter(|name| {
            matches!(name.as_str(), "test" | "pretest" | "posttest") || name.starts_with("test:")
        })
        .cloned()
        .collect();
    let mut open: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let text = scripts
            .get(&name)
            .map(ToString::to_string)
            .unwrap_or_default();
        let runs_scripts = [
            "run",
            "run-s",
            "run-p",
            "yarn",
            "pnpm",
            "bun",
            "npm-run-all",
            "@",
        ]
        .iter()
        .any(|word| text.contains(word));
        for word in text.split(|c: char| c.is_whitespace() || "\"';&|@,[]".contains(c)) {
            if runs_scripts && scripts.contains_key(word) && names.insert(word.to_owned()) {
                open.push(word.to_owned());
            }
        }
    }
    names
}

fn json_parts(manifest: &Value) -> Parts {
    let mut parts = Parts::new();
    for name in test_scripts(manifest) {
        if let Some(script) = manifest.get("scripts").and_then(|s| s.get(&name)) {
            parts.insert(format!("scripts.{name}"), script.to_string());
        }
    }
    for table in JSON_TABLES {
        if let Some(value) = manifest.get(table) {
            parts.insert((*table).to_owned(), value.to_string());
        }
    }
    parts
}

fn json_put_back(base: &Value, mut candidate: Value) -> Value {
    let scripts: BTreeSet<String> = test_scripts(base)
        .into_iter()
        .chain(test_scripts(&candidate))
        .collect();
    if let Some(top) = candidate.as_object_mut() {
        for table in JSON_TABLES {
            set(top, table, base.get(table));
        }
        if !scripts.is_empty() {
            let slot = top
                .entry("scripts")
                .or_insert_with(|| Value::Object(serde_json::Map::new()));
            if let Some(slot) = slot.as_object_mut() {
                for name in &scripts {
                    set(slot, name, base.get("scripts").and_then(|s| s.get(name)));
                }
            }
        }
    }
    candidate
}

fn set(map: &mut serde_json::Map<String, Value>, key: &str, value: Option<&Value>) {
    match value {
        Some(value) => map.insert(key.to_owned(), value.clone()),
        None => map.shift_remove(key),
    };
}

/// Keys of Cargo.toml that are put back as they were.
const CARGO_KEYS: &[&[&str]] = &[
    &["test"],
    &["lib"],
    &["bin"],
    &["bench"],
    &["example"],
    &["package", "autotests"],
    &["package", "autobins"],
    &["profile", "test"],
    &["workspace", "members"],
    &["workspace", "exclude"],
    &["workspace", "default-members"],
];

fn cargo_parts(manifest: &toml::Table) -> Parts {
    let mut parts = Parts::new();
    let about_tests = |target: &toml::Table| -> toml::Table {
        let keys = ["test", "doctest", "harness", "path"];
        let mut told = target.clone();
        told.retain(|key, _| keys.contains(&key));
        told
    };
    if let Some(lib) = manifest.get("lib").and_then(toml::Value::as_table) {
        let told = about_tests(lib);
        if !told.is_empty() {
            parts.insert("[lib]".to_owned(), told.to_string());
        }
    }
    for kind in ["test", "bin", "bench", "example"] {
        let targets = manifest.get(kind).and_then(toml::Value::as_array);
        for target in targets
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_table)
        {
            let name = target
                .get("name")
                .map(ToString::to_string)
                .unwrap_or_default();
            let told = if kind == "test" {
                target.clone()
            } else {
                about_tests(target)
            };
            if !told.is_empty() {
                parts.insert(format!("[[{kind}]] {name}"), told.to_string());
            }
        }
    }
    for (key, list) in [
        ("members", true),
        ("exclude", false),
        ("default-members", false),
    ] {
        let Some(value) = dig(manifest, &["workspace", key]) else {
            continue;
        };
        match value.as_array() {
            Some(members) if list => {
                for member in members {
                    parts.insert(format!("workspace.members.{member}"), "listed".to_owned());
                }
            }
            _ => {
                parts.insert(format!("workspace.{key}"), value.to_string());
            }
        }
    }
    for path in [
        ["package", "autotests"],
        ["package", "autobins"],
        ["profile", "test"],
    ] {
        if let Some(value) = dig(manifest, &path) {
            parts.insert(path.join("."), value.to_string());
        }
    }
    parts
}

/// Tables of pyproject.toml that configure runners.
const PYTHON_KEYS: &[&[&str]] = &[
    &["tool", "pytest"],
    &["tool", "tox"],
    &["tool", "nox"],
    &["tool", "hatch", "envs"],
    &["tool", "pdm", "scripts"],
    &["tool", "poe"],
    &["tool", "taskipy"],
];

fn python_parts(manifest: &toml::Table) -> Parts {
    PYTHON_KEYS
        .iter()
        .filter_map(|path| Some((path.join("."), dig(manifest, path)?.to_string())))
        .collect()
}

fn dig<'t>(table: &'t toml::Table, path: &[&str]) -> Option<&'t toml::Value> {
    let (last, folders) = path.split_last()?;
    let mut here = table;
    for key in folders {
        here = here.get(*key)?.as_table()?;
    }
    here.get(*last)
}

fn toml_put_back(
    base: &toml::Table,
    mut candidate: toml::Table,
    keys: &[&[&str]],
) -> Option<Vec<u8>> {
    'keys: for path in keys {
        let value = dig(base, path).cloned();
        let (last, folders) = path.split_last()?;
        let mut here = &mut candidate;
        for key in folders {
            if value.is_none() && !here.contains_key(*key) {
                continue 'keys;
            }
            here = here
                .entry((*key).to_owned())
                .or_insert_with(|| toml::Value::Table(toml::Table::new()))
                .as_table_mut()?;
        }
        match value {
            Some(value) => here.insert((*last).to_owned(), value),
            None => here.remove(*last),
        };
    }
    toml::to_string(&candidate).ok().map(String::into_bytes)
}

/// The sections of an ini file, each with its header line.
fn sections(text: &str) -> impl Iterator<Item = (String, String)> {
    let mut found: Vec<(String, String)> = vec![(String::new(), String::new())];
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
            found.push((name.trim().to_owned(), String::new()));
        }
        if let Some((_, lines)) = found.last_mut() {
            lines.push_str(line.trim_end());
            lines.push('\n');
        }
    }
    found.into_iter()
}

fn is_test_section(name: &str) -> bool {
    matches!(name, "tool:pytest" | "pytest" | "nosetests" | "aliases")
        || name.starts_with("testenv")
        || name.starts_with("tox")
}

fn ini_parts(text: &str) -> Parts {
    sections(text)
        .filter(|(name, _)| is_test_section(name))
        .map(|(name, lines)| (format!("[{name}]"), lines.trim_end().to_owned()))
        .collect()
}

/// Whether a line of a manifest that is not parsed speaks of running tests; dependencies of tests do not.
fn speaks_of_tests(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let dependency = [
        "testimplementation",
        "testruntimeonly",
        "testcompileonly",
        "only: :test",
    ]
    .iter()
    .any(|word| line.contains(word))
        || line.contains("<scope>test</scope>")
        || line.contains("<packagereference");
    !dependency
        && ["test", "ignorefailures", "usejunit", "surefire", "failsafe"]
            .iter()
            .any(|word| line.contains(word))
}

fn line_parts(text: &str) -> Parts {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| speaks_of_tests(l))
        .collect();
    if lines.is_empty() {
        return Parts::new();
    }
    Parts::from([("lines that speak of tests".to_owned(), lines.join("\n"))])
}
