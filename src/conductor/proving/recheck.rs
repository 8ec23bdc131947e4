//! Before a commit: the checks of its tree and its approval, taken at nobody's word.

use crate::check::Outcome;
use crate::conductor::failures::StoppedInSuite;
use crate::conductor::record::{Entry, of_work};
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::leaf::LaunchId;
use crate::machine::Work;
use crate::role::Claim;
use anyhow::Result;
use git2::Oid;
use serde_json::json;

impl Run<'_> {
    /// Why an approved candidate may not be committed: its checks are established in this very start (from the
    /// results that are known, nearly free), and its approval is that of a verifier whose end is on record. The
    /// journal's word alone is not enough: it lies within a developer's reach.
    pub(in crate::conductor) fn not_to_be_committed(
        &mut self,
        work: &Work,
        candidate: Oid,
    ) -> Result<Option<Vec<String>>> {
        if self.seen.held != Some((work.claim, candidate))
            && let Some(reasons) = self.check_again(work, candidate)?
        {
            return Ok(Some(reasons));
        }
        if self.seen.approved == Some(candidate) || self.is_approved_by_record()? {
            return Ok(None);
        }
        let reason = "no verifier's approval of this candidate is on record: it is judged again";
        Ok(Some(vec![reason.to_owned()]))
    }

    /// Whether the newest verdict is an approval, given by a launch of a verifier that has ended by itself.
    fn is_approved_by_record(&self) -> Result<bool> {
        let verdict = self.lines.iter().rposition(|l| l.event == Kind::Verdict);
        let Some((before, [verdict, ..])) = verdict.and_then(|at| self.lines.split_at_checked(at))
        else {
            return Ok(false);
        };
        let launch = before.iter().rev().find(|l| {
            l.text("intent") == "launch" && l.actor == crate::role::Role::Verifier.as_str()
        });
        let Some(id) = launch.and_then(|l| LaunchId::parse(l.text("launch"))) else {
            return Ok(false);
        };
        let ended = self.records()?.ended(&id)?;
        Ok(verdict.text("verdict") == "approve" && ended.is_some_and(|exit| exit.code == Some(0)))
    }

    /// The checks of a claim on a tree that is about to be committed, their evidence journalled; None when they hold.
    pub(in crate::conductor) fn check_again(
        &mut self,
        work: &Work,
        got: Oid,
    ) -> Result<Option<Vec<String>>> {
        let outcome = self.establish(work, got)?;
        let found = self.findings_of_effect();
        if !found.is_empty() && !matches!(outcome, Outcome::Bail(_) | Outcome::Stopped) {
            return Ok(Some(found));
        }
        let held = shown(work.claim, &outcome) == Some(work.claim);
        let reasons = match outcome {
            Outcome::Holds { evidence, .. } | Outcome::PassesAtOnce { evidence } if held => {
                self.seen.held = Some((work.claim, got));
                let (what, result) = match work.claim {
                    Claim::AlreadyThere => (Claim::Red, "passes-at-once"),
                    claim => (claim, "holds"),
                };
                let fields = json!({
                    "what": what.as_str(),
                    "result": result,
                    "tree": got.to_string(),
                    "recheck": true,
                    "evidence": evidence,
                });
                let said = "check: what is to be committed is as it was judged";
                self.write(Entry::new(Kind::Check, of_work(work), fields).say(said))?;
                return Ok(None);
            }
            Outcome::Failed { reasons, .. } => reasons,
            Outcome::Unchanged => vec!["hooks took back every change".to_owned()],
            Outcome::Holds { .. } => vec!["the test does not pass at once any more".to_owned()],
            Outcome::PassesAtOnce { .. } => vec!["the test passes at once".to_owned()],
            Outcome::Bail(bail) => return Err(bail.into()),
            Outcome::Stopped => return Err(StoppedInSuite.into()),
        };
        Ok(Some(reasons))
    }
}

/// The claim that checks have shown to hold.
pub(in crate::conductor) fn shown(claim: Claim, outcome: &Outcome) -> Option<Claim> {
    match outcome {
        Outcome::Holds { .. } if claim != Claim::AlreadyThere => Some(claim),
        Outcome::PassesAtOnce { .. } => Some(Claim::AlreadyThere),
        _ => None,
    }
}
