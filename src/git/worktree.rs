//! The working tree in which veri works: a linked one of its own, or the checkout (`--here`).

use super::base::{branch_tip, issue_branch_name};
use super::cut_off::Own;
use super::registered::{Found, add, register_again, repair, state};
use super::repo::{self, Repo};
use super::run::{self, Git, LONG};
use super::tree::{OWN_CONFIG, TDD};
use crate::cause::Bail;
use crate::storage;
use crate::untrusted;
use anyhow::{Context, Result};
use git2::{Oid, Repository};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The lines that keep runtime files out of `git status`, but never the ledger.
const EXCLUDED: &str = "# Runtime files of veri, never its ledgers\n/.tdd/*\n!/.tdd/issue-*.md\n";

/// What `limits.max_file_mib` is where nobody has said otherwise, in bytes.
const MAX_FILE: u64 = 5 << 20;

/// A working tree of the person's repository in which veri works.
pub struct WorkTree {
    pub(super) git: Git,
    pub(super) git2: Repository,
    pub(super) path: PathBuf,
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    pub(super) linked: bool,
    pub(super) own: Vec<Vec<u8>>,
    /// The largest file that a candidate may have, in bytes.
    pub(super) max_file: u64,
    /// The remote that the run pushes to.
    pub(super) remote: String,
    /// What is kept of a run outside its working tree begins with this path.
    stem: PathBuf,
}

impl std::fmt::Debug for WorkTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkTree")
            .field("path", &self.path)
            .field("linked", &self.linked)
            .finish_non_exhaustive()
    }
}

impl WorkTree {
    /// Makes or finds veri's own linked worktree; a new one is detached at `at`.
    ///
    /// A worktree whose making was cut off, or whose registration has vanished, is mended. What it holds
    /// otherwise stays as it is.
    ///
    /// # Errors
    /// needs-user: the folder holds something else; git-failed: git cannot make it.
    pub fn linked(repo: &Repo, path: &Path, at: Oid) -> Result<WorkTree> {
        match state(repo, path)? {
            Found::Nothing => add(repo, path, at)?,
            Found::Ours => {}
            Found::CutOff => {
                let tool = repo
                    .git
                    .quiet(["worktree", "remove", "--force", "--force", "--"]);
                run::must(tool.arg(path), "removing a half-made worktree")?;
                add(repo, path, at)?;
            }
            Found::Unregistered => register_again(repo, path, at)?,
            Found::Unlinked(record) => {
                let link = [b"gitdir: ", record.as_os_str().as_bytes(), b"\n"].concat();
                let at = path.join(".git");
                fs::write(&at, link).with_context(|| format!("writing {}", at.display()))?;
            }
            Found::Elsewhere => repair(repo, path)?,
            Found::Foreign(what) => {
                return Err(Bail::needs_user(format!(
                    "veri works in {}, but that folder holds {what}. Move it away and run again.",
                    path.display()
                ))
                .into());
            }
        }
        WorkTree::open(repo, path, true)
    }

    /// The checkout that veri was started from (`--here`).
    ///
    /// # Errors
    /// When the repository cannot be opened.
    pub fn here(repo: &Repo) -> Result<WorkTree> {
        WorkTree::open(repo, repo.checkout(), false)
    }

    fn open(repo: &Repo, path: &Path, linked: bool) -> Result<WorkTree> {
        let path = path
            .canonicalize()
            .with_context(|| format!("the working tree {} cannot be found", path.display()))?;
        let git2 = repo::open(&path)?;
        let git_dir = git2
            .path()
            .canonicalize()
            .with_context(|| format!("{} cannot be found", git2.path().display()))?;
        let own = Own::new(repo.common_dir(), linked.then_some(&git_dir));
        Ok(WorkTree {
            git: Git::new(&path, &repo.env).owning(own),
            git2,
            stem: git_dir.join("veri"),
            git_dir,
            path,
            common_dir: repo.common_dir().to_owned(),
            linked,
            own: vec![OWN_CONFIG.to_vec()],
            max_file: MAX_FILE,
            remote: "origin".to_owned(),
        })
    }

    /// Names further files of veri's own, as paths from the top, files or folders: a directory forge
    /// inside the repository, an issue file. They are never part of a candidate; in the person's own
    /// checkout they are never touched.
    pub fn with_own_files(mut self, paths: impl IntoIterator<Item = Vec<u8>>) -> WorkTree {
        for path in paths {
            if !self.own.contains(&path) {
                self.own.push(path);
            }
        }
        self
    }

    /// Names the remote that the run pushes to: no leaf has any business with it.
    pub fn with_remote(mut self, remote: &str) -> WorkTree {
        remote.clone_into(&mut self.remote);
        self
    }

    /// Keeps the guard and the journal's copy where no developer has any business: in files whose names begin
    /// with `stem` (`$VERI_HOME/<repo-id>/work/issue-42`). Without this they lie in the git folder.
    pub fn with_kept(mut self, stem: PathBuf) -> WorkTree {
        self.stem = stem;
        self
    }

