//! The only committer: one commit of a candidate and the ledger, by the `git` program with the person's
//! hooks, identity and signing.

use super::hook;
use super::run::{self, LONG};
use super::stage;
use super::tree;
use super::worktree::WorkTree;
use crate::cause::{Bail, Cause};
use crate::storage;
use crate::tool::{ToolEnd, ToolOutput};
use crate::untrusted;
use anyhow::{Context, Result};
use git2::Oid;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// A commit to be made.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// The candidate: a tree without `.tdd/`.
    pub tree: Oid,
    /// The ledger's path from the top, `.tdd/issue-<n>.md`.
    pub ledger_path: &'a str,
    /// The ledger's bytes after this commit.
    pub ledger: &'a [u8],
    /// The subject, kept verbatim; one line.
    pub subject: &'a str,
    /// Trailers, in order.
    pub trailers: &'a [(String, String)],
    /// The commit on which it is made.
    pub parent: Oid,
}

/// How a commit ended. In all cases but `Done`, `Already` and `LedgerChanged` HEAD, index and ledger are
/// as before; the working tree holds what hooks left in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It was made.
    Done(Oid),
    /// It was there already: an earlier conductor made it.
    Already(Oid),
    /// It is there, but a hook changed the ledger in it.
    LedgerChanged {
        /// The commit; it stands.
        oid: Oid,
        /// The ledger as committed; empty when the hook took it out.
        bytes: Vec<u8>,
    },
    /// The committed tree is not the one that was checked; the ref was moved back.
    TreeDiffers {
        /// What was committed, without `.tdd/`.
        got: Oid,
    },
    /// The pre-commit hook refused the content.
    Refused {
        /// Its words.
        words: String,
        /// Whether they name the ledger or its folder, so that no change of the work can mend it.
        about_ledger: bool,
    },
    /// Something that no content can mend: commit-msg, identity, signing, a hook that cannot run.
    Cannot {
        /// git's or the hook's words.
        words: String,
    },
    /// A hook or a signing program was ended at the deadline.
    TimedOut,
}

/// The whole message of a commit.
pub fn message(subject: &str, trailers: &[(String, String)]) -> String {
    let mut text = format!("{subject}\n\n");
    for (key, value) in trailers {
        text.push_str(key);
        text.push_str(": ");
        text.push_str(value);
        text.push('\n');
    }
    text
}

impl WorkTree {
    /// Makes a commit on HEAD, or finds that it is there already.
    ///
    /// # Errors
    /// git-failed: HEAD is neither the parent nor this commit, or there is nothing to commit;
    /// needs-user: a lock is held; io errors.
    pub fn commit(&self, commit: &Commit<'_>, deadline: Duration) -> Result<Committed> {
        let head = self.head()?;
        if head == commit.parent {
            return self.commit_now(commit, deadline);
        }
        if !self.is_this(commit, head)? {
            return Err(Bail::new(
                Cause::GitFailed,
                format!(
                    "Committing {:?}: HEAD is {head} instead of {}, and not this commit either. \
                     Somebody moved the branch during the run.",
                    commit.subject, commit.parent
                ),
            )
            .into());
        }
        let expected = self.expected_tree(commit, self.ledger_blob(commit)?)?;
        match self.verify(commit, head, expected)? {
            Committed::Done(oid) => Ok(Committed::Already(oid)),
            other => Ok(other),
        }
    }

    fn commit_now(&self, commit: &Commit<'_>, deadline: Duration) -> Result<Committed> {
        self.write_ledger(commit)?;
        let blob = self.ledger_blob(commit)?;
        let expected = self.expected_tree(commit, blob)?;
        if expected == tree::of_commit(&self.git2, commit.parent)? {
            return Err(Bail::new(
                Cause::GitFailed,
                format!(
                    "Committing {:?}: there is nothing to commit.",
                    commit.subject
                ),
            )
            .into());
        }
        self.read_index(expected)?;
        let trace = tempfile::NamedTempFile::new().context("a temporary file")?;
        let tool = self
            .git
            .with_hooks([
                "commit",
                "--quiet",
                "--cleanup=verbatim",
                "--no-status",
                "--file=-",
            ])
            .env("GIT_TRACE2_EVENT", trace.path())
            .env("GIT_TRACE2_EVENT_NESTING", "1")
            .stdin(message(commit.subject, commit.trailers))
            .deadline(deadline);
        let out = run::run(tool, "committing")?;
        if out.end == ToolEnd::TimedOut && self.linked {
            // Our own dead child held it, and nobody else works in veri's worktree.
            stage::remove_if_there(&self.git_dir.join("index.lock"))?;
            stage::remove_if_there(&self.git_dir.join("HEAD.lock"))?;
        }
        let head = self.head()?;
        if head != commit.parent {
            return self.verify(commit, head, expected);
        }
        self.index_to(commit.parent)?;
        self.ledger_of_head(commit.ledger_path)?;
        why_not(
            &out,
            commit.ledger_path,
            failed_hook(trace.path()).as_deref(),
        )
    }

