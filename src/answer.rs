//! Answers of leaves: the JSON objects that stand in their prose.
//!
//! A planner's or verifier's answer carries the nonce of its launch; objects without it are ignored, so
//! that text which merely imitates an answer changes nothing. A developer's report is free text, of which
//! only two requests can be read.
//!
//! Everything here is linear in the length of the text, whatever the text is: see `objects`.

mod objects;

use objects::{Scan, carries, scan};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest question to the user that is kept, in characters.
pub const QUESTION_MAX: usize = 8_000;

/// The longest reason that is kept, in characters.
pub const REASON_MAX: usize = 4_000;

/// The most tests that one request to reopen red may name; more are left out.
pub const REOPEN_MAX: usize = 50;

/// An answer that cannot be read, and precisely why: text that can be sent back to the leaf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Malformed {
    /// What is wrong with the answer.
    pub reason: String,
}

impl Malformed {
    /// A malformed answer with its reason.
    pub fn new(reason: impl Into<String>) -> Malformed {
        Malformed {
            reason: reason.into(),
        }
    }
}

/// What a developer asks for instead of working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeveloperAsk {
    /// Only a person can decide: the whole question, at most [`QUESTION_MAX`] characters.
    NeedsUser(String),
    /// Old tests rightly break: the step has to return to red and change them. Never empty.
    ReopenRed(Vec<Reopen>),
}

/// One old test that rightly breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reopen {
    /// The test, as the developer names it.
    pub test: String,
    /// Why the behaviour that it states is no longer wanted.
    pub why: String,
}

/// Reads what a developer asks for in its final message: the last JSON object with a readable
/// `needs_user` or `reopen_red` counts, everything else is prose.
///
/// A blank question and an empty list ask for nothing. In an object with both, the question counts.
pub fn developer(text: &str) -> Option<DeveloperAsk> {
    #[derive(Deserialize)]
    struct Ask {
        needs_user: Option<String>,
        reopen_red: Option<Vec<Reopen>>,
    }
    let read = |object: &str| -> Option<DeveloperAsk> {
        let ask: Ask = serde_json::from_str(object).ok()?;
        if let Some(question) = ask.needs_user.filter(|q| !q.trim().is_empty()) {
            return Some(DeveloperAsk::NeedsUser(clip(&question, QUESTION_MAX)));
        }
        let tests: Vec<Reopen> = ask
            .reopen_red?
            .into_iter()
            .filter(|reopen| !reopen.test.trim().is_empty())
            .take(REOPEN_MAX)
            .map(|reopen| Reopen {
                test: clip(&reopen.test, REASON_MAX),
                why: clip(&reopen.why, REASON_MAX),
            })
            .collect();
        (!tests.is_empty()).then_some(DeveloperAsk::ReopenRed(tests))
    };
    let found = scan(text, &["needs_user", "reopen_red"], |object| {
        read(object).is_some()
    });
    found.objects.last().and_then(|object| read(object))
}

/// Reads the one answer that carries the nonce. The same object repeated is one.
///
/// # Errors
/// No object carries the nonce, one is not of this shape, or two of them differ.
pub fn only<T: DeserializeOwned + PartialEq>(text: &str, nonce: &str) -> Result<T, Malformed> {
    let found = if nonce.is_empty() {
        Scan::default()
    } else {
        scan(text, &[nonce], |object| carries(object, nonce))
    };
    let mut answer: Option<T> = None;
    for object in &found.objects {
        let this: T = shaped(object)?;
        match &answer {
            Some(first) if *first != this => {
                return Err(Malformed::new(
                    "two JSON objects that differ carry the nonce; answer with exactly one",
                ));
            }
            _ => answer = Some(this),
        }
    }
    answer.ok_or_else(|| {
        Malformed::new(match found.broken {
            Some(error) => format!(
                "no readable JSON object carries the nonce of this launch; the last one fails: {}",
                clip(&error.to_string(), 300)
            ),
            None => "the answer has no JSON object with the nonce of this launch (VERI_NONCE)"
                .to_owned(),
        })
    })
}

/// Reads a JSON text into a shape, naming the path of what does not fit.
///
/// # Errors
/// The text is not JSON, or not of this shape.
pub fn shaped<T: DeserializeOwned>(json: &str) -> Result<T, Malformed> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value: T = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| Malformed::new(clip(&error.to_string(), 500)))?;
    deserializer
        .end()
        .map_err(|error| Malformed::new(clip(&error.to_string(), 500)))?;
    Ok(value)
}

/// Trims a leaf's text and cuts it to `max` characters, the last of which is then an ellipsis. U+FFFD stands for
/// control characters other than line breaks and tabs, so that the text cannot steer a terminal.
pub fn clip(text: &str, max: usize) -> String {
    let clean = text.trim().chars().filter(|c| *c != '\r').map(|c| match c {
        '\n' | '\t' => c,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    let mut kept: String = clean.clone().take(max).collect();
    if clean.clone().nth(max).is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

/// Folds a text into one line: white space and control characters become single blanks, none at the ends.
pub fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_nonce_is_carried_by_nothing() {
        let answer = only::<serde_json::Value>(r#"{"nonce":"","verdict":"approve"}"#, "");
        assert!(answer.is_err());
    }

    #[test]
    fn a_broken_object_is_named_with_its_fault() {
        let error = only::<serde_json::Value>(r#"{"nonce":"n1","verdict":"approve",}"#, "n1")
            .unwrap_err()
            .to_string();
        assert!(error.contains("trailing comma"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), max in 0usize..20) {
            let _ = developer(&text);
            let _ = only::<serde_json::Value>(&text, "a");
            prop_assert!(clip(&text, max).chars().count() <= max.max(1));
            prop_assert!(!one_line(&text).contains(['\n', '\r']));
        }
    }

    #[test]
    fn the_last_readable_request_of_a_developer_counts() {
        let asks = |text: &str| developer(text);
        assert_eq!(asks("All done, 3 tests pass."), None);
        assert_eq!(asks(r#"{"needs_user":"  "}"#), None);
        assert_eq!(asks(r#"{"needs_user":null}"#), None);
        assert_eq!(asks(r#"{"reopen_red":[]}"#), None);
        assert_eq!(asks(r#"{"reopen_red":"all of them"}"#), None);
        assert_eq!(
            asks(r#"First {"needs_user":"a?"}, no: {"needs_user":"Which limit?"} {"x":1}"#),
            Some(DeveloperAsk::NeedsUser("Which limit?".to_owned()))
        );
        assert_eq!(
            asks(r#"{"needs_user":"a?"} {"reopen_red":[{"test":"t::old","why":"limit moved"}]}"#),
            Some(DeveloperAsk::ReopenRed(vec![Reopen {
                test: "t::old".to_owned(),
                why: "limit moved".to_owned()
            }]))
        );
        assert_eq!(
            asks(r#"{"needs_user":"a?"} and a broken {"reopen_red":3}"#),
            Some(DeveloperAsk::NeedsUser("a?".to_owned()))
        );
    }

    #[test]
    fn texts_are_cut_between_characters_and_cannot_steer_a_terminal() {
        assert_eq!(clip("  ééé  ", 3), "ééé");
        assert_eq!(clip("éééé", 3), "éé…");
        assert_eq!(clip("a\r\n\tb\u{1b}[31m", 20), "a\n\tb\u{fffd}[31m");
        assert_eq!(one_line(" a\r\n\t b\u{2028}c\u{0}d "), "a b c d");
    }
}
