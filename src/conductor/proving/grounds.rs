//! Grounds made ready: what runs in them ended, a tree brought to them and set up, and what the commands in them get to
//! see of the caller's environment.

use crate::agent;
use crate::conductor::failures::{SetupFailed, cut_off};
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::ground::command::Launch;
use crate::ground::setup::{Setup, SetupAsk};
use crate::ground::{Ground, Kind as GroundKind, Verify};
use crate::leaf::{self, End, KillWhy, Records};
use crate::suite::SuiteEnd;
use anyhow::{Result, anyhow};
use git2::{Oid, Repository};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// How long a setup command may take.
pub(in crate::conductor) const SETUP_TIMEOUT: Duration = Duration::from_secs(60 * 60);

impl Run<'_> {
    /// What `ground.pass_env` names, for verifiers; suites and developers keep the caller's environment.
    pub(in crate::conductor) fn declared_env(&self) -> Vec<(OsString, OsString)> {
        let names = &self.settings.config.ground.pass_env;
        let value = |name: &String| Some((name.into(), self.ask.env.get(name)?.to_owned()));
        names.iter().filter_map(value).collect()
    }

    /// The same with the number of a ground, as the ground's own commands get it.
    pub(in crate::conductor) fn declared_with_slot(&self, slot: u32) -> Vec<(OsString, OsString)> {
        let slot = ("VERI_SLOT".into(), slot.to_string().into());
        self.declared_env().into_iter().chain([slot]).collect()
    }

    pub(in crate::conductor) fn suite_env(&self) -> Vec<(OsString, OsString)> {
        agent::suite(self.ask.env.all(), &self.declared_env())
            .into_iter()
            .collect()
    }

    /// A suite or setup of a conductor that was killed may still run in the ground: it is ended first.
    pub(in crate::conductor) fn quiet(&self, records: &Path) -> Result<()> {
        let records = Records::new(records)?.with_shim(&self.ask.program);
        for listed in leaf::list(&records)? {
            if listed.end == End::StillRunning {
                leaf::end(&records, &listed.started.leaf, KillWhy::Stop, None)?;
            }
        }
        Ok(())
    }

    /// Brings the check ground to a tree and sets it up.
    pub(in crate::conductor) fn bring_ground(&mut self, tree: Oid) -> Result<()> {
        let repo = Repository::open(self.tree.path())?;
        let mut ready = self
            .ready
            .take()
            .ok_or_else(|| anyhow!("preflight has not begun"))?;
        let brought = ready
            .ground
            .bring_to(&repo, tree)
            .and_then(|_| self.set_up(tree, &mut ready.ground, "the clean checkout for the suite"));
        self.ready = Some(ready);
        brought
    }

    /// Says that `what` is set up before it is: it may take a while.
    fn set_up(&mut self, tree: Oid, ground: &mut Ground, what: &str) -> Result<()> {
        let commands = self.setup_commands(tree)?;
        if !commands.is_empty() {
            let said = format!("clean checkouts are set up with: {}", commands.join("; "));
            if !self.lines.iter().any(|line| line.text("said") == said) {
                self.say(Kind::Preflight, said)?;
            }
        }
        let env = self.suite_env();
        let ask = SetupAsk {
            commands: &commands,
            env: &env,
            timeout: SETUP_TIMEOUT,
        };
        let mut told = false;
        let mut launch = |launch: &Launch| {
            if !std::mem::replace(&mut told, true) {
                self.say(Kind::Check, format!("{what} is being set up"))?;
            }
            self.supervise(launch)
        };
        match ground.setup(&ask, &mut launch)? {
            Setup::Current | Setup::Done => Ok(()),
            Setup::Failed {
                command,
                ended,
                log,
            } => {
                let end = SuiteEnd::of(&ended, SETUP_TIMEOUT);
                Err(cut_off(&command, &end).unwrap_or_else(|| {
                    let tail = crate::untrusted::of_log(&log, self.settings.tail_bytes());
                    SetupFailed(format!(
                        "The proving ground could not be set up: `{command}` {end}. Say how under [ground] \
                         setup in .veri.toml.\n{tail}"
                    ))
                    .into()
                }))
            }
        }
    }

    /// Has a ground hold the declared file (`ground.env_file`); gives its hash, empty for none.
    pub(in crate::conductor) fn declare_env_file(&self, ground: &mut Ground) -> Result<String> {
        match &self.settings.config.ground.env_file {
            Some(file) => {
                ground.declare_env_file(&self.repo.checkout().join(file), Path::new(file))
            }
            None => Ok(String::new()),
        }
    }

    /// A fresh checkout without history for one verifier, set up like the check ground.
    pub(in crate::conductor) fn verify_ground(
        &mut self,
        candidate: Oid,
        base: Option<Oid>,
    ) -> Result<Verify> {
        let repo = Repository::open(self.tree.path())?;
        let mut ground = Ground::acquire(&self.home, GroundKind::Verify)?;
        self.share_slot(&mut ground)?;
        self.quiet(ground.records())?;
        let mut verify = Verify::make_in(ground, &repo, candidate, base)?;
        self.declare_env_file(verify.ground())?;
        self.set_up(
            candidate,
            verify.ground(),
            "a clean checkout for the verifier",
        )?;
        Ok(verify)
    }
}
