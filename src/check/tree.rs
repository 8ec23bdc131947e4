//! Git trees as flat maps, and flat maps as git trees.
//!
//! Paths are bytes: git2's own walk and diff hand out text, and lose names that are not UTF-8.

use anyhow::{Context, bail};
use git2::{ObjectType, Oid, Repository};
use std::collections::BTreeMap;

/// A symbolic link, as git writes its mode.
pub const LINK: i32 = 0o120_000;
/// A submodule, as git writes its mode.
pub const SUBMODULE: i32 = 0o160_000;
/// A folder, as git writes its mode.
const FOLDER: i32 = 0o040_000;

/// Trees nested deeper than this are refused: no file system holds them.
const MAX_DEPTH: usize = 2048;

/// A file, link or submodule of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The blob, or the submodule's commit.
    pub oid: Oid,
    /// The mode: regular, executable, link or submodule.
    pub mode: i32,
}

impl Entry {
    /// Whether it is a regular or executable file.
    pub fn is_file(self) -> bool {
        self.mode != LINK && self.mode != SUBMODULE
    }
}

/// Every file of a tree by its path from the root.
pub type Flat = BTreeMap<Vec<u8>, Entry>;

/// Reads a whole tree.
///
/// # Errors
/// A tree that is not there or is nested deeper than any file system could hold.
pub fn flatten(repo: &Repository, tree: Oid) -> anyhow::Result<Flat> {
    let mut flat = Flat::new();
    let mut open = vec![(Vec::new(), tree, 0)];
    while let Some((prefix, oid, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            bail!("tree {tree} is nested deeper than {MAX_DEPTH} folders");
        }
        let tree = repo
            .find_tree(oid)
            .with_context(|| format!("reading tree {oid}"))?;
        for entry in &tree {
            let mut path = prefix.clone();
            path.extend_from_slice(entry.name_bytes());
            if entry.kind() == Some(ObjectType::Tree) {
                path.push(b'/');
                open.push((path, entry.id(), depth + 1));
            } else {
                let (oid, mode) = (entry.id(), entry.filemode());
                flat.insert(path, Entry { oid, mode });
            }
        }
    }
    Ok(flat)
}

/// Writes a whole tree. A path that is also the folder of another is left out: the folder wins.
///
/// # Errors
/// What git refuses to store: no space, names such as `.git`.
pub fn write(repo: &Repository, flat: &Flat) -> anyhow::Result<Oid> {
    let files: Vec<(&[u8], Entry)> = flat.iter().map(|(p, e)| (p.as_slice(), *e)).collect();
    write_folder(repo, &files, 0)
}

/// `files`: what one folder holds, sorted, each path from `from` on being relative to the folder.
fn write_folder(repo: &Repository, files: &[(&[u8], Entry)], from: usize) -> anyhow::Result<Oid> {
    // Paths sort by bytes, where `a.b` stands between `a` and `a/b`: so folders are gathered first.
    let mut folders: BTreeMap<&[u8], Vec<(&[u8], Entry)>> = BTreeMap::new();
    let mut builder = repo.treebuilder(None)?;
    for (path, entry) in files {
        let rest = &path[from..];
        match rest.iter().position(|b| *b == b'/') {
            Some(end) => folders
                .entry(&rest[..end])
                .or_default()
                .push((path, *entry)),
            None => {
                builder
                    .insert(rest, entry.oid, entry.mode)
                    .with_context(|| format!("storing {}", show(path)))?;
            }
        }
    }
    for (name, files) in folders {
        let inner = write_folder(repo, &files, from + name.len() + 1)?;
        builder.insert(name, inner, FOLDER)?;
    }
    Ok(builder.write()?)
}

/// The bytes of a file (a link's target); nothing for a submodule.
///
/// # Errors
/// An object that is not there.
pub fn content(repo: &Repository, entry: Entry) -> anyhow::Result<Vec<u8>> {
    if entry.mode == SUBMODULE {
        return Ok(Vec::new());
    }
    let blob = repo
        .find_blob(entry.oid)
        .with_context(|| format!("reading blob {}", entry.oid))?;
    Ok(blob.content().to_vec())
}

/// A path as text for messages and the journal: bytes that are not UTF-8 and control characters as `\xNN`, a
/// backslash doubled, so that no name can break a line or pass for another.
pub fn show(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        out.push_str(&format!("\\x{byte:02x}"));
                    }
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// The file name of a path.
pub fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// The folder of a path, without the `/` at its end; empty for the root.
pub fn folder_of(path: &[u8]) -> &[u8] {
    let name = name_of(path).len();
    path[..path.len() - name]
        .strip_suffix(b"/")
        .unwrap_or_default()
}
