//! What the checks establish of a candidate, and of the change under which an already-there test must fail.

use super::recheck::shown;
use crate::check::{self, Ask as CheckAsk, Breaks, Evidence, Outcome, RedRules, What};
use crate::conductor::failures::{SetupFailed, StoppedInSuite};
use crate::conductor::leaves::oid;
use crate::conductor::run::Run;
use crate::git::tree;
use crate::machine::{Checked, Event, FeedbackKind, Work};
use crate::role::Claim;
use crate::suite::{SuiteRun, TestPaths};
use anyhow::{Result, anyhow};
use git2::{Oid, Repository};
use serde_json::{Value, json};

impl Run<'_> {
    /// Which paths are tests.
    pub(in crate::conductor) fn test_paths(&self) -> Result<TestPaths> {
        TestPaths::new(
            &self.settings.config.tests.paths,
            &self.ready()?.test_command,
        )
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
