//! Reading trees: what changed, what stands in them, and trees with and without `.tdd/`.

use anyhow::{Context, Result};
use git2::{Delta, ErrorCode, Index, ObjectType, Oid, Repository};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The folder of veri's own files in a working tree.
pub const TDD: &str = ".tdd";

/// veri's own configuration in a working tree: never dirt, never part of a candidate.
pub(super) const OWN_CONFIG: &[u8] = b".veri.toml";

/// How names of temporary files begin, unless something else is asked for.
const HALF_WRITTEN: &str = ".tmp";

/// How that of a ledger begins, here and in `veri ledger`.
pub(super) const LEDGER_HALF_WRITTEN: &str = ".ledger-";

/// The mode of a folder in a tree.
const TREE_MODE: i32 = 0o040_000;

/// Whether a file of `.tdd/` is a ledger, by its name.
pub(super) fn is_ledger(name: &str) -> bool {
    name.starts_with("issue-") && name.ends_with(".md")
}

/// Whether a file at the top of `.tdd/` changes while a leaf runs, by its name: the records of leaves, the journal, a stop
/// request, a lock, and what veri was just writing there.
pub(super) fn is_record(name: &str) -> bool {
    let of_a_leaf = ["pid", "exit", "out", "err", "lock"];
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| of_a_leaf.contains(&extension))
        || matches!(name, "runs" | "stop" | "lock")
        || name.starts_with("events.")
        || is_half_written(name)
}

/// Whether a file of `.tdd/` is one that veri has not moved to its place yet: somebody's `veri stop` at this moment, or
/// what a killed conductor left.
pub(super) fn is_half_written(name: &str) -> bool {
    name.starts_with(HALF_WRITTEN) || name.starts_with(LEDGER_HALF_WRITTEN)
}

/// The tree of a commit.
///
/// # Errors
/// When the object is no commit of this repository.
pub fn of_commit(repo: &Repository, commit: Oid) -> Result<Oid> {
    Ok(repo
        .find_commit(commit)
        .with_context(|| format!("commit {commit} cannot be read"))?
        .tree_id())
}

/// A full tree without its `.tdd/`: the form in which trees are handed between rooms.
///
/// # Errors
/// When the tree cannot be read or written.
pub fn without_tdd(repo: &Repository, full: Oid) -> Result<Oid> {
    with(repo, full, TDD.as_bytes(), None)
}

/// A `.tdd`-less tree with the `.tdd/` of another, full one.
pub(super) fn with_tdd_of(repo: &Repository, tree: Oid, full: Oid) -> Result<Oid> {
    with_paths_of(repo, tree, full, [TDD.as_bytes()])
}

/// A tree in which these paths, files or folders, are what they are in another: there or not.
pub(super) fn with_paths_of<'a>(
    repo: &Repository,
    tree: Oid,
    donor: Oid,
    paths: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Oid> {
    let donor = find(repo, donor)?;
    paths.into_iter().try_fold(tree, |tree, path| {
        let entry = match donor.get_path(Path::new(OsStr::from_bytes(path))) {
            Ok(entry) => Some((entry.id(), entry.filemode_raw())),
            Err(e) if e.code() == ErrorCode::NotFound => None,
            Err(e) => return Err(e.into()),
        };
        with(repo, tree, path, entry)
    })
}

/// A tree with something else, or nothing, at a path.
pub(super) fn with(
    repo: &Repository,
    tree: Oid,
    path: &[u8],
    entry: Option<(Oid, i32)>,
) -> Result<Oid> {
    let old = find(repo, tree)?;
    let (name, below) = match path.iter().position(|b| *b == b'/') {
        Some(at) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    };
    let there = old.get_name_bytes(name);
    let new = match below {
        None => entry,
        Some(below) => {
            let folder = there
                .as_ref()
                .filter(|e| e.kind() == Some(ObjectType::Tree));
            let folder = match (folder, entry) {
                (Some(folder), _) => folder.id(),
                (None, Some(_)) => repo.treebuilder(None)?.write()?,
                (None, None) => return Ok(tree),
            };
            let folder = with(repo, folder, below, entry)?;
            (!find(repo, folder)?.is_empty()).then_some((folder, TREE_MODE))
        }
    };
    if new == there.map(|e| (e.id(), e.filemode_raw())) {
        return Ok(tree);
    }
    let mut builder = repo.treebuilder(Some(&old))?;
    match new {
        Some((oid, mode)) => drop(builder.insert(name, oid, mode)?),
        None => builder.remove(name)?,
    }
    Ok(builder.write()?)
}

