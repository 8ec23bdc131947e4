//! Where work starts (preflight 5): the base, and the issue branch.

use super::repo::Repo;
use super::run::{self, LONG};
use crate::cause::{Bail, Cause};
use anyhow::{Context, Result};
use git2::{ErrorCode, Oid, Reference, Repository};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The name of an issue's branch, without `refs/heads/`.
pub fn issue_branch_name(issue: u64) -> String {
    format!("tdd/issue-{issue}")
}

/// What names the base: the first that is given wins.
#[derive(Debug, Clone, Copy, Default)]
pub struct BaseAsk<'a> {
    /// `--base`.
    pub flag: Option<&'a str>,
    /// The ledger's base: a name, or its table cell "main @ 3f2c…".
    pub ledger: Option<&'a str>,
    /// `base` of the configuration.
    pub config: Option<&'a str>,
    /// The remote that is fetched when it is configured.
    pub remote: &'a str,
}

/// What the work is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The branch, without `refs/heads/`.
    pub name: String,
    /// Its commit, after the fetch.
    pub commit: Oid,
    /// The remote that has the branch, when one does.
    pub remote: Option<String>,
    /// What the person should be told about the choice.
    pub notes: Vec<String>,
}

/// How the local issue branch and the remote's stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// There is none yet.
    Absent,
    /// Only here.
    LocalOnly,
    /// Only on the remote: to be taken up.
    RemoteOnly,
    /// Both at the same commit.
    Same,
    /// The remote has more: fast-forward.
    Behind,
    /// The local branch has more: go on.
    Ahead,
}

/// The issue branch, here and on the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IssueBranch {
    /// Its commit here.
    pub local: Option<Oid>,
    /// Its commit on the remote, after the fetch.
    pub remote: Option<Oid>,
    /// How the two stand to each other; diverged is an error.
    pub relation: Relation,
}

impl IssueBranch {
    /// The commit to go on from; None when the branch has to be made.
    pub fn tip(&self) -> Option<Oid> {
        match self.relation {
            Relation::RemoteOnly | Relation::Behind => self.remote,
            _ => self.local,
        }
    }
}

impl Repo {
    /// Decides what the work is based on; fetches it once when the remote exists.
    ///
    /// # Errors
    /// needs-user: no name and HEAD detached, an issue branch, no such branch, or local commits that the
    /// remote does not have; git-failed: the remote cannot be fetched from.
    pub fn resolve_base(&self, ask: &BaseAsk<'_>) -> Result<Base> {
        let name = self.base_name(ask)?;
        let mut notes = Vec::new();
        let has_remote = self.has_remote(ask.remote);
        let remote_tip = if has_remote {
            self.fetch(ask.remote, &name)?
        } else {
            None
        };
        let local_tip = branch_tip(self.git2(), &format!("refs/heads/{name}"))?;
        let remote = remote_tip.map(|_| ask.remote.to_owned());
        let commit =
            match (local_tip, remote_tip) {
                (None, None) => {
                    let places = if has_remote { " or on the remote" } else { "" };
                    return Err(Bail::needs_user(format!(
                    "The base branch {name} exists neither here{places}. Name an existing branch \
                     with --base."
                ))
                .into());
                }
                (Some(local), None) => {
                    if has_remote {
                        notes.push(format!(
                        "The base branch {name} is not on the remote {}; the local one is used.",
                        ask.remote
                    ));
                    }
                    local
                }
                (None, Some(remote)) => remote,
                (Some(local), Some(remote)) => {
                    match self.git2().graph_ahead_behind(local, remote)? {
                    (0, 0) => {}
                    (0, behind) => notes.push(format!(
                        "The local branch {name} is {behind} commits behind {}/{name}; work starts \
                         from the remote's.",
                        ask.remote
                    )),
                    (ahead, behind) => {
                        let state = if behind == 0 { "ahead of" } else { "diverged from" };
                        return Err(Bail::needs_user(format!(
                            "The base branch {name} is {state} {}/{name} ({ahead} commits are only \
                             here, {behind} only there). Push them, or name another base with \
                             --base.",
                            ask.remote
                        ))
                        .into());
                    }
                }
                    remote
                }
            };
        Ok(Base {
            name,
            commit,
            remote,
            notes,
        })
    }

    /// Looks at the issue's branch here and, when the remote exists, there. `own` is the working tree
    /// in which the branch may be checked out.
    ///
    /// # Errors
    /// needs-user: checked out in another working tree, or diverged; git-failed: the remote cannot be
    /// fetched from.
    pub fn issue_branch(&self, issue: u64, remote: &str, own: &Path) -> Result<IssueBranch> {
        let name = issue_branch_name(issue);
        self.refuse_elsewhere(&name, own)?;
        let there = if self.has_remote(remote) {
            self.fetch(remote, &name)?
        } else {
            None
        };
        let here = branch_tip(self.git2(), &format!("refs/heads/{name}"))?;
        let relation = match (here, there) {
            (None, None) => Relation::Absent,
            (Some(_), None) => Relation::LocalOnly,
            (None, Some(_)) => Relation::RemoteOnly,
            (Some(here), Some(there)) => match self.git2().graph_ahead_behind(here, there)? {
                (0, 0) => Relation::Same,
                (0, _) => Relation::Behind,
                (_, 0) => Relation::Ahead,
                (ahead, behind) => {
                    return Err(Bail::needs_user(format!(
                        "The branch {name} has diverged from {remote}/{name}: {ahead} commits are \
                         only here, {behind} only there. Bring them together (or delete one) and \
                         run again."
                    ))
                    .into());
                }
            },
        };
        Ok(IssueBranch {
            local: here,
            remote: there,
            relation,
        })
    }