    /// Compares what was committed with what was asked for.
    fn verify(&self, commit: &Commit<'_>, oid: Oid, expected: Oid) -> Result<Committed> {
        let got = tree::of_commit(&self.git2, oid)?;
        if got != expected {
            let others: Vec<_> = tree::changed_paths(&self.git2, expected, got)?
                .into_iter()
                .filter(|change| change.path != commit.ledger_path.as_bytes())
                .collect();
            if !others.is_empty() {
                self.take_back(oid, commit.parent, commit.ledger_path)?;
                let got = tree::without_tdd(&self.git2, got)?;
                return Ok(Committed::TreeDiffers { got });
            }
        }
        self.index_to(oid)?;
        self.ledger_of_head(commit.ledger_path)?;
        if got == expected {
            return Ok(Committed::Done(oid));
        }
        let bytes = tree::read_blob(&self.git2, got, commit.ledger_path.as_bytes())?;
        Ok(Committed::LedgerChanged {
            oid,
            bytes: bytes.unwrap_or_default(),
        })
    }

    /// Takes a commit that was just made back: branch, index and ledger as before; the working tree stays.
    ///
    /// # Errors
    /// git-failed: the branch has moved on.
    pub fn take_back(&self, oid: Oid, parent: Oid, ledger_path: &str) -> Result<()> {
        let tool = self
            .git
            .quiet(["update-ref", "-m", "veri: moved back", "HEAD"]);
        let tool = tool.args([parent.to_string(), oid.to_string()]);
        run::must(tool, "moving the branch back")?;
        self.index_to(parent)?;
        self.ledger_of_head(ledger_path)
    }

    /// Whether a commit was made for this request: its only parent, and every trailer.
    fn is_this(&self, commit: &Commit<'_>, oid: Oid) -> Result<bool> {
        let found = self.git2.find_commit(oid)?;
        let parents: Vec<Oid> = found.parent_ids().collect();
        let text = String::from_utf8_lossy(found.message_bytes()).into_owned();
        let has = |wanted: String| text.lines().any(|line| line == wanted);
        Ok(parents == [commit.parent]
            && commit
                .trailers
                .iter()
                .all(|(key, value)| has(format!("{key}: {value}"))))
    }

    /// The blob of the ledger as git would commit it, filters applied.
    fn ledger_blob(&self, commit: &Commit<'_>) -> Result<Oid> {
        self.blob_of(commit.ledger_path, commit.ledger)
    }

    /// The blob that git makes of the content of a file, filters applied: what differs in line ends alone may be the same.
    ///
    /// # Errors
    /// git-failed.
    pub fn blob_of(&self, path: &str, content: &[u8]) -> Result<Oid> {
        let tool = self
            .git
            .quiet(["hash-object", "-w", "--stdin"])
            .arg(format!("--path={path}"))
            .stdin(content);
        let out = run::must(tool, "storing the ledger")?;
        Ok(Oid::from_str(&out.stdout_text())?)
    }

    /// The full tree that the commit should have: the candidate, HEAD's other `.tdd/` files, the ledger.
    fn expected_tree(&self, commit: &Commit<'_>, ledger: Oid) -> Result<Oid> {
        let repo = &self.git2;
        let parent = tree::of_commit(repo, commit.parent)?;
        let full = tree::with_tdd_of(repo, commit.tree, parent)?;
        let path = commit.ledger_path.as_bytes();
        let expected = tree::with(repo, full, path, Some((ledger, 0o100_644)))?;
        tree::keep_safe(repo, expected, parent)?;
        Ok(expected)
    }

