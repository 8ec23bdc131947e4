//! What makes a plan valid: every fault is said at once, precisely enough to be sent back to a planner.

use super::{
    CRITERIA_MAX, INFERRED_MARK, NO_TEST_MARK, Plan, PlanError, PlanErrorKind, Rules, TEXT_MAX,
    TITLE_MAX, is_criterion_id,
};
use crate::answer::{clip, one_line};
use std::collections::{BTreeMap, BTreeSet};

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
        let mut ids = BTreeSet::new();
        let served: BTreeSet<&str> = self
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
        let mut titles = BTreeMap::new();
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
    if closes_an_issue(title) {
        return Err(format!(
            "would close an issue when its commit is merged: {shown:?}"
        ));
    }
    Ok(())
}

/// Whether forges take a line of a commit message for the order to close an issue: a word like "fixes" before a
/// reference (`#7`, `acme/bank#7`, `GH-7`, an address of an issue).
fn closes_an_issue(line: &str) -> bool {
    let line = line.to_lowercase();
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).any(|pair| {
        let word = pair[0].trim_end_matches(':');
        let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        let closing = ["clos", "fix", "resolv", "implement"]
            .iter()
            .filter_map(|stem| word.strip_prefix(stem))
            .any(|end| ["", "e", "es", "ed", "s", "d", "ing"].contains(&end));
        let digit = |after: &str| {
            let mut parts = pair[1].split(after).skip(1);
            parts.any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        closing && ["#", "gh-", "/issues/"].into_iter().any(digit)
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::from_person;

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
    fn a_title_that_would_close_another_issue_is_no_title() {
        for title in [
            "Fixes #7",
            "refuse it (closes acme/bank#7)",
            "Resolves: GH-7",
            "refuse it, fix https://github.com/acme/bank/issues/7",
        ] {
            assert!(closes_an_issue(title), "{title}");
            let (_, message) = refused(|p| p.steps[0].title = title.to_owned());
            assert!(message.contains("would close an issue"), "{message}");
        }
        for title in [
            "Fix the #hash sign",
            "fixes 7 of #7",
            "Prefixes #7",
            "Close the file",
        ] {
            assert!(!closes_an_issue(title), "{title}");
        }
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
}
