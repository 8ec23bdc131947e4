//! How the `git` program is called: its environment, and what its failures mean.

use super::cut_off::Own;
use crate::cause::{Bail, Cause};
use crate::storage;
use crate::tool::{Tool, ToolEnd, ToolOutput};
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Variables that would send git to another repository, index or meaning of paths.
/// The first group is what `git rev-parse --local-env-vars` prints (git 2.47), without the two that
/// carry a caller's configuration.
const FOREIGN: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_QUARANTINE_PATH",
    "GIT_ATTR_SOURCE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// How long a call that may check out, fetch or send a whole repository may take.
pub(super) const LONG: Duration = Duration::from_secs(30 * 60);

/// At most this much of a hook's or git's words is passed on: the end of them.
const WORDS_KIB: usize = 16;

/// How much of each stream of a hook is held, in bytes: many times what is passed on.
const HOOK_OUTPUT: usize = 512 * 1024;

/// The `git` program, bound to a folder.
#[derive(Debug, Clone)]
pub(super) struct Git {
    dir: PathBuf,
    env: Vec<(OsString, OsString)>,
    /// Where calls that are killed may leave locks.
    own: Option<Own>,
}

impl Git {
    /// git in this folder; `env` is laid over the inherited environment of every call.
    pub(super) fn new(dir: impl Into<PathBuf>, env: &[(OsString, OsString)]) -> Git {
        Git {
            dir: dir.into(),
            env: env.to_vec(),
            own: None,
        }
    }

    /// The same git, which leaves no locks at veri's own places when it is killed.
    pub(super) fn owning(mut self, own: Own) -> Git {
        self.own = Some(own);
        self
    }

    /// The same git in another folder.
    pub(super) fn at(&self, dir: impl Into<PathBuf>) -> Git {
        Git::new(dir, &self.env)
    }

    /// A variable of the environment that is laid over every call.
    pub(super) fn var(&self, name: &str) -> Option<&OsStr> {
        let of_that_name = |(key, _): &&(OsString, OsString)| key == name;
        let found = self.env.iter().rev().find(of_that_name);
        found.map(|(_, value)| value.as_os_str())
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn bare_call(&self) -> Tool {
        let mut tool = Tool::new("git").dir(&self.dir);
        for name in FOREIGN {
            tool = tool.env_remove(name);
        }
        for (key, value) in &self.env {
            tool = tool.env(key, value);
        }
        // Commits that replace others are a way to hide: libgit2 does not follow them either.
        tool.env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .env("GIT_EDITOR", "true")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
    }

    /// A call that may write, and leaves no lock of its own however it ends; with `hooks`, none of theirs either.
    fn writing_call(&self, hooks: bool) -> Tool {
        match &self.own {
            Some(own) => self.bare_call().afterwards(own.undoing(hooks)),
            None => self.bare_call(),
        }
    }

    /// A call that only reads, and takes no lock.
    pub(super) fn read<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Tool {
        self.bare_call()
            .env("GIT_OPTIONAL_LOCKS", "0")
            .args(["-c", "core.fsmonitor=false"])
            .args(args)
    }

    /// A call of veri's own bookkeeping, which is nobody's business: no hook runs, nothing is packed in
    /// the background, line endings that cannot be turned back are no reason to stop.
    pub(super) fn quiet<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Tool {
        self.writing_call(false)
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "core.fsync=committed",
            ])
            .args([
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.untrackedCache=false",
            ])
            .args([
                "-c",
                "core.safecrlf=false",
                "-c",
                "gc.auto=0",
                "-c",
                "maintenance.auto=false",
            ])
            .args(args)
    }

    /// A call in which the person's hooks have their say, however much that is; what they started in the
    /// background ends with the call.
    ///
    /// Agents that keep secrets (gpg's, ssh's, git's credential cache) are not hit: the probe of preflight and the
    /// fetch before it, which are not swept, are the first to need one and start it.
    pub(super) fn with_hooks<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Tool {
        self.writing_call(true)
            .keep_at_most(HOOK_OUTPUT)
            .sweeping()
            .args([
                "-c",
                "core.fsync=committed",
                "-c",
                "gc.auto=0",
                "-c",
                "maintenance.auto=false",
            ])
            .args(args)
    }
}

