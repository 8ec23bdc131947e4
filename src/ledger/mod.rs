//! The ledger of an issue, `.tdd/issue-<n>.md`: the truth of which steps are done.
//!
//! A Markdown file that a person can read and edit. Reading is lossless: the file's own text is kept, and a
//! tick changes one byte of it. A file that cannot be read without guessing is an [`Error`] with line and
//! column, and is never rewritten.
//!
//! Format, version 1:
//!
//! ```text
//! # Issue 42: Reject transfers above the daily limit
//!
//! <!-- veri ledger v1 -->
//!
//! | | |
//! | --- | --- |
//! | issue | acme/bank#42 |
//! | base | main @ 3f2c9e1b |
//! | tests | `cargo test --no-fail-fast` |
//!
//! ## Acceptance criteria
//!
//! - AC1: A transfer that would pass the daily limit is refused
//! - AC2: The refusal names the remaining allowance (inferred: the issue says "clear message")
//!
//! ## Steps
//!
//! - [x] 1. A transfer above the limit is refused (AC1)
//! - [ ] 2. The limits page explains the rule (AC1, AC2) [no test: documentation only]
//! ```
//!
//! The title of a step is the raw text between `N. ` and its last ` (AC…)`. The order in the file decides.
//! Whatever else is in the file is a person's and stays. `ledger-examples/` has a file for every
//! interesting shape.

/// The largest file that is taken for a ledger, in bytes.
pub const LARGEST: u64 = 8 << 20;

mod cell;
mod create;
mod lines;
mod parse;
mod step;

pub use create::NewLedger;

use serde::Serialize;

/// Why a file is not a ledger, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Error {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1. A byte order mark is not counted.
    pub column: usize,
    /// What is wrong and how it should be.
    pub message: String,
}

/// A tick was asked for a step that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no step {number} in the ledger of issue {issue}")]
pub struct NoSuchStep {
    /// The step that was asked for.
    pub number: u32,
    /// The issue whose ledger was asked.
    pub issue: u64,
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Criterion {
    /// `AC` and a number.
    pub id: String,
    /// What must hold, in one line.
    pub text: String,
    /// Why it is assumed, when it is not in the issue's own words.
    pub inferred: Option<String>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its number, unique in the ledger; it need not be its place.
    pub number: u32,
    /// The raw text of its title.
    pub title: String,
    /// The ids of the criteria that it serves; never empty.
    pub criteria: Vec<String>,
    /// Whether it is done.
    pub ticked: bool,
    /// Why no test is called for, in a step without one.
    pub no_test: Option<String>,
}

/// A ledger: its text as it is in the file, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    text: String,
    content: Content,
    /// The byte of each step's tick in the text, in the order of the steps.
    ticks: Vec<usize>,
}

/// What a ledger says, apart from how it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Content {
    issue_number: u64,
    issue: String,
    title: String,
    base: String,
    tests: String,
    criteria: Vec<Criterion>,
    steps: Vec<Step>,
}

impl Ledger {
    /// Reads a ledger.
    ///
    /// # Errors
    /// The first place at which the file is not a ledger: it is not UTF-8; its heading, version marker,
    /// table or sections are missing; a step has no number, another's number or title, no criterion or an
    /// unknown one, or a tick that is neither blank nor x nor X.
    pub fn parse(bytes: &[u8]) -> Result<Ledger, Error> {
        parse::ledger(bytes)
    }

    /// Writes the ledger of a plan that [`Plan::validate`](crate::plan::Plan::validate) accepts. It reads back
    /// as the same plan, with what must be one line folded into one.
    pub fn create(new: &NewLedger<'_>) -> Ledger {
        create::ledger(new)
    }

    /// The number of the issue.
    pub fn issue_number(&self) -> u64 {
        self.content.issue_number
    }

    /// The issue as people write it: `#42` or `acme/bank#42`.
    pub fn issue_ref(&self) -> &str {
        &self.content.issue
    }

    /// The title of the issue.
    pub fn title(&self) -> &str {
        &self.content.title
    }

    /// The cell that says what the branch was made from: `main @ 3f2c9e1b`.
    pub fn base(&self) -> &str {
        &self.content.base
    }

    /// The name of the base, without the commit.
    pub fn base_name(&self) -> &str {
        match self.base().rsplit_once(" @ ") {
            Some((name, _)) => name.trim(),
            None => self.base(),
        }
    }

    /// The test command.
    pub fn tests(&self) -> &str {
        &self.content.tests
    }

    /// The acceptance criteria, in the order of the file.
    pub fn criteria(&self) -> &[Criterion] {
        &self.content.criteria
    }

    /// The steps, in the order of the file.
    pub fn steps(&self) -> &[Step] {
        &self.content.steps
    }

    /// The first step that is not done; None when all are.
    pub fn current(&self) -> Option<&Step> {
        self.steps().iter().find(|step| !step.ticked)
    }

    /// The step of this number.
    pub fn step(&self, number: u32) -> Option<&Step> {
        self.steps().iter().find(|step| step.number == number)
    }

    /// The same ledger with the step ticked. One byte differs, none when it was ticked before.
    ///
    /// # Errors
    /// No step has this number.
    pub fn tick(&self, number: u32) -> Result<Ledger, NoSuchStep> {
        self.with_tick(number, true)
    }

    /// The same ledger with the step not ticked. One byte differs, none when it was not ticked before.
    ///
    /// # Errors
    /// No step has this number.
    pub fn untick(&self, number: u32) -> Result<Ledger, NoSuchStep> {
        self.with_tick(number, false)
    }

    fn with_tick(&self, number: u32, ticked: bool) -> Result<Ledger, NoSuchStep> {
        let mut ledger = self.clone();
        let steps = ledger.content.steps.iter_mut().zip(&ledger.ticks);
        let (step, &at) = steps
            .into_iter()
            .find(|(step, _)| step.number == number)
            .ok_or(NoSuchStep {
                number,
                issue: self.issue_number(),
            })?;
        if step.ticked != ticked {
            step.ticked = ticked;
            ledger
                .text
                .replace_range(at..=at, if ticked { "x" } else { " " });
        }
        Ok(ledger)
    }

    /// The file, byte for byte.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The file as text, with its byte order mark if it has one.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the other says the same in every respect, ticks included, however it is written.
    pub fn says_the_same(&self, other: &Ledger) -> bool {
        self.content == other.content
    }

    /// What the ledger says, as JSON (`veri ledger show --json`).
    pub fn to_json(&self) -> serde_json::Value {
        let content = &self.content;
        serde_json::json!({
            "v": parse::VERSION,
            "issue_number": content.issue_number,
            "issue": content.issue,
            "title": content.title,
            "base": content.base,
            "tests": content.tests,
            "criteria": content.criteria,
            "steps": content.steps,
            "current": self.current().map(|step| step.number),
        })
    }
}

#[cfg(test)]
mod properties;
