//! Changes that no check refuses and nobody may miss: CI, hooks, veri's own files, dependencies, stubs, new tests.

use crate::check::lines::TestLines;
use crate::check::tree::{SUBMODULE, name_of, show};
use serde::{Deserialize, Serialize};

/// What is listed for the verifier and heads the PR. Paths are text as `tree::show` writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Continuous integration.
    pub ci: Vec<String>,
    /// Hooks that a checkout may run.
    pub hooks: Vec<String>,
    /// `.veri.toml` and `.veri/`.
    pub veri_files: Vec<String>,
    /// Manifests, lock files, toolchains, vendored code, submodules that moved on.
    pub dependencies: Vec<String>,
    /// Files with changes outside the tests, those of the kinds above aside; in red, what makes a test compile.
    pub stubs: Vec<String>,
    /// Test files and items that are new.
    pub new_tests: Vec<String>,
}

/// What a path is, when it is of a kind that is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Continuous integration.
    Ci,
    /// A hook.
    Hook,
    /// veri's own configuration.
    Veri,
    /// A dependency.
    Dependency,
}

/// Which kind a path is of.
pub fn kind(path: &[u8]) -> Option<Kind> {
    let text = String::from_utf8_lossy(path);
    let name = String::from_utf8_lossy(name_of(path));
    let within = |folder: &str| text.starts_with(folder) || text.contains(&format!("/{folder}"));
    if text.starts_with(".veri") {
        return Some(Kind::Veri);
    }
    let ci_folders = [
        ".github/workflows/",
        ".github/actions/",
        ".circleci/",
        ".gitlab/ci/",
        ".buildkite/",
        ".forgejo/workflows/",
        ".gitea/workflows/",
        ".woodpecker/",
        ".ci/",
        ".azure-pipelines/",
        ".teamcity/",
    ];
    let ci_names = [
        ".gitlab-ci.yml",
        ".gitlab-ci.yaml",
        ".travis.yml",
        "appveyor.yml",
        ".appveyor.yml",
        "azure-pipelines.yml",
        ".drone.yml",
        ".woodpecker.yml",
        ".cirrus.yml",
        "bitbucket-pipelines.yml",
        "Jenkinsfile",
        ".build.yml",
        "dependabot.yml",
        "renovate.json",
    ];
    if ci_folders.iter().any(|folder| text.starts_with(folder)) || ci_names.contains(&&*name) {
        return Some(Kind::Ci);
    }
    let hook_folders = [
        ".husky/",
        ".githooks/",
        ".git-hooks/",
        "githooks/",
        ".lefthook/",
        ".cargo-husky/",
    ];
    let hook_names = [
        ".pre-commit-config.yaml",
        ".pre-commit-config.yml",
        ".pre-commit-hooks.yaml",
        "lefthook.yml",
        "lefthook.yaml",
        ".lefthook.yml",
        ".lintstagedrc",
        ".huskyrc",
        ".overcommit.yml",
        ".envrc",
        ".gitattributes",
        ".gitmodules",
    ];
    if hook_folders.iter().any(|folder| within(folder))
        || hook_names.contains(&&*name)
        || name.starts_with(".lintstagedrc.")
        || name.starts_with("lint-staged.config.")
    {
        return Some(Kind::Hook);
    }
    let dependency_names = [
        "Cargo.toml",
        "Cargo.lock",
        "rust-toolchain",
        "rust-toolchain.toml",
        "package.json",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "pnpm-workspace.yaml",
        "bun.lock",
        "bun.lockb",
        ".nvmrc",
        ".node-version",
        ".tool-versions",
        "mise.toml",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "uv.lock",
        "poetry.lock",
        "pdm.lock",
        "Pipfile",
        "Pipfile.lock",
        ".python-version",
        "environment.yml",
        "go.mod",
        "go.sum",
        "go.work",
        "go.work.sum",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
        "gradle.properties",
        "gradle.lockfile",
        "libs.versions.toml",
        "gradle-wrapper.properties",
        "gradle-wrapper.jar",
        "Gemfile",
        "Gemfile.lock",
        "composer.json",
        "composer.lock",
        "packages.lock.json",
        "Directory.Packages.props",
        "Directory.Build.props",
        "Directory.Build.targets",
        "nuget.config",
        "global.json",
        "mix.exs",
        "mix.lock",
        "flake.nix",
        "flake.lock",
    ];
    let requirements = name.starts_with("requirements") && name.ends_with(".txt")
        || name.starts_with("constraints") && name.ends_with(".txt");
    let project = [".csproj", ".fsproj", ".gemspec"]
        .iter()
        .any(|end| name.ends_with(end));
    let vendored =
        within("node_modules/") || text.starts_with("vendor/") || text.starts_with("third_party/");
    (dependency_names.contains(&&*name) || requirements || project || vendored)
        .then_some(Kind::Dependency)
}

/// Lists what changed between two trees; `others`: the files with changes outside the tests.
pub fn of(before: &TestLines, after: &TestLines, others: &[String]) -> Listed {
    let mut listed = Listed::default();
    for path in before.differing(after) {
        let shown = show(path);
        let submodule = [before, after].iter().any(|lines| {
            lines
                .entry(path)
                .is_some_and(|entry| entry.mode == SUBMODULE)
        });
        match kind(path) {
            Some(Kind::Ci) => listed.ci.push(shown),
            Some(Kind::Hook) => listed.hooks.push(shown),
            Some(Kind::Veri) => listed.veri_files.push(shown),
            Some(Kind::Dependency) => listed.dependencies.push(shown),
            None if submodule => listed.dependencies.push(shown),
            None if others.contains(&shown) => listed.stubs.push(shown),
            None => {}
        }
    }
    listed
}
