//! Dependency folders of a ground's own: which commands make them, and when they are run again.

use super::command::{Ended, Launch, Launcher, shell};
use super::entries::{Entries, base_name};
use super::files;
use super::hold::Ground;
use super::path::place;
use super::project::{NodeManager, Project};
use super::record::SetupDone;
use super::survey::{Survey, survey};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Files whose change means that dependencies may have changed, wherever they stand in the tree.
const DEPENDENCY_FILES: &[&str] = &[
    "Cargo.lock",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    ".python-version",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
    "mix.lock",
];

/// What a setup is asked to do.
#[derive(Debug, Clone)]
pub struct SetupAsk<'a> {
    /// The commands, each given to `sh -c` in the ground: from the config, or [`setup_for`].
    pub commands: &'a [String],
    /// The caller's declared environment.
    pub env: &'a [(OsString, OsString)],
    /// The deadline of each command.
    pub timeout: Duration,
}

/// How a setup ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setup {
    /// Nothing to do: no commands, or the same dependencies as before.
    Current,
    /// The commands were run and succeeded.
    Done,
    /// A command failed.
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        ended: Ended,
        /// Where both its streams are kept.
        log: PathBuf,
    },
}

impl Ground {
    /// Makes the dependency folders of the tree that was last laid, unless they are there already.
    ///
    /// What an earlier setup made is removed first, so that they are what a fresh clone would get. Tracked files
    /// that a command changed are put right afterwards.
    ///
    /// # Errors
    /// When nothing was laid yet, or the ground cannot be read or written.
    pub fn setup(&mut self, ask: &SetupAsk<'_>, launch: &mut Launcher<'_>) -> Result<Setup> {
        let key = key(ask.commands, &self.last()?.entries);
        if key == self.setup_key() {
            return Ok(Setup::Current);
        }
        if let Some(before) = self.record.setup.take() {
            // Forgotten before it is removed: half of it is never taken for the whole.
            self.record.write_state(&self.lock.records)?;
            for path in before.made {
                files::remove(&place(self.path(), &path))?;
            }
        }
        // Also what a setup that failed left half done.
        self.remove_dependencies()?;
        let before = self.look()?.builds;
        for (number, command) in ask.commands.iter().enumerate() {
            let log = self.log(&format!("setup-{number}"))?;
            self.settle_clock();
            let ended = launch(&Launch {
                name: "setup".to_owned(),
                argv: shell(command),
                cwd: self.path().to_owned(),
                env: self.environment(ask.env),
                output: log.clone(),
                wall: ask.timeout,
                records: self.records().to_owned(),
            })?;
            if ended != Ended::Code(0) {
                let command = command.clone();
                return Ok(Setup::Failed {
                    command,
                    ended,
                    log,
                });
            }
        }
        let found = self.look()?;
        let builds = found.builds.into_iter();
        let mut made = found.foreign;
        made.extend(builds.filter(|path| !before.contains(path)));
        self.record.setup = Some(SetupDone { key, made });
        self.record.write_state(&self.lock.records)?;
        self.bring_back()?;
        Ok(if ask.commands.is_empty() {
            Setup::Current
        } else {
            Setup::Done
        })
    }

    fn look(&self) -> Result<Survey> {
        let (laid, spared) = (self.last()?, self.made());
        let mut found = survey(self.path(), &laid.entries, &self.record.files, &spared)?;
        found.judge(&self.ignored(laid, &found.builds)?, &spared);
        Ok(found)
    }

    /// A place for a log, among the records.
    pub(crate) fn log(&self, name: &str) -> Result<PathBuf> {
        let folder = self.records().join("logs");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let log = folder.join(format!("{name}.log"));
        files::remove(&log)?;
        Ok(log)
    }

    /// Removes dependency folders that cleaning spares by their names; not ones that are part of the tree.
    fn remove_dependencies(&self) -> Result<()> {
        for name in [".venv", "node_modules"] {
            if !self.last()?.entries.folders.contains(name.as_bytes()) {
                files::remove(&self.path().join(name))?;
            }
        }
        Ok(())
    }
}

/// What the dependencies of a tree follow from, for a folder that is no ground; empty without commands.
///
/// # Errors
/// When the tree cannot be read.
pub fn dependency_key(
    repo: &git2::Repository,
    tree: git2::Oid,
    commands: &[String],
) -> Result<String> {
    Ok(key(commands, &Entries::of(repo, tree)?))
}

/// What the dependencies of a tree follow from: the commands, and every file that names dependencies.
fn key(commands: &[String], entries: &Entries) -> String {
    if commands.is_empty() {
        return String::new();
    }
    let mut parts: Vec<&[u8]> = commands.iter().map(|command| command.as_bytes()).collect();
    parts.push(b"--");
    let found: Vec<(&[u8], String)> = entries
        .files
        .iter()
        .filter(|(path, _)| is_dependency_file(path))
        .map(|(path, entry)| (path.as_slice(), entry.oid.to_string()))
        .collect();
    for (path, oid) in &found {
        parts.push(path);
        parts.push(oid.as_bytes());
    }
    crate::hash::of_parts(&parts)
}

fn is_dependency_file(path: &[u8]) -> bool {
    let name = base_name(path);
    let requirements = name.starts_with(b"requirements") && name.ends_with(b".txt");
    requirements
        || REQUIREMENTS.iter().any(|known| known.as_bytes() == path)
        || DEPENDENCY_FILES
            .iter()
            .any(|known| known.as_bytes() == name)
}

