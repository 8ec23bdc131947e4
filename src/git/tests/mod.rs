//! The git layer against real git, in repositories of its own.

mod base;
mod candidate;
mod commit;
mod frame;
mod guard;
mod nested;
mod preflight;
mod tdd;
mod told;
mod worktree;

use super::{Guard, Repo, Settled, WorkTree};
use crate::cause::{Bail, Cause};
use crate::tool::Tool;
use git2::Oid;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Long enough for any call of these tests on a busy machine.
pub(super) const SOON: Duration = Duration::from_secs(60);

/// A person with a home, a checkout `bank` with two commits on `main`, and uncommitted work in it.
pub(super) struct Person {
    dir: tempfile::TempDir,
    pub(super) env: Vec<(OsString, OsString)>,
}

impl Person {
    pub(super) fn new() -> Person {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        fs::write(
            home.join("gitconfig"),
            "[user]\n\tname = Ada\n\temail = ada@example.org\n",
        )
        .unwrap();
        let env = [
            ("HOME", home.as_os_str().to_owned()),
            ("GIT_CONFIG_GLOBAL", home.join("gitconfig").into_os_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GNUPGHOME", home.join("gnupg").into_os_string()),
        ];
        let person = Person {
            dir,
            env: env
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        };
        fs::create_dir(person.checkout()).unwrap();
        person.git(&["init", "--quiet", "--initial-branch=main"]);
        person.write("a.txt", "one\n");
        person.write("src/lib.rs", "fn f() {}\n");
        person.write(".gitignore", "/target\n");
        person.commit("first");
        person.write("a.txt", "two\n");
        person.commit("second");
        person
    }

    pub(super) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(super) fn checkout(&self) -> PathBuf {
        self.root().join("bank")
    }

    pub(super) fn work(&self) -> PathBuf {
        self.root().join("state/work/issue-42")
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        put(&self.checkout().join(path), text);
    }

    pub(super) fn commit(&self, subject: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", subject]);
    }

    /// git in the checkout; must succeed.
    pub(super) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.checkout(), args)
    }

    pub(super) fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let out = self.tool("git", dir).args(args).run().unwrap();
        assert!(
            out.success(),
            "git {args:?}: {}{}",
            out.stdout_text(),
            out.stderr_text()
        );
        out.stdout_text()
    }

    /// A leaf at work in a folder: a shell with the leaf's identity. Its exit code does not matter.
    pub(super) fn leaf(&self, dir: &Path, script: &str) {
        let mut tool = self.tool("sh", dir).args(["-c", script]);
        for (key, value) in super::leaf_git_env(&self.env) {
            tool = tool.env(key, value);
        }
        let out = tool.run().unwrap();
        assert!(
            out.success(),
            "{script}: {}{}",
            out.stdout_text(),
            out.stderr_text()
        );
    }

    fn tool(&self, program: &str, dir: &Path) -> Tool {
        let mut tool = Tool::new(program).dir(dir);
        for (key, value) in &self.env {
            tool = tool.env(key, value);
        }
        tool
    }

    pub(super) fn repo(&self) -> Repo {
        Repo::discover_with(&self.checkout(), &self.env).unwrap()
    }

    /// veri's worktree on the branch.
    pub(super) fn worktree(&self) -> WorkTree {
        let repo = self.repo();
        let at = repo.git2().refname_to_id("HEAD").unwrap();
        let wt = WorkTree::linked(&repo, &self.work(), at).unwrap();
        wt.exclude_runtime_files().unwrap();
        wt.take_branch(42, at).unwrap();
        wt
    }

    pub(super) fn hook(&self, name: &str, script: &str) {
        let file = self.checkout().join(".git/hooks").join(name);
        put(&file, script);
        crate::executable::executable(&file);
    }
}

pub(super) fn put(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

pub(super) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

/// The text of a file of a tree.
pub(super) fn text(wt: &WorkTree, tree: Oid, path: &str) -> Option<String> {
    super::tree::read_blob(wt.git2(), tree, path.as_bytes())
        .unwrap()
        .map(|bytes| String::from_utf8(bytes).unwrap())
}

/// The bail in an error's chain.
pub(super) fn bail<T: std::fmt::Debug>(result: anyhow::Result<T>) -> Bail {
    let error = result.unwrap_err();
    match error.downcast_ref::<Bail>() {
        Some(bail) => bail.clone(),
        None => panic!("no bail: {error:?}"),
    }
}

pub(super) fn needs_user<T: std::fmt::Debug>(result: anyhow::Result<T>) -> String {
    let bail = bail(result);
    assert_eq!(bail.cause, Cause::NeedsUser, "{}", bail.detail);
    bail.detail
}

/// Every file below a folder with mode, time and content, symbolic links by target.
pub(super) fn everything(dir: &Path) -> Vec<(PathBuf, u32, std::time::SystemTime, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                all.push((
                    path,
                    meta.permissions().mode(),
                    meta.modified().unwrap(),
                    bytes,
                ));
            }
        }
    }
    all.sort();
    all
}

/// Puts git back after a leaf, and records nothing.
fn settle(guard: &Guard, wt: &WorkTree) -> Settled {
    guard.settle(wt, 42, &mut |_| Ok(())).unwrap()
}
