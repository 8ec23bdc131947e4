//! Dependencies for developers: `ground.setup` in veri's own worktree, run again when a lock file changes.
//!
//! The person's checkout (`--here`) is theirs to set up.

use super::grounds::SETUP_TIMEOUT;
use crate::cause::Bail;
use crate::conductor::failures::StoppedInSuite;
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::git::{Status, tree};
use crate::ground::ENV_FILE;
use crate::ground::command::{Ended, Launch, shell};
use crate::ground::project::Project;
use crate::ground::setup::{dependency_key, setup_for};
use crate::untrusted::{given, whole};
use anyhow::{Context, Result};
use git2::{Oid, Repository};
use std::path::PathBuf;

impl Run<'_> {
    /// Makes the dependency folders of the worktree fit what was laid in it; None for the branch as it is.
    ///
    /// A setup that fails is said and not more: in the ground it worked on the base, and what a candidate's
    /// own manifests break there is a failed check.
    pub(in crate::conductor) fn furnish(&mut self, laid: Option<Oid>) -> Result<()> {
        if !self.tree.is_linked() {
            return Ok(());
        }
        self.copy_env_file()?;
        let laid = match laid {
            Some(laid) => laid,
            None => self.tree.head_tree()?,
        };
        let commands = self.setup_commands(laid)?;
        let key = dependency_key(&Repository::open(self.tree.path())?, laid, &commands)?;
        let kept = self.key_file();
        let is_kept =
            |file: &_| matches!(whole(file, 4096), Ok(Some(old)) if old == key.as_bytes());
        if commands.is_empty() || is_kept(&kept) {
            return Ok(());
        }
        self.say(
            Kind::Check,
            "the worktree for the developer is being set up",
        )?;
        let before = self.tree.candidate(&[])?;
        for (number, command) in commands.iter().enumerate() {
            let output = self
                .tree
                .tdd()
                .join("runs")
                .join(format!("setup-{number}.log"));
            let ended = self.supervise(&Launch {
                name: "setup".to_owned(),
                argv: shell(command),
                cwd: self.tree.path().to_owned(),
                env: self.suite_env(),
                output: output.clone(),
                wall: SETUP_TIMEOUT,
                records: self.tree.tdd(),
            })?;
            match ended {
                Ended::Code(0) => {}
                Ended::Stopped => return Err(StoppedInSuite.into()),
                ended => {
                    let said = format!(
                        "`{command}` ended with {ended:?} in the worktree ({})",
                        output.display()
                    );
                    return self.say(Kind::Check, said);
                }
            }
        }
        // Whatever it made or changed beside what git ignores is not the developer's.
        let after = self.tree.candidate(&[])?;
        let changes = tree::changed_paths(self.tree.git2(), before, after)?;
        let added = changes
            .into_iter()
            .filter(|change| change.status == Status::Added);
        let added: Vec<_> = added.map(|change| change.path).collect();
        self.learn_debris(&added)?;
        std::fs::write(&kept, key).with_context(|| format!("cannot write {}", kept.display()))
    }

    /// The commands that make dependency folders for a tree: configured, or detected.
    pub(in crate::conductor) fn setup_commands(&self, tree: Oid) -> Result<Vec<String>> {
        match &self.settings.config.ground.setup {
            Some(commands) => Ok(commands.clone()),
            None => Ok(setup_for(&Project::of_tree(
                &Repository::open(self.tree.path())?,
                tree,
            )?)),
        }
    }

    /// It goes with the worktree: one that is made anew has no dependency folders.
    fn key_file(&self) -> PathBuf {
        self.tree.git_dir().join("veri-setup")
    }

    /// `ground.env_file`, for developers as for suites.
    fn copy_env_file(&self) -> Result<()> {
        let Some(file) = &self.settings.config.ground.env_file else {
            return Ok(());
        };
        let (from, to) = (self.repo.checkout().join(file), self.tree.path().join(file));
        if to.exists() {
            return Ok(());
        }
        let content = given(&from, ENV_FILE).map_err(|e| {
            Bail::needs_user(format!(
                "ground.env_file names {}, which cannot be read: {e}. Make the file, or take the key out",
                from.display()
            ))
        })?;
        std::fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))
    }
}
