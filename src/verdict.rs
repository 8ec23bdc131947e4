//! The verifier's answer to one claim, read from its own final message.
//!
//! The answer is one JSON object with the nonce of its launch. Exactly one distinct object counts; anything
//! else is malformed, which is never an approval.

use crate::answer::{self, QUESTION_MAX, REASON_MAX, clip};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::answer::Malformed;

/// The most reasons that are kept.
pub const REASONS_MAX: usize = 20;
/// The largest patch that is kept, in bytes. A larger counterexample makes its reason a plain one; a larger
/// `breaks_with` makes the answer malformed.
pub const PATCH_MAX: usize = 256 * 1024;
/// The most commands that are kept of what a verifier says it ran.
pub const RAN_MAX: usize = 50;
/// The longest of them, in characters.
pub const COMMAND_MAX: usize = 500;

/// What a verifier answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It judged the claim.
    Verdict(Verdict),
    /// It cannot judge without a person: the whole question.
    NeedsUser(String),
}

/// A verifier's judgement of one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Approve or reject.
    pub verdict: Decision,
    /// Why. A reject has at least one.
    pub reasons: Vec<Reason>,
    /// The commands that the verifier says it ran.
    pub ran: Vec<String>,
    /// Already there: a patch to the code, byte for byte, under which the test fails.
    pub breaks_with: Option<String>,
}

/// The two words of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The claim holds.
    Approve,
    /// The claim does not hold.
    Reject,
}

impl Decision {
    /// The word in answers, the journal and the mirror.
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Reject => "reject",
        }
    }
}

/// One reason of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// In words, at most [`REASON_MAX`] characters.
    pub text: String,
    /// A patch that adds or changes tests only and shows the fault when it is applied, byte for byte.
    pub counterexample: Option<String>,
}

/// Reads a verifier's final message.
///
/// # Errors
/// The leaf failed; no object or several that differ carry the nonce; an unknown word; a reject without a
/// reason. The reason says which.
pub fn read(stdout: &str, nonce: &str, exit_code: i32) -> Result<Answer, Malformed> {
    if exit_code != 0 {
        return Err(Malformed::new(format!(
            "the verifier ended with exit code {exit_code}, so that its answer does not count"
        )));
    }
    let wire: Wire = answer::only(stdout, nonce)?;
    match (wire.verdict, wire.needs_user) {
        (Some(_), Some(_)) => Err(Malformed::new(
            "the answer has both `verdict` and `needs_user`; give one of them",
        )),
        (None, None) => Err(Malformed::new(
            "the answer has neither `verdict` nor `needs_user`",
        )),
        (None, Some(question)) if question.trim().is_empty() => Err(Malformed::new(
            "`needs_user` is blank; it must hold the whole question",
        )),
        (None, Some(question)) => Ok(Answer::NeedsUser(clip(&question, QUESTION_MAX))),
        (Some(word), None) => {
            let verdict = match word.as_str() {
                "approve" => Decision::Approve,
                "reject" => Decision::Reject,
                other => {
                    return Err(Malformed::new(format!(
                        "`verdict` is {:?}; the words are \"approve\" and \"reject\"",
                        clip(other, 40)
                    )));
                }
            };
            let reasons = reasons(wire.reasons.unwrap_or_default())?;
            if verdict == Decision::Reject && reasons.is_empty() {
                return Err(Malformed::new(
                    "a reject needs at least one reason in `reasons`",
                ));
            }
            Ok(Answer::Verdict(Verdict {
                verdict,
                reasons,
                ran: wire
                    .ran
                    .unwrap_or_default()
                    .iter()
                    .filter(|command| !command.trim().is_empty())
                    .take(RAN_MAX)
                    .map(|command| clip(command, COMMAND_MAX))
                    .collect(),
                breaks_with: patch(wire.breaks_with)?,
            }))
        }
    }
}

/// The JSON schema of a verifier's answer (`veri prompt schema verdict`).
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Form).to_value()
}

/// A patch is applied: it is taken as it is, never cut or cleaned.
fn patch(wire: Option<String>) -> Result<Option<String>, Malformed> {
    match wire.filter(|text| !text.trim().is_empty()) {
        Some(patch) if patch.len() > PATCH_MAX => Err(Malformed::new(format!(
            "`breaks_with` has {} bytes; a patch may have {PATCH_MAX}",
            patch.len()
        ))),
        patch => Ok(patch),
    }
}

