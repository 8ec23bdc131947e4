//! The issue and a step as they stand in a prompt.

use super::fence::escaped_line;
use std::fmt::Write as _;

/// The trusted text of an issue, as planner and developer get it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssueText {
    /// The title.
    pub title: String,
    /// The body, as written.
    pub body: String,
    /// Author and text of the trusted comments, oldest first.
    pub comments: Vec<(String, String)>,
}

impl IssueText {
    /// The text for a data block.
    pub fn to_block(&self) -> String {
        let mut block = format!("title: {}\n\n{}", escaped_line(&self.title), self.body);
        for (author, text) in &self.comments {
            let _ = write!(block, "\n\ncomment by {}:\n\n{text}", escaped_line(author));
        }
        block
    }
}

/// A step of the ledger, as developer and verifier get it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepText {
    /// Its number in the ledger.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// Id and text of the criteria that it serves.
    pub criteria: Vec<(String, String)>,
    /// Why it has no test, for a step marked so.
    pub no_test: Option<String>,
}

impl StepText {
    /// The text for a data block.
    pub fn to_block(&self) -> String {
        let mut block = format!(
            "step {}: {}\ncriteria:\n",
            self.number,
            escaped_line(&self.title)
        );
        for (id, text) in &self.criteria {
            let _ = writeln!(block, "- {}: {}", escaped_line(id), escaped_line(text));
        }
        if let Some(why) = &self.no_test {
            let _ = writeln!(block, "no test, because: {}", escaped_line(why));
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issue_and_a_step_read_as_written() {
        let issue = IssueText {
            title: "Refuse".into(),
            body: "Please.".into(),
            comments: vec![("ann\nfake".into(), "Soon.".into())],
        };
        assert_eq!(
            issue.to_block(),
            "title: Refuse\n\nPlease.\n\ncomment by ann\\nfake:\n\nSoon."
        );
        let step = StepText {
            number: 2,
            title: "$(touch x) `y`".into(),
            criteria: vec![("AC1".into(), "It holds".into())],
            no_test: Some("documentation".into()),
        };
        assert_eq!(
            step.to_block(),
            "step 2: $(touch x) `y`\ncriteria:\n- AC1: It holds\nno test, because: documentation\n"
        );
    }
}
