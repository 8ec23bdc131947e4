//! The baseline (preflight 10): suite and extra checks pass before any work is done, in a ground that is shown to be
//! isolated.

use super::suites::Recall;
use crate::cause::{Bail, Cause};
use crate::check::What;
use crate::conductor::failures::{StoppedInSuite, cut_off, killed};
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::ground::command::{Launch, shell};
use crate::ground::isolation::{self, Isolation, IsolationAsk};
use crate::ground::project::Project;
use crate::suite::{SuiteEnd, SuiteRun};
use anyhow::{Result, anyhow};
use git2::{Oid, Repository};

/// What the baseline showed.
pub(in crate::conductor) struct Baseline {
    pub(in crate::conductor) suite_ms: u64,
    /// What the pull request must say about isolation, if anything.
    pub(in crate::conductor) isolation: Option<String>,
}

impl Run<'_> {
    /// 10. The suite and the extra checks pass on a tree, in a ground that is shown to be isolated.
    pub(in crate::conductor) fn run_baseline(&mut self, tree: Oid) -> Result<Baseline> {
        let records = self.ready()?.ground.records().to_owned();
        self.quiet(&records)?;
        let mut ready = self
            .ready
            .take()
            .ok_or_else(|| anyhow!("preflight has not begun"))?;
        let declared = self.declare_env_file(&mut ready.ground);
        self.ready = Some(ready);
        self.ready_mut()?.env_file = declared?;
        self.start_services(tree)?;
        let run = self.suite_as(tree, What::Suite, Recall::Passes)?;
        self.baseline_passes(&run, "suite")?;
        let suite_ms = run.wall_ms.max(1);
        self.ready_mut()?.suite_ms = suite_ms;
        for index in 0..self.settings.config.checks.len() {
            let run = self.suite_as(tree, What::Extra(index), Recall::Passes)?;
            self.baseline_passes(&run, "extra check")?;
        }
        let isolation = self.isolation(tree)?;
        Ok(Baseline {
            suite_ms,
            isolation,
        })
    }

    fn baseline_passes(&self, run: &SuiteRun, what: &str) -> Result<()> {
        let tail = || crate::untrusted::of_log(&run.log, self.settings.tail_bytes());
        let command = &run.command;
        Err(match &run.end {
            SuiteEnd::Passed => return Ok(()),
            SuiteEnd::Stopped => StoppedInSuite.into(),
            SuiteEnd::KilledExternal { signal } => killed(command, *signal),
            SuiteEnd::Unrunnable { code } => Bail::needs_user(format!(
                "The {what} `{command}` cannot be run in the proving ground (exit {code}): name another with --test-cmd, \
                 or say under [ground] setup how its tools get there.\n{}",
                tail()
            ))
            .into(),
            SuiteEnd::WaitsForChanges { .. } => self.waits_at_baseline(run, what).into(),
            SuiteEnd::Failed { .. } | SuiteEnd::TimedOut { .. } | SuiteEnd::Crashed { .. } => {
                let ignored = self.ignored_in_checkout();
                let hint = if ignored.is_empty() {
                    String::new()
                } else {
                    format!(
                        "\nThe ground is a clean checkout: these files of yours are ignored by git and are not in it: {}. \
                         If the suite needs one, declare it (ground.env_file) or make it (ground.setup).",
                        ignored.join(", ")
                    )
                };
                Bail::new(
                    Cause::BaselineRed,
                    format!(
                        "The {what} `{command}` does not pass before any work was done: {}. Nothing was changed. Mend it \
                         on the base, then run again.{hint}\n{}",
                        run.end,
                        tail()
                    ),
                )
                .into()
            }
        })
    }

    /// Ignored files and folders of the person's checkout, the usual build folders aside: for a hint, where git tells.
    fn ignored_in_checkout(&self) -> Vec<String> {
        let usual = ["target/", "node_modules/", ".venv/", "dist/", "build/"];
        let ignored = self.repo.ignored().unwrap_or_default();
        let ignored = ignored.iter().map(|path| path.to_string_lossy());
        ignored
            .filter(|path| !path.starts_with(".tdd") && !usual.contains(&path.as_ref()))
            .take(10)
            .map(|path| path.escape_debug().to_string())
            .collect()
    }

    /// The suite tests the ground's code and no other: shown by making that code unusable.
    fn isolation(&mut self, tree: Oid) -> Result<Option<String>> {
        if self.settings.config.ground.isolation.as_deref() == Some("trust") {
            return Ok(Some(
                "ground.isolation = \"trust\": not proven, on the word of the configuration"
                    .to_owned(),
            ));
        }
        let paths = self.test_paths()?;
        let command = self.ready()?.test_command.clone();
        let setup = self.ready()?.ground.setup_key().to_owned();
        let base = tree.to_string();
        // How the trial ended that is not remembered.
        let mut end = SuiteEnd::Stopped;
        let shown = match isolation::recall(&self.home, &base, &setup, &command) {
            Some(known) => known,
            None => {
                self.bring_ground(tree)?;
                let repo = Repository::open(self.tree.path())?;
                let project = Project::of_tree(&repo, tree)?;
                let script = project
                    .package_json()
                    .and_then(|json| Some(json.get("scripts")?.get("test")?.as_str()?.to_owned()));
                let commands: Vec<&str> = std::iter::once(command.as_str())
                    .chain(script.as_deref())
                    .collect();
                let env = self.suite_env();
                let timeout = self.deadline(&command)?;
                let checkouts = [self.repo.checkout().to_owned(), self.tree.path().to_owned()];
                let mut ready = self
                    .ready
                    .take()
                    .ok_or_else(|| anyhow!("preflight has not begun"))?;
                let ask = IsolationAsk {
                    languages: &project.languages(),
                    is_test: &|path| paths.kind(path).is_some(),
                    commands: &commands,
                    checkouts: &checkouts,
                    env: &env,
                };
                let shown = ready.ground.isolation(&ask, &mut |ground| {
                    let launch = Launch {
                        name: "isolation".to_owned(),
                        argv: shell(&command),
                        cwd: ground.path().to_owned(),
                        env: ground.environment(&env),
                        output: ground.records().join("isolation.log"),
                        wall: timeout,
                        records: ground.records().to_owned(),
                    };
                    end = SuiteEnd::of(&self.supervise(&launch)?, timeout);
                    Ok(end.trial())
                });
                self.ready = Some(ready);
                let shown = shown?;
                isolation::remember(&self.home, &base, &setup, &command, &shown)?;
                shown
            }
        };
        match shown {
            Isolation::Shown => Ok(None),
            Isolation::Interrupted => {
                Err(cut_off(&command, &end).unwrap_or_else(|| StoppedInSuite.into()))
            }
            Isolation::NotShown { why } | Isolation::Unknown { why } => {
                self.say(Kind::Preflight, format!("isolation of the proving ground is not shown: {why}"))?;
                Ok(Some(why))
            }
            Isolation::Leads { what } => Err(Bail::needs_user(format!(
                "The suite passes though every program file of the clean checkout was made unusable, so it tests other \
                 code: {what}. Make the ground's own dependencies under [ground] setup, or say \
                 ground.isolation = \"trust\" if that is meant; the pull request will name it."
            ))
            .into()),
        }
    }
}
