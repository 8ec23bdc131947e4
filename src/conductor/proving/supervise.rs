//! What runs in a ground runs under the supervisor, and is ended when it waits for changes of files.

use crate::cause::Bail;
use crate::conductor::record::Entry;
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::git::tree;
use crate::ground::command::{Ended, Launch};
use crate::ground::project::Project;
use crate::leaf::{self, End, KillWhy, LaunchId, Records, Spec};
use crate::role::StopMode;
use crate::suite::SuiteRun;
use crate::suite::waiting::{Waiting, Waits};
use anyhow::Result;
use serde_json::json;
use std::time::Instant;

impl Run<'_> {
    /// The supervisor, for what runs in a ground.
    pub(in crate::conductor) fn supervise(&mut self, launch: &Launch) -> Result<Ended> {
        let records = Records::new(&launch.records)?.with_shim(&self.ask.program);
        let spec = Spec {
            name: launch.name.clone(),
            launch: LaunchId::random()?,
            argv: launch.argv.clone(),
            cwd: launch.cwd.clone(),
            env: launch.env.clone(),
            stdin: None,
            stdout: launch.output.clone(),
            stderr: launch.output.clone(),
            wall: launch.wall,
            grace: self.settings.grace(),
            watch: None,
            sandbox: None,
            output_cap: Some(self.settings.output_cap()),
        };
        let mut waits = None;
        let end = self.guarded(|run| {
            let mut running = leaf::start(&records, &spec)?;
            let below = running.below();
            let mut waiting = Waiting::on(&launch.output, Instant::now());
            let end = running.wait(None, &mut || {
                run.glance().or_else(|| {
                    waits = waiting.look(Instant::now(), &mut || below.look());
                    waits.as_ref().map(|_| KillWhy::Waits)
                })
            });
            run.or_ended(end, &records, running.name())
        })?;
        self.mend_journal()?;
        Ok(match end {
            End::Done { code } => Ended::Code(code),
            End::KilledStuck {
                why: KillWhy::Waits,
            } => self.waited(&launch.name, waits)?,
            End::KilledStuck { .. } => Ended::TimedOut,
            // Nor did anybody else ask for a stop.
            End::KilledByStop if self.stop_mode() == Some(StopMode::Now) => Ended::Stopped,
            End::KilledByStop => Ended::Signal(9),
            End::SpawnFailed { code, .. } => Ended::Unstartable(code),
            End::KilledExternal { signal } => Ended::Signal(signal.unwrap_or(9)),
            // Nothing of a suite's output is watched for a result: only a suite's own hand can have written of one.
            End::Lingered | End::Lost | End::NeverStarted | End::StillRunning => Ended::Signal(9),
        })
    }

    /// Journals that something waited for changes and was ended for it.
    fn waited(&mut self, name: &str, waits: Option<Waits>) -> Result<Ended> {
        // Without a word of what it was: somebody else wrote the reason down.
        let Some(Waits { tool, instead }) = waits else {
            return Ok(Ended::TimedOut);
        };
        let fields = json!({ "waits_for_changes": { "tool": tool, "instead": instead } });
        let said = format!("{name}: it waits for changes of files ({tool}), and is ended");
        self.write(Entry::new(Kind::Check, Default::default(), fields).say(said))?;
        Ok(Ended::Waits {
            tool: tool.to_owned(),
            instead: instead.to_owned(),
        })
    }

    /// A suite or extra check that cannot end, before any work was done: a person has to name another.
    pub(in crate::conductor) fn waits_at_baseline(&self, run: &SuiteRun, what: &str) -> Bail {
        let (from, key) = match what {
            "suite" => (self.tests_from(), "--test-cmd or tests.command"),
            _ => (String::new(), "--check or checks"),
        };
        Bail::needs_user(format!(
            "The {what} `{}`{from} {}. Name one that ends by itself ({key} in .veri.toml), or change the script that it \
             runs, then run again. Nothing was changed.\n{}",
            run.command,
            run.end,
            crate::untrusted::of_log(&run.log, self.settings.tail_bytes())
        ))
    }

    /// Where the test command is from, and which script of package.json it may mean; in parentheses.
    fn tests_from(&self) -> String {
        let Ok(ready) = self.ready() else {
            return String::new();
        };
        let repo = self.tree.git2();
        let tip = tree::of_commit(repo, ready.base.commit);
        let project = tip.and_then(|tip| Project::of_tree(repo, tip));
        let script = project.ok().and_then(|project| {
            let json = project.package_json()?;
            Some(json.get("scripts")?.get("test")?.as_str()?.to_owned())
        });
        let script = script.map(|script| {
            let script: String = script
                .chars()
                .filter(|c| !c.is_control())
                .take(200)
                .collect();
            format!("; the script `test` of package.json is `{script}`")
        });
        format!(" ({}{})", ready.tests_from, script.unwrap_or_default())
    }
}