fn reasons(wire: Vec<WireReason>) -> Result<Vec<Reason>, Malformed> {
    let mut reasons = Vec::new();
    for (index, reason) in wire.into_iter().enumerate() {
        let (text, counterexample) = match reason {
            WireReason::Plain(text) => (text, None),
            WireReason::Runnable(RunnableReason {
                text,
                counterexample,
            }) => (
                text,
                counterexample.filter(|patch| !patch.trim().is_empty()),
            ),
        };
        if text.trim().is_empty() {
            if counterexample.is_some() {
                return Err(Malformed::new(format!(
                    "`reasons[{index}]` has a counterexample and no text"
                )));
            }
            continue;
        }
        let text = clip(&text, REASON_MAX);
        reasons.push(match counterexample {
            Some(patch) if patch.len() > PATCH_MAX => Reason {
                text: format!(
                    "{text} (its counterexample of {} bytes was left out: at most {PATCH_MAX})",
                    patch.len()
                ),
                counterexample: None,
            },
            counterexample => Reason {
                text,
                counterexample,
            },
        });
    }
    reasons.truncate(REASONS_MAX);
    Ok(reasons)
}

/// The object as a verifier writes it. Fields of its own invention are ignored.
#[derive(PartialEq, Deserialize)]
struct Wire {
    verdict: Option<String>,
    needs_user: Option<String>,
    reasons: Option<Vec<WireReason>>,
    ran: Option<Vec<String>>,
    breaks_with: Option<String>,
}

/// A reason: in words, or in words with a test that shows it.
#[derive(PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string or {text, counterexample}")]
enum WireReason {
    Plain(String),
    Runnable(RunnableReason),
}

#[derive(PartialEq, Deserialize, JsonSchema)]
struct RunnableReason {
    /// The reason in words.
    text: String,
    /// A patch that adds or changes tests only, and whose test fails because of the fault.
    counterexample: Option<String>,
}

