//! The person's repository: what must hold of it before anything is done (preflight 1), and what is in
//! the way of working in the checkout itself (preflight 3).

use super::cut_off::Own;
use super::run::{self, Git};
use crate::cause::Bail;
use anyhow::{Context, Result};
use git2::{ErrorCode, Repository, RepositoryState};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The oldest git that has `merge-tree --write-tree`.
const OLDEST: (u32, u32) = (2, 38);

/// A repository in which veri can work, and the checkout that it was started from.
pub struct Repo {
    pub(super) git: Git,
    pub(super) env: Vec<(OsString, OsString)>,
    git2: Repository,
    checkout: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

impl std::fmt::Debug for Repo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repo")
            .field("checkout", &self.checkout)
            .finish_non_exhaustive()
    }
}

impl Repo {
    /// Finds the repository that holds a folder, and checks that veri can work in it.
    ///
    /// # Errors
    /// needs-user: no git on PATH or one older than 2.38; not inside a repository's working tree; a bare
    /// repository; no commit yet; a foreign owner; a format that libgit2 cannot read.
    pub fn discover(dir: &Path) -> Result<Repo> {
        Repo::discover_with(dir, &[])
    }

    /// Like `discover`, with variables laid over the inherited environment of every git call.
    ///
    /// # Errors
    /// As `discover`.
    pub fn discover_with(dir: &Path, env: &[(OsString, OsString)]) -> Result<Repo> {
        let git = Git::new(dir, env);
        check_version(&git)?;
        if ask(&git, dir, &["rev-parse", "--is-bare-repository"])? == Path::new("true") {
            return Err(Bail::needs_user(format!(
                "{} is a bare repository: it has no working tree to start from. Run veri in a clone \
                 of it.",
                dir.display()
            ))
            .into());
        }
        if ask(&git, dir, &["rev-parse", "--is-inside-work-tree"])? != Path::new("true") {
            return Err(Bail::needs_user(format!(
                "{} lies inside a repository's own .git folder. Run veri in its working tree.",
                dir.display()
            ))
            .into());
        }
        let checkout = ask(&git, dir, &["rev-parse", "--show-toplevel"])?;
        let absolute = ["rev-parse", "--path-format=absolute"];
        let common = ask(&git, dir, &[absolute[0], absolute[1], "--git-common-dir"])?;
        let git_dir = ask(&git, dir, &[absolute[0], absolute[1], "--git-dir"])?;
        let git2 = open(&checkout)?;
        match git2.head() {
            Ok(_) => {}
            Err(e) if e.code() == ErrorCode::UnbornBranch => {
                return Err(Bail::needs_user(format!(
                    "{} has no commit yet on the branch that is checked out. Make a first commit \
                     (`git commit --allow-empty -m start`) and run again.",
                    checkout.display()
                ))
                .into());
            }
            Err(e) => {
                return Err(Bail::needs_user(format!(
                    "HEAD of {} cannot be read: {}. Check out a branch and run again.",
                    checkout.display(),
                    e.message()
                ))
                .into());
            }
        }
        let canonical = |path: PathBuf| {
            path.canonicalize()
                .with_context(|| format!("{} cannot be resolved", path.display()))
        };
        let common_dir = canonical(common)?;
        Ok(Repo {
            git: git.at(&checkout).owning(Own::new(&common_dir, None)),
            env: env.to_vec(),
            git2,
            checkout,
            git_dir: canonical(git_dir)?,
            common_dir,
        })
    }

    /// The top of the checkout that veri was started from.
    pub fn checkout(&self) -> &Path {
        &self.checkout
    }

    /// The git folder that all worktrees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The git folder of this checkout: the common one, or that of a linked worktree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The repository as git2 sees it: for reading, trees and refs.
    pub fn git2(&self) -> &Repository {
        &self.git2
    }

