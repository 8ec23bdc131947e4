//! What a tree says should be there.

use super::path::{TreePath, covers};
use anyhow::{Context, Result, bail};
use git2::{Oid, Repository, TreeEntry};
use std::collections::{BTreeMap, HashMap, HashSet};

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

    /// The mode in a tree or an index.
    pub(super) fn mode(self) -> u32 {
        match self {
            Form::File => 0o100_644,
            Form::Program => 0o100_755,
            Form::Link => 0o120_000,
            Form::Submodule => 0o160_000,
        }
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
            self.add_one(repo, entry.filemode(), entry.id(), prefix, depth)?;
            prefix.truncate(length);
        }
        Ok(())
    }

    fn add_one(
        &mut self,
        repo: &Repository,
        mode: i32,
        oid: Oid,
        path: &mut TreePath,
        depth: usize,
    ) -> Result<()> {
        if is_folder(mode) {
            self.folders.insert(path.clone());
            path.push(b'/');
            self.add(repo, oid, path, depth + 1)?;
        } else if let Some(form) = Form::of(mode) {
            self.files.insert(path.clone(), Entry { form, oid });
        }
        Ok(())
    }

    /// What another tree says, given that this is what `from` says: only what differs is read.
    pub(super) fn turned(mut self, repo: &Repository, from: Oid, to: Oid) -> Result<Entries> {
        if from != to {
            self.turn(repo, from, to, &mut Vec::new(), 0)
                .with_context(|| format!("reading tree {to} in {}", repo.path().display()))?;
        }
        Ok(self)
    }

    fn turn(
        &mut self,
        repo: &Repository,
        from: Oid,
        to: Oid,
        prefix: &mut TreePath,
        depth: usize,
    ) -> Result<()> {
        if depth > DEPTH {
            bail!("folders nest deeper than {DEPTH}");
        }
        let (from, to) = (repo.find_tree(from)?, repo.find_tree(to)?);
        let key = |entry: &TreeEntry<'_>| (entry.name_bytes().to_vec(), entry.filemode());
        let before: HashMap<_, Oid> = from.iter().map(|e| (key(&e), e.id())).collect();
        let after: HashMap<_, Oid> = to.iter().map(|e| (key(&e), e.id())).collect();
        let length = prefix.len();
        for (name, mode) in before.keys().filter(|key| !after.contains_key(key)) {
            prefix.extend_from_slice(name);
            self.drop_all(prefix, is_folder(*mode));
            prefix.truncate(length);
        }
        for ((name, mode), oid) in &after {
            let old = before.get(&(name.clone(), *mode));
            if old == Some(oid) {
                continue;
            }
            prefix.extend_from_slice(name);
            match old {
                Some(old) if is_folder(*mode) => {
                    prefix.push(b'/');
                    self.turn(repo, *old, *oid, prefix, depth + 1)?;
                }
                _ => self.add_one(repo, *mode, *oid, prefix, depth)?,
            }
            prefix.truncate(length);
        }
        Ok(())
    }

    /// Drops a path, and what lies in it when it was a folder.
    fn drop_all(&mut self, path: &[u8], folder: bool) {
        self.files.remove(path);
        if folder {
            let from = [path, b"/"].concat();
            let inside = self.files.range(from.clone()..);
            let inside: Vec<TreePath> = inside
                .map(|(path, _)| path)
                .take_while(|path| path.starts_with(&from))
                .cloned()
                .collect();
            for path in inside {
                self.files.remove(&path);
            }
            self.folders.retain(|known| !covers(path, known));
        }
    }

    /// The files that say how others are checked out.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&TreePath, Oid)> {
        self.files
            .iter()
            .filter(|(path, _)| is_attributes(path))
            .map(|(path, entry)| (path, entry.oid))
    }
}

fn is_folder(mode: i32) -> bool {
    mode & 0o170_000 == 0o040_000
}

/// Whether a path is a `.gitattributes`.
pub(super) fn is_attributes(path: &[u8]) -> bool {
    base_name(path) == b".gitattributes"
}

/// The last part of a path.
pub(super) fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{Index, IndexEntry, IndexTime};
    use proptest::prelude::*;

    /// Paths that are files in one tree and folders in another, and a folder whose name sorts between.
    const PATHS: [&str; 8] = ["a", "a/b", "a/b/c", "a.x", "a0/y", "d/e/f", "d/e/g", "z"];
    const FORMS: [Form; 4] = [Form::File, Form::Program, Form::Link, Form::Submodule];

    fn tree(repo: &Repository, files: &[(usize, usize, u8)]) -> Oid {
        let mut index = Index::new().unwrap();
        let zero = IndexTime::new(0, 0);
        for (path, form, content) in files {
            // A later one replaces what stands in its way.
            let entry = IndexEntry {
                ctime: zero,
                mtime: zero,
                dev: 0,
                ino: 0,
                mode: FORMS[*form].mode(),
                uid: 0,
                gid: 0,
                file_size: 0,
                id: repo.blob(&[*content]).unwrap(),
                flags: 0,
                flags_extended: 0,
                path: PATHS[*path].as_bytes().to_vec(),
            };
            index.add(&entry).unwrap();
        }
        index.write_tree_to(repo).unwrap()
    }

    #[test]
    fn what_differs_is_all_that_has_to_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let repo = Repository::init_bare(dir.path()).unwrap();
        let files = || prop::collection::vec((0..PATHS.len(), 0..4usize, 0..2u8), 0..7);
        proptest!(|(from in files(), to in files())| {
            let (from, to) = (tree(&repo, &from), tree(&repo, &to));
            let turned = Entries::of(&repo, from).unwrap().turned(&repo, from, to);
            prop_assert_eq!(turned.unwrap(), Entries::of(&repo, to).unwrap());
        });
    }
}
