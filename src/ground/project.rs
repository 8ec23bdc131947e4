//! What a tree says about the project in it: its languages, its package manager, its dependencies.

use super::entries::{Entries, Form, base_name};
use super::path::TreePath;
use anyhow::Result;
use git2::{Oid, Repository};
use serde_json::Value;
use std::collections::BTreeMap;

/// Files of this size and above are not read as manifests (bytes).
const MANIFEST_LIMIT: usize = 4 * 1024 * 1024;

/// A tree's file names, with the content of those that detection reads.
#[derive(Debug, Clone, Default)]
pub struct Project {
    files: BTreeMap<TreePath, Option<Vec<u8>>>,
}

/// Names, at the root or (`conftest.py`) anywhere, whose content detection reads.
const READ: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "yarn.lock",
    "go.work",
];

impl Project {
    /// Reads a tree of a repository; nothing of a working folder.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn of_tree(repo: &Repository, tree: Oid) -> Result<Project> {
        let mut files = BTreeMap::new();
        for (path, entry) in Entries::of(repo, tree)?.files {
            let regular = matches!(entry.form, Form::File | Form::Program);
            if !regular {
                continue;
            }
            let read = is_read(&path);
            let content = match read.then(|| repo.find_blob(entry.oid)) {
                Some(blob) => Some(blob?.content().to_vec()).filter(|c| c.len() < MANIFEST_LIMIT),
                None => None,
            };
            files.insert(path, content);
        }
        Ok(Project { files })
    }

    /// A project of these files, for tables of tests.
    pub fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Project {
        let files = files
            .into_iter()
            .map(|(path, text)| {
                let content = is_read(path.as_bytes()).then(|| text.as_bytes().to_vec());
                (path.as_bytes().to_vec(), content)
            })
            .collect();
        Project { files }
    }

    /// Every file's path.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.files.keys().map(Vec::as_slice)
    }

    /// Whether there is a file of this path.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path.as_bytes())
    }

    /// The text of a manifest at the root, without a byte order mark; None when absent or no text.
    pub fn text(&self, path: &str) -> Option<&str> {
        let content = self.files.get(path.as_bytes())?.as_deref()?;
        let text = std::str::from_utf8(content).ok()?;
        Some(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// A manifest at the root as TOML; None when absent or not valid.
    pub fn toml(&self, path: &str) -> Option<toml::Table> {
        self.text(path)?.parse().ok()
    }

    /// `package.json` at the root; None when absent or not valid.
    pub fn package_json(&self) -> Option<Value> {
        serde_json::from_str(self.text("package.json")?).ok()
    }

    /// The package managers that the project's lock files or its `packageManager` name; npm when none does.
    pub fn node_managers(&self) -> Vec<NodeManager> {
        let named = self.package_json().and_then(|json| {
            let name = json.get("packageManager")?.as_str()?;
            NodeManager::parse(name.split('@').next()?)
        });
        if let Some(named) = named {
            return vec![named];
        }
        let mut found: Vec<NodeManager> = NodeManager::ALL
            .iter()
            .copied()
            .filter(|manager| manager.lock_files().iter().any(|name| self.has(name)))
            .collect();
        if found.is_empty() {
            found.push(NodeManager::Npm);
        }
        found
    }

    /// Whether yarn's lock file or config is of version 2 or later, whose flags differ.
    pub fn is_modern_yarn(&self) -> bool {
        let named = self.package_json().and_then(|json| {
            let name = json.get("packageManager")?.as_str()?;
            let major = name.strip_prefix("yarn@")?.split('.').next()?;
            Some(major.parse::<u32>().is_ok_and(|major| major >= 2))
        });
        named.unwrap_or_else(|| {
            self.has(".yarnrc.yml")
                || self
                    .text("yarn.lock")
                    .is_some_and(|text| text.contains("__metadata:"))
        })
    }

    /// The languages that manifests at the root show; empty when there are none.
    pub fn languages(&self) -> Vec<Language> {
        Language::ALL
            .iter()
            .copied()
            .filter(|language| language.manifests().iter().any(|name| self.has(name)))
            .collect()
    }
}

fn is_read(path: &[u8]) -> bool {
    READ.iter().any(|name| name.as_bytes() == path)
}

/// A package manager of JavaScript projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeManager {
    /// npm.
    Npm,
    /// pnpm.
    Pnpm,
    /// Yarn, either generation.
    Yarn,
    /// Bun.
    Bun,
}

impl NodeManager {
    /// Every one that is known.
    pub const ALL: &'static [NodeManager] = &[
        NodeManager::Npm,
        NodeManager::Pnpm,
        NodeManager::Yarn,
        NodeManager::Bun,
    ];

    fn parse(name: &str) -> Option<NodeManager> {
        NodeManager::ALL
            .iter()
            .copied()
            .find(|manager| manager.as_str() == name)
    }

    /// The program's name.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeManager::Npm => "npm",
            NodeManager::Pnpm => "pnpm",
            NodeManager::Yarn => "yarn",
            NodeManager::Bun => "bun",
        }
    }

    /// The names of its lock file.
    pub fn lock_files(self) -> &'static [&'static str] {
        match self {
            NodeManager::Npm => &["package-lock.json", "npm-shrinkwrap.json"],
            NodeManager::Pnpm => &["pnpm-lock.yaml"],
            NodeManager::Yarn => &["yarn.lock"],
            NodeManager::Bun => &["bun.lock", "bun.lockb"],
        }
    }
}

