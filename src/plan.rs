//! The plan of an issue: its acceptance criteria, and the steps that meet them.
//!
//! A planner answers with it as JSON, or a person hands it over with `--plan FILE`. [`Plan::validate`] holds
//! it to the issue's own words; a valid plan becomes a [ledger](crate::ledger).

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// What must hold when the issue is done.
    pub criteria: Vec<Criterion>,
    /// One cycle's worth of work each.
    pub steps: Vec<Step>,
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Holds the plan to the issue (title, body and trusted comments as one text) and the rules.
    ///
    /// # Errors
    /// Every fault at once. [`PlanErrorKind::NothingQuoted`] only when there is no other.
    pub fn validate(&self, issue_text: &str, rules: &Rules) -> Result<(), PlanError> {
        let mut faults = Faults::default();
        let issue = without_white_space(issue_text);
        let quoted = self.check_criteria(&issue, &mut faults);
        self.check_steps(rules, &mut faults);
        if !faults.0.is_empty() {
            let kind = if self.steps.len() > rules.max_steps {
                PlanErrorKind::TooManySteps
            } else {
                PlanErrorKind::Invalid
            };
            return Err(PlanError {
                kind,
                message: faults.0.join("\n"),
            });
        }
        if quoted == 0 {
            return Err(PlanError {
                kind: PlanErrorKind::NothingQuoted,
                message: "no criterion is in the issue's own words: all of them are assumptions"
                    .to_owned(),
            });
        }
        Ok(())
    }

    /// Checks the criteria; the number of those that are quoted from the issue.
    fn check_criteria(&self, issue: &str, faults: &mut Faults) -> usize {
        if self.criteria.is_empty() {
            faults.say("the plan has no criterion");
        }
        if self.criteria.len() > CRITERIA_MAX {
            faults.say(format!(
                "the plan has {} criteria; at most {CRITERIA_MAX}",
                self.criteria.len()
            ));
        }
        let mut ids = std::collections::BTreeSet::new();
        let served: std::collections::BTreeSet<&str> = self
            .steps
            .iter()
            .flat_map(|step| step.criteria.iter().map(String::as_str))
            .collect();
        let mut quoted = 0;
        for (index, criterion) in self.criteria.iter().enumerate() {
            let id = &criterion.id;
            if !is_criterion_id(id) {
                faults.say(format!(
                    "criteria[{index}]: the id {:?} is not like AC1 (AC and at most four digits)",
                    clip(id, 40)
                ));
                continue;
            }
            if !ids.insert(id) {
                faults.say(format!("{id} is the id of two criteria"));
                continue;
            }
            if !served.contains(id.as_str()) {
                faults.say(format!("{id} has no step"));
            }
            faults.text(&format!("the text of {id}"), &criterion.text);
            if criterion.text.contains(INFERRED_MARK) {
                faults.say(format!(
                    "the text of {id} contains {INFERRED_MARK:?}: say it in the field `inferred`"
                ));
            }
            if let Some(reason) = &criterion.inferred {
                faults.text(&format!("`inferred` of {id}"), reason);
            }
            match &criterion.quote {
                Some(quote) => {
                    faults.text(&format!("the quote of {id}"), quote);
                    let words = without_white_space(quote);
                    if !words.is_empty() && issue.contains(&words) {
                        quoted += 1;
                    } else if !words.is_empty() {
                        faults.say(format!(
                            "the quote of {id} does not stand in the issue: {:?} (quote verbatim, or leave \
                             `quote` out and say in `inferred` why it is assumed)",
                            clip(quote, 200)
                        ));
                    }
                }
                None if criterion.inferred.is_none() => faults.say(format!(
                    "{id} has neither `quote` (verbatim from the issue) nor `inferred` (why it is assumed)"
                )),
                None => {}
            }
        }
        quoted
    }

    fn check_steps(&self, rules: &Rules, faults: &mut Faults) {
        if self.steps.is_empty() {
            faults.say("the plan has no step");
        }
        if self.steps.len() > rules.max_steps {
            faults.say(format!(
                "the plan has {} steps, the limit is {}: split this issue",
                self.steps.len(),
                rules.max_steps
            ));
        }
        let known = || self.criteria.iter().map(|c| c.id.as_str());
        let mut titles = std::collections::BTreeMap::new();
        for (index, step) in self.steps.iter().enumerate() {
            let number = index + 1;
            if let Err(fault) = check_title(&step.title) {
                faults.say(format!("the title of step {number} {fault}"));
            }
            if let Some(first) = titles.insert(step.title.as_str(), number) {
                faults.say(format!("steps {first} and {number} have the same title"));
            }
            if step.criteria.is_empty() {
                faults.say(format!("step {number} names no criterion"));
            }
            for (place, id) in step.criteria.iter().enumerate() {
                if !known().any(|one| one == id) {
                    faults.say(format!(
                        "step {number} names the criterion {:?}, which the plan does not have",
                        clip(id, 40)
                    ));
                } else if step.criteria[..place].contains(id) {
                    faults.say(format!("step {number} names {id} twice"));
                }
            }
            if let Some(reason) = &step.no_test {
                faults.text(&format!("`no_test` of step {number}"), reason);
                if reason.contains(NO_TEST_MARK) {
                    faults.say(format!(
                        "`no_test` of step {number} contains {NO_TEST_MARK:?}: give the bare reason"
                    ));
                }
                if rules.no_test_forbidden {
                    faults.say(format!(
                        "step {number} has no test, which plan.no_test forbids here: \
                         make it part of a step with a test"
                    ));
                }
            }
        }
    }

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

