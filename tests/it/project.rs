//! A little repository, a home beside it, and a launcher that stands in for the supervisor.

use git2::{IndexEntry, IndexTime, Oid, Repository};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use veri::ground::{Ended, Launch};

pub struct Project {
    dir: TempDir,
    pub repo: Repository,
}

pub const FILE: u32 = 0o100_644;
pub const PROGRAM: u32 = 0o100_755;
pub const LINK: u32 = 0o120_000;
pub const SUBMODULE: u32 = 0o160_000;

impl Project {
    pub fn new() -> Project {
        let dir = tempfile::tempdir().unwrap();
        let repo = Repository::init(dir.path().join("checkout")).unwrap();
        let mut config = repo.config().unwrap();
        // Whatever the machine's own config says.
        config.set_str("core.autocrlf", "false").unwrap();
        config.set_str("core.excludesFile", "/dev/null").unwrap();
        config.set_str("core.attributesFile", "/dev/null").unwrap();
        Project { dir, repo }
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn checkout(&self) -> PathBuf {
        self.dir.path().join("checkout").canonicalize().unwrap()
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A tree of text files.
    pub fn tree(&self, files: &[(&str, &str)]) -> Oid {
        let list: Vec<(&[u8], u32, &[u8])> = files
            .iter()
            .map(|(path, text)| (path.as_bytes(), FILE, text.as_bytes()))
            .collect();
        self.tree_of(&list)
    }

    /// A tree of (path, mode, content).
    pub fn tree_of(&self, files: &[(&[u8], u32, &[u8])]) -> Oid {
        let mut index = git2::Index::new().unwrap();
        for (path, mode, content) in files {
            let id = if *mode == SUBMODULE {
                Oid::from_str("1234567890123456789012345678901234567890").unwrap()
            } else {
                self.repo.blob(content).unwrap()
            };
            let zero = IndexTime::new(0, 0);
            index
                .add(&IndexEntry {
                    ctime: zero,
                    mtime: zero,
                    dev: 0,
                    ino: 0,
                    mode: *mode,
                    uid: 0,
                    gid: 0,
                    file_size: 0,
                    id,
                    flags: 0,
                    flags_extended: 0,
                    path: path.to_vec(),
                })
                .unwrap();
        }
        index.write_tree_to(&self.repo).unwrap()
    }

    /// Commits a tree on HEAD, so that the repository has a history.
    pub fn commit(&self, tree: Oid, message: &str) -> Oid {
        let who = git2::Signature::new("Dev", "dev@example.com", &git2::Time::new(0, 0)).unwrap();
        let parents: Vec<_> = self
            .repo
            .head()
            .ok()
            .map(|head| head.peel_to_commit().unwrap())
            .into_iter()
            .collect();
        let parents: Vec<_> = parents.iter().collect();
        let tree = self.repo.find_tree(tree).unwrap();
        self.repo
            .commit(Some("HEAD"), &who, &who, message, &tree, &parents)
            .unwrap()
    }
}

/// The output of a git command that must succeed, without the person's config.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = git_command(dir, args).output().unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[allow(clippy::disallowed_methods)] // tests look with the real program
pub fn git_command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(dir)
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .stdin(Stdio::null());
    command
}

/// Runs a command as the supervisor would, without its supervision.
#[allow(clippy::disallowed_methods)] // stands in for the supervisor
pub fn launch(ask: &Launch) -> anyhow::Result<Ended> {
    let output = File::create(&ask.output)?;
    let status = Command::new(&ask.argv[0])
        .args(&ask.argv[1..])
        .current_dir(&ask.cwd)
        .env_clear()
        .envs(ask.env.iter().cloned())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, signal) => Ended::Signal(signal.unwrap_or(0)),
    })
}

/// The environment that suites get in tests.
pub fn env() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let path = std::env::vars_os().find(|(name, _)| name == "PATH");
    path.into_iter()
        .chain([("GIT_CONFIG_GLOBAL".into(), "/dev/null".into())])
        .collect()
}

/// Whether there is a python3 to test with; says so when there is none.
pub fn has_python() -> bool {
    let there = Command::new("python3")
        .args(["-c", ""])
        .envs(env())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        #[allow(clippy::print_stderr)] // a test that is skipped says so
        {
            eprintln!("skipped: there is no python3");
        }
    }
    there
}