    /// The name of this repository under veri's home: the folder's name, and a hash of the common git
    /// folder, so that all worktrees of one repository share it and two clones do not.
    pub fn id(&self) -> String {
        let hash = Sha256::digest(self.common_dir.as_os_str().as_bytes());
        let mut id = sanitized(folder_name(&self.common_dir));
        id.push('-');
        for byte in hash.iter().take(6) {
            let _ = write!(id, "{byte:02x}");
        }
        id
    }

    /// The branch that is checked out; None when HEAD is detached.
    pub fn branch(&self) -> Option<String> {
        let head = self.git2.find_reference("HEAD").ok()?;
        let target = head.symbolic_target().ok()??;
        target.strip_prefix("refs/heads/").map(str::to_owned)
    }

    /// What git is in the middle of in this checkout; None when nothing.
    pub fn in_progress(&self) -> Option<&'static str> {
        in_progress(&self.git2)
    }

    /// Tracked changes and untracked files that git does not ignore, sorted. veri's own files are no
    /// dirt: everything below `.tdd/`, and `.veri.toml`.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn dirt(&self) -> Result<Vec<OsString>> {
        self.dirt_except(&[])
    }

    /// Like `dirt`, without further files of veri's own: paths from the top, files or folders (a
    /// directory forge inside the repository, an issue file).
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn dirt_except(&self, own: &[Vec<u8>]) -> Result<Vec<OsString>> {
        let tool = self.git.read([
            "status",
            "--porcelain=v2",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
        ]);
        let out = run::must(tool, "looking for uncommitted changes")?;
        let mut dirt: Vec<OsString> = run::nul_separated(&out.stdout)
            .filter_map(status_path)
            .filter(|path| !is_own(path, own))
            .map(|path| OsString::from_vec(path.to_vec()))
            .collect();
        dirt.sort();
        dirt.dedup();
        Ok(dirt)
    }

    /// Files and folders of the checkout that git ignores: the topmost of each, folders with a `/` at the end.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn ignored(&self) -> Result<Vec<OsString>> {
        let tool = self.git.read([
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
        ]);
        let out = run::must(tool, "listing what is ignored")?;
        let paths = run::nul_separated(&out.stdout);
        Ok(paths.map(|p| OsString::from_vec(p.to_vec())).collect())
    }
}

/// Whether a path is one of veri's own, or lies below one.
pub(super) fn is_own(path: &[u8], more: &[Vec<u8>]) -> bool {
    let within = |own: &[u8]| {
        let own = own.strip_suffix(b"/").unwrap_or(own);
        path.strip_prefix(own)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    within(super::tree::TDD.as_bytes())
        || within(super::tree::OWN_CONFIG)
        || more.iter().any(|own| within(own))
}

/// What git is in the middle of.
pub(super) fn in_progress(repo: &Repository) -> Option<&'static str> {
    Some(match repo.state() {
        RepositoryState::Clean => return None,
        RepositoryState::Merge => "merge",
        RepositoryState::Revert | RepositoryState::RevertSequence => "revert",
        RepositoryState::CherryPick | RepositoryState::CherryPickSequence => "cherry-pick",
        RepositoryState::Bisect => "bisect",
        RepositoryState::Rebase
        | RepositoryState::RebaseInteractive
        | RepositoryState::RebaseMerge => "rebase",
        RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => "am",
    })
}

/// Opens a repository with libgit2, or says in words for the person why it cannot be.
pub(super) fn open(dir: &Path) -> Result<Repository> {
    Repository::open(dir).map_err(|e| {
        let advice = if e.code() == ErrorCode::Owner {
            "It belongs to another user. If you trust it, run `git config --global --add \
             safe.directory` with this path and run again."
        } else {
            "git can read it, but libgit2, with which veri reads, cannot: repositories in the sha256 \
             object format, with reftable refs and some partial clones are among these. Work in a \
             plain clone."
        };
        Bail::needs_user(format!(
            "The repository {} cannot be opened: {}. {advice}",
            dir.display(),
            e.message()
        ))
        .into()
    })
}

