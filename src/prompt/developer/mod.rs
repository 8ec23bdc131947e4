//! What a developer is told: the only place that reads what an earlier developer said.

mod rationale;
mod setback;

pub use rationale::Rationale;
pub use setback::{Kept, RejectReason, Setback, Start};

use super::templates::{TemplateError, Templates};
use super::{Blocks, IssueText, StepText, escaped_line};
use crate::answer::Reopen;
use crate::role::Phase;
use minijinja::Value;
use std::fmt::Write as _;

/// What a developer leaf is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Write the failing test.
    Red,
    /// Make it pass.
    Green,
    /// Simplify.
    Refactor,
    /// Do a step that no test can show.
    NoTest,
}

impl Task {
    /// The phase that the task belongs to.
    pub fn phase(self) -> Phase {
        match self {
            Task::Red => Phase::Red,
            Task::Green | Task::NoTest => Phase::Green,
            Task::Refactor => Phase::Refactor,
        }
    }

    fn template(self) -> &'static str {
        match self {
            Task::Red => "develop-red.md",
            Task::Green => "develop-green.md",
            Task::Refactor => "develop-refactor.md",
            Task::NoTest => "develop-no-test.md",
        }
    }
}

/// What a developer's prompt is made of.
#[derive(Debug)]
pub struct DeveloperInputs<'a> {
    /// What to do.
    pub task: Task,
    /// The trusted text of the issue.
    pub issue: &'a IssueText,
    /// The ledger, whole.
    pub ledger: &'a str,
    /// The step under way.
    pub step: &'a StepText,
    /// The command that runs the tests.
    pub test_command: &'a str,
    /// The extra checks (`checks` in the config).
    pub checks: &'a [String],
    /// `VERI_ATTEMPT`: 1 + revisions.
    pub attempt: u32,
    /// Tests that a green leaf had reopened; told in red alone.
    pub reopened: &'a [Reopen],
    /// Why the work is to be done again; None at the first launch.
    pub setback: Option<&'a Setback>,
    /// What the working tree holds now; told with a setback.
    pub start: Start,
    /// Where unfinished work of an earlier launch is kept.
    pub kept: Option<&'a Kept>,
    /// What the previous attempt said, where that is wanted; told with a setback.
    pub previous: Option<&'a Rationale>,
}

/// A developer's prompt, rendered. A developer can be launched with nothing else.
#[derive(Debug)]
pub struct DeveloperPrompt {
    text: String,
    phase: Phase,
    step_title: String,
    attempt: u32,
}

/// How much of an earlier developer's words is shown, in bytes from the end: they end with what was done.
const PREVIOUS_BYTES: usize = 8 * 1024;

impl DeveloperPrompt {
    /// Renders the prompt.
    ///
    /// # Errors
    /// When a template fails, or the prompt is larger than 16 MiB.
    pub fn render(
        templates: &Templates,
        inputs: &DeveloperInputs<'_>,
    ) -> Result<DeveloperPrompt, TemplateError> {
        let mut blocks = Blocks::new();
        blocks.add("issue", "issue", inputs.issue.to_block());
        blocks.add("ledger", "ledger", inputs.ledger);
        blocks.add("step", "step", inputs.step.to_block());
        blocks.add("test_command", "test command", inputs.test_command);
        if !inputs.checks.is_empty() {
            blocks.add("checks", "commands", inputs.checks.join("\n"));
        }
        if inputs.task == Task::Red && !inputs.reopened.is_empty() {
            blocks.add("reopened", "tests", reopened_block(inputs.reopened));
        }
        if let Some(setback) = inputs.setback {
            setback.add_to(&mut blocks);
            if let Some(previous) = inputs.previous {
                blocks.add("previous", "words", tail(previous.words(), PREVIOUS_BYTES));
            }
        }
        let mut fenced = blocks.fence();
        let data_rule = templates.render("rules-data.md", [("tag", Value::from(fenced.tag()))])?;
        let revise = match inputs.setback {
            None => String::new(),
            Some(setback) => templates.render(
                "revise.md",
                [
                    ("attempt", Value::from(inputs.attempt)),
                    ("why", Value::from(setback.sentence())),
                    ("start", Value::from(inputs.start.sentence())),
                    ("evidence", Value::from(fenced.take("evidence"))),
                    ("reasons", Value::from(fenced.take("reasons"))),
                    (
                        "kept",
                        Value::from(inputs.kept.map(Kept::sentence).unwrap_or_default()),
                    ),
                    ("previous", Value::from(fenced.take("previous"))),
                ],
            )?,
        };
        let mut text = templates.render(
            inputs.task.template(),
            [
                ("data_rule", Value::from(data_rule)),
                ("issue", Value::from(fenced.take("issue"))),
                ("ledger", Value::from(fenced.take("ledger"))),
                ("step", Value::from(fenced.take("step"))),
                ("test_command", Value::from(fenced.take("test_command"))),
                ("checks", Value::from(fenced.take("checks"))),
                ("reopened", Value::from(fenced.take("reopened"))),
                ("revise", Value::from(revise)),
            ],
        )?;
        text.push('\n');
        Ok(DeveloperPrompt {
            text,
            phase: inputs.task.phase(),
            step_title: inputs.step.title.clone(),
            attempt: inputs.attempt,
        })
    }

    /// The prompt.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `VERI_PHASE`.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// `VERI_STEP`.
    pub fn step_title(&self) -> &str {
        &self.step_title
    }

    /// `VERI_ATTEMPT`.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}

fn reopened_block(tests: &[Reopen]) -> String {
    tests.iter().fold(String::new(), |mut block, reopened| {
        let _ = writeln!(
            block,
            "- {}: {}",
            escaped_line(&reopened.test),
            escaped_line(&reopened.why)
        );
        block
    })
}

/// The last bytes of a text, from a character's beginning on.
fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests;
