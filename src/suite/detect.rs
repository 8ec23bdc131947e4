//! Finding the test command from what a tree says, when nobody gave one.

use crate::ground::project::Project;
use std::fmt;

/// A test command that a project's files suggest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The command, for `sh -c`.
    pub command: String,
    /// What suggests it.
    pub why: String,
}

/// What detection found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detection {
    /// Exactly one command.
    One(Candidate),
    /// Nothing that it knows.
    None,
    /// Equal candidates: a person has to decide.
    Several(Vec<Candidate>),
}

impl Detection {
    /// The command, when there is exactly one.
    pub fn command(&self) -> Option<&str> {
        match self {
            Detection::One(candidate) => Some(&candidate.command),
            Detection::None | Detection::Several(_) => None,
        }
    }
}

impl fmt::Display for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Detection::One(one) => write!(f, "{} ({})", one.command, one.why),
            Detection::None => f.write_str(
                "no test command was found (looked for Cargo.toml, a test script in package.json, pytest and go.mod \
                 at the root): give one with --test-cmd, or tests.command in the config",
            ),
            Detection::Several(list) => {
                f.write_str("more than one test command is possible:")?;
                for candidate in list {
                    write!(f, "\n  {}  ({})", candidate.command, candidate.why)?;
                }
                f.write_str("\nchoose one with --test-cmd, or tests.command in the config")
            }
        }
    }
}

/// Every ecosystem that is looked for, in the order in which candidates are named.
const LOOKS: &[fn(&Project) -> Vec<Candidate>] = &[cargo, node, pytest, go];

/// Finds the test command of a project.
pub fn detect(project: &Project) -> Detection {
    let mut found: Vec<Candidate> = LOOKS.iter().flat_map(|look| look(project)).collect();
    match found.len() {
        0 => Detection::None,
        1 => Detection::One(found.remove(0)),
        _ => Detection::Several(found),
    }
}

fn candidate(command: impl Into<String>, why: impl Into<String>) -> Candidate {
    Candidate {
        command: command.into(),
        why: why.into(),
    }
}

fn cargo(project: &Project) -> Vec<Candidate> {
    if !project.has("Cargo.toml") {
        return Vec::new();
    }
    let workspace = project
        .toml("Cargo.toml")
        .is_some_and(|manifest| manifest.contains_key("workspace"));
    // Without the flag a run ends at the first failing binary, and the tests of the others are not reached.
    vec![if workspace {
        candidate(
            "cargo test --workspace --no-fail-fast",
            "Cargo.toml has a workspace",
        )
    } else {
        candidate("cargo test --no-fail-fast", "Cargo.toml")
    }]
}

fn node(project: &Project) -> Vec<Candidate> {
    let script = project.package_json().and_then(|json| {
        let script = json.get("scripts")?.get("test")?.as_str()?.trim();
        // What `npm init` writes.
        let real = !script.is_empty() && !script.contains("no test specified");
        real.then_some(())
    });
    if script.is_none() {
        return Vec::new();
    }
    let managers = project.node_managers();
    managers
        .iter()
        .map(|manager| {
            let name = manager.as_str();
            // `bun test` is bun's own runner, not the script.
            let run = if name == "bun" { "bun run" } else { name };
            let lock = manager.lock_files().iter().find(|lock| project.has(lock));
            let why = match lock {
                Some(lock) => format!("the test script in package.json, and {lock}"),
                None => "the test script in package.json".to_owned(),
            };
            candidate(format!("{run} test"), why)
        })
        .collect()
}

fn pytest(project: &Project) -> Vec<Candidate> {
    let Some(why) = pytest_sign(project) else {
        return Vec::new();
    };
    let command = if project.has("uv.lock") {
        "uv run --frozen pytest"
    } else if project.has("poetry.lock") {
        "poetry run pytest"
    } else {
        // As a module, so that the root is on the search path; python3 is there where python may not be.
        "python3 -m pytest"
    };
    vec![candidate(command, why)]
}

fn pytest_sign(project: &Project) -> Option<String> {
    let section = |file: &str, name: &str| {
        let line = format!("[{name}]");
        project
            .text(file)
            .is_some_and(|text| text.lines().any(|l| l.trim_end() == line))
    };
    if project.has("pytest.ini") {
        return Some("pytest.ini".to_owned());
    }
    let tool = project.toml("pyproject.toml").is_some_and(|manifest| {
        let tool = manifest.get("tool").and_then(toml::Value::as_table);
        tool.is_some_and(|tool| tool.contains_key("pytest"))
    });
    if tool {
        return Some("[tool.pytest] in pyproject.toml".to_owned());
    }
    if section("setup.cfg", "tool:pytest") {
        return Some("[tool:pytest] in setup.cfg".to_owned());
    }
    if section("tox.ini", "pytest") {
        return Some("[pytest] in tox.ini".to_owned());
    }
    // Test files alone may belong to anything (fixtures of another project's tests): only where pytest looks.
    let path = project.paths().find(|path| is_python_test(path))?;
    Some(String::from_utf8_lossy(path).into_owned())
}