/// Whether a line can be a step's title: what is wrong with it, as the end of a sentence about it.
fn check_title(title: &str) -> Result<(), String> {
    if title.trim().is_empty() {
        return Err("is blank".to_owned());
    }
    let shown = clip(title, 60);
    if title.trim() != title {
        return Err(format!("begins or ends with a blank: {shown:?}"));
    }
    if let Some(c) = title.chars().find(|c| !is_title_char(*c)) {
        return Err(format!(
            "has a line break or a control character (U+{:04X}): {shown:?}",
            u32::from(c)
        ));
    }
    let length = title.chars().count();
    if length > TITLE_MAX {
        return Err(format!(
            "has {length} characters, at most {TITLE_MAX}: {shown:?}"
        ));
    }
    Ok(())
}

/// Whether a character may stand in a title: no control characters, line separators, or marks that reorder the
/// text around them (U+202A to U+202E, U+2066 to U+2069), with which a title could read as another one.
pub(crate) fn is_title_char(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn without_white_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The faults of a plan, in the order in which they are found; bounded, so that the answer to a planner is.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    const MAX: usize = 20;

    fn say(&mut self, fault: impl Into<String>) {
        if self.0.len() < Self::MAX {
            self.0.push(fault.into());
        }
    }

    fn text(&mut self, what: &str, text: &str) {
        if one_line(text).is_empty() {
            self.say(format!("{what} is blank"));
        } else if text.chars().count() > TEXT_MAX {
            self.say(format!("{what} is longer than {TEXT_MAX} characters"));
        }
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

    const ISSUE: &str =
        "Limits\n\nA transfer that would pass\n  the daily limit is refused. Say why.";
    const RULES: Rules = Rules {
        max_steps: 3,
        no_test_forbidden: false,
    };

    fn plan() -> Plan {
        from_person(
            r#"{"nonce":"ignored","criteria":[
                {"id":"AC1","text":"refused","quote":"would pass the daily\nlimit is refused"},
                {"id":"AC2","text":"it says\n why","inferred":"the issue says \"Say why\""}],
              "steps":[{"title":" Refuse it ","criteria":["AC1"]},
                {"title":"Explain","criteria":["AC2","AC1"],"no_test":"words only"}]}"#,
        )
        .unwrap()
    }

    /// The kind and message after one change to a valid plan.
    fn refused(change: impl FnOnce(&mut Plan)) -> (PlanErrorKind, String) {
        let mut plan = plan();
        change(&mut plan);
        let error = plan.validate(ISSUE, &RULES).expect_err("must be refused");
        (error.kind, error.message)
    }

    #[test]
    fn a_valid_plan_is_read_and_folded() {
        let plan = plan();
        plan.validate(ISSUE, &RULES).unwrap();
        assert_eq!(plan.criteria[1].text, "it says why");
        assert_eq!(plan.steps[0].title, "Refuse it");
        assert_eq!(plan.steps[1].no_test.as_deref(), Some("words only"));
    }

    #[test]
    fn each_fault_is_refused_with_its_precise_reason() {
        let title = |title: &str| {
            let title = title.to_owned();
            refused(move |p| p.steps[0].title = title).1
        };
        assert!(title("").contains("title of step 1 is blank"));
        assert!(title("a\nb").contains("U+000A"));
        assert!(title("a\u{2028}b").contains("U+2028"));
        assert!(title("a\u{202e}b").contains("U+202E"));
        assert!(title(" a").contains("begins or ends with a blank"));
        assert!(title(&"é".repeat(121)).contains("121 characters, at most 120"));
        assert!(title("Explain").contains("steps 1 and 2 have the same title"));

        for (change, says) in [
            (
                (|p| p.criteria[0].quote = Some("no such words".into())) as fn(&mut Plan),
                "the quote of AC1 does not stand in the issue: \"no such words\"",
            ),
            (
                |p| p.criteria[0].quote = Some(" \n".into()),
                "the quote of AC1 is blank",
            ),
            (|p| p.criteria[0].quote = None, "AC1 has neither `quote`"),
            (
                |p| p.criteria[1].inferred = Some(String::new()),
                "`inferred` of AC2 is blank",
            ),
            (
                |p| p.criteria[1].id = "AC1".into(),
                "AC1 is the id of two criteria",
            ),
            (
                |p| p.criteria[1].id = "2".into(),
                "the id \"2\" is not like AC1",
            ),
            (
                |p| p.criteria[1].text = "\t".into(),
                "the text of AC2 is blank",
            ),
            (
                |p| p.criteria[1].text = "x (inferred: y)".into(),
                "say it in the field `inferred`",
            ),
            (
                |p| p.criteria[1].text = "x".repeat(TEXT_MAX + 1),
                "longer than 2000 characters",
            ),
            (
                |p| p.steps[1].criteria = vec!["AC1".into()],
                "AC2 has no step",
            ),
            (
                |p| p.steps[1].criteria.push("AC9".into()),
                "step 2 names the criterion \"AC9\"",
            ),
            (
                |p| p.steps[1].criteria.push("AC1".into()),
                "step 2 names AC1 twice",
            ),
            (|p| p.steps[0].criteria.clear(), "step 1 names no criterion"),
            (
                |p| p.steps[1].no_test = Some(" ".into()),
                "`no_test` of step 2 is blank",
            ),
            (
                |p| p.steps[1].no_test = Some("[no test: x]".into()),
                "give the bare reason",
            ),
            (|p| p.steps.clear(), "the plan has no step"),
            (|p| p.criteria.clear(), "the plan has no criterion"),
        ] {
            let (kind, message) = refused(change);
            assert_eq!(kind, PlanErrorKind::Invalid, "{message}");
            assert!(message.contains(says), "{says}\n{message}");
        }
    }

    #[test]
    fn every_fault_is_said_at_once_and_only_so_many() {
        let (_, message) = refused(|p| {
            p.criteria[0].quote = Some("no".into());
            p.steps[0].title = String::new();
        });
        assert_eq!(message.lines().count(), 2, "{message}");
        let (_, message) = refused(|p| p.steps[0].criteria = vec!["AC9".into(); 50]);
        assert_eq!(message.lines().count(), Faults::MAX);
    }

    #[test]
    fn a_title_of_120_characters_of_any_script_is_valid() {
        let mut plan = plan();
        plan.steps[0].title = "👩‍👩‍👧".chars().cycle().take(119).chain(['é']).collect();
        plan.validate(ISSUE, &RULES).unwrap();
    }

    #[test]
    fn too_many_steps_is_a_kind_of_its_own() {
        let (kind, message) = refused(|p| {
            for n in 0..3 {
                let mut step = p.steps[0].clone();
                step.title = format!("more {n}");
                p.steps.push(step);
            }
        });
        assert_eq!(kind, PlanErrorKind::TooManySteps);
        assert!(
            message.contains("5 steps, the limit is 3: split this issue"),
            "{message}"
        );
    }

    #[test]
    fn a_plan_of_assumptions_alone_is_a_question_to_a_person() {
        let (kind, _) = refused(|p| {
            p.criteria[0].quote = None;
            p.criteria[0].inferred = Some("sounds right".into());
        });
        assert_eq!(kind, PlanErrorKind::NothingQuoted);
    }

    #[test]
    fn steps_without_a_test_can_be_forbidden() {
        let rules = Rules {
            no_test_forbidden: true,
            ..RULES
        };
        let error = plan().validate(ISSUE, &rules).unwrap_err();
        assert!(error.message.contains("step 2 has no test"), "{error}");
    }

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