/// Requirement files that are installed when they are there.
const REQUIREMENTS: &[&str] = &[
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "requirements_dev.txt",
    "requirements_test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
];

/// Optional dependencies and groups that test runners usually stand in.
const TEST_GROUPS: &[&str] = &["test", "tests", "testing", "dev"];

/// The commands that make a project's dependency folders, from its manifests and lock files.
///
/// None for Cargo and Go, which fetch what they need into homes of their own.
pub fn setup_for(project: &Project) -> Vec<String> {
    let mut commands = Vec::new();
    commands.extend(node(project));
    commands.extend(python(project));
    commands
}

fn node(project: &Project) -> Option<String> {
    let json = project.package_json()?;
    let manager = *project.node_managers().first()?;
    let locked = manager.lock_files().iter().any(|name| project.has(name));
    if !locked {
        let depends = ["dependencies", "devDependencies", "workspaces"]
            .iter()
            .filter_map(|key| json.get(*key))
            .any(|value| match value {
                serde_json::Value::Object(map) => !map.is_empty(),
                serde_json::Value::Array(list) => !list.is_empty(),
                _ => false,
            });
        return (depends && manager == NodeManager::Npm)
            .then(|| "npm install --no-package-lock --no-audit --no-fund".to_owned());
    }
    let command = match manager {
        NodeManager::Npm => "npm ci --no-audit --no-fund",
        NodeManager::Pnpm => "pnpm install --frozen-lockfile",
        NodeManager::Yarn if project.is_modern_yarn() => "yarn install --immutable",
        NodeManager::Yarn => "yarn install --frozen-lockfile",
        NodeManager::Bun => "bun install --frozen-lockfile",
    };
    Some(command.to_owned())
}

fn python(project: &Project) -> Vec<String> {
    if project.has("uv.lock") {
        return vec!["uv sync --frozen".to_owned()];
    }
    if project.has("poetry.lock") {
        return vec![
            "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction".to_owned(),
        ];
    }
    let manifest = project.toml("pyproject.toml").unwrap_or_default();
    let installable = manifest.contains_key("project")
        || manifest.contains_key("build-system")
        || project.has("setup.py");
    let mut wanted = String::new();
    for name in REQUIREMENTS.iter().filter(|name| project.has(name)) {
        wanted.push_str(" -r ");
        wanted.push_str(name);
    }
    if installable {
        let extras = names(&manifest, &["project", "optional-dependencies"]);
        wanted.push_str(" -e ");
        wanted.push_str(&match extras.as_slice() {
            [] => ".".to_owned(),
            extras => format!("'.[{}]'", extras.join(",")),
        });
    }
    for group in names(&manifest, &["dependency-groups"]) {
        wanted.push_str(" --group ");
        wanted.push_str(group);
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    vec![
        "python3 -m venv .venv".to_owned(),
        format!(".venv/bin/python -m pip install --disable-pip-version-check pytest{wanted}"),
    ]
}

/// The test groups among the keys of a table in a manifest.
fn names(manifest: &toml::Table, path: &[&str]) -> Vec<&'static str> {
    let mut table = manifest;
    for key in path {
        match table.get(*key) {
            Some(toml::Value::Table(inner)) => table = inner,
            _ => return Vec::new(),
        }
    }
    TEST_GROUPS
        .iter()
        .copied()
        .filter(|name| table.contains_key(*name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lock_file_has_its_command_and_cargo_and_go_have_none() {
        let pytest = ".venv/bin/python -m pip install --disable-pip-version-check pytest";
        let install = |rest: &str| vec!["python3 -m venv .venv".into(), format!("{pytest}{rest}")];
        for (files, expected) in [
            (&[("Cargo.toml", ""), ("Cargo.lock", "")][..], vec![]),
            (&[("go.mod", ""), ("go.sum", "")], vec![]),
            (&[("package.json", "{}")], vec![]),
            (
                &[("package.json", "{}"), ("package-lock.json", "{}")],
                vec!["npm ci --no-audit --no-fund".into()],
            ),
            (
                &[("package.json", r#"{"devDependencies":{"a":"1"}}"#)],
                vec!["npm install --no-package-lock --no-audit --no-fund".into()],
            ),
            (
                &[("package.json", "{}"), ("pnpm-lock.yaml", "")],
                vec!["pnpm install --frozen-lockfile".into()],
            ),
            (
                &[
                    ("package.json", "{}"),
                    ("yarn.lock", "# yarn lockfile v1\n"),
                ],
                vec!["yarn install --frozen-lockfile".into()],
            ),
            (
                &[("package.json", "{}"), ("yarn.lock", "__metadata:\n")],
                vec!["yarn install --immutable".into()],
            ),
            (
                &[("pyproject.toml", "[project]\nname='x'"), ("uv.lock", "")],
                vec!["uv sync --frozen".into()],
            ),
            (&[("pyproject.toml", "[tool.pytest.ini_options]\n")], vec![]),
            (
                &[("requirements.txt", "a")],
                install(" -r requirements.txt"),
            ),
            (
                &[(
                    "pyproject.toml",
                    "[project]\nname='x'\n[project.optional-dependencies]\ntest=['pytest']",
                )],
                install(" -e '.[test]'"),
            ),
        ] {
            let project = Project::of_files(files.iter().copied());
            assert_eq!(setup_for(&project), expected, "{files:?}");
        }
    }
}
