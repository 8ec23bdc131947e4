//! Preflight, in the order of the documentation; the first check that fails ends the run.
//!
//! Git and the lock (1, 2) are `start`'s. Nothing here touches a branch or a tracked file before
//! everything has passed.

use super::proving::baseline::Baseline;
use super::record::Entry;
use super::run::{Ready, Run};
use super::snapshot::{self, InForce};
use super::{start, whose};
use crate::agent::{Agent, Agents, Origin};
use crate::cause::{Bail, Cause};
use crate::event::Kind;
use crate::forge::{
    self,
    trust::{self, TrustedText},
};
use crate::git::{Base, BaseAsk, Relation, issue_branch_name, tree};
use crate::ground::project::Project;
use crate::ground::{Ground, Kind as GroundKind};
use crate::ledger::Ledger;
use crate::machine::Event;
use crate::prompt::Templates;
use crate::role::Role;
use crate::suite::{self, Detection};
use anyhow::{Context, Result};
use git2::Oid;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// Where the work goes on.
struct Start {
    base: Base,
    /// The commit to work on: the issue branch's tip, or the base.
    tip: Oid,
    ledger: Option<Ledger>,
}

impl Run<'_> {
    pub(super) fn preflight(&mut self) -> Result<(Event, Value)> {
        self.find_temporary()?;
        self.clean_tree()?; // 3
        let text = self.read_issue()?; // 4
        let start = self.find_start()?; // 5
        if start.ledger.is_some() && self.ask.plan.is_some() {
            let said = format!(
                "issue {} is planned already: the ledger is in force, and the plan that was given is not used",
                self.issue_number
            );
            self.say(Kind::Preflight, said)?;
        }
        let (test_command, tests_from) = self.find_test_command(&start)?; // 6
        let agents = self.find_agents()?; // 7
        self.say_what_is_not_reached()?;
        let sandbox = self.find_sandbox()?;
        self.probe_commits(&start)?; // 8
        let (templates, skill) = self.take_snapshot(&start.base)?; // 9
        self.source.skill_commit = Some(skill.to_string());
        let ground = Ground::acquire(&self.home, GroundKind::Check)?;
        self.ready = Some(Ready {
            text,
            base: start.base.clone(),
            test_command: test_command.clone(),
            tests_from,
            agents,
            templates,
            ground,
            suite_ms: 0,
            isolation: None,
            env_file: String::new(),
            sandbox,
            debris: self.known_debris()?,
            took: BTreeMap::new(),
        });
        let baseline = self.baseline(start.tip)?; // 10

        let in_force = InForce {
            config: self.settings.config.clone(),
            own: self.tree.own_files().to_vec(),
            files: self.files.clone(),
        };
        snapshot::keep(self.repo.git2(), self.issue_number, skill, &in_force)?;
        if self.ask.here && start.ledger.is_none() {
            // Once the checkout is on the issue's branch, nothing else tells where it came from.
            let fields = json!({ "base": start.base.name });
            let said = format!("the base is {}", start.base.name);
            self.write(Entry::new(Kind::Preflight, Default::default(), fields).say(said))?;
        }
        self.tree.take_branch(self.issue_number, start.tip)?;
        self.store_skill_commit(skill)?;
        let said = format!(
            "preflight passed: base {} @ {:.9}, tests `{}` ({:.1} s)",
            start.base.name,
            start.base.commit.to_string(),
            test_command,
            baseline.suite_ms as f64 / 1000.0
        );
        let issue = self.issue.as_ref();
        let fields = json!({
            "said": said,
            "base": start.base.name,
            "base_commit": start.base.commit.to_string(),
            "tip": start.tip.to_string(),
            "tests": test_command,
            "checks": self.settings.config.checks,
            "suite_ms": baseline.suite_ms,
            "isolation": baseline.isolation,
            "issue_title": issue.map(|i| i.title()),
            "issue_hash": issue.map(|i| i.hash()),
            "resume": self.resume_command(),
        });
        Ok((
            Event::PreflightPassed {
                ledger: start.ledger.is_some(),
            },
            fields,
        ))
    }

    /// 3. `--here` needs a clean checkout; otherwise uncommitted changes are only not part of the run.
    fn clean_tree(&mut self) -> Result<()> {
        if !self.ask.here {
            let dirt = self.repo.dirt_except(self.tree.own_files())?;
            if !dirt.is_empty()
                && !self.lines.iter().any(|l| {
                    l.event == Kind::Preflight && l.text("said").starts_with("uncommitted")
                })
            {
                let said = "uncommitted changes of the checkout are not part of this run";
                self.say(Kind::Preflight, said)?;
            }
            return Ok(());
        }
        // The checkout's own locks are never removed, however old: the time is of no interest.
        self.tree.stale_locks(self.issue_number, &|_, _| true)?;
        let dirt = self.repo.dirt_except(self.tree.own_files())?;
        if dirt.is_empty() {
            return Ok(());
        }
        let now = self.tree.salvage()?;
        let listed = match self.foreign(now)? {
            Some(foreign) => foreign.listed(),
            // An answer that is to be taken, or a tree of the claim under way, to the byte.
            None if self.is_in_hands() || now != self.tree.head_tree()? => return Ok(()),
            // Only staged, or nothing that git can store.
            None => whose::listed(&dirt.iter().map(|p| shown(p)).collect::<Vec<_>>()),
        };
        Err(Bail::needs_user(format!(
            "--here works in the checkout {} itself, which has changes that are not committed:\n{listed}\n\
             Commit or stash them, or leave --here out: the run then has a worktree of its own.",
            self.tree.path().display(),
        ))
        .into())
    }

    /// 4. The issue exists, is open, says something, and its text may reach a prompt.
    fn read_issue(&mut self) -> Result<TrustedText> {
        let issue = self.forge.issue(self.issue_number)?;
        self.seen.issue = true;
        forge::preflight4(&issue)?;
        let comments = self.forge.comments(self.issue_number)?;
        let authors = self.settings.config.forge_table().trusted_authors;
        let text = trust::trusted(
            &issue,
            &comments,
            self.settings.trust,
            &authors,
            self.ask.env.is_ci(),
        )?;
        for said in text.removed().iter().chain(text.left_out()) {
            self.say(Kind::Preflight, format!("issue text: {said}"))?;
        }
        let before = self
            .lines
            .iter()
            .rev()
            .find_map(|l| l.fields.get("issue_hash")?.as_str());
        if before.is_some_and(|hash| hash != issue.hash()) {
            self.say(
                Kind::Preflight,
                "the issue's text has changed since the last start; the new text is in force",
            )?;
        }
        self.issue = Some(issue);
        Ok(text)
    }

    /// 5. The base, and the issue branch if there is one.
    fn find_start(&mut self) -> Result<Start> {
        if self.forge.needs_remote() && !self.repo.has_remote(self.settings.remote()) {
            return Err(Bail::needs_user(format!(
                "The forge ({}) reviews what is pushed, and this repository has no remote {}. Add it (`git remote add`), \
                 or name another with --remote; then run again.",
                self.forge.describe(),
                self.settings.remote()
            ))
            .into());
        }
        let branch =
            self.repo
                .issue_branch(self.issue_number, self.settings.remote(), self.tree.path())?;
        let ledger = match branch.tip() {
            Some(tip) => self.ledger_at(tip)?,
            None => None,
        };
        // A run that was not planned yet: with --here its own branch is the one that is checked out by now.
        let passed_with = self
            .lines
            .iter()
            .rev()
            .find(|l| l.event == Kind::Preflight && l.fields.contains_key("base"))
            .map(|l| l.text("base"));
        let ask = BaseAsk {
            flag: self.ask.base.as_deref(),
            ledger: ledger.as_ref().map(|l| l.base_name()),
            config: passed_with.or(self.settings.config.base.as_deref()),
            remote: self.settings.remote(),
        };
        let base = self.repo.resolve_base(&ask)?;
        for note in base.notes.clone() {
            self.say(Kind::Preflight, note)?;
        }
        let name = issue_branch_name(self.issue_number);
        let tip = match branch.tip() {
            None => base.commit,
            Some(tip) if ledger.is_some() => {
                if branch.relation == Relation::Behind {
                    self.say(
                        Kind::Preflight,
                        format!("{name}: the remote's newer commits are taken in"),
                    )?;
                }
                tip
            }
            // Made by an earlier start that got no further, or by nobody yet.
            Some(tip)
                if tip == base.commit
                    || self.repo.git2().graph_descendant_of(base.commit, tip)? =>
            {
                base.commit
            }
            Some(_) => {
                return Err(Bail::needs_user(format!(
                    "The branch {name} has commits that the base {} does not have, and no ledger \
                     .tdd/issue-{}.md: it is not from a run of veri. Rename or delete it, then run again.",
                    base.name, self.issue_number
                ))
                .into());
            }
        };
        start::has_no_runtime_files(self.repo.git2(), tip)?;
        Ok(Start { base, tip, ledger })
    }

    /// The ledger in a commit; a malformed one is plan-invalid.
    pub(super) fn ledger_at(&self, commit: Oid) -> Result<Option<Ledger>> {
        let repo = self.tree.git2();
        let whole = repo.find_commit(commit)?.tree_id();
        match tree::read_blob(repo, whole, self.ledger_path().as_bytes())? {
            Some(bytes) => Ok(Some(self.parse_ledger(&bytes)?)),
            None => Ok(None),
        }
    }

    pub(super) fn parse_ledger(&self, bytes: &[u8]) -> Result<Ledger> {
        let ledger = Ledger::parse(bytes).map_err(|e| {
            Bail::new(
                Cause::PlanInvalid,
                format!("The ledger {} cannot be read: {e}. It is never rewritten: mend it by hand, then run again.", self.ledger_path()),
            )
        })?;
        if ledger.issue_number() != self.issue_number {
            return Err(Bail::new(
                Cause::PlanInvalid,
                format!(
                    "The ledger {} is of issue {}.",
                    self.ledger_path(),
                    ledger.issue_number()
                ),
            )
            .into());
        }
        Ok(ledger)
    }

    /// 6. The test command, and where it is from: flag or variable, the ledger's, the configuration's, or detected.
    fn find_test_command(&mut self, start: &Start) -> Result<(String, String)> {
        let from = |command: &str, from: &str| Ok((command.to_owned(), from.to_owned()));
        if let Some(command) = &self.ask.test_command {
            return from(command, "from --test-cmd or VERI_TEST_CMD");
        }
        if let Some(ledger) = &start.ledger {
            return from(ledger.tests(), "from the ledger of the issue");
        }
        if let Some(command) = &self.settings.config.tests.command {
            return from(command, "tests.command of the configuration");
        }
        let repo = self.tree.git2();
        match suite::detect(&Project::of_tree(repo, tree::of_commit(repo, start.tip)?)?) {
            Detection::One(found) => {
                self.say(
                    Kind::Preflight,
                    format!("tests: `{}` ({})", found.command, found.why),
                )?;
                Ok((found.command, format!("detected: {}", found.why)))
            }
            other => Err(Bail::needs_user(format!(
                "How the tests of this repository are run is not clear: {other} (.veri.toml). The \
                 variable VERI_TEST_CMD says it, too."
            ))
            .into()),
        }
    }

    /// 7. Every role's agent can be run.
    fn find_agents(&mut self) -> Result<Agents> {
        let repository = [self.repo.checkout().to_owned(), self.tree.path().to_owned()];
        let path = self
            .ask
            .env
            .get("PATH")
            .unwrap_or(OsStr::new(""))
            .to_owned();
        let aside = self
            .home
            .join("agents")
            .join(format!("issue-{}", self.issue_number));
        let mut said = Vec::new();
        let mut find = |role: Role| -> Result<Agent> {
            let origin = Origin {
                // Those of flags are absolute by now: what is left is a file's.
                relative_to: self.repo.checkout(),
                repository: &repository,
                path: &path,
                aside: &aside,
            };
            let selected = Agent::select(&self.settings.agent(role), origin)?;
            said.extend(selected.said);
            Ok(selected.agent)
        };
        let agents = Agents {
            planner: find(Role::Planner)?,
            developer: find(Role::Developer)?,
            verifier: find(Role::Verifier)?,
        };
        said.dedup();
        for line in said {
            self.say(Kind::Preflight, line)?;
        }
        Ok(agents)
    }

    /// 8. Commits are possible: identity, signing key, and a hook that accepts the subjects.
    fn probe_commits(&mut self, start: &Start) -> Result<()> {
        let mut subjects = vec![format!("plan: issue {} in 3 steps", self.issue_number)];
        if let Some(ledger) = &start.ledger {
            subjects.extend(ledger.steps().iter().map(|s| s.title.clone()));
        }
        let messages = subjects
            .iter()
            .map(|s| self.message(s, "green", Some(1)))
            .collect::<Result<Vec<_>>>()?;
        self.tree
            .commit_probe(&messages, self.settings.hook_deadline())
    }

    /// 9. The templates and configuration in force: stored ones on resume, else the newest.
    fn take_snapshot(&mut self, base: &Base) -> Result<(Templates, Oid)> {
        let repo = self.repo.git2();
        if !self.ask.new_templates
            && let Some(stored) = snapshot::load(repo, self.issue_number)?
        {
            return Ok((stored.templates, stored.id));
        }
        let templates = Templates::bundled()
            .overlay(snapshot::of_base(repo, base.commit)?)
            .map_err(|e| {
                Bail::needs_user(format!(
                    "A template of .veri/templates/ cannot be used: {e}."
                ))
            })?;
        let id = snapshot::write(repo, &self.settings.config, &templates)?;
        Ok((templates, id))
    }

    fn store_skill_commit(&self, skill: Oid) -> Result<()> {
        if let Some(seconds) = self.ask.timeout {
            let path = self
                .tree
                .tdd()
                .join(format!("issue-{}-timeout", self.issue_number));
            std::fs::write(&path, format!("{seconds}\n"))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let path = self
            .tree
            .tdd()
            .join(format!("issue-{}-skill-commit", self.issue_number));
        std::fs::write(&path, format!("{skill}\n"))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// 10. The ground, and the suite and the extra checks on the commit that the work goes on from.
    fn baseline(&mut self, tip: Oid) -> Result<Baseline> {
        let repo = self.tree.git2();
        let tree = tree::without_tdd(repo, tree::of_commit(repo, tip)?)?;
        let baseline = self.run_baseline(tree)?;
        if let Some(ready) = &mut self.ready {
            ready.suite_ms = baseline.suite_ms;
            ready.isolation.clone_from(&baseline.isolation);
        }
        Ok(baseline)
    }
}

/// A path for people: control characters and bytes that are not UTF-8 escaped.
pub(super) fn shown(path: &OsStr) -> String {
    path.to_string_lossy()
        .chars()
        .flat_map(char::escape_debug)
        .collect()
}