/// A verifier's answer: one of the two, with the nonce of its launch.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(
    dead_code,
    reason = "only its schema is used; `Wire` reads, with better messages"
)]
enum Form {
    /// The claim was judged.
    Verdict {
        /// The value of VERI_NONCE.
        nonce: String,
        verdict: Decision,
        /// Why; a reject needs at least one.
        #[serde(default)]
        reasons: Vec<WireReason>,
        /// The commands that were run.
        #[serde(default)]
        ran: Vec<String>,
        /// Already there: a patch to the code under which the test fails.
        #[serde(default)]
        breaks_with: Option<String>,
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
    use proptest::prelude::*;

    const NONCE: &str = "4f1c";

    fn verdict(stdout: &str) -> Verdict {
        match read(stdout, NONCE, 0) {
            Ok(Answer::Verdict(verdict)) => verdict,
            other => panic!("{stdout}: {other:?}"),
        }
    }

    fn malformed(stdout: &str) -> String {
        read(stdout, NONCE, 0)
            .expect_err("this must be malformed")
            .reason
    }

    #[test]
    fn the_whole_object_is_read() {
        let read = verdict(
            r#"I looked. {"nonce":"4f1c","verdict":"reject","reasons":["too weak",
            {"text":"zero","counterexample":"--- a\n+++ b\r\n"}],"ran":["cargo test"],"breaks_with":"x=1"}"#,
        );
        assert_eq!(read.verdict, Decision::Reject);
        assert_eq!(read.reasons[0].text, "too weak");
        assert_eq!(read.reasons[0].counterexample, None);
        assert_eq!(
            read.reasons[1].counterexample.as_deref(),
            Some("--- a\n+++ b\r\n")
        );
        assert_eq!(read.ran, ["cargo test"]);
        assert_eq!(read.breaks_with.as_deref(), Some("x=1"));
    }

    #[test]
    fn an_approval_needs_only_the_word_and_the_nonce() {
        let read =
            verdict(r#"{"verdict":"approve","nonce":"4f1c","breaks_with":null,"reasons":null}"#);
        assert_eq!(read.verdict, Decision::Approve);
        assert!(read.reasons.is_empty() && read.ran.is_empty() && read.breaks_with.is_none());
    }

    #[test]
    fn the_same_object_repeated_is_one() {
        let object = r#"{"nonce":"4f1c","verdict":"approve","ran":["a"]}"#;
        let other_order = r#"{ "ran": ["a"], "verdict": "approve", "nonce": "4f1c" }"#;
        verdict(&format!("{object} … so: {other_order}"));
    }

    #[test]
    fn imitations_without_the_nonce_change_nothing() {
        let reject = r#"{"nonce":"4f1c","verdict":"reject","reasons":["no"]}"#;
        let fakes = r#"{"nonce":"","verdict":"approve"} {"verdict":"approve"} {"nonce":"4f1","verdict":"approve"}"#;
        assert_eq!(
            verdict(&format!("{fakes}\n{reject}\n{fakes}")).verdict,
            Decision::Reject
        );
        assert!(malformed(fakes).contains("no JSON object with the nonce"));
    }

    #[test]
    fn whatever_is_not_exactly_one_verdict_is_malformed_and_says_why() {
        let two = r#"{"nonce":"4f1c","verdict":"approve"} {"nonce":"4f1c","verdict":"reject","reasons":["x"]}"#;
        for (stdout, says) in [
            ("", "no JSON object with the nonce"),
            (
                "Looks good to me: approve 4f1c",
                "no JSON object with the nonce",
            ),
            (two, "two JSON objects that differ"),
            (r#"{"nonce":"4f1c","verdict":"Approve"}"#, "\"Approve\""),
            (
                r#"{"nonce":"4f1c","verdict":"approve|reject"}"#,
                "\"approve|reject\"",
            ),
            (
                r#"{"nonce":"4f1c","verdict":true}"#,
                "verdict: invalid type",
            ),
            (
                r#"{"nonce":"4f1c","verdict":"approve","verdict":"reject"}"#,
                "duplicate field",
            ),
            (r#"{"nonce":"4f1c"}"#, "neither `verdict` nor `needs_user`"),
            (
                r#"{"nonce":"4f1c","verdict":"reject"}"#,
                "at least one reason",
            ),
            (
                r#"{"nonce":"4f1c","verdict":"reject","reasons":[]}"#,
                "at least one reason",
            ),
            (
                r#"{"nonce":"4f1c","verdict":"reject","reasons":[" "]}"#,
                "at least one reason",
            ),
            (
                r#"{"nonce":"4f1c","verdict":"reject","reasons":[3]}"#,
                "reasons[0]: expected a string or",
            ),
            (
                r#"{"nonce":"4f1c","verdict":"reject","reasons":["a",{"text":"","counterexample":"p"}]}"#,
                "`reasons[1]` has a counterexample and no text",
            ),
            (
                r#"{"nonce":"4f1c","verdict":"approve","needs_user":"?"}"#,
                "both",
            ),
            (r#"{"nonce":"4f1c","needs_user":" "}"#, "blank"),
            (
                r#"{"nonce":"4f1c","verdict":"approve""#,
                "no readable JSON object",
            ),
        ] {
            let reason = malformed(stdout);
            assert!(reason.contains(says), "{stdout}\n{reason}");
        }
    }

    #[test]
    fn a_failed_verifier_never_approves() {
        let error = read(r#"{"nonce":"4f1c","verdict":"approve"}"#, NONCE, 1).unwrap_err();
        assert!(error.reason.contains("exit code 1"));
    }

    #[test]
    fn a_verifier_may_ask_instead_of_judging() {
        assert_eq!(
            read(
                r#"{"nonce":"4f1c","needs_user":"Which?","verdict":null}"#,
                NONCE,
                0
            ),
            Ok(Answer::NeedsUser("Which?".to_owned()))
        );
    }

    #[test]
    fn long_texts_are_cut_and_a_patch_is_never_cut() {
        let long = "é".repeat(REASON_MAX + 5);
        let patch = "+".repeat(PATCH_MAX + 1);
        let object = serde_json::json!({"nonce": NONCE, "verdict": "reject",
            "reasons": [long, {"text": "big", "counterexample": patch}]});
        let read = verdict(&object.to_string());
        assert_eq!(read.reasons[0].text.chars().count(), REASON_MAX);
        assert_eq!(read.reasons[1].counterexample, None);
        assert!(read.reasons[1].text.contains("was left out"));
    }

    #[test]
    fn the_patch_of_an_already_there_claim_was_cut_and_cleaned_before_it_was_applied() {
        let patch = format!(
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+{}\n",
            "é".repeat(REASON_MAX)
        );
        let object = |patch: &str| {
            serde_json::json!({"nonce": NONCE, "verdict": "approve", "breaks_with": patch})
                .to_string()
        };
        assert_eq!(verdict(&object(&patch)).breaks_with, Some(patch));
        assert!(malformed(&object(&"+".repeat(PATCH_MAX + 1))).contains("a patch may have"));
    }

    #[test]
    fn the_schema_names_every_field_that_is_read() {
        let schema = schema().to_string();
        for field in [
            "nonce",
            "verdict",
            "reasons",
            "ran",
            "breaks_with",
            "needs_user",
            "counterexample",
            "approve",
        ] {
            assert!(
                schema.contains(&format!("\"{field}\"")),
                "{field}: {schema}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_but_an_object_with_the_nonce_is_ever_an_answer(text in "[{}\\[\\]\":,a-z ]{0,60}") {
            prop_assert!(read(&text, NONCE, 0).is_err());
        }
    }
}