    /// Writes the ledger into the working tree, in one step; a link in its place is replaced.
    fn write_ledger(&self, commit: &Commit<'_>) -> Result<()> {
        let path = self.path.join(commit.ledger_path);
        let what = || format!("the ledger {} cannot be written", path.display());
        let folder = path.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder).with_context(what)?;
        let mut file = tempfile::Builder::new()
            .prefix(tree::LEDGER_HALF_WRITTEN)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(folder)
            .with_context(what)?;
        file.write_all(commit.ledger).with_context(what)?;
        file.persist(&path)
            .map_err(|e| e.error)
            .with_context(what)?;
        Ok(())
    }

    /// Makes the real index hold a tree.
    fn read_index(&self, tree: Oid) -> Result<()> {
        let tool = self
            .git
            .quiet(["read-tree", "--reset", &tree.to_string()])
            .deadline(LONG);
        run::must(tool, "setting the index").map(drop)
    }

    /// Makes the real index hold what a commit does, and know what the files on disk look like. One that holds it
    /// was written by `git commit`, which sees to the latter.
    fn index_to(&self, commit: Oid) -> Result<()> {
        let tree = tree::of_commit(&self.git2, commit)?;
        if self.index_holds(tree) {
            return Ok(());
        }
        self.read_index(tree)?;
        // Exit code 1 only says that files differ from the index.
        let refresh = self
            .git
            .quiet(["update-index", "-q", "--refresh"])
            .deadline(LONG);
        run::run(refresh, "refreshing the index").map(drop)
    }

    /// Makes the ledger in the working tree HEAD's.
    fn ledger_of_head(&self, ledger_path: &str) -> Result<()> {
        let head = tree::of_commit(&self.git2, self.head()?)?;
        let file = self.path.join(ledger_path);
        let Some(committed) = tree::read_blob(&self.git2, head, ledger_path.as_bytes())? else {
            return stage::remove_if_there(&file);
        };
        let now = untrusted::whole(&file, committed.len() as u64);
        if now.is_ok_and(|now| now.as_ref() == Some(&committed)) {
            return Ok(());
        }
        let tool = self.git.quiet(["restore", "--worktree", "--", ledger_path]);
        run::must(tool, "putting the ledger back").map(drop)
    }
}

/// Tells refusals that the work can mend from those that it cannot.
fn why_not(out: &ToolOutput, ledger_path: &str, hook: Option<&str>) -> Result<Committed> {
    if out.end == ToolEnd::TimedOut {
        return Ok(Committed::TimedOut);
    }
    let words = run::words(out);
    // A hook may speak of files that it is denied; of a full disk only when it is full.
    let storage = match hook {
        None => storage::is_named_in(&words),
        Some(_) => words.contains("No space left on device"),
    };
    if run::held_lock(&words) || storage {
        return Err(run::failed(out, "committing"));
    }
    if hook == Some("pre-commit") && !hook::could_not_start(out) {
        let name = Path::new(ledger_path)
            .file_name()
            .unwrap_or(OsStr::new(ledger_path));
        let about_ledger = words.contains(&*String::from_utf8_lossy(name.as_bytes()))
            || words.contains(&format!("{}/", tree::TDD));
        return Ok(Committed::Refused {
            words,
            about_ledger,
        });
    }
    Ok(Committed::Cannot { words })
}

/// The most that is read of git's trace, in bytes.
const TRACE: u64 = 64 << 20;

/// The hook that ended with a failure, by git's own trace. Git calls that a hook makes write to the same
/// file, under session ids that begin with ours.
fn failed_hook(trace: &Path) -> Option<String> {
    let text = untrusted::whole(trace, TRACE).ok()??;
    let mut session = None;
    let mut hooks = std::collections::BTreeMap::new();
    let mut failed = None;
    for line in text.split(|b| *b == b'\n') {
        let Ok(event) = serde_json::from_slice::<serde_json::Value>(line) else {
            continue;
        };
        let sid = event["sid"].as_str().map(str::to_owned);
        if session.is_none() {
            session.clone_from(&sid);
        }
        if sid != session {
            continue;
        }
        let child = event["child_id"].as_i64();
        match event["event"].as_str() {
            Some("child_start") if event["child_class"] == "hook" => {
                hooks.insert(
                    child,
                    event["hook_name"].as_str().unwrap_or_default().to_owned(),
                );
            }
            Some("child_exit") if event["code"] != 0 => {
                failed = hooks.get(&child).cloned().or(failed);
            }
            _ => {}
        }
    }
    failed
}
