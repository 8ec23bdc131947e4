//! Which paths of a tree are test files: by the usual folders and names, by the test command, by `tests.paths`.
//!
//! Rust sources that hold tests beside code are not test files; `rust_items` finds the tests in them.
//! Manifests (Cargo.toml, package.json …) never are: `check::runner` knows which of their tables are test lines.

use anyhow::Context;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Why a path is a test file. What is new is judged by it: a new test file is welcome, a new runner configuration
/// changes how the tests before it are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestKind {
    /// Its folder or its name says so.
    Tests,
    /// Data that tests read: fixtures, snapshots, test data.
    Fixture,
    /// Configuration of a test runner, which may decide what is run at all.
    Runner,
    /// The test command names it.
    Command,
    /// A glob of `tests.paths` matches it.
    Configured,
    /// A Rust module file that `#[cfg(test)] mod x;` declares.
    Declared,
}

/// The rules by which a path is a test file, for one repository and test command.
#[derive(Debug, Clone)]
pub struct TestPaths {
    configured: GlobSet,
    excluded: GlobSet,
    command: BTreeSet<Vec<u8>>,
}

/// Folders whose whole content is tests.
const TEST_FOLDERS: &[&str] = &[
    "tests",
    "test",
    "__tests__",
    "__test__",
    "__mocks__",
    "e2e",
    "androidTest",
    "integrationTest",
];

/// Folders of what tests read.
const FIXTURE_FOLDERS: &[&str] = &[
    "testdata",
    "test-data",
    "test_data",
    "fixtures",
    "__fixtures__",
    "__snapshots__",
];

/// Files that configure a runner, by their whole name.
const RUNNER_NAMES: &[&str] = &[
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "noxfile.py",
    "bunfig.toml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".rspec",
    "phpunit.xml",
    "phpunit.xml.dist",
    "phpunit.dist.xml",
    "xunit.runner.json",
    "junit-platform.properties",
    "testng.xml",
    "jasmine.json",
    "cypress.json",
    "codeception.yml",
    "behat.yml",
    "insta.yaml",
    ".insta.yaml",
    // Modules that Python imports before, or instead of, the runner.
    "sitecustomize.py",
    "usercustomize.py",
    "pytest.py",
];

/// Files that configure a runner, by how their name begins (`jest.config.ts`, `.mocharc.yml`).
const RUNNER_PREFIXES: &[&str] = &[
    "jest.config.",
    "jest.setup.",
    "jest-preset.",
    "vitest.config.",
    "vitest.workspace.",
    "vitest.setup.",
    "setupTests.",
    ".mocharc",
    "karma.conf.",
    "ava.config.",
    "playwright.config.",
    "cypress.config.",
    "wdio.conf.",
];

/// Files that configure a runner, by the end of their path.
const RUNNER_PATHS: &[&str] = &[
    ".cargo/config",
    ".cargo/config.toml",
    ".config/nextest.toml",
    ".config/insta.yaml",
    ".mvn/maven.config",
    ".mvn/jvm.config",
    ".mvn/extensions.xml",
    "pytest/__init__.py",
];

/// Manifests: named by many a command (`--manifest-path`), but more than test configuration.
const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "mix.exs",
    "Gemfile",
];

impl TestPaths {
    /// The default rules, with the globs of `tests.paths` and the files that `command` names.
    ///
    /// A glob that begins with `!` takes what it matches out again (a `src/testing/` that is code), runner
    /// configuration and files that the command names aside.
    ///
    /// # Errors
    /// A glob that cannot be read, named.
    pub fn new(globs: &[String], command: &str) -> anyhow::Result<TestPaths> {
        let mut configured = GlobSetBuilder::new();
        let mut excluded = GlobSetBuilder::new();
        for glob in globs {
            let (set, pattern) = match glob.strip_prefix('!') {
                Some(rest) => (&mut excluded, rest),
                None => (&mut configured, glob.as_str()),
            };
            set.add(
                GlobBuilder::new(pattern)
                    .literal_separator(true)
                    .build()
                    .with_context(|| {
                        format!("tests.paths: `{glob}` is not a glob; mend it in .veri.toml")
                    })?,
            );
        }
        Ok(TestPaths {
            configured: configured.build().context("tests.paths: too many globs")?,
            excluded: excluded.build().context("tests.paths: too many globs")?,
            command: named_by(command, b""),
        })
    }

