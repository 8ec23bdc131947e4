//! A ground's own repository: a neutral commit, and nothing that leads to the person's history.

use super::files;
use anyhow::{Context, Result};
use git2::{ObjectType, Oid, Repository};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// 1 January 2020, so that a commit's name follows from its tree alone.
const DATE: u64 = 1_577_836_800;

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
                      [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";

/// Makes a repository whose objects are read from the person's store, for the check ground.
///
/// It has no refs, remotes, hooks or config of theirs, and what is written goes to its own store.
pub(super) fn borrowing(root: &Path, objects: &Path, tree: Oid) -> Result<()> {
    make(root)?;
    let mut line = objects.as_os_str().as_bytes().to_vec();
    line.push(b'\n');
    let alternates = root.join(".git/objects/info/alternates");
    fs::write(&alternates, line).with_context(|| format!("writing {}", alternates.display()))?;
    commit(root, tree, None).map(drop)
}

/// Makes an empty repository in a ground, in place of any that was there.
pub(super) fn make(root: &Path) -> Result<()> {
    let git = root.join(".git");
    files::remove(&git)?;
    let write = || -> std::io::Result<()> {
        for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
            fs::create_dir_all(git.join(folder))?;
        }
        fs::write(git.join("config"), CONFIG)?;
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n")
    };
    write().with_context(|| format!("making the ground's repository {}", git.display()))
}

/// Writes a neutral commit of a tree and makes it the branch's tip; gives its name.
pub(super) fn commit(root: &Path, tree: Oid, parent: Option<Oid>) -> Result<Oid> {
    let git = root.join(".git");
    let parents = parent.map_or(String::new(), |oid| format!("parent {oid}\n"));
    let who = format!("ground <ground@localhost> {DATE} +0000");
    let text =
        format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\nThe tree under test\n");
    let write = || -> Result<Oid> {
        let oid = Repository::open(&git)?
            .odb()?
            .write(ObjectType::Commit, text.as_bytes())?;
        // Written by hand, so that there is no reflog.
        fs::write(git.join("refs/heads/main"), format!("{oid}\n"))?;
        Ok(oid)
    };
    write().with_context(|| format!("committing tree {tree} in {}", git.display()))
}