/// Runs a call to its end, whatever its exit code. One that somebody killed has answered nothing, least of all no: it
/// bails git-failed.
pub(super) fn run(tool: Tool, what: &str) -> Result<ToolOutput> {
    let out = tool.run().map_err(|e| {
        let said = format!("{what}: git cannot be started: {e}");
        match storage::has_no_more(&e) {
            Some(advice) => Bail::new(Cause::GitFailed, format!("{said}. {advice}")).into(),
            None => anyhow::Error::new(e).context(format!("{what}: git cannot be started")),
        }
    })?;
    match out.end {
        ToolEnd::Signal(_) => Err(failed(&out, what)),
        ToolEnd::Code(_) | ToolEnd::TimedOut => Ok(out),
    }
}

/// Runs a call that must succeed; otherwise bails git-failed with git's words.
pub(super) fn must(tool: Tool, what: &str) -> Result<ToolOutput> {
    let out = run(tool, what)?;
    if out.success() {
        Ok(out)
    } else {
        Err(failed(&out, what))
    }
}

/// The error of a call that failed in a way that no change of the work can mend.
pub(super) fn failed(out: &ToolOutput, what: &str) -> anyhow::Error {
    let words = words(out);
    let said = || format!("{what} failed ({}):\n{words}", ending(out));
    let bail = if storage::is_named_in(&words) {
        Bail::new(
            Cause::StorageFailed,
            format!("{}\n{}", said(), storage::ADVICE),
        )
    } else if held_lock(&words) {
        Bail::needs_user(format!(
            "{what}: another git process holds a lock, or one that died left it behind. If no git is \
             running in this repository, remove the file that git names and run again:\n{words}"
        ))
    } else {
        Bail::new(Cause::GitFailed, said())
    };
    bail.into()
}

/// Whether git's words complain about a lock file that exists.
pub(super) fn held_lock(words: &str) -> bool {
    words.contains(".lock': File exists")
}

/// How a call ended, in words.
pub(super) fn ending(out: &ToolOutput) -> String {
    match out.end {
        ToolEnd::Code(code) => format!("exit code {code}"),
        ToolEnd::Signal(signal) => format!("signal {signal}"),
        ToolEnd::TimedOut => "ended at its deadline".to_owned(),
    }
}

/// What a call said, both streams, the last 16 KiB of it, without passwords in addresses.
pub(super) fn words(out: &ToolOutput) -> String {
    let mut all = out.stdout.clone();
    if !all.is_empty() && !all.ends_with(b"\n") {
        all.push(b'\n');
    }
    all.extend_from_slice(&out.stderr);
    let from = all.len().saturating_sub(WORDS_KIB * 1024);
    let text = String::from_utf8_lossy(&all[from..]);
    without_passwords(text.trim())
}

/// Replaces `user:password@` in addresses.
fn without_passwords(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        kept.push_str(before);
        let end = after
            .find(|c: char| c == '/' || c.is_whitespace() || c == '\'')
            .unwrap_or(after.len());
        match after[..end].rfind('@') {
            Some(host) => {
                kept.push_str("…@");
                rest = &after[host + 1..];
            }
            None => rest = after,
        }
    }
    kept.push_str(rest);
    kept
}

/// Splits the output of a `-z` call.
pub(super) fn nul_separated(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|b| *b == 0).filter(|part| !part.is_empty())
}

/// Standard output as a path, without its last newline.
pub(super) fn stdout_path(out: &ToolOutput) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let line = out.stdout.strip_suffix(b"\n").unwrap_or(&out.stdout);
    PathBuf::from(OsStr::from_bytes(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_not_passed_on() {
        let said = "fatal: unable to access 'https://me:s3cret@host/x.git/': no, see http://a/b@c";
        assert_eq!(
            without_passwords(said),
            "fatal: unable to access 'https://…@host/x.git/': no, see http://a/b@c"
        );
    }

    #[test]
    fn a_git_that_somebody_kills_has_not_answered_no() {
        let killed = Tool::new("sh").args(["-c", "kill -9 $$"]);
        let error = run(killed, "asking").unwrap_err();
        let cause = error.downcast_ref::<Bail>().map(|bail| bail.cause);
        assert_eq!(cause, Some(Cause::GitFailed), "{error:#}");
        let refused = Tool::new("sh").args(["-c", "exit 1"]);
        assert!(!run(refused, "asking").unwrap().success());
    }

    #[test]
    fn only_the_end_of_long_words_is_kept() {
        let out = ToolOutput {
            end: ToolEnd::Code(1),
            stdout: vec![b'x'; 1 << 20],
            stderr: b"the end".to_vec(),
        };
        let words = words(&out);
        assert!(words.ends_with("the end"));
        assert!(words.len() <= WORDS_KIB * 1024);
    }
}
