//! Which run of the suite, or of an extra check, stands for which question: a remembered one, one in the ground as it
//! is, or one as a fresh clone would see it; and how long it may take.

use crate::check::{self, What};
use crate::conductor::failures::StoppedInSuite;
use crate::conductor::record::Entry;
use crate::conductor::run::Run;
use crate::conductor::settings::Took;
use crate::event::Kind;
use crate::ground::{Ground, Kind as GroundKind};
use crate::hash;
use crate::machine::At;
use crate::suite::run::{Ran, SuiteAsk};
use crate::suite::{ResultKey, Results, SuiteEnd, SuiteRun};
use anyhow::{Result, anyhow};
use git2::Oid;
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The journal's field of a result that is kept.
const KEPT: &str = "kept_result";

/// Which remembered result is as good as a new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::conductor) enum Recall {
    /// Any: the question is what this very tree gave.
    Any,
    /// A pass. A failure may have been the day's (a network, a full disk), and a person who mended that would be
    /// told of it for ever.
    Passes,
    /// None.
    Never,
}

impl Run<'_> {
    /// Runs the suite or an extra check on a tree, or remembers what that gave.
    pub(in crate::conductor) fn suite_on(&mut self, run: check::Run) -> Result<SuiteRun> {
        let recall = if run.again {
            Recall::Never
        } else {
            Recall::Any
        };
        self.suite_as(run.tree, run.what, recall)
    }

    /// The same, with a say in what may be remembered.
    pub(in crate::conductor) fn suite_as(
        &mut self,
        tree: Oid,
        what: What,
        recall: Recall,
    ) -> Result<SuiteRun> {
        let (name, command) = self.named(what)?;
        self.bring_ground(tree)?;
        let known = match recall {
            Recall::Never => None,
            Recall::Any => self.remembered(tree, &command)?,
            Recall::Passes => self
                .remembered(tree, &command)?
                .filter(|ran| ran.run.passed()),
        };
        let run = match known {
            Some(ran) => {
                self.learn_debris(&ran.debris)?;
                ran.run
            }
            None => {
                if self.state.at == At::Preflight {
                    let said = format!("`{command}` runs first, in a clean checkout");
                    self.say(Kind::Preflight, said)?;
                }
                self.run_now(tree, &name, &command)?
            }
        };
        let took = self.ready_mut()?.took.entry(command);
        let took = took.or_insert(Took {
            longest_ms: 0,
            measured: false,
        });
        took.longest_ms = took.longest_ms.max(run.wall_ms);
        took.measured |= !run.remembered;
        Ok(run)
    }

    /// The suite and the extra checks on a finished tree, up to the first that does not pass, as a fresh clone would
    /// see them: remembered where they ran like that, else in a ground made anew beside the warm one, which is kept.
    pub(in crate::conductor) fn suites_as_cloned(&mut self, tree: Oid) -> Result<Vec<SuiteRun>> {
        let extras = (0..self.settings.config.checks.len()).map(What::Extra);
        let all: Vec<What> = std::iter::once(What::Suite).chain(extras).collect();
        self.bring_ground(tree)?;
        let mut known = Vec::new();
        for what in &all {
            let (_, command) = self.named(*what)?;
            let ran = self.remembered(tree, &command)?;
            known.extend(ran.filter(|ran| ran.fresh && ran.run.passed()));
        }
        if known.len() == all.len() {
            return Ok(known.into_iter().map(|ran| ran.run).collect());
        }
        self.say(
            Kind::Check,
            "the finished tree has been tested only where earlier trees were: it is tested once more in a ground made anew",
        )?;
        let mut clone = Ground::acquire(&self.home, GroundKind::Check)?;
        self.quiet(clone.records())?;
        clone.make_anew()?;
        self.declare_env_file(&mut clone)?;
        self.share_slot(&mut clone)?;
        let warm = std::mem::replace(&mut self.ready_mut()?.ground, clone);
        // Built from nothing: what a warm run took is no measure.
        let took = std::mem::take(&mut self.ready_mut()?.took);
        let runs = self.up_to_the_first_that_fails(tree, &all);
        let ready = self.ready_mut()?;
        ready.took = took;
        let mut clone = std::mem::replace(&mut ready.ground, warm);
        let emptied = clone.make_anew();
        let runs = runs?;
        emptied?;
        Ok(runs)
    }

    fn up_to_the_first_that_fails(&mut self, tree: Oid, all: &[What]) -> Result<Vec<SuiteRun>> {
        let mut runs = Vec::new();
        for what in all {
            let run = self.suite_as(tree, *what, Recall::Never)?;
            let passed = run.passed();
            runs.push(run);
            if !passed {
                break;
            }
        }
        Ok(runs)
    }

    /// How long a command may take: what three of its own runs took, once it is known what it takes.
    pub(in crate::conductor) fn deadline(&self, command: &str) -> Result<Duration> {
        let took = self.ready()?.took.get(command);
        Ok(self.settings.suite_timeout(took.copied()))
    }

    /// The leaf's name and the command of a check.
    fn named(&self, what: What) -> Result<(String, String)> {
        Ok(match what {
            What::Suite => ("suite".to_owned(), self.ready()?.test_command.clone()),
            What::Extra(index) => {
                let command = self.settings.config.checks.get(index);
                let command = command.ok_or_else(|| anyhow!("no extra check {index}"))?;
                (format!("check-{}", index + 1), command.clone())
            }
        })
    }

    /// What a command gave on a tree, with the dependencies and the environment that the ground now has.
    ///
    /// Only what the journal vouches for: the results lie where leaves can write.
    fn remembered(&self, tree: Oid, command: &str) -> Result<Option<Ran>> {
        self.with_key(tree, command, |results, key| {
            let name = key.name();
            let hash = self.lines.iter().rev().find_map(|line| {
                let kept = line.fields.get(KEPT)?;
                (kept["name"] == *name).then(|| kept["sha256"].as_str())?
            });
            Ok(hash.and_then(|hash| results.get(key, hash)))
        })
    }

    fn with_key<T>(
        &self,
        tree: Oid,
        command: &str,
        ask: impl FnOnce(&Results, &ResultKey<'_>) -> Result<T>,
    ) -> Result<T> {
        let ready = self.ready()?;
        let before = self.settings.config.ground.before_suite.as_deref();
        let key = ResultKey {
            tree: &tree.to_string(),
            command,
            before: before.unwrap_or_default(),
            setup: ready.ground.setup_key(),
            env_file: &ready.env_file,
            env: &self.declared_hash(),
        };
        ask(&Results::below(&self.home), &key)
    }

    /// The hash of the declared variables and their values; empty for none.
    fn declared_hash(&self) -> String {
        let declared = self.declared_env();
        let parts: Vec<&[u8]> = declared
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()])
            .collect();
        match parts.is_empty() {
            true => String::new(),
            false => hash::of_parts(&parts),
        }
    }

    fn run_now(&mut self, tree: Oid, name: &str, command: &str) -> Result<SuiteRun> {
        self.services_live()?;
        let before = self.settings.config.ground.before_suite.clone();
        let env = self.suite_env();
        let timeout = self.deadline(command)?;
        let mut ready = self
            .ready
            .take()
            .ok_or_else(|| anyhow!("preflight has not begun"))?;
        let mut ask = SuiteAsk {
            ground: &mut ready.ground,
            tree,
            name,
            command,
            before: before.as_deref(),
            env: &env,
            timeout,
        };
        let ran = crate::suite::run::run(&mut ask, &mut |launch| self.supervise(launch));
        self.ready = Some(ready);
        let beyond_doubt = match &ran {
            Ok(ran) => ran.run.passed() || ran.run.end == SuiteEnd::Stopped,
            Err(error) => error.is::<StoppedInSuite>(),
        };
        if !beyond_doubt {
            self.services_live()?;
        }
        let ran = ran?;
        self.learn_debris(&ran.debris)?;
        if let Some(path) = ran.altered.first() {
            let path = String::from_utf8_lossy(path).escape_debug().to_string();
            let said = format!(
                "the suite changed tracked files of its checkout ({path} …); they are put right"
            );
            self.say(Kind::Check, said)?;
        }
        let (run, kept) = self.with_key(tree, command, |results, key| results.put(key, &ran))?;
        if let Some(kept) = kept {
            let fields = json!({ KEPT: { "name": kept.name, "sha256": kept.hash } });
            self.write(Entry::new(Kind::Check, Default::default(), fields))?;
        }
        Ok(run)
    }
}
