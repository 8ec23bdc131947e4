//! Whether commits are possible at all (preflight 8): identity, signing, commit-msg.

use super::hook::{self, AtHand, Hook};
use super::run;
use super::stage::PrivateIndex;
use super::worktree::WorkTree;
use crate::cause::Bail;
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// How long a signing program may take for the one probe; it may ask the person for a passphrase.
const SIGNING: Duration = Duration::from_secs(60);

impl WorkTree {
    /// Tries what every commit will need. `messages` are whole commit messages as the run will make them
    /// (see `message`), for the commit-msg hook.
    ///
    /// # Errors
    /// needs-user, with git's or the hook's words.
    pub fn commit_probe(&self, messages: &[String], deadline: Duration) -> Result<()> {
        for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let out = run::run(self.git.read(["var", who]), "asking for the identity")?;
            if !out.success() {
                return Err(refuse("git does not know who commits", &run::words(&out)));
            }
        }
        self.probe_signing()?;
        for name in ["pre-commit", "prepare-commit-msg", "commit-msg"] {
            if let AtHand::Cannot(words) = self.hook_at_hand(name)? {
                return Err(refuse(&format!("the {name} hook cannot run"), &words));
            }
        }
        self.probe_commit_msg(messages, deadline)
    }

    fn probe_signing(&self) -> Result<()> {
        let tool = self
            .git
            .read(["config", "--type=bool", "--get", "commit.gpgSign"]);
        let wanted = run::run(tool, "asking whether commits are signed")?;
        if wanted.stdout_text() != "true" {
            return Ok(());
        }
        // A commit object that nothing refers to.
        let tool = self
            .git
            .quiet([
                "commit-tree",
                "-S",
                "-m",
                "veri asks whether commits can be signed",
            ])
            .arg("HEAD^{tree}")
            .deadline(SIGNING);
        let out = run::run(tool, "signing a probe")?;
        if out.success() {
            return Ok(());
        }
        let why = format!(
            "commit.gpgSign is set, but a commit cannot be signed ({})",
            { run::ending(&out) }
        );
        Err(refuse(&why, &run::words(&out)))
    }

    fn probe_commit_msg(&self, messages: &[String], deadline: Duration) -> Result<()> {
        if !matches!(self.hook_at_hand("commit-msg")?, AtHand::There) {
            return Ok(());
        }
        let file = self.git_dir.join("VERI_EDITMSG");
        let index = PrivateIndex::of_head(self)?;
        for message in messages {
            fs::write(&file, message)
                .with_context(|| format!("{} cannot be written", file.display()))?;
            let tool = self
                .git
                .with_hooks(["hook", "run", "--ignore-missing", "commit-msg", "--"])
                .arg(&file)
                .env("GIT_INDEX_FILE", index.file())
                .deadline(deadline);
            let out = run::run(tool, "running the commit-msg hook");
            let _ = fs::remove_file(&file);
            let subject = message.lines().next().unwrap_or_default();
            let (why, words) = match hook::judge(&out?) {
                Hook::None | Hook::Passed => continue,
                Hook::Refused { words } => ("refuses", words),
                Hook::Cannot { words } => ("cannot run on", words),
                Hook::TimedOut => ("does not end on", String::new()),
            };
            let advice = "If it wants another form, set commit.subject in .veri.toml.";
            let why = format!("the commit-msg hook {why} the subject {subject:?}. {advice}");
            return Err(refuse(&why, &words));
        }
        Ok(())
    }
}

fn refuse(why: &str, words: &str) -> anyhow::Error {
    Bail::needs_user(format!("Commits are not possible here: {why}\n{words}").trim_end()).into()
}