    /// Whether a remote of this name is configured.
    pub fn has_remote(&self, remote: &str) -> bool {
        self.git2().find_remote(remote).is_ok()
    }

    fn base_name(&self, ask: &BaseAsk<'_>) -> Result<String> {
        let named = ask.flag.or(ask.ledger).or(ask.config);
        let name = match named {
            Some(named) => self.plain_name(named, ask.remote),
            None => self.branch().ok_or_else(|| {
                Bail::needs_user(
                    "HEAD is detached, so there is no branch to base the work on. Name one with \
                     --base.",
                )
            })?,
        };
        if name.starts_with("tdd/issue-") {
            return Err(Bail::needs_user(format!(
                "The base would be {name}, the branch of an issue. Name the branch that the work \
                 should be merged into with --base."
            ))
            .into());
        }
        if name.starts_with('-') || !Reference::is_valid_name(&format!("refs/heads/{name}")) {
            return Err(Bail::needs_user(format!(
                "{name:?} cannot be the name of a branch, so it is no base. Name an existing branch \
                 with --base."
            ))
            .into());
        }
        Ok(name)
    }

    /// A branch's name without what may stand around it: `refs/heads/`, the ledger's commit, the remote.
    fn plain_name(&self, named: &str, remote: &str) -> String {
        let named = named.split(" @ ").next().unwrap_or(named).trim();
        let named = named.strip_prefix("refs/heads/").unwrap_or(named);
        let here = self
            .git2()
            .find_reference(&format!("refs/heads/{named}"))
            .is_ok();
        match named
            .strip_prefix(remote)
            .and_then(|rest| rest.strip_prefix('/'))
        {
            Some(rest) if !here && self.has_remote(remote) => rest.to_owned(),
            _ => named.to_owned(),
        }
    }

    /// Fetches one branch; None when the remote answers but does not have it.
    fn fetch(&self, remote: &str, branch: &str) -> Result<Option<Oid>> {
        let tracking = format!("refs/remotes/{remote}/{branch}");
        let tool = self
            .git
            .quiet(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
            .args([
                "--no-recurse-submodules",
                "--no-auto-maintenance",
                "--",
                remote,
            ])
            .arg(format!("+refs/heads/{branch}:{tracking}"))
            .deadline(LONG);
        let out = run::run(tool, "fetching")?;
        if out.success() {
            return branch_tip(self.git2(), &tracking);
        }
        let words = run::words(&out);
        if words.contains("couldn't find remote ref") {
            return Ok(None);
        }
        Err(Bail::new(
            Cause::GitFailed,
            format!(
                "Fetching {branch} from the remote {remote} failed ({}):\n{words}",
                run::ending(&out)
            ),
        )
        .into())
    }

    /// Bails when a branch is checked out in a working tree other than `own`.
    fn refuse_elsewhere(&self, branch: &str, own: &Path) -> Result<()> {
        let out = run::must(
            self.git.read(["worktree", "list", "--porcelain", "-z"]),
            "listing the working trees",
        )?;
        let own = own.canonicalize().unwrap_or_else(|_| own.to_owned());
        let wanted = format!("branch refs/heads/{branch}");
        let mut folder = PathBuf::new();
        for line in run::nul_separated(&out.stdout) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                folder = PathBuf::from(OsStr::from_bytes(path));
            } else if line == wanted.as_bytes() {
                let found = folder.canonicalize().unwrap_or_else(|_| folder.clone());
                if found != own {
                    let issue = branch.rsplit('-').next().unwrap_or_default();
                    let advice = if !folder.exists() {
                        ". That folder is gone: `git worktree prune`, and run again".to_owned()
                    } else if folder.ends_with(format!("work/issue-{issue}")) {
                        // veri's own: another branch there would leave the run without its record.
                        format!(
                            ", the worktree of the runs without --here. Leave --here out; or give that worktree up \
                             (`veri clean {issue} --unfinished`: the branch stays) and run again"
                        )
                    } else if found == self.checkout() {
                        ". Check out another branch there, or add --here, and run again".to_owned()
                    } else {
                        ". Check out another branch there and run again".to_owned()
                    };
                    let folder = folder.display();
                    return Err(Bail::needs_user(format!(
                        "The branch {branch} is checked out in {folder}{advice}."
                    ))
                    .into());
                }
            }
        }
        Ok(())
    }
}

/// The commit of a branch; None when there is no such ref.
pub(super) fn branch_tip(repo: &Repository, refname: &str) -> Result<Option<Oid>> {
    match repo.find_reference(refname) {
        Ok(found) => Ok(Some(
            found
                .peel_to_commit()
                .with_context(|| format!("{refname} does not lead to a commit"))?
                .id(),
        )),
        Err(e) if e.code() == ErrorCode::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("{refname} cannot be read")),
    }
}
