//! One launch: journalled, started, waited for.

use crate::agent::Launch;
use crate::conductor::leaves::deadlines::Deadlines;
use crate::conductor::record::{Entry, of_leaf};
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::git::leaf_git_env;
use crate::leaf;
use crate::leaf::{End, KillWhy, LaunchId, Records, Spec};
use crate::machine::{Event, Leaf};
use crate::prompt::Nonce;
use crate::role::{Role, leaf_name};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a leaf that cannot be waited for has beyond its grace until it is left to its own deadline.
const AFTER_GRACE: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Journals the launch, starts it, waits, and reads the answer.
    pub(super) fn run_leaf(
        &mut self,
        leaf: &Leaf,
        launch: &Launch,
        id: LaunchId,
        nonce: Option<&Nonce>,
        deadlines: &Deadlines,
        records: &Records,
    ) -> Result<(Event, Value)> {
        let name = leaf_name(leaf.role, leaf.phase);
        let told = deadlines.told(launch.streaming().is_some());
        let fields = json!({
            "intent": "launch",
            "launch": id.as_str(),
            "leaf": name,
            "relaunch": leaf.launch - 1,
            "deadlines": told,
            "stdout": launch.stdout().to_string_lossy(),
            "nonce": nonce.map(Nonce::as_str),
            "head": (leaf.role == Role::Developer).then(|| self.tree.head().map(|h| h.to_string())).transpose()?,
        });
        self.write(Entry::new(Kind::Launch, of_leaf(leaf), fields))?;
        let mut env = launch.env();
        if leaf.role == Role::Developer {
            let own = leaf_git_env(&env);
            env.retain(|(name, _)| !own.iter().any(|(other, _)| other == name));
            env.extend(own);
        }
        let spec = Spec {
            name,
            launch: id,
            argv: launch.argv().to_vec(),
            cwd: launch.cwd().to_owned(),
            env,
            stdin: Some(launch.stdin().to_owned()),
            stdout: launch.stdout().to_owned(),
            stderr: launch.stderr().to_owned(),
            wall: deadlines.wall,
            grace: deadlines.grace,
            watch: deadlines.watch(launch.streaming()),
            output_cap: Some(self.settings.output_cap()),
            sandbox: launch.sandbox().cloned(),
        };
        self.crash_point("launching");
        let watched = |run: &mut Self| {
            let mut running = leaf::start(records, &spec)?;
            run.crash_point("started");
            let end = running.wait(None, &mut || run.glance());
            let end = run.or_ended(end, records, running.name())?;
            Ok((end, running.record()?))
        };
        // A developer's guard is settled when its work is taken, stopped or lost; others run code of the candidate.
        let (end, record) = match leaf.role {
            Role::Developer => watched(self)?,
            Role::Planner | Role::Verifier => self.guarded(watched)?,
        };
        self.mend_journal()?;
        let record = record.map(|r| serde_json::to_value(&r)).transpose()?;
        self.outcome(
            leaf,
            &end,
            launch.stdout(),
            nonce.map(Nonce::as_str),
            record,
            &told,
        )
    }

    /// A leaf that cannot be waited for is not left running.
    pub(in crate::conductor) fn or_ended(
        &self,
        end: Result<End>,
        records: &Records,
        name: &str,
    ) -> Result<End> {
        if end.is_err() {
            let limit = AFTER_GRACE + self.settings.grace();
            // What cannot be waited for is what is told.
            drop(leaf::end(records, name, KillWhy::Stop, Some(limit)));
        }
        end
    }
}