/// A language that detection knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust, by Cargo.
    Rust,
    /// JavaScript and TypeScript.
    JavaScript,
    /// Python.
    Python,
    /// Go.
    Go,
}

impl Language {
    /// Every one that is known.
    pub const ALL: &'static [Language] = &[
        Language::Rust,
        Language::JavaScript,
        Language::Python,
        Language::Go,
    ];

    fn manifests(self) -> &'static [&'static str] {
        match self {
            Language::Rust => &["Cargo.toml"],
            Language::JavaScript => &["package.json"],
            Language::Python => &[
                "pyproject.toml",
                "setup.py",
                "setup.cfg",
                "requirements.txt",
                "pytest.ini",
                "tox.ini",
                "conftest.py",
            ],
            Language::Go => &["go.mod", "go.work"],
        }
    }

    fn extensions(self) -> &'static [&'static [u8]] {
        match self {
            Language::Rust => &[b"rs"],
            Language::JavaScript => &[
                b"js", b"mjs", b"cjs", b"jsx", b"ts", b"mts", b"cts", b"tsx", b"vue", b"svelte",
            ],
            Language::Python => &[b"py", b"pyx"],
            Language::Go => &[b"go"],
        }
    }
}

/// Extensions of programs in languages that detection does not know, for projects without a known manifest.
const OTHER_PROGRAMS: &[&[u8]] = &[
    b"sh", b"bash", b"pl", b"pm", b"rb", b"php", b"lua", b"java", b"kt", b"scala", b"cs", b"fs",
    b"c", b"h", b"cc", b"cpp", b"hpp", b"swift", b"ex", b"exs", b"erl", b"hs", b"ml", b"zig",
    b"awk", b"jl", b"dart",
];

/// Programs that configure or drive a build: a suite fails without them whatever code it tests.
const DRIVERS: &[&[u8]] = &[
    b"build.rs",
    b"setup.py",
    b"conftest.py",
    b"noxfile.py",
    b"tasks.py",
    b"gulpfile.js",
    b"Gruntfile.js",
];

/// Whether a path is a program file of these languages (of any, when there are none), and no manifest or
/// configuration.
pub fn is_program(path: &[u8], languages: &[Language]) -> bool {
    let name = base_name(path);
    let Some(dot) = name
        .iter()
        .rposition(|byte| *byte == b'.')
        .filter(|at| *at > 0)
    else {
        return false;
    };
    let (stem, extension) = (&name[..dot], &name[dot + 1..]);
    let configuration = name[0] == b'.'
        || DRIVERS.contains(&name)
        || [&b".config"[..], b".conf", b".setup", b"rc"]
            .iter()
            .any(|end| stem.ends_with(end));
    let all = languages.is_empty();
    let known = Language::ALL
        .iter()
        .filter(|language| all || languages.contains(language))
        .any(|language| language.extensions().contains(&extension));
    !configuration && (known || (all && OTHER_PROGRAMS.contains(&extension)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_from_manifests_and_configuration() {
        let js = [Language::JavaScript];
        for (path, languages, expected) in [
            ("src/lib.rs", &[Language::Rust][..], true),
            ("build.rs", &[Language::Rust], false),
            ("src/a.ts", &js, true),
            ("src/lib.rs", &js, false),
            ("vite.config.ts", &js, false),
            (".eslintrc.cjs", &js, false),
            ("package.json", &js, false),
            ("pkg/mod.py", &[Language::Python], true),
            ("setup.py", &[Language::Python], false),
            ("bin/tool.sh", &[], true),
            ("README.md", &[], false),
            ("Makefile", &[], false),
        ] {
            assert_eq!(is_program(path.as_bytes(), languages), expected, "{path}");
        }
    }

    #[test]
    fn the_package_manager_is_read_from_the_manifest_before_the_lock_files() {
        let both = [("yarn.lock", ""), ("pnpm-lock.yaml", "")];
        let named = ("package.json", r#"{"packageManager":"yarn@4.1.0"}"#);
        let project = Project::of_files(both.into_iter().chain([named]));
        assert_eq!(project.node_managers(), [NodeManager::Yarn]);
        assert!(project.is_modern_yarn());
        let unnamed = Project::of_files(both.into_iter().chain([("package.json", "{}")]));
        assert_eq!(
            unnamed.node_managers(),
            [NodeManager::Pnpm, NodeManager::Yarn]
        );
        assert!(!unnamed.is_modern_yarn());
        let none = Project::of_files([("package.json", "not json")]);
        assert_eq!(none.node_managers(), [NodeManager::Npm]);
    }
}