    /// A file of what is kept outside the working tree.
    pub(super) fn kept(&self, extension: &str) -> PathBuf {
        let mut name = self.stem.clone().into_os_string();
        name.push(".");
        name.push(extension);
        name.into()
    }

    /// veri's own files, as paths from the top.
    pub fn own_files(&self) -> &[Vec<u8>] {
        &self.own
    }

    /// The top of the working tree.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a linked worktree of veri's own (not the person's checkout).
    pub fn is_linked(&self) -> bool {
        self.linked
    }

    /// Its git folder (of a linked worktree: below the common one).
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The folder of veri's own files in it; it need not exist yet.
    pub fn tdd(&self) -> PathBuf {
        self.path.join(TDD)
    }

    /// Where the copy of the journal is kept: what the conductor itself has written.
    pub fn journal_copy(&self) -> PathBuf {
        self.kept("journal")
    }

    /// The repository as git2 sees it from here.
    pub fn git2(&self) -> &Repository {
        &self.git2
    }

    /// The commit that is checked out.
    ///
    /// # Errors
    /// When HEAD cannot be read.
    pub fn head(&self) -> Result<Oid> {
        self.git2
            .refname_to_id("HEAD")
            .with_context(|| format!("HEAD of {} cannot be read", self.path.display()))
    }

    /// The branch that is checked out; None when HEAD is detached.
    pub fn branch(&self) -> Option<String> {
        let head = self.git2.find_reference("HEAD").ok()?;
        let target = head.symbolic_target().ok()??;
        target.strip_prefix("refs/heads/").map(str::to_owned)
    }

    /// Keeps veri's runtime files out of `git status`, in `info/exclude`, which all worktrees of the
    /// repository share. Written once, with a single append; never the person's `.gitignore`.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn exclude_runtime_files(&self) -> Result<()> {
        let info = self.common_dir.join("info");
        let file = info.join("exclude");
        let what = || format!("{} cannot be written", file.display());
        let old = match untrusted::given(&file, 16 << 20) {
            Ok(old) => old,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e).with_context(what),
        };
        let has = |wanted: &str| {
            old.split(|b| *b == b'\n')
                .any(|line| line == wanted.as_bytes())
        };
        if EXCLUDED.lines().all(has) {
            return Ok(());
        }
        fs::create_dir_all(&info).with_context(what)?;
        let mut added = Vec::new();
        if !old.is_empty() && !old.ends_with(b"\n") {
            added.push(b'\n');
        }
        added.extend_from_slice(EXCLUDED.as_bytes());
        let mut append = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&file)
            .with_context(what)?;
        append.write_all(&added).with_context(what)
    }

    /// Checks out the issue's branch here: made at `start`, or taken forward to it when it is behind. A
    /// branch that already holds `start` stays where it is. Done twice it does nothing.
    ///
    /// # Errors
    /// needs-user: the branch has diverged from `start`, or git refuses to check it out.
    pub fn take_branch(&self, issue: u64, start: Oid) -> Result<()> {
        let name = issue_branch_name(issue);
        let target = match branch_tip(&self.git2, &format!("refs/heads/{name}"))? {
            None => start,
            Some(tip) if tip == start => tip,
            Some(tip) => match self.git2.graph_ahead_behind(tip, start)? {
                (_, 0) => tip,
                (0, _) => start,
                _ => {
                    return Err(Bail::needs_user(format!(
                        "The branch {name} has diverged from {start}, where the work should go on. \
                         Bring them together and run again."
                    ))
                    .into());
                }
            },
        };
        if self.branch().as_deref() == Some(name.as_str()) && self.head()? == target {
            return Ok(());
        }
        let tool = self
            .git
            .quiet([
                "checkout",
                "--quiet",
                "--no-track",
                "--no-recurse-submodules",
            ])
            .args([
                "--no-overwrite-ignore",
                "-B",
                &name,
                &target.to_string(),
                "--",
            ])
            .deadline(LONG);
        let out = run::run(tool, "checking out the issue branch")?;
        if out.success() {
            return Ok(());
        }
        let folders = [self.common_dir.clone(), self.path.clone()];
        if storage::is_named_in(&run::words(&out)) || storage::what_fails(&folders).is_some() {
            return Err(run::failed(&out, "checking out the issue branch"));
        }
        Err(Bail::needs_user(format!(
            "The branch {name} cannot be checked out in {}. git says:\n{}",
            self.path.display(),
            run::words(&out)
        ))
        .into())
    }

    /// Removes veri's own linked worktree, with everything in it, and its registration.
    ///
    /// # Errors
    /// When it is the person's checkout, or git cannot remove it.
    pub fn remove(self) -> Result<()> {
        anyhow::ensure!(self.linked, "the person's checkout is never removed");
        let git = self.git.at(&self.common_dir);
        let tool = git
            .quiet(["worktree", "remove", "--force", "--force", "--"])
            .arg(&self.path);
        run::must(tool, "removing veri's worktree").map(drop)
    }
}