/// Has the disk hold those trees of `tree` that `known` does not have. libgit2 does not wait for the disk, and git
/// takes what is there for good.
///
/// # Errors
/// io errors.
pub(super) fn keep_safe(repo: &Repository, tree: Oid, known: Oid) -> Result<()> {
    if tree == known {
        return Ok(());
    }
    let name = tree.to_string();
    let file = repo
        .commondir()
        .join("objects")
        .join(&name[..2])
        .join(&name[2..]);
    match fs::File::open(&file).and_then(|file| file.sync_all()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(e).with_context(|| format!("{} cannot be kept safe", file.display()));
        }
        // One that is not loose was there before.
        _ => {}
    }
    let known = find(repo, known)?;
    for entry in find(repo, tree)?.iter() {
        if entry.kind() == Some(ObjectType::Tree) {
            let before = known.get_name_bytes(entry.name_bytes());
            let before = before.filter(|e| e.kind() == Some(ObjectType::Tree));
            let before = match before {
                Some(before) => before.id(),
                None => repo.treebuilder(None)?.write()?,
            };
            keep_safe(repo, entry.id(), before)?;
        }
    }
    Ok(())
}

/// The content of a file of a tree (of a symbolic link: its target); None when no file is there.
///
/// # Errors
/// When the tree or the blob cannot be read.
pub fn read_blob(repo: &Repository, tree: Oid, path: &[u8]) -> Result<Option<Vec<u8>>> {
    let tree = find(repo, tree)?;
    match tree.get_path(Path::new(OsStr::from_bytes(path))) {
        Ok(entry) if entry.kind() == Some(ObjectType::Blob) => {
            Ok(Some(repo.find_blob(entry.id())?.content().to_vec()))
        }
        Ok(_) => Ok(None),
        Err(e) if e.code() == ErrorCode::NotFound => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// What a full tree has of `.tdd/` that only a run may write, as paths; or something else in the folder's place.
///
/// # Errors
/// When the tree cannot be read.
pub fn runtime_files(repo: &Repository, full: Oid) -> Result<Vec<String>> {
    let full = find(repo, full)?;
    let Some(tdd) = full.get_name(TDD) else {
        return Ok(Vec::new());
    };
    if tdd.kind() != Some(ObjectType::Tree) {
        return Ok(vec![TDD.to_owned()]);
    }
    let below = find(repo, tdd.id())?;
    let names = below.iter().map(|entry| shown(entry.name_bytes()));
    // `issue-42-timeout` and its like are in force; the ledgers are what is meant to be committed.
    let runtime = |name: &String| is_record(name) || name.starts_with("issue-") && !is_ledger(name);
    Ok(names
        .filter(runtime)
        .map(|name| format!("{TDD}/{name}"))
        .collect())
}

/// Whether an index holds exactly a tree; not so for one that is not there or that libgit2 cannot read.
pub fn is_in_index(repo: &Repository, index: &Path, tree: Oid) -> bool {
    let differences = || {
        let (tree, index) = (repo.find_tree(tree)?, Index::open(index)?);
        repo.diff_tree_to_index(Some(&tree), Some(&index), None)
    };
    index.exists() && differences().is_ok_and(|diff| diff.deltas().len() == 0)
}

/// How a path differs between two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Only the second tree has it.
    Added,
    /// Only the first tree has it.
    Deleted,
    /// Both have it; content or the executable bit differ.
    Modified,
    /// File, symbolic link and submodule changed places.
    TypeChanged,
}

/// One path that differs between two trees. A rename is a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path from the top, in raw bytes.
    pub path: Vec<u8>,
    /// How it differs.
    pub status: Status,
    /// Its mode in the first tree (0 when added): 0o100644, 0o100755, 0o120000, 0o160000.
    pub old_mode: u32,
    /// Its mode in the second tree (0 when deleted).
    pub mode: u32,
}

/// What differs between two trees, in the order of git's paths.
///
/// # Errors
/// When a tree cannot be read.
pub fn changed_paths(repo: &Repository, a: Oid, b: Oid) -> Result<Vec<Change>> {
    if a == b {
        return Ok(Vec::new());
    }
    let mut options = git2::DiffOptions::new();
    options.include_typechange(true).ignore_submodules(false);
    let (a, b) = (find(repo, a)?, find(repo, b)?);
    let diff = repo.diff_tree_to_tree(Some(&a), Some(&b), Some(&mut options))?;
    Ok(diff
        .deltas()
        .filter_map(|delta| {
            let status = match delta.status() {
                Delta::Added => Status::Added,
                Delta::Deleted => Status::Deleted,
                Delta::Typechange => Status::TypeChanged,
                _ => Status::Modified,
            };
            let path = delta
                .new_file()
                .path_bytes()
                .or(delta.old_file().path_bytes())?;
            Some(Change {
                path: path.to_vec(),
                status,
                old_mode: u32::from(delta.old_file().mode()),
                mode: u32::from(delta.new_file().mode()),
            })
        })
        .collect())
}

/// Every path of a tree that is a file, symbolic link or submodule.
pub(super) fn paths(repo: &Repository, tree: Oid) -> Result<Vec<Vec<u8>>> {
    let nothing = repo.treebuilder(None)?.write()?;
    let all = changed_paths(repo, nothing, tree)?;
    Ok(all.into_iter().map(|change| change.path).collect())
}

pub(super) fn find(repo: &Repository, tree: Oid) -> Result<git2::Tree<'_>> {
    repo.find_tree(tree)
        .with_context(|| format!("tree {tree} cannot be read"))
}

/// A path as it is printed for people; bytes that are not UTF-8 are replaced.
pub(super) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
