//! `refs/veri/issue-<n>/…`: what a run keeps in the repository beside the branch.

use super::repo::Repo;
use super::tree;
use super::worktree::WorkTree;
use crate::cause::{Bail, Cause};
use crate::storage;
use anyhow::{Context, Result};
use git2::{ErrorCode, ObjectType, Oid, Repository, Signature};

/// The identity of commits that only veri reads.
const NAME: &str = "veri";
const EMAIL: &str = "veri@veri.invalid";

/// The saved refs of one issue.
#[derive(Clone, Copy)]
pub struct Refs<'a> {
    repo: &'a Repository,
    issue: u64,
}

impl std::fmt::Debug for Refs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refs")
            .field("issue", &self.issue)
            .finish_non_exhaustive()
    }
}

/// What a saved ref holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The commit that the ref names.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// Its first parent, when it has one.
    pub parent: Option<Oid>,
    /// Its message.
    pub message: String,
}

/// Work that was put aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discarded {
    /// Its whole ref name.
    pub refname: String,
    /// When, in seconds since 1970 (UTC).
    pub when: i64,
    /// Why, in one line.
    pub why: String,
    /// The paths that it changed, as shown to people.
    pub files: Vec<String>,
}

impl Repo {
    /// The saved refs of an issue.
    pub fn refs(&self, issue: u64) -> Refs<'_> {
        Refs {
            repo: self.git2(),
            issue,
        }
    }
}

impl WorkTree {
    /// The saved refs of an issue.
    pub fn refs(&self, issue: u64) -> Refs<'_> {
        Refs {
            repo: &self.git2,
            issue,
        }
    }

    /// Puts a candidate aside under the issue's discarded refs, with HEAD as its parent. None when it is
    /// HEAD's own tree; the ref that has it already when it was put aside before.
    ///
    /// # Errors
    /// When objects or refs cannot be read or written.
    pub fn discard(&self, issue: u64, tree: Oid, why: &str) -> Result<Option<String>> {
        if tree == self.head_tree()? {
            return Ok(None);
        }
        self.refs(issue)
            .discard(tree, Some(self.head()?), why)
            .map(Some)
    }

    /// Lays discarded work on top of what is in the working tree, as unstaged changes.
    ///
    /// # Errors
    /// needs-user: no such discarded work, or it does not fit any more.
    pub fn apply_discarded(&self, refname: &str) -> Result<()> {
        let gone = || Bail::needs_user(format!("There is no discarded work {refname:?}."));
        let commit = self.git2.find_reference(refname).map_err(|_| gone())?;
        let commit = commit.peel_to_commit().map_err(|_| gone())?;
        let theirs = tree::without_tdd(&self.git2, commit.tree_id())?;
        let parent = commit.parent_id(0).map_err(|_| gone())?;
        let base = tree::without_tdd(&self.git2, tree::of_commit(&self.git2, parent)?)?;
        let parent = format!("{:.9}", parent.to_string());
        self.merge_in(base, theirs, || {
            format!(
                "It fits the commit that it was made on: commit or stash what you have, `git switch --detach {parent}`, \
                 and the same command lays it there; `git diff {parent} {refname}` shows it."
            )
        })
    }
}