/// Whether pytest collects a file by default, at the root or below `tests` or `test`, or in a package's `tests`.
fn is_python_test(path: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(path) else {
        return false;
    };
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some(stem) = name.strip_suffix(".py") else {
        return false;
    };
    let collected = name == "conftest.py" || stem.starts_with("test_") || stem.ends_with("_test");
    let top = folder.split('/').next().unwrap_or_default();
    let hidden = folder.split('/').any(|part| part.starts_with('.'));
    let data = ["fixtures", "data", "testdata", "node_modules"];
    collected
        && !hidden
        && !folder.split('/').any(|part| data.contains(&part))
        && (folder.is_empty()
            || matches!(top, "tests" | "test" | "src")
            || folder.split('/').count() <= 2)
}

fn go(project: &Project) -> Vec<Candidate> {
    if project.has("go.mod") && !project.has("go.work") {
        return vec![candidate("go test ./...", "go.mod")];
    }
    if project.has("go.work") {
        // `./...` covers the root's module alone.
        return vec![candidate(
            "go test $(go list -m -f '{{.Dir}}/...')",
            "go.work",
        )];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(files: &[(&str, &str)]) -> Vec<String> {
        match detect(&Project::of_files(files.iter().copied())) {
            Detection::One(one) => vec![one.command],
            Detection::None => vec![],
            Detection::Several(list) => list.into_iter().map(|c| c.command).collect(),
        }
    }

    #[test]
    fn each_ecosystem_has_its_command() {
        let script = r#"{"scripts":{"test":"vitest"}}"#;
        let stub = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
        for (files, expected) in [
            (&[][..], &[][..]),
            (&[("README.md", "")], &[]),
            (
                &[("Cargo.toml", "[package]\nname='a'")],
                &["cargo test --no-fail-fast"],
            ),
            (
                &[("Cargo.toml", "[workspace]\nmembers=['a']")],
                &["cargo test --workspace --no-fail-fast"],
            ),
            (
                &[("Cargo.toml", "this is not toml")],
                &["cargo test --no-fail-fast"],
            ),
            (&[("crates/a/Cargo.toml", "")], &[]),
            (&[("package.json", script)], &["npm test"]),
            (&[("package.json", stub)], &[]),
            (&[("package.json", "{}")], &[]),
            (&[("package.json", "{")], &[]),
            (&[("package.json", r#"{"scripts":{"test":"  "}}"#)], &[]),
            (&[("package.json", r#"{"scripts":{"test":7}}"#)], &[]),
            (
                &[("package.json", script), ("pnpm-lock.yaml", "")],
                &["pnpm test"],
            ),
            (
                &[("package.json", script), ("yarn.lock", "")],
                &["yarn test"],
            ),
            (
                &[("package.json", script), ("bun.lockb", "")],
                &["bun run test"],
            ),
            (
                &[
                    ("package.json", script),
                    ("yarn.lock", ""),
                    ("package-lock.json", ""),
                ],
                &["npm test", "yarn test"],
            ),
            (&[("pytest.ini", "[pytest]")], &["python3 -m pytest"]),
            (
                &[("pyproject.toml", "[tool.pytest.ini_options]\n")],
                &["python3 -m pytest"],
            ),
            (&[("pyproject.toml", "[tool.black]\n")], &[]),
            (
                &[("setup.cfg", "[tool:pytest]\naddopts=-q\n")],
                &["python3 -m pytest"],
            ),
            (&[("tox.ini", "[tox]\n")], &[]),
            (&[("tests/test_a.py", "")], &["python3 -m pytest"]),
            (&[("pkg/a_test.py", "")], &["python3 -m pytest"]),
            (&[("tests/fixtures/p/test_a.py", "")], &[]),
            (&[("src/a.py", "")], &[]),
            (
                &[("tests/test_a.py", ""), ("uv.lock", "")],
                &["uv run --frozen pytest"],
            ),
            (
                &[("tests/test_a.py", ""), ("poetry.lock", "")],
                &["poetry run pytest"],
            ),
            (&[("go.mod", "module a")], &["go test ./..."]),
            (
                &[("go.mod", "module a"), ("go.work", "use .")],
                &["go test $(go list -m -f '{{.Dir}}/...')"],
            ),
            (
                &[("Cargo.toml", ""), ("package.json", script)],
                &["cargo test --no-fail-fast", "npm test"],
            ),
            (
                &[("Cargo.toml", ""), ("package.json", stub)],
                &["cargo test --no-fail-fast"],
            ),
        ] {
            assert_eq!(commands(files), expected, "{files:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_candidates_and_the_flag() {
        let files = [("Cargo.toml", ""), ("go.mod", "")];
        let text = detect(&Project::of_files(files)).to_string();
        for part in ["cargo test --no-fail-fast", "go test ./...", "--test-cmd"] {
            assert!(text.contains(part), "{text}");
        }
        let none = detect(&Project::of_files([])).to_string();
        assert!(none.contains("--test-cmd"), "{none}");
    }
}
