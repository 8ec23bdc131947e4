//! What the step's behaviour is, by the issue and the ledger.

use crate::forge::trust::TrustedText;
use crate::ledger::Ledger;
use crate::prompt::{IssueText, StepText};
use anyhow::{Context, anyhow};
use git2::{Oid, Repository};

/// The specification that a claim is judged by: issue title, body and trusted comments; the step's title and criteria.
#[derive(Debug)]
pub struct BehaviourSpec {
    issue: IssueText,
    step: StepText,
}

impl BehaviourSpec {
    /// Reads the step from the ledger's blob in the repository; the issue's fields can be filled by a forge alone.
    ///
    /// # Errors
    /// When the blob is missing or not a ledger, or has no step of that number.
    pub fn of(
        issue: &TrustedText,
        repo: &Repository,
        ledger_blob: Oid,
        step_number: u32,
    ) -> anyhow::Result<BehaviourSpec> {
        let blob = repo
            .find_blob(ledger_blob)
            .with_context(|| format!("reading the ledger, object {ledger_blob}"))?;
        let ledger = Ledger::parse(blob.content())
            .with_context(|| format!("reading the ledger, object {ledger_blob}"))?;
        let step = ledger
            .steps()
            .iter()
            .find(|step| step.number == step_number)
            .ok_or_else(|| {
                anyhow!("the ledger, object {ledger_blob}, has no step {step_number}")
            })?;
        let criteria = ledger
            .criteria()
            .iter()
            .filter(|criterion| step.criteria.contains(&criterion.id))
            .map(|criterion| (criterion.id.clone(), criterion.text.clone()))
            .collect();
        Ok(BehaviourSpec {
            issue: issue_text(issue),
            step: StepText {
                number: step.number,
                title: step.title.clone(),
                criteria,
                no_test: step.no_test.clone(),
            },
        })
    }

    pub(super) fn to_block(&self) -> String {
        format!(
            "{}\nThe issue that the step belongs to:\n\n{}",
            self.step.to_block(),
            self.issue.to_block()
        )
    }

    pub(super) fn step_title(&self) -> &str {
        &self.step.title
    }
}

/// The words of an issue for a prompt: what its forge gave and its rule of trust let through.
pub fn issue_text(issue: &TrustedText) -> IssueText {
    let comments = issue.comments().iter().map(|comment| {
        let author = comment.author().unwrap_or("somebody who is not named");
        (author.to_owned(), comment.text().to_owned())
    });
    IssueText {
        title: issue.title().to_owned(),
        body: issue.body().to_owned(),
        comments: comments.collect(),
    }
}
