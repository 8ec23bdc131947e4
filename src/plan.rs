//! The plan of an issue: its acceptance criteria, and the steps that meet them.
//!
//! A planner answers with it as JSON, or a person hands it over with `--plan FILE`. [`Plan::validate`] holds
//! it to the issue's own words; a valid plan becomes a [ledger](crate::ledger).

mod validate;

pub(crate) use validate::is_title_char;

use crate::answer::{self, QUESTION_MAX, clip, one_line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::answer::Malformed;

/// The longest title of a step, in characters: it becomes the subject of a commit.
pub const TITLE_MAX: usize = 120;
/// The longest text of a criterion, of a quote and of a reason, in characters.
pub const TEXT_MAX: usize = 2_000;
/// The most criteria of a plan.
pub const CRITERIA_MAX: usize = 100;

/// Separates the reason of a step without a test from its title in the ledger, which is why no reason may hold it.
pub(crate) const NO_TEST_MARK: &str = "[no test:";
/// Separates the reason of an inferred criterion from its text in the ledger, which is why no text may hold it.
pub(crate) const INFERRED_MARK: &str = "(inferred:";

/// What a planner answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A plan, not yet held to the issue.
    Plan(Plan),
    /// Only a person can decide: the whole question.
    NeedsUser(String),
}

/// The acceptance criteria of an issue, and the steps that meet them, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// What must hold when the issue is done.
    pub criteria: Vec<Criterion>,
    /// One cycle's worth of work each.
    pub steps: Vec<Step>,
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// `AC` and a number of at most four digits, unique in the plan.
    #[schemars(regex(pattern = r"^AC[0-9]{1,4}$"))]
    pub id: String,
    /// What must hold, in one line.
    pub text: String,
    /// The words of the issue that ask for it, verbatim (white space aside).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Why it is assumed although no words of the issue ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferred: Option<String>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The behaviour that the step adds: one line, unique, at most 120 characters. Becomes a commit's subject.
    #[schemars(length(min = 1, max = 120))]
    pub title: String,
    /// The ids of the criteria that the step serves; at least one.
    #[schemars(length(min = 1))]
    pub criteria: Vec<String>,
    /// Why no test is called for; absent in a step with a test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_test: Option<String>,
}

/// What the configuration demands of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The most steps (`limits.max_steps`).
    pub max_steps: usize,
    /// Whether steps without a test are refused (`plan.no_test = "forbid"`).
    pub no_test_forbidden: bool,
}

/// What kind of fault a plan has: who can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanErrorKind {
    /// The planner can.
    Invalid,
    /// The issue is too large for one run.
    TooManySteps,
    /// All is well but for this: no criterion is in the issue's own words. A person has to agree.
    NothingQuoted,
}

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// Who can mend it.
    pub kind: PlanErrorKind,
    /// Every fault that was found, one a line: text that can be sent back to the planner.
    pub message: String,
}

/// Reads a planner's final message: the one object that carries the nonce.
///
/// # Errors
/// None or several that differ carry it, or it is not of the plan's shape. The reason says which.
pub fn read_answer(text: &str, nonce: &str) -> Result<Answer, Malformed> {
    let wire: Wire = answer::only(text, nonce)?;
    match (wire.needs_user, wire.criteria, wire.steps) {
        (Some(question), None, None) if question.trim().is_empty() => Err(Malformed::new(
            "`needs_user` is blank; it must hold the whole question",
        )),
        (Some(question), None, None) => Ok(Answer::NeedsUser(clip(&question, QUESTION_MAX))),
        (Some(_), _, _) => Err(Malformed::new(
            "the answer has both a plan and `needs_user`; give one of them",
        )),
        (None, Some(criteria), Some(steps)) => Ok(Answer::Plan(Plan { criteria, steps }.tidied())),
        (None, None, _) => Err(Malformed::new("the answer has no `criteria`")),
        (None, _, None) => Err(Malformed::new("the answer has no `steps`")),
    }
}

/// Reads a plan that a person wrote: the whole text is its JSON; a nonce is not needed.
///
/// # Errors
/// The text is not JSON, or not of the plan's shape.
pub fn from_person(text: &str) -> Result<Plan, Malformed> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(answer::shaped::<Plan>(text)?.tidied())
}

/// The JSON schema of a planner's answer (`veri prompt schema plan`).
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Form).to_value()
}

