//! Planners: what they are told, and whether what they answer may become the ledger.

use crate::blind::issue_text;
use crate::conductor::leaves::files::Files;
use crate::conductor::run::Run;
use crate::git::tree;
use crate::leaf::LaunchId;
use crate::machine::{Answer, Event, Leaf, LeafEnd};
use crate::prompt::{PlannerInputs, PlannerPrompt};
use crate::{agent, plan};
use anyhow::Result;
use serde_json::Value;

impl Run<'_> {
    pub(super) fn launch_planner(&mut self, leaf: &Leaf, id: LaunchId) -> Result<(Event, Value)> {
        let base = tree::of_commit(self.tree.git2(), self.ready()?.base.commit)?;
        let nonce = agent::fresh_nonce()?;
        self.bring_ground(base)?;
        let deadlines = self.deadlines(leaf.role)?;
        let records = self.records()?;
        let files = Files::below(&records, &id);
        let declared = self.declared_env();
        let ready = self.ready()?;
        let previous = self
            .state
            .planner
            .feedback
            .as_ref()
            .map(|f| f.reasons.join("\n"));
        let prompt = PlannerPrompt::render(
            &ready.templates,
            &PlannerInputs {
                issue: &issue_text(&ready.text),
                test_command: &ready.test_command,
                max_steps: self.settings.max_steps() as u32,
                no_test_forbidden: self.settings.no_test_forbidden(),
                nonce: &nonce,
                schema: &serde_json::to_string_pretty(&plan::schema())?,
                previous_error: previous.as_deref(),
            },
        )?;
        let place = self.place(&files, ready.ground.path(), deadlines.wall, &declared)?;
        let launch = agent::planner_launch(&ready.agents.planner, &prompt, &place)?;
        self.run_leaf(leaf, &launch, id, Some(&nonce), &deadlines, &records)
    }

    pub(super) fn planned(&self, text: &str, nonce: &str) -> Result<LeafEnd> {
        let plan = match plan::read_answer(text, nonce) {
            Err(malformed) => {
                return Ok(LeafEnd::Malformed {
                    reason: malformed.to_string(),
                });
            }
            Ok(plan::Answer::NeedsUser(question)) => {
                return Ok(LeafEnd::Answered(Answer::NeedsUser { question }));
            }
            Ok(plan::Answer::Plan(plan)) => plan,
        };
        Ok(match self.validate(&plan) {
            Ok(()) => LeafEnd::Answered(Answer::Plan(plan)),
            Err(e) if e.kind == plan::PlanErrorKind::NothingQuoted => {
                let proposed = serde_json::to_string_pretty(&plan)?;
                LeafEnd::Answered(Answer::NeedsUser {
                    question: format!(
                        "None of the criteria of the proposed plan stands in the issue: {e}. Write what is wanted \
                         into the issue, or run with --plan FILE. The proposed plan:\n\n{proposed}"
                    ),
                })
            }
            Err(e) => LeafEnd::Malformed {
                reason: e.to_string(),
            },
        })
    }

    /// Whether a plan may become the ledger.
    pub(in crate::conductor) fn validate(&self, plan: &plan::Plan) -> Result<(), plan::PlanError> {
        let text = match &self.ready {
            Some(ready) => {
                let comments = ready.text.comments().iter().map(|c| c.text());
                let parts = [ready.text.title(), ready.text.body()];
                parts
                    .into_iter()
                    .chain(comments)
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            None => String::new(),
        };
        plan.validate(
            &text,
            &plan::Rules {
                max_steps: self.settings.max_steps(),
                no_test_forbidden: self.settings.no_test_forbidden(),
            },
        )
    }
}
