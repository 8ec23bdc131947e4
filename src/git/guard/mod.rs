//! What of git a leaf could change, recorded before it is let loose.
//!
//! - `snapshot`: files as they were; `config`: configuration, key by key
//! - `frame`: what the rest stands on (folders, HEADs, packed refs, rights), put back first
//! - `settle`: what a leaf did, told and put back; `undone`: its refs and stashes
//! - `way`: what stands in the way of the next

mod config;
mod frame;
mod settle;
pub(in crate::git) mod snapshot;
mod undone;
mod way;

use crate::git::base::issue_branch_name;
use crate::git::worktree::WorkTree;
use crate::git::{stage, tree};
use crate::untrusted::whole;
use anyhow::{Context, Result};
use frame::Frame;
use git2::Oid;
use serde::{Deserialize, Serialize};
use snapshot::{Watched, hex, path_bytes};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The committer's address by which a leaf's own commits, branches and stashes are known.
pub const LEAF_EMAIL: &str = "leaf@veri.invalid";

/// The most that is read of an index (some five million files), and of a guard that holds one, in bytes.
const LARGEST: u64 = 1 << 30;

/// The locks of a working tree's own git.
pub(in crate::git) const LOCKS: [&str; 2] = ["index.lock", "HEAD.lock"];

/// The environment of a leaf that makes what it does to refs known as its own. `inherited` is the
/// environment that it is laid over: settings that it carries in `GIT_CONFIG_COUNT` stay.
pub fn leaf_git_env(inherited: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let count = inherited
        .iter()
        .find(|(key, _)| key == "GIT_CONFIG_COUNT")
        .and_then(|(_, value)| value.to_str()?.parse::<usize>().ok())
        .unwrap_or(0);
    // Every ref gets a reflog; a leaf's commits are thrown away, so they are not signed, and nothing is
    // packed behind its back.
    let settings = [
        ("core.logAllRefUpdates", "always"),
        ("commit.gpgSign", "false"),
        ("tag.gpgSign", "false"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
    ];
    let mut env: Vec<(OsString, OsString)> = vec![
        ("GIT_COMMITTER_NAME".into(), "veri leaf".into()),
        ("GIT_COMMITTER_EMAIL".into(), LEAF_EMAIL.into()),
        (
            "GIT_CONFIG_COUNT".into(),
            (count + settings.len()).to_string().into(),
        ),
    ];
    for (number, (key, value)) in (count..).zip(settings) {
        env.push((format!("GIT_CONFIG_KEY_{number}").into(), key.into()));
        env.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
    }
    env
}

/// git as it was before a developer leaf. `settle` puts it back.
///
/// The conductor holds it while it lives. It is also kept in a file outside the working tree until it is settled,
/// for a later conductor that takes up a leaf whose own has died.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Guard {
    /// HEAD's content: a branch's ref or a commit.
    pub(in crate::git) head: Head,
    /// The commit that was checked out.
    pub(in crate::git) commit: String,
    #[serde(with = "hex")]
    pub(in crate::git) index: Vec<u8>,
    pub(in crate::git) index_time: Option<SystemTime>,
    /// Locks that stood there already: not the leaf's.
    pub(in crate::git) locks: Vec<String>,
    /// What must stand for the rest to be put back.
    pub(in crate::git) frame: Frame,
    /// Files that tie the working tree to the repository.
    pub(in crate::git) ties: Vec<Watched>,
    /// Files that make git hide or find things, put back whole.
    pub(in crate::git) whole: Vec<Watched>,
    /// Folders of hooks, and what they held.
    pub(in crate::git) hooks: Vec<Hooks>,
    /// Files of `.tdd/` that are neither a leaf's own records nor the journal: the ledgers, a person's edits of
    /// them included, and what is in force.
    pub(in crate::git) tdd: Vec<Watched>,
    /// The names of what is kept of earlier launches; None where there is no folder of them.
    pub(in crate::git) runs: Option<Vec<String>>,
    /// Configuration files, put back key by key.
    pub(in crate::git) config: Vec<Watched>,
    /// All direct refs.
    pub(in crate::git) refs: BTreeMap<String, String>,
    /// The stash's commits, newest first.
    pub(in crate::git) stash: Vec<String>,
    /// Repositories within the working tree that it does not ignore.
    pub(in crate::git) nested: Vec<String>,
}

impl Guard {
    /// Whether the guard is of this working tree as git knows it now: one that was registered anew has another folder
    /// in the repository.
    pub fn fits(&self, tree: &WorkTree) -> bool {
        let mut inner = self.ties.iter().filter(|t| !t.path.ends_with(".git"));
        inner.all(|tie| tie.path.parent() == Some(&tree.git_dir) && tie.path.exists())
    }

    /// What a ledger held when the guard was set up; None when there was no such file. `name` is its name in
    /// `.tdd/`. A leaf's change of it is not undone by `settle`: whoever ticks steps knows what it should be.
    pub fn ledger(&self, name: &str) -> Option<Vec<u8>> {
        let is_it = |file: &&Watched| file.path.file_name().is_some_and(|found| found == name);
        self.tdd.iter().find(is_it)?.content.kept()
    }
}

