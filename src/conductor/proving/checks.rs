//! The ground, the suite, and what the checks establish on them.

use super::recheck::shown;
use super::suites::Recall;
use crate::agent;
use crate::cause::{Bail, Cause};
use crate::check::{self, Ask as CheckAsk, Breaks, Evidence, Outcome, RedRules, What};
use crate::conductor::failures::{SetupFailed, StoppedInSuite, cut_off, killed};
use crate::conductor::leaves::oid;
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::git::tree;
use crate::ground::command::{Launch, shell};
use crate::ground::isolation::{self, Isolation, IsolationAsk};
use crate::ground::project::Project;
use crate::ground::setup::{Setup, SetupAsk};
use crate::ground::{Ground, Kind as GroundKind, Verify};
use crate::leaf::{self, End, KillWhy, Records};
use crate::machine::{Checked, Event, FeedbackKind, Work};
use crate::role::Claim;
use crate::suite::{SuiteEnd, SuiteRun, TestPaths};
use anyhow::{Result, anyhow};
use git2::{Oid, Repository};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// How long a setup command may take.
pub(in crate::conductor) const SETUP_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// What the baseline showed.
pub(in crate::conductor) struct Baseline {
    pub(in crate::conductor) suite_ms: u64,
    /// What the pull request must say about isolation, if anything.
    pub(in crate::conductor) isolation: Option<String>,
}

