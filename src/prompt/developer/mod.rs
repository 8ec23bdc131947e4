//! What a developer is told: the only place that reads what an earlier developer said.

mod rationale;
mod setback;

pub use rationale::Rationale;
pub use setback::{CutShort, Kept, RejectReason, Setback, Start};

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
    /// Why the last answer was refused; None when there is none.
    pub setback: Option<&'a Setback>,
    /// What the working tree holds now of that answer; told with a setback.
    pub start: Start,
    /// Why the launch before this one gave no answer; None when it gave one.
    pub cut_short: Option<CutShort>,
    /// Where work that is not in the working tree any more is kept; told with a setback or after a launch that was cut short.
    pub kept: Option<&'a Kept>,
}

/// A developer's prompt, rendered. A developer can be launched with nothing else.
#[derive(Debug)]
pub struct DeveloperPrompt {
    text: String,
    phase: Phase,
    step_title: String,
    attempt: u32,
}

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
        }
        let mut fenced = blocks.fence();
        let data_rule = templates.render("rules-data.md", [("tag", Value::from(fenced.tag()))])?;
        let revise = match (inputs.setback, inputs.cut_short) {
            (None, None) => String::new(),
            (setback, cut_short) => templates.render(
                "revise.md",
                [
                    ("attempt", Value::from(inputs.attempt)),
                    (
                        "why",
                        Value::from(setback.map(Setback::sentence).unwrap_or_default()),
                    ),
                    ("start", Value::from(inputs.start.sentence())),
                    ("evidence", Value::from(fenced.take("evidence"))),
                    ("reasons", Value::from(fenced.take("reasons"))),
                    (
                        "cut_short",
                        Value::from(cut_short.map(CutShort::sentence).unwrap_or_default()),
                    ),
                    (
                        "kept",
                        Value::from(inputs.kept.map(Kept::sentence).unwrap_or_default()),
                    ),
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

#[cfg(test)]
mod tests;