/// Whether this is the id of a criterion: `AC` and one to four digits.
pub fn is_criterion_id(id: &str) -> bool {
    id.strip_prefix("AC").is_some_and(|digits| {
        (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

impl Plan {
    /// The same plan with blanks at the ends of its texts gone, and what must be one line folded into one.
    fn tidied(mut self) -> Plan {
        let fold = |text: &mut Option<String>| {
            if let Some(text) = text {
                *text = one_line(text);
            }
        };
        for criterion in &mut self.criteria {
            criterion.id = criterion.id.trim().to_owned();
            criterion.text = one_line(&criterion.text);
            fold(&mut criterion.inferred);
        }
        for step in &mut self.steps {
            step.title = step.title.trim().to_owned();
            for id in &mut step.criteria {
                *id = id.trim().to_owned();
            }
            fold(&mut step.no_test);
        }
        self
    }
}

/// The object as a planner writes it. Fields of its own invention beside these are ignored.
#[derive(PartialEq, Deserialize)]
struct Wire {
    needs_user: Option<String>,
    criteria: Option<Vec<Criterion>>,
    steps: Option<Vec<Step>>,
}

/// A planner's answer: one of the two, with the nonce of its launch.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(
    dead_code,
    reason = "only its schema is used; `Wire` reads, with better messages"
)]
enum Form {
    /// The issue is planned.
    Plan {
        /// The value of VERI_NONCE.
        nonce: String,
        /// At least one; at least one of them quoted.
        #[schemars(length(min = 1))]
        criteria: Vec<Criterion>,
        /// At least one; every criterion is named by one.
        #[schemars(length(min = 1))]
        steps: Vec<Step>,
    },
    /// Only a person can decide.
    NeedsUser {
        /// The value of VERI_NONCE.
        nonce: String,
        /// The whole question.
        needs_user: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planner_answers_with_its_nonce_or_not_at_all() {
        let body = r#""criteria":[{"id":"AC1","text":"t","quote":"q"}],"steps":[{"title":"s","criteria":["AC1"]}]"#;
        let answer = |text: &str| read_answer(text, "n1");
        let good = format!(r#"Here: {{"nonce":"n1",{body},"notes":"mine"}}"#);
        assert!(matches!(answer(&good), Ok(Answer::Plan(plan)) if plan.steps.len() == 1));
        assert_eq!(
            answer(r#"{"nonce":"n1","needs_user":"Which limit?"}"#),
            Ok(Answer::NeedsUser("Which limit?".into()))
        );
        let other = format!(
            "{good} {{\"nonce\":\"n1\",{}}}",
            body.replace("\"s\"", "\"z\"")
        );
        for (text, says) in [
            (format!("{{{body}}}"), "no JSON object with the nonce"),
            (other, "two JSON objects that differ"),
            (r#"{"nonce":"n1"}"#.into(), "no `criteria`"),
            (r#"{"nonce":"n1","criteria":[]}"#.into(), "no `steps`"),
            (r#"{"nonce":"n1","needs_user":""}"#.into(), "blank"),
            (
                format!(r#"{{"nonce":"n1","needs_user":"?",{body}}}"#),
                "both",
            ),
            (
                format!(
                    r#"{{"nonce":"n1",{}}}"#,
                    body.replace("\"quote\"", "\"qoute\"")
                ),
                "criteria[0].qoute: unknown field `qoute`",
            ),
            (
                format!(
                    r#"{{"nonce":"n1",{}}}"#,
                    body.replace("[\"AC1\"]", "\"AC1\"")
                ),
                "steps[0].criteria: invalid type",
            ),
        ] {
            let reason = answer(&text).unwrap_err().reason;
            assert!(reason.contains(says), "{text}\n{reason}");
        }
    }

    #[test]
    fn a_persons_plan_is_the_whole_text() {
        let error = from_person("{\"criteria\":[],\n \"steps\":[]} and more").unwrap_err();
        assert!(error.reason.contains("line 2"), "{error}");
        assert!(from_person("\u{feff}{\"criteria\":[],\"steps\":[]}").is_ok());
    }

    #[test]
    fn the_schema_names_every_field_that_is_read() {
        let schema = schema().to_string();
        for field in [
            "nonce",
            "criteria",
            "steps",
            "id",
            "text",
            "quote",
            "inferred",
            "title",
            "no_test",
            "needs_user",
        ] {
            assert!(
                schema.contains(&format!("\"{field}\"")),
                "{field}: {schema}"
            );
        }
    }
}