    /// Whether the path (from the root of the tree, `/` between folders) is a test file, and why.
    pub fn kind(&self, path: &[u8]) -> Option<TestKind> {
        if self.command.contains(path) {
            return Some(TestKind::Command);
        }
        let by_rule = default_kind(path);
        if by_rule == Some(TestKind::Runner) {
            return by_rule;
        }
        let as_path = Path::new(OsStr::from_bytes(path));
        if self.excluded.is_match(as_path) {
            return None;
        }
        by_rule.or_else(|| {
            self.configured
                .is_match(as_path)
                .then_some(TestKind::Configured)
        })
    }

    /// The same rules, with the files that another command names, too, when it runs in `folder` (a package's test
    /// script; `folder` without a trailing `/`, empty for the root).
    pub fn with_command(mut self, command: &str, folder: &[u8]) -> TestPaths {
        self.command.extend(named_by(command, folder));
        self
    }
}

/// The file name of a path.
fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// What the default rules say, command and configuration aside.
pub fn default_kind(path: &[u8]) -> Option<TestKind> {
    let path = String::from_utf8_lossy(path);
    let (folders, name) = match path.rsplit_once('/') {
        Some((folders, name)) => (folders, name),
        None => ("", path.as_ref()),
    };
    let folders: Vec<&str> = folders.split('/').filter(|f| !f.is_empty()).collect();
    if folders.iter().any(|f| FIXTURE_FOLDERS.contains(f)) || is_snapshot(name) {
        return Some(TestKind::Fixture);
    }
    if RUNNER_NAMES.contains(&name)
        || RUNNER_PREFIXES.iter().any(|p| name.starts_with(p))
        || name.ends_with(".runsettings")
        || RUNNER_PATHS
            .iter()
            .any(|p| path == *p || path.ends_with(&format!("/{p}")))
    {
        return Some(TestKind::Runner);
    }
    let in_folder = folders.iter().any(|f| {
        TEST_FOLDERS.contains(f)
            || [".Test", ".Tests", ".UnitTests", ".IntegrationTests"]
                .iter()
                .any(|end| f.ends_with(end))
    });
    // A folder `spec` holds a specification as often as specs: documents in it are not tests.
    let in_specs = folders.iter().any(|f| matches!(*f, "spec" | "specs"))
        && !matches!(
            extension(name),
            "md" | "adoc" | "rst" | "txt" | "html" | "yaml" | "yml" | "json" | "proto"
        );
    (in_folder || in_specs || is_test_name(name)).then_some(TestKind::Tests)
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ext)| ext)
}

fn is_snapshot(name: &str) -> bool {
    matches!(extension(name), "snap" | "approved" | "golden")
        || name.contains(".approved.")
        || name.contains(".verified.")
}

/// File names that the runners of each language collect.
fn is_test_name(name: &str) -> bool {
    let Some((stem, ext)) = name.rsplit_once('.') else {
        return false;
    };
    match ext {
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => {
            stem == "test"
                || stem.starts_with("test-")
                || [".test", ".spec", "-test", "_test", "-spec", "_spec", ".cy"]
                    .iter()
                    .any(|end| stem.ends_with(end))
        }
        "py" => {
            stem.starts_with("test_") || stem.ends_with("_test") || matches!(stem, "tests" | "test")
        }
        "go" | "exs" => stem.ends_with("_test"),
        "java" | "kt" | "kts" | "groovy" | "scala" => {
            ["Test", "Tests", "TestCase", "IT", "Spec"]
                .iter()
                .any(|end| stem.ends_with(end))
                || stem
                    .strip_prefix("Test")
                    .is_some_and(|rest| rest.starts_with(char::is_uppercase))
        }
        "rb" => stem.ends_with("_spec") || stem.ends_with("_test") || stem.starts_with("test_"),
        "php" => stem.ends_with("Test") || stem.ends_with("Cest"),
        "cs" | "fs" => stem.ends_with("Test") || stem.ends_with("Tests"),
        "phpt" | "bats" => true,
        _ => false,
    }
}