impl Refs<'_> {
    /// The name of a saved ref.
    pub fn name(&self, suffix: &str) -> String {
        format!("refs/veri/issue-{}/{suffix}", self.issue)
    }

    /// Saves a tree under a suffix ("red", "candidate", "snapshot"), replacing what was there.
    ///
    /// # Errors
    /// When objects or refs cannot be written.
    pub fn save(&self, suffix: &str, tree: Oid, parent: Option<Oid>, message: &str) -> Result<Oid> {
        let commit = self.make_commit(tree, parent.as_slice(), message)?;
        let name = self.name(suffix);
        self.repo
            .reference(&name, commit, true, "veri: saved")
            .with_context(|| format!("{name} cannot be written"))?;
        Ok(commit)
    }

    /// What is saved under a suffix.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self, suffix: &str) -> Result<Option<Saved>> {
        let name = self.name(suffix);
        let found = match self.repo.find_reference(&name) {
            Ok(found) => found,
            Err(e) if e.code() == ErrorCode::NotFound => return Ok(None),
            Err(e) => return Err(e).with_context(|| format!("{name} cannot be read")),
        };
        let commit = found
            .peel_to_commit()
            .with_context(|| format!("{name} is no commit"))?;
        Ok(Some(Saved {
            commit: commit.id(),
            tree: commit.tree_id(),
            parent: commit.parent_id(0).ok(),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
        }))
    }

    /// Deletes what is saved under a suffix; nothing there is fine.
    ///
    /// # Errors
    /// When the ref cannot be deleted.
    pub fn delete(&self, suffix: &str) -> Result<()> {
        delete(self.repo, &self.name(suffix))
    }

    /// Puts a tree aside; gives back its ref. A ref that holds the same is taken again.
    ///
    /// # Errors
    /// When objects or refs cannot be written.
    pub fn discard(&self, tree: Oid, parent: Option<Oid>, why: &str) -> Result<String> {
        self.discard_with(tree, parent.as_slice(), why)
    }

    /// Like `discard`, with several parents: the first is what the change is made from.
    pub(super) fn discard_with(&self, tree: Oid, parents: &[Oid], why: &str) -> Result<String> {
        for old in self.discarded_names()?.into_iter().rev() {
            let Ok(commit) = self.repo.find_reference(&old)?.peel_to_commit() else {
                continue;
            };
            if commit.tree_id() == tree && commit.parent_ids().eq(parents.iter().copied()) {
                return Ok(old);
            }
        }
        let commit = self.make_commit(tree, parents, why)?;
        self.keep(commit)
    }

    /// Keeps any object under a discarded ref; gives back its name. A ref that names it is taken again.
    pub(super) fn keep(&self, object: Oid) -> Result<String> {
        for old in self.discarded_names()? {
            if self.repo.refname_to_id(&old)? == object {
                return Ok(old);
            }
        }
        let at = Signature::now(NAME, EMAIL)?.when().seconds();
        let stamp = jiff::Timestamp::from_second(at)?
            .strftime("%Y%m%dT%H%M%SZ")
            .to_string();
        // One second holds few of them; the bound only keeps a broken ref store from holding us.
        for count in 1..10_000 {
            let name = self.name(&format!("discarded/{stamp}-{count:04}"));
            // Asked first: from a linked worktree libgit2 1.9 takes a shared ref that exists for free and
            // overwrites it even without force. The conductor's lock keeps others of this issue away.
            match self.repo.find_reference(&name) {
                Ok(_) => continue,
                Err(e) if e.code() == ErrorCode::NotFound => {}
                Err(e) => return Err(e).with_context(|| format!("{name} cannot be read")),
            }
            self.repo
                .reference(&name, object, false, "veri: put aside")
                .with_context(|| format!("{name} cannot be written"))?;
            return Ok(name);
        }
        anyhow::bail!("no free name below {}", self.name("discarded"))
    }

    /// Everything that was put aside for the issue, oldest first.
    ///
    /// # Errors
    /// When refs or objects cannot be read.
    pub fn discarded(&self) -> Result<Vec<Discarded>> {
        let mut all = Vec::new();
        for refname in self.discarded_names()? {
            let object = self.repo.find_reference(&refname)?.peel(ObjectType::Any)?;
            let Some(commit) = object.as_commit() else {
                let why = "an object that is no commit".to_owned();
                all.push(Discarded {
                    refname,
                    when: 0,
                    why,
                    files: Vec::new(),
                });
                continue;
            };
            let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
            let why = message.lines().next().unwrap_or_default().to_owned();
            let when = commit.time().seconds();
            let files = self.files(commit)?;
            all.push(Discarded {
                refname,
                when,
                why,
                files,
            });
        }
        Ok(all)
    }

    fn files(&self, commit: &git2::Commit<'_>) -> Result<Vec<String>> {
        let tree = tree::without_tdd(self.repo, commit.tree_id())?;
        let paths = match commit.parent_id(0) {
            Ok(parent) => {
                let base = tree::of_commit(self.repo, parent)?;
                let base = tree::without_tdd(self.repo, base)?;
                let changes = tree::changed_paths(self.repo, base, tree)?;
                changes.into_iter().map(|change| change.path).collect()
            }
            Err(_) => tree::paths(self.repo, tree)?,
        };
        Ok(paths.iter().map(|path| tree::shown(path)).collect())
    }

    fn discarded_names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for found in self.repo.references_glob(&self.name("discarded/*"))? {
            names.push(found?.name()?.to_owned());
        }
        names.sort();
        Ok(names)
    }

    fn make_commit(&self, tree: Oid, parents: &[Oid], message: &str) -> Result<Oid> {
        let who = Signature::now(NAME, EMAIL)?;
        let tree = tree::find(self.repo, tree)?;
        let parents: Vec<_> = parents
            .iter()
            .map(|oid| self.repo.find_commit(*oid))
            .collect::<Result<_, _>>()?;
        let parents: Vec<_> = parents.iter().collect();
        let made = self
            .repo
            .commit(None, &who, &who, message, &tree, &parents)?;
        // libgit2 1.9 gives a name also to a commit that it could not write.
        if self.repo.odb()?.exists(made) {
            return Ok(made);
        }
        let said = format!(
            "the commit {made} cannot be written in {}. {}",
            self.repo.commondir().display(),
            storage::ADVICE
        );
        Err(Bail::new(Cause::StorageFailed, said).into())
    }
}

/// Deletes a ref; one that is not there is fine.
pub(super) fn delete(repo: &Repository, name: &str) -> Result<()> {
    match repo.find_reference(name) {
        Ok(mut found) => found
            .delete()
            .with_context(|| format!("{name} cannot be deleted")),
        Err(e) if e.code() == ErrorCode::NotFound => Ok(()),
        Err(e) => Err(e).with_context(|| format!("{name} cannot be read")),
    }
}
