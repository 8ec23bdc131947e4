//! The end of a run in which every step is ticked: acceptance, the push, and the draft pull request.

use super::failures::{StoppedInSuite, cut_off, killed};
use super::proving::suites::Recall;
use super::run::Run;
use super::telling::facts::unserved;
use crate::cause::{Bail, Cause};
use crate::check::{self, What};
use crate::event::Kind;
use crate::forge::body;
use crate::forge::facts::Merge as MergeFact;
use crate::forge::{NewPull, PullState};
use crate::git::{BaseAsk, Merge, issue_branch_name};
use crate::machine::Event;
use crate::suite::SuiteEnd;
use anyhow::Result;
use git2::Oid;
use serde_json::{Value, json};

impl Run<'_> {
    /// Everything on the branch once more, as a fresh clone would see it.
    pub(super) fn accept(&mut self) -> Result<(Event, Value)> {
        let ledger = self.ledger_in_force()?;
        let missing = unserved(&ledger);
        if !missing.is_empty() {
            return Err(Bail::new(
                Cause::AcceptanceFailed,
                format!(
                    "No finished step serves these criteria:\n{}",
                    missing.join("\n")
                ),
            )
            .into());
        }
        let tree = self.tip_tree()?;
        let runs = self.suites_as_cloned(tree)?;
        for run in &runs {
            match &run.end {
                SuiteEnd::Passed => {}
                SuiteEnd::Stopped => return Err(StoppedInSuite.into()),
                SuiteEnd::KilledExternal { signal } => return Err(killed(&run.command, *signal)),
                end => {
                    let tail = crate::untrusted::of_log(&run.log, self.settings.tail_bytes());
                    let said = format!(
                        "`{}` does not pass on the finished branch: {end}. It ran in a checkout made anew, as a fresh \
                         clone would; where it passed before, it may have leaned on files that are in no commit.\n{tail}",
                        run.command
                    );
                    return Err(Bail::new(Cause::AcceptanceFailed, said).into());
                }
            }
        }
        let fields =
            json!({ "said": "accepted: the suite passes on the finished branch", "runs": runs });
        Ok((Event::Accepted, fields))
    }

    pub(super) fn publish(&mut self) -> Result<(Event, Value)> {
        let merge = self.merge_trial()?;
        match self.push()? {
            Some(said) => self.say(Kind::Pr, said)?,
            None if !self.repo.has_remote(self.settings.remote()) => {
                self.say(
                    Kind::Pr,
                    format!(
                        "there is no remote {}: nothing is pushed",
                        self.settings.remote()
                    ),
                )?;
            }
            None => {}
        }
        let head = issue_branch_name(self.issue_number);
        let wanted = self
            .settings
            .config
            .pull_request
            .clone()
            .unwrap_or_else(|| "draft".to_owned());
        if wanted == "none" {
            let said = format!("no pull request is wanted; the work is on {head}");
            return Ok((Event::Published { url: None }, json!({ "said": said })));
        }
        let facts = self.pull_facts(merge)?;
        let (title, text) = (body::title(&facts), body::render(&facts));
        let pull = match self.forge.find_pull(&head)? {
            Some(pull) if pull.state == PullState::Merged => pull,
            Some(pull) if pull.state == PullState::Closed => {
                return Err(Bail::needs_user(format!(
                    "The pull request of {head} ({}) was closed by somebody. Reopen it, or delete it or the branch, then \
                     run again; the work is finished and on the branch.",
                    pull.url
                ))
                .into());
            }
            Some(pull) => self.forge.update_pull(pull.number, &title, &text)?,
            None => self.forge.open_pull(&NewPull {
                head,
                base: self.ready()?.base.name.clone(),
                title,
                body: text,
                draft: wanted == "draft",
                issue: self.issue_number,
            })?,
        };
        let kind = if pull.draft {
            "draft pull request"
        } else {
            "pull request"
        };
        let said = format!("{kind} {}: {}", pull.number, pull.url);
        Ok((
            Event::Published {
                url: Some(pull.url),
            },
            json!({ "said": said }),
        ))
    }

    /// What was said of the pull request when the run was finished.
    pub(super) fn published(&self) -> &str {
        let newest = self.lines.iter().rev();
        newest
            .filter(|l| l.event == Kind::Pr)
            .find(|l| l.fields.contains_key("url"))
            .map_or("", |l| l.text("said"))
    }

    /// What merging the newest base would do; nothing is rebased.
    fn merge_trial(&mut self) -> Result<MergeFact> {
        let ready = self.ready()?;
        let name = ready.base.name.clone();
        let ask = BaseAsk {
            flag: Some(&name),
            ledger: None,
            config: None,
            remote: self.settings.remote(),
        };
        let base = match self.repo.resolve_base(&ask) {
            Ok(base) => base.commit,
            // The base is not what is published: that it cannot be fetched now is only said.
            Err(error) => return Ok(MergeFact::NotTried(format!("{error:#}"))),
        };
        let tip = self.tree.head()?;
        if self.tree.git2().graph_descendant_of(tip, base)? {
            return Ok(MergeFact::Clean { suite_passed: true });
        }
        match self.repo.merge_trial(base, tip)? {
            Merge::Conflict(paths) => Ok(MergeFact::Conflict(
                paths.iter().map(|p| check::show(p.as_ref())).collect(),
            )),
            Merge::Clean(tree) => Ok(MergeFact::Clean {
                suite_passed: self.suite_passes(tree)?,
            }),
        }
    }

    fn suite_passes(&mut self, tree: Oid) -> Result<bool> {
        let tree = crate::git::tree::without_tdd(self.tree.git2(), tree)?;
        let run = self.suite_as(tree, What::Suite, Recall::Passes)?;
        match cut_off(&run.command, &run.end) {
            Some(error) => Err(error),
            None => Ok(run.passed()),
        }
    }
}