/// What a leaf did to git.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// What makes git run or hide something and was changed: saved under discarded, put back, a failed
    /// check. One line each.
    pub tampered: Vec<String>,
    /// What was folded back, put aside, or left because somebody else did it. One line each.
    pub noted: Vec<String>,
    /// Whether the repository's git folder itself was locked away: `tampered` says so, too.
    pub shut: bool,
}

/// A leaf's doings while they are being undone.
pub(in crate::git) struct Settling<'a> {
    done: Settled,
    /// Records what is found.
    tell: &'a mut dyn FnMut(&str) -> Result<()>,
}

impl Settling<'_> {
    /// Tampering, recorded before it is undone: whoever is killed in between would never know of it.
    pub(in crate::git) fn tampered(&mut self, what: String) -> Result<()> {
        (self.tell)(&what)?;
        self.done.tampered.push(what);
        Ok(())
    }

    pub(in crate::git) fn noted(&mut self, what: String) {
        self.done.noted.push(what);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::git) enum Head {
    Branch(String),
    Detached(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::git) struct Hooks {
    #[serde(with = "path_bytes")]
    pub(in crate::git) folder: PathBuf,
    pub(in crate::git) files: Vec<Watched>,
}

impl WorkTree {
    /// Records what a leaf could change of git: HEAD, branch, index, refs, stash, configuration, hooks,
    /// excludes. To be settled as soon as the leaf has ended.
    ///
    /// # Errors
    /// git-failed; io errors.
    pub fn guard(&self) -> Result<Guard> {
        let guard = self.record()?;
        let file = self.guard_file();
        let folder = file.parent().unwrap_or(Path::new("/"));
        let what = || format!("{} cannot be written", file.display());
        let mut temp = tempfile::NamedTempFile::new_in(folder).with_context(what)?;
        io::Write::write_all(&mut temp, &serde_json::to_vec(&guard)?).with_context(what)?;
        temp.persist(&file)
            .map_err(|e| e.error)
            .with_context(what)?;
        Ok(guard)
    }

    /// The same, kept by whoever asks alone: no later conductor finds it.
    ///
    /// # Errors
    /// git-failed; io errors.
    pub fn guard_in_memory(&self) -> Result<Guard> {
        self.record()
    }

    /// What stands in for a guard that is gone although a leaf was let loose: HEAD and the index go back to the
    /// issue branch at the commit that the leaf was given. What else it did to git cannot be told any more.
    ///
    /// # Errors
    /// git-failed; io errors.
    pub fn guard_from(&self, issue: u64, commit: Oid) -> Result<Guard> {
        let mut guard = self.record()?;
        guard.head = Head::Branch(format!("refs/heads/{}", issue_branch_name(issue)));
        guard.commit = commit.to_string();
        let folder = tempfile::tempdir_in(&self.git_dir)?;
        let path = folder.path().join("index");
        let mut index = git2::Index::open(&path)?;
        let repo = &self.git2;
        index.read_tree(&repo.find_commit(commit)?.tree()?)?;
        index.write()?;
        guard.index = fs::read(&path).context("the index cannot be made again")?;
        guard.index_time = None;
        Ok(guard)
    }

    fn record(&self) -> Result<Guard> {
        let config::Sources {
            mut files,
            names_hooks,
        } = config::sources(&self.git)?;
        let mut folders = vec![self.common_dir.join("hooks")];
        if names_hooks {
            let named = self.hooks_folder()?;
            folders.extend(Some(named).filter(|named| !folders.contains(named)));
        }
        let local = self.common_dir.join("config");
        files.retain(|file| !same_file(file, &local) && file != &self.config_worktree());
        files.insert(local);
        Ok(Guard {
            head: match self.git2.find_reference("HEAD")?.symbolic_target()? {
                Some(branch) => Head::Branch(branch.to_owned()),
                None => Head::Detached(self.head()?.to_string()),
            },
            commit: self.head()?.to_string(),
            index: match whole(&self.git_dir.join("index"), LARGEST) {
                // What is no index counts as none.
                Ok(bytes) => bytes.unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(e) => return Err(e).context("the index cannot be read"),
            },
            index_time: fs::metadata(self.git_dir.join("index"))
                .and_then(|meta| meta.modified())
                .ok(),
            locks: LOCKS
                .iter()
                .filter(|lock| self.git_dir.join(lock).exists())
                .map(|lock| (*lock).to_owned())
                .collect(),
            frame: Frame::of(self, &folders)?,
            ties: self.ties()?,
            whole: self.whole()?,
            hooks: folders.into_iter().map(Hooks::of).collect::<Result<_>>()?,
            runs: names(&self.tdd().join("runs"))?,
            tdd: tdd_files(&self.tdd())?
                .into_iter()
                .map(Watched::of)
                .collect::<Result<_>>()?,
            config: files.into_iter().map(Watched::of).collect::<Result<_>>()?,
            refs: self.direct_refs()?,
            stash: self
                .stash()?
                .into_iter()
                .map(|entry| entry.0.to_string())
                .collect(),
            nested: self.nested(&mut |_| Ok(()))?,
        })
    }

    /// The guard that an earlier conductor set up and did not settle. One that cannot be read is as good as none:
    /// whoever asks knows from the journal whether there should be one.
    ///
    /// # Errors
    /// io errors.
    pub fn open_guard(&self) -> Result<Option<Guard>> {
        let file = self.guard_file();
        match whole(&file, LARGEST) {
            // Somebody's folder or pipe in its place is no guard either.
            Ok(bytes) => Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| format!("{} cannot be read", file.display())),
        }
    }

    /// Forgets the guard: it is settled.
    ///
    /// # Errors
    /// io errors.
    pub fn drop_guard(&self) -> Result<()> {
        let file = self.guard_file();
        if file.is_dir() {
            return Ok(fs::remove_dir_all(&file)?);
        }
        stage::remove_if_there(&file)
    }

    pub(in crate::git) fn guard_file(&self) -> PathBuf {
        self.kept("guard")
    }

    fn config_worktree(&self) -> PathBuf {
        self.git_dir.join("config.worktree")
    }

    /// `.git` of a linked worktree and the two files that point back.
    fn ties(&self) -> Result<Vec<Watched>> {
        if self.git_dir == self.common_dir {
            return Ok(Vec::new());
        }
        let mut files = vec![Watched::of(self.path.join(".git"))?];
        for name in ["commondir", "gitdir"] {
            files.push(Watched::of(self.git_dir.join(name))?);
        }
        Ok(files)
    }

    fn whole(&self) -> Result<Vec<Watched>> {
        let mut paths = vec![
            self.config_worktree(),
            self.git_dir.join("info/sparse-checkout"),
        ];
        for name in [
            "commondir",
            "info/exclude",
            "info/attributes",
            "info/grafts",
            "objects/info/alternates",
        ] {
            paths.push(self.common_dir.join(name));
        }
        paths.extend(self.of_the_person()?);
        paths.into_iter().map(Watched::of).collect()
    }

    /// The person's own files of what git ignores and what attributes it gives, in every repository.
    fn of_the_person(&self) -> Result<Vec<PathBuf>> {
        let config = self.git2.config()?;
        let folder = match (self.git.var("XDG_CONFIG_HOME"), self.git.var("HOME")) {
            (Some(folder), _) if !folder.is_empty() => Some(PathBuf::from(folder)),
            (_, home) => home.map(|home| Path::new(home).join(".config")),
        };
        let files = [
            ("core.excludesfile", "ignore"),
            ("core.attributesfile", "attributes"),
        ];
        let found = files.iter().filter_map(|(key, name)| {
            let named = config.get_path(key).ok();
            named.or_else(|| Some(folder.as_ref()?.join("git").join(name)))
        });
        Ok(found.filter(|path| path.is_absolute()).collect())
    }

    /// Every ref that names an object itself, without the stash.
    pub(in crate::git) fn direct_refs(&self) -> Result<BTreeMap<String, String>> {
        let mut refs = BTreeMap::new();
        for found in self.git2.references()? {
            let found = found?;
            // A name that is not UTF-8 cannot be asked for again through git2.
            let (Ok(name), Some(target)) = (found.name(), found.target()) else {
                continue;
            };
            if name != STASH {
                refs.insert(name.to_owned(), target.to_string());
            }
        }
        Ok(refs)
    }

    /// The stash's commits with their committer's addresses, newest first.
    pub(in crate::git) fn stash(&self) -> Result<Vec<(Oid, Vec<u8>)>> {
        if !self.git2.reference_has_log(STASH)? {
            return Ok(Vec::new());
        }
        let log = self.git2.reflog(STASH)?;
        Ok(log
            .iter()
            .map(|e| (e.id_new(), e.committer().email_bytes().to_vec()))
            .collect())
    }
}