fn check_version(git: &Git) -> Result<()> {
    let asked = run::run(git.read(["version"]), "asking git for its version");
    let out = asked.map_err(|error| {
        let why = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if why == Some(io::ErrorKind::NotFound) && git.dir().is_dir() {
            let said = "There is no `git` on PATH. Install git 2.38 or newer and run again.";
            return Bail::needs_user(said).into();
        }
        error
    })?;
    let said = out.stdout_text();
    match version(&said) {
        Some(found) if found >= OLDEST => Ok(()),
        _ => Err(Bail::needs_user(format!(
            "git 2.38 or newer is needed; `git version` says: {}",
            if said.is_empty() {
                run::words(&out)
            } else {
                said
            }
        ))
        .into()),
    }
}

/// Reads "git version 2.47.3", "git version 2.39.5 (Apple Git-154)" and the like.
fn version(said: &str) -> Option<(u32, u32)> {
    let mut parts = said.strip_prefix("git version ")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// One question to `git rev-parse`, whose refusals are explained to the person.
fn ask(git: &Git, dir: &Path, args: &[&str]) -> Result<PathBuf> {
    let out = run::run(git.read(args), "looking for a repository")?;
    if out.success() {
        return Ok(run::stdout_path(&out));
    }
    let words = run::words(&out);
    let detail = if words.contains("dubious ownership") {
        format!(
            "The repository of {} belongs to another user. git says:\n{words}",
            dir.display()
        )
    } else if words.contains("not a git repository") {
        format!(
            "{} is not inside a git repository. Run veri in the working tree of one.",
            dir.display()
        )
    } else {
        format!(
            "The repository of {} cannot be read. git says:\n{words}",
            dir.display()
        )
    };
    Err(Bail::needs_user(detail).into())
}

/// The path of one record of `git status --porcelain=v2 -z --no-renames`.
fn status_path(record: &[u8]) -> Option<&[u8]> {
    // Fields before the path: "1 XY sub mH mI mW hH hI", "u XY sub m1 m2 m3 mW h1 h2 h3", "?".
    let before = match record.first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' => 1,
        _ => return None,
    };
    record.splitn(before + 1, |b| *b == b' ').nth(before)
}

fn folder_name(common_dir: &Path) -> &OsStr {
    let named = if common_dir.file_name() == Some(OsStr::new(".git")) {
        common_dir.parent().and_then(Path::file_name)
    } else {
        common_dir.file_name()
    };
    named.unwrap_or(OsStr::new("repository"))
}

/// A name that is safe as part of a path anywhere: ASCII letters, digits, `.`, `_` and `-`, no leading
/// dot or dash, at most 40 of them.
fn sanitized(name: &OsStr) -> String {
    let plain: String = name
        .to_string_lossy()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(40)
        .collect();
    let plain = plain.trim_start_matches(['.', '-']);
    if plain.is_empty() {
        "repository".to_owned()
    } else {
        plain.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_all_vendors_are_read() {
        assert_eq!(version("git version 2.47.3"), Some((2, 47)));
        assert_eq!(version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(version("git version 3.0.rc1"), Some((3, 0)));
        assert_eq!(version("hub version 2.47"), None);
    }

    #[test]
    fn names_become_safe_for_paths() {
        assert_eq!(sanitized(OsStr::new("my bank/ü")), "my_bank__");
        assert_eq!(sanitized(OsStr::new("-..x")), "x");
        assert_eq!(sanitized(OsStr::new("..")), "repository");
    }

    #[test]
    fn own_files_are_told_from_files_that_begin_alike() {
        let more = [b"issues/".to_vec()];
        assert!(is_own(b".tdd/x", &more));
        assert!(is_own(b".veri.toml", &more));
        assert!(is_own(b"issues/1.md", &more));
        assert!(!is_own(b".tddx", &more));
        assert!(!is_own(b".veri.toml.bak", &more));
        assert!(!is_own(b"issues.md", &more));
    }
}