/// The paths that a shell command may name: every word of it, from the folder in which that word is read. Words that
/// are no paths do no harm: no file of the tree bears their name.
fn named_by(command: &str, folder: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut named = BTreeSet::new();
    let mut here: Vec<u8> = folder.to_vec();
    let mut before = "";
    let words = command.split(|c: char| c.is_whitespace() || ";|&()<>\"'`={}$,".contains(c));
    for word in words.filter(|w| !w.is_empty()) {
        if let Some(path) = join(&here, word) {
            if matches!(before, "cd" | "-C" | "--directory" | "--prefix" | "--cwd") {
                here.clone_from(&path);
            } else if !MANIFESTS.iter().any(|m| m.as_bytes() == name_of(&path)) {
                named.insert(path);
            }
        }
        before = word;
    }
    // Programs whose targets stand in a file that the command does not name.
    for (program, files) in [
        ("make", &["Makefile", "makefile", "GNUmakefile"][..]),
        ("gmake", &["Makefile", "makefile", "GNUmakefile"]),
        ("just", &["justfile", "Justfile", ".justfile"]),
        ("task", &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml"]),
        ("rake", &["Rakefile"]),
    ] {
        if command.split_whitespace().any(|w| w == program) {
            named.extend(files.iter().filter_map(|file| join(&here, file)));
        }
    }
    named
}

/// `word` as a path from the root, when read in `folder`; None when it leads out of the tree.
fn join(folder: &[u8], word: &str) -> Option<Vec<u8>> {
    if word.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&[u8]> = folder
        .split(|b| *b == b'/')
        .filter(|p| !p.is_empty())
        .collect();
    for part in word.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part.as_bytes()),
        }
    }
    Some(parts.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(path: &str, command: &str) -> Option<TestKind> {
        TestPaths::new(&[], command).unwrap().kind(path.as_bytes())
    }

    #[test]
    fn the_usual_places_of_each_language() {
        use TestKind::{Fixture, Runner, Tests};
        for (path, want) in [
            ("tests/limits.rs", Some(Tests)),
            ("crates/a/tests/x/mod.rs", Some(Tests)),
            ("src/lib.rs", None),
            ("src/tests.rs", None),
            ("src/sum.test.ts", Some(Tests)),
            ("src/__tests__/sum.js", Some(Tests)),
            ("src/latest.js", None),
            ("src/contest.ts", None),
            ("test.mjs", Some(Tests)),
            ("pkg/test_bank.py", Some(Tests)),
            ("pkg/bank_test.py", Some(Tests)),
            ("pkg/attest.py", None),
            ("bank_test.go", Some(Tests)),
            ("testdata/in.txt", Some(Fixture)),
            ("src/test/java/BankTest.java", Some(Tests)),
            ("app/TestBank.kt", Some(Tests)),
            ("app/Testimony.kt", None),
            ("spec/bank_spec.rb", Some(Tests)),
            ("spec/openapi.yaml", None),
            ("src/BankTest.php", Some(Tests)),
            ("Bank.Tests/Limits.cs", Some(Tests)),
            ("apps/web/page_test.exs", Some(Tests)),
            ("src/snapshots/a.snap", Some(Fixture)),
            ("src/snapshots/mod.rs", None),
            ("tests/conftest.py", Some(Runner)),
            ("tests/fixtures/project/pytest.ini", Some(Fixture)),
            ("jest.config.ts", Some(Runner)),
            (".cargo/config.toml", Some(Runner)),
            ("a/.cargo/config", Some(Runner)),
            ("package.json", None),
            ("-rf", None),
        ] {
            assert_eq!(kind(path, "cargo test"), want, "{path}");
        }
    }

    #[test]
    fn files_that_the_command_names() {
        for (command, path, named) in [
            ("sh run-tests.sh", "run-tests.sh", true),
            ("./test.sh --all", "test.sh", true),
            ("python check/run.py", "check/run.py", true),
            ("cd sub && sh run.sh", "sub/run.sh", true),
            ("cd sub && sh run.sh", "run.sh", false),
            ("make -C sub check", "sub/Makefile", true),
            ("make check", "Makefile", true),
            ("FOO=1 sh 'a.sh'", "a.sh", true),
            ("sh ../a.sh", "a.sh", false),
            (
                "cargo test --manifest-path c/Cargo.toml",
                "c/Cargo.toml",
                false,
            ),
            ("npm test", "Makefile", false),
        ] {
            let want = named.then_some(TestKind::Command);
            assert_eq!(kind(path, command), want, "{command}: {path}");
        }
    }

    #[test]
    fn configured_globs_add_and_take_out() {
        let globs = ["checks/**".to_owned(), "!src/test/**".to_owned()];
        let paths = TestPaths::new(&globs, "").unwrap();
        assert_eq!(paths.kind(b"checks/a.txt"), Some(TestKind::Configured));
        assert_eq!(paths.kind(b"src/test/bed.rs"), None);
        assert_eq!(paths.kind(b"src/test/conftest.py"), Some(TestKind::Runner));
        assert_eq!(paths.kind(b"checks/\xff\xfe"), Some(TestKind::Configured));
        let broken = TestPaths::new(&["a[".to_owned()], "").unwrap_err();
        assert!(format!("{broken:#}").contains("a["), "{broken:#}");
    }
}