/// The stash's ref.
pub(in crate::git) const STASH: &str = "refs/stash";

impl Hooks {
    fn of(folder: PathBuf) -> Result<Hooks> {
        let files = Hooks::paths(&folder)?
            .into_iter()
            .map(Watched::of)
            .collect::<Result<_>>()?;
        Ok(Hooks { folder, files })
    }

    /// What lies in a folder of hooks now.
    pub(in crate::git) fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(_) if !folder.is_dir() => {
                return Ok(Vec::new());
            }
            Err(e) => return Err(e).with_context(|| format!("{}", folder.display())),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                paths.push(entry.path());
            }
        }
        paths.sort();
        Ok(paths)
    }
}

/// What stands at the top of `.tdd/`, without what changes while a leaf runs: the records of leaves, the journal
/// (which its writer mends), a stop request.
pub(in crate::git) fn tdd_files(tdd: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(tdd) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context(|| format!("{}", tdd.display())),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str());
        if !name.is_some_and(tree::is_record) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// What a folder holds; None when it is not there.
pub(in crate::git) fn names(folder: &Path) -> Result<Option<Vec<String>>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("{}", folder.display())),
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names = names.filter(|name| !name.as_ref().is_ok_and(|name| tree::is_half_written(name)));
    names.collect::<Result<_>>().map(Some)
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