impl Run<'_> {
    pub(in crate::conductor) fn ready(&self) -> Result<&crate::conductor::run::Ready> {
        self.ready
            .as_ref()
            .ok_or_else(|| anyhow!("preflight has not passed in this start"))
    }

    pub(in crate::conductor) fn ready_mut(&mut self) -> Result<&mut crate::conductor::run::Ready> {
        self.ready
            .as_mut()
            .ok_or_else(|| anyhow!("preflight has not passed in this start"))
    }

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

    /// Which paths are tests.
    pub(in crate::conductor) fn test_paths(&self) -> Result<TestPaths> {
        TestPaths::new(
            &self.settings.config.tests.paths,
            &self.ready()?.test_command,
        )
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

    /// Ignored files and folders of the person's checkout, the usual build folders aside.
    fn ignored_in_checkout(&self) -> Vec<String> {
        let listed = crate::tool::Tool::new("git")
            .dir(self.repo.checkout())
            .args([
                "ls-files",
                "-z",
                "--others",
                "--ignored",
                "--exclude-standard",
                "--directory",
            ])
            .env("GIT_OPTIONAL_LOCKS", "0")
            .run();
        let Ok(listed) = listed else {
            return Vec::new();
        };
        String::from_utf8_lossy(&listed.stdout)
            .split('\0')
            .filter(|p| !p.is_empty() && !p.starts_with(".tdd"))
            .filter(|p| {
                !matches!(
                    *p,
                    "target/" | "node_modules/" | ".venv/" | "dist/" | "build/"
                )
            })
            .take(10)
            .map(|p| p.escape_debug().to_string())
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

    /// The suite's own record on the tree that a verifier judges.
    pub(in crate::conductor) fn suite_log(&mut self, candidate: Oid) -> Result<SuiteRun> {
        self.suite_on(check::Run {
            tree: candidate,
            what: What::Suite,
            again: false,
        })
    }

    pub(in crate::conductor) fn check(&mut self, work: &Work) -> Result<(Event, Value)> {
        let candidate = oid(work.candidate.as_ref())?;
        let head = self.tree.head_tree()?;
        let start = self.start_tree(&work.from)?.unwrap_or(head);
        if work.claim == Claim::Refactor && candidate == head {
            return Ok((Event::Checked(Checked::Unchanged), Value::Null));
        }
        // What failed a check or was rejected is not looked at again as it was. What was sent back for anything else
        // (the leaf's own exit code, tampering that was undone, a hook) is: it may be good by now, or always was; and
        // a test that passes at once may be left as it is.
        let refused = work
            .feedback
            .as_ref()
            .is_some_and(|f| matches!(f.kind, FeedbackKind::Check | FeedbackKind::Reject));
        if candidate == start && refused && !work.passed_at_once {
            return Ok((Event::Checked(Checked::Repeated), Value::Null));
        }
        let outcome = match self.establish(work, candidate) {
            Err(error) if error.is::<SetupFailed>() => {
                let reasons = vec![error.to_string()];
                return Ok((Event::Checked(Checked::Fails { reasons }), Value::Null));
            }
            outcome => outcome?,
        };
        let reasons = self.findings_of_effect();
        if !reasons.is_empty() && !matches!(outcome, Outcome::Bail(_) | Outcome::Stopped) {
            return Ok((Event::Checked(Checked::Fails { reasons }), Value::Null));
        }
        self.seen.held = shown(work.claim, &outcome).map(|claim| (claim, candidate));
        self.checked(outcome)
    }

    /// What must hold of a candidate for its claim.
    pub(in crate::conductor) fn establish(
        &mut self,
        work: &Work,
        candidate: Oid,
    ) -> Result<Outcome> {
        let repo = Repository::open(self.tree.path())?;
        let paths = self.test_paths()?;
        let from = match (work.claim, &work.red) {
            (Claim::Green, Some(red)) => oid(Some(red))?,
            _ => self.tree.head_tree()?,
        };
        let ask = CheckAsk {
            repo: &repo,
            paths: &paths,
            from,
            candidate,
            max_file_bytes: self.settings.max_file_bytes(),
            extra_checks: self.settings.config.checks.len(),
            tail_bytes: self.settings.tail_bytes(),
        };
        let rules = RedRules {
            forbid_stubs: self.settings.config.tests.red_stubs.as_deref() == Some("forbid"),
        };
        let mut run = |run: check::Run| self.suite_on(run);
        match work.claim {
            Claim::Red | Claim::AlreadyThere => check::red(&ask, rules, &mut run),
            Claim::Green => check::green(&ask, &mut run),
            Claim::Refactor => check::refactor(&ask, &mut run),
            Claim::NoTest => check::no_test(&ask, &mut run),
        }
    }

    fn checked(&self, outcome: Outcome) -> Result<(Event, Value)> {
        let evidence = |evidence: &Evidence| json!({ "evidence": evidence });
        Ok(match outcome {
            Outcome::Holds { evidence: e, .. } => (Event::Checked(Checked::Holds), evidence(&e)),
            Outcome::Failed {
                reasons,
                evidence: e,
            } => (Event::Checked(Checked::Fails { reasons }), evidence(&e)),
            Outcome::Unchanged => (Event::Checked(Checked::Unchanged), Value::Null),
            Outcome::PassesAtOnce { evidence: e } => {
                let reasons = vec![
                    "the new test passes at once, without any change of the code. If the behaviour is missing, \
                     the test does not show that: make it fail for want of the behaviour. If the behaviour is \
                     already there, leave the test as it is"
                        .to_owned(),
                ];
                (
                    Event::Checked(Checked::PassesAtOnce { reasons }),
                    evidence(&e),
                )
            }
            Outcome::Bail(bail) => return Err(bail.into()),
            Outcome::Stopped => return Err(StoppedInSuite.into()),
        })
    }

    /// An approved already-there claim: the verifier's patch must make the suite fail.
    pub(in crate::conductor) fn prove(&mut self, work: &Work) -> Result<(Event, Value)> {
        let crate::machine::Stage::Prove { patch } = &work.stage else {
            return Err(anyhow!("nothing is to be proven"));
        };
        let repo = Repository::open(self.tree.path())?;
        let paths = self.test_paths()?;
        let ask = CheckAsk {
            repo: &repo,
            paths: &paths,
            from: self.tree.head_tree()?,
            candidate: oid(work.candidate.as_ref())?,
            max_file_bytes: self.settings.max_file_bytes(),
            extra_checks: 0,
            tail_bytes: self.settings.tail_bytes(),
        };
        let breaks = check::breaks_with(&ask, patch, &mut |run| self.suite_on(run))?;
        let reasons = self.findings_of_effect();
        if !reasons.is_empty() && !matches!(breaks, Breaks::Ended(_)) {
            let shown = false;
            return Ok((Event::Proved { shown, reasons }, Value::Null));
        }
        Ok(match breaks {
            Breaks::Shown { run } => (
                Event::Proved {
                    shown: true,
                    reasons: Vec::new(),
                },
                json!({ "runs": [*run] }),
            ),
            Breaks::Refused { why } => {
                let reasons = vec![format!(
                    "the test passes at once, and the change of the code that should make it fail shows nothing ({why}): \
                     the test proves nothing"
                )];
                (
                    Event::Proved {
                        shown: false,
                        reasons,
                    },
                    Value::Null,
                )
            }
            Breaks::Ended(outcome) => match *outcome {
                Outcome::Bail(bail) => return Err(bail.into()),
                _ => return Err(StoppedInSuite.into()),
            },
        })
    }

    /// The tree of the branch as it is, for acceptance.
    pub(in crate::conductor) fn tip_tree(&self) -> Result<Oid> {
        tree::without_tdd(
            self.tree.git2(),
            tree::of_commit(self.tree.git2(), self.tree.head()?)?,
        )
    }
}
