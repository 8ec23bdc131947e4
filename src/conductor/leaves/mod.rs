//! Leaves: what each is told, its launch, and what its end and answer mean to the machine.
//!
//! - `planner`, `developer`, `verifier`: what each role is told, and where it works
//! - `deadlines`, `sandbox`: how long each may take, and what it can reach; `writable`: what the configuration adds to that
//! - `files`: its prompt, and what it wrote
//! - `supervised`: the launch itself, journalled, started and waited for
//! - `ended`: what an end and an answer mean
//! - `unfinished`: what a developer starts from, and what is left of work that was cut off

mod deadlines;
mod developer;
mod ended;
mod files;
mod planner;
mod sandbox;
mod supervised;
mod unfinished;
mod verifier;
mod writable;

use crate::agent::Place;
use crate::cause::{Bail, Cause};
use crate::conductor::leaves::deadlines::Deadlines;
use crate::conductor::leaves::files::Files;
use crate::conductor::run::Run;
use crate::leaf::{LaunchId, Records};
use crate::machine::{Event, Leaf, LeafEnd, Tree};
use crate::role::{Role, StopMode};
use anyhow::{Context, Result, anyhow};
use git2::Oid;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

impl Run<'_> {
    /// Launches a leaf and waits for its end.
    pub(in crate::conductor) fn launch(&mut self, leaf: &Leaf) -> Result<(Event, Value)> {
        // A planner that ended while no conductor watched: now its plan can be judged.
        if leaf.role == Role::Planner
            && let Some(line) = self.open_launch()
            && let Some(outcome) = self.take_up(leaf, &line, None)?
        {
            return Ok(outcome);
        }
        if let Some(mode) = self.stop_mode()
            && mode >= StopMode::AtLeaf
        {
            return Ok((Event::LeafEnded(LeafEnd::Refused), Value::Null));
        }
        self.within_wall_budget()?;
        let id = LaunchId::random()?;
        match leaf.role {
            Role::Planner => self.launch_planner(leaf, id),
            Role::Developer => self.launch_developer(leaf, id),
            Role::Verifier => self.launch_verifier(leaf, id),
        }
    }

    fn within_wall_budget(&self) -> Result<()> {
        let Some(minutes) = self.settings.config.limits.wall_minutes else {
            return Ok(());
        };
        if self.started.elapsed() < Duration::from_secs(minutes.saturating_mul(60)) {
            return Ok(());
        }
        Err(Bail::new(
            Cause::BudgetExhausted,
            format!("The run has taken the {minutes} minutes that limits.wall_minutes allows. Run again to go on with as much time again."),
        )
        .into())
    }

    pub(in crate::conductor) fn records(&self) -> Result<Records> {
        Ok(Records::new(self.tree.tdd())?.with_shim(&self.ask.program))
    }

    /// Where the files of a launch are.
    pub(in crate::conductor) fn files_of(
        &self,
        role: Role,
        records: &Records,
        id: &LaunchId,
    ) -> Files {
        match role {
            Role::Verifier => Files::at(&self.verifier_temp(id)),
            _ => Files::below(records, id),
        }
    }

    pub(super) fn place<'p>(
        &'p self,
        files: &'p Files,
        cwd: &'p Path,
        timeout: Duration,
        declared: &'p [(OsString, OsString)],
    ) -> Result<Place<'p>> {
        Ok(Place {
            caller: self.ask.env.all(),
            declared,
            issue: self.issue_number,
            test_command: &self.ready()?.test_command,
            skill_commit: self.skill_commit()?,
            timeout,
            cwd,
            prompt: &files.prompt,
            stdout: &files.stdout,
            stderr: &files.stderr,
        })
    }

    /// How long a leaf of a role may take.
    pub(in crate::conductor) fn deadlines(&self, role: Role) -> Result<Deadlines> {
        let stored = deadlines::stored(&self.tree.tdd(), self.issue_number);
        Ok(self
            .settings
            .deadlines(role, stored, self.ready()?.suite_ms))
    }

    pub(super) fn skill_commit(&self) -> Result<Oid> {
        let id = self
            .source
            .skill_commit
            .as_deref()
            .ok_or_else(|| anyhow!("no snapshot is in force"))?;
        Ok(Oid::from_str(id)?)
    }
}

/// A tree's name as git2 has it.
pub(in crate::conductor) fn oid(tree: Option<&Tree>) -> Result<Oid> {
    let tree = tree.ok_or_else(|| anyhow!("no candidate is known"))?;
    Oid::from_str(&tree.0).with_context(|| format!("{:?} is not the name of a tree", tree.0))
}
