//! Writing the ledger of a plan.

use super::cell::{code_span, escape};
use super::{Content, Criterion, Ledger, Step};
use crate::answer::one_line;
use crate::plan::Plan;

/// What a new ledger is made from.
#[derive(Debug, Clone, Copy)]
pub struct NewLedger<'a> {
    /// The number of the issue.
    pub issue_number: u64,
    /// The issue as people write it: `#42` or `acme/bank#42`, never a path.
    pub issue_ref: &'a str,
    /// The title of the issue; folded into one line.
    pub issue_title: &'a str,
    /// The branch that the work is based on.
    pub base_name: &'a str,
    /// The commit of the base.
    pub base_commit: &'a str,
    /// The test command. A ledger holds it in one line: line breaks become blanks.
    pub test_command: &'a str,
    /// A plan that was found valid.
    pub plan: &'a Plan,
}

pub(super) fn ledger(new: &NewLedger<'_>) -> Ledger {
    let content = content(new);
    let mut text = head(&content);
    for criterion in &content.criteria {
        text += &format!("- {}: {}", criterion.id, criterion.text);
        if let Some(reason) = &criterion.inferred {
            text += &format!(" (inferred: {reason})");
        }
        text.push('\n');
    }
    text += "\n## Steps\n\n";
    let mut ticks = Vec::new();
    for step in &content.steps {
        text += "- [";
        ticks.push(text.len());
        text += &format!(
            " ] {}. {} ({})",
            step.number,
            step.title,
            step.criteria.join(", ")
        );
        if let Some(reason) = &step.no_test {
            text += &format!(" [no test: {reason}]");
        }
        text.push('\n');
    }
    Ledger {
        text,
        content,
        ticks,
    }
}

/// What the ledger is to say, with everything folded as a line of the file needs it.
fn content(new: &NewLedger<'_>) -> Content {
    let fold = |text: &Option<String>| text.as_deref().map(one_line);
    Content {
        issue_number: new.issue_number,
        issue: one_line(new.issue_ref),
        title: one_line(new.issue_title),
        base: one_line(&format!("{} @ {}", new.base_name, new.base_commit)),
        tests: new
            .test_command
            .replace("\r\n", " ")
            .replace(['\n', '\r'], " ")
            .trim_matches([' ', '\t'])
            .to_owned(),
        criteria: (new.plan.criteria.iter())
            .map(|criterion| Criterion {
                id: criterion.id.clone(),
                text: one_line(&criterion.text),
                inferred: fold(&criterion.inferred),
            })
            .collect(),
        steps: (new.plan.steps.iter().zip(1..))
            .map(|(step, number)| Step {
                number,
                title: step.title.clone(),
                criteria: step.criteria.clone(),
                ticked: false,
                no_test: fold(&step.no_test),
            })
            .collect(),
    }
}

/// Everything above the first criterion. What is assumed stands above all that rests on it.
fn head(content: &Content) -> String {
    let mut text = format!("# Issue {}: {}", content.issue_number, content.title);
    text.truncate(text.trim_end().len());
    text += "\n\n<!-- veri ledger v1 -->\n\n| | |\n| --- | --- |\n";
    text += &format!("| issue | {} |\n", escape(&content.issue));
    text += &format!("| base | {} |\n", escape(&content.base));
    text += &format!("| tests | {} |\n\n", escape(&code_span(&content.tests)));
    let assumed: Vec<&str> = (content.criteria.iter())
        .filter(|criterion| criterion.inferred.is_some())
        .map(|criterion| criterion.id.as_str())
        .collect();
    if !assumed.is_empty() {
        text += &format!(
            "> Assumed, not in the issue's own words: {}\n\n",
            assumed.join(", ")
        );
    }
    text += "## Acceptance criteria\n\n";
    text
}
