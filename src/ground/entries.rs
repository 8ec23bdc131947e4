//! What a tree says should be there.

use super::path::TreePath;
use anyhow::{Context, Result, bail};
use git2::{ObjectType, Oid, Repository};
use std::collections::{BTreeMap, HashSet};

/// How deep folders may nest: a bound on recursion, far above what paths of a file system allow.
const DEPTH: usize = 2048;

/// What stands at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A file.
    File,
    /// A file with its executable bit.
    Program,
    /// A symbolic link; its target is the content.
    Link,
    /// A submodule: an empty folder, as in a fresh clone.
    Submodule,
}

impl Form {
    fn of(mode: i32) -> Option<Form> {
        match mode & 0o170_000 {
            0o100_000 if mode & 0o111 != 0 => Some(Form::Program),
            0o100_000 => Some(Form::File),
            0o120_000 => Some(Form::Link),
            0o160_000 => Some(Form::Submodule),
            _ => None,
        }
    }

    /// Whether it is a file with content of its own.
    pub(super) fn is_regular(self) -> bool {
        matches!(self, Form::File | Form::Program)
    }

    /// The letter in a ground's record.
    pub(super) fn letter(self) -> char {
        match self {
            Form::File => 'f',
            Form::Program => 'x',
            Form::Link => 'l',
            Form::Submodule => 's',
        }
    }

    /// Reads the letter.
    pub(super) fn parse(letter: &str) -> Option<Form> {
        Some(match letter {
            "f" => Form::File,
            "x" => Form::Program,
            "l" => Form::Link,
            "s" => Form::Submodule,
            _ => return None,
        })
    }
}

/// One path's form and object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) form: Form,
    pub(super) oid: Oid,
}

/// Every path of a tree, and every folder that holds one.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    pub(super) files: BTreeMap<TreePath, Entry>,
    pub(super) folders: HashSet<TreePath>,
}

impl Entries {
    /// Reads a tree with everything below it.
    pub(super) fn of(repo: &Repository, tree: Oid) -> Result<Entries> {
        let mut entries = Entries::default();
        entries
            .add(repo, tree, &mut Vec::new(), 0)
            .with_context(|| format!("reading tree {tree} in {}", repo.path().display()))?;
        Ok(entries)
    }

    fn add(
        &mut self,
        repo: &Repository,
        tree: Oid,
        prefix: &mut TreePath,
        depth: usize,
    ) -> Result<()> {
        if depth > DEPTH {
            bail!("folders nest deeper than {DEPTH}");
        }
        for entry in repo.find_tree(tree)?.iter() {
            let length = prefix.len();
            prefix.extend_from_slice(entry.name_bytes());
            if entry.kind() == Some(ObjectType::Tree) {
                self.folders.insert(prefix.clone());
                prefix.push(b'/');
                self.add(repo, entry.id(), prefix, depth + 1)?;
            } else if let Some(form) = Form::of(entry.filemode()) {
                let oid = entry.id();
                self.files.insert(prefix.clone(), Entry { form, oid });
            }
            prefix.truncate(length);
        }
        Ok(())
    }

    /// The files that say how others are checked out.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&TreePath, Oid)> {
        self.files
            .iter()
            .filter(|(path, _)| is_attributes(path))
            .map(|(path, entry)| (path, entry.oid))
    }
}

/// Whether a path is a `.gitattributes`.
pub(super) fn is_attributes(path: &[u8]) -> bool {
    base_name(path) == b".gitattributes"
}

/// The last part of a path.
pub(super) fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
