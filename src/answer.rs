//! Answers of leaves: the JSON objects that stand in their prose.
//!
//! A planner's or verifier's answer carries the nonce of its launch; objects without it are ignored, so
//! that text which merely imitates an answer changes nothing. A developer's report is free text, of which
//! only two requests can be read.
//!
//! Everything here is linear in the length of the text, whatever the text is: see `scan`.

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// How deeply an object may nest and still be an answer. A verdict needs three levels.
const MAX_DEPTH: usize = 16;

/// How many times its own length of a text is read before the search gives up. [`scan`] argues for
/// `2 * MAX_DEPTH`; the rest is slack.
const MAX_READ: usize = 4 * MAX_DEPTH;

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

/// Whether the object's own `nonce` (not that of an object inside it) is this one.
fn carries(object: &str, nonce: &str) -> bool {
    #[derive(Deserialize)]
    struct Carrier<'a> {
        #[serde(borrow)]
        nonce: Cow<'a, str>,
    }
    serde_json::from_str::<Carrier<'_>>(object).is_ok_and(|carrier| carrier.nonce == nonce)
}

/// What a search found, and what it cost.
#[derive(Debug, Default)]
struct Scan<'a> {
    /// The wanted objects, in the order of the text; none lies inside another.
    objects: Vec<&'a str>,
    /// Why the last object that could not be read could not.
    broken: Option<serde_json::Error>,
    /// Bytes that the JSON reader went over, in all attempts together.
    read: usize,
}

/// Finds the complete JSON objects for which `wanted` holds. Each must contain one of the needles.
///
/// An attempt is made from each `{`, and an object that is read but not wanted is searched inside only
/// when a needle stands in it. That is linear. Attempts that begin in the same alignment (both within or
/// both without a JSON string at the places they share) and cover the same byte are nested in each other,
/// so that there are at most `MAX_DEPTH` of them, and there are two alignments: every quote that opens a
/// string for the one closes it for the other, and a backslash ends the one that is outside.
fn scan<'a>(text: &'a str, needles: &[&str], wanted: impl Fn(&str) -> bool) -> Scan<'a> {
    let mut found = Scan::default();
    // An object that begins after the last needle cannot contain one.
    let Some(last) = needles.iter().filter_map(|n| text.rfind(n)).max() else {
        return found;
    };
    let mut at = 0;
    while let Some(start) = text[at..last].find('{').map(|offset| at + offset) {
        at = start + 1;
        if found.read > text.len().saturating_mul(MAX_READ) {
            found.broken = Some(de::Error::custom("too much of the answer is broken JSON"));
            break;
        }
        let (length, outcome) = extent(&text[start..]);
        found.read += length;
        let object = match outcome {
            Ok(()) => &text[start..start + length],
            Err(error) => {
                found.broken = Some(error);
                continue;
            }
        };
        if !needles.iter().any(|needle| object.contains(needle)) {
            at = start + length;
        } else if wanted(object) {
            found.objects.push(object);
            at = start + length;
        }
        if at > last {
            break;
        }
    }
    found
}

/// Reads one JSON value at the start of the text: how many bytes were read, and whether it is complete.
fn extent(text: &str) -> (usize, Result<(), serde_json::Error>) {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = Shallow(MAX_DEPTH).deserialize(&mut deserializer);
    let length = deserializer.into_iter::<IgnoredAny>().byte_offset();
    (length, outcome)
}

/// A JSON value that nests at most this deeply. It is recognised and not kept.
struct Shallow(usize);

impl Shallow {
    fn inside<E: de::Error>(&self) -> Result<usize, E> {
        self.0
            .checked_sub(1)
            .ok_or_else(|| E::custom(format!("nested more than {MAX_DEPTH} levels deep")))
    }
}

impl<'de> DeserializeSeed<'de> for Shallow {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shallow {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        while items.next_element_seed(Shallow(inside))?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        while entries.next_key::<IgnoredAny>()?.is_some() {
            entries.next_value_seed(Shallow(inside))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found<'a>(text: &'a str, nonce: &str) -> Vec<&'a str> {
        scan(text, &[nonce], |object| carries(object, nonce)).objects
    }

    #[test]
    fn objects_with_the_nonce_are_found_wherever_they_stand_in_prose() {
        let object = r#"{"nonce":"n1","verdict":"approve"}"#;
        for (what, text) in [
            ("alone", object.to_owned()),
            ("in prose", format!("I ran it. {object} Done.")),
            ("in a fence", format!("```json\n{object}\n```")),
            ("after a stray brace", format!("fn main() {{ {object}")),
            (
                "after a stray quote and brace",
                format!("Use {{\"a\": \"b, then {object}"),
            ),
            (
                "inside another object",
                format!(r#"{{"type":"result","result":{object}}}"#),
            ),
            ("in an array", format!("[1, {object}]")),
            (
                "after another object",
                format!(r#"{{"nonce":"n2"}} {object}"#),
            ),
        ] {
            assert_eq!(found(&text, "n1"), [object], "{what}");
        }
    }

    #[test]
    fn objects_without_the_nonce_are_ignored() {
        for text in [
            "",
            "n1",
            r#"{"verdict":"approve"}"#,
            r#"{"nonce":"n2","verdict":"approve"} n1"#,
            r#"{"nonce":["n1"],"verdict":"approve"}"#,
            r#"{"Nonce":"n1","verdict":"approve"}"#,
            r#"{"text":"{\"nonce\":\"n1\",\"verdict\":\"approve\"}"}"#,
            r#"{"nonce":"n1","nonce":"n1","verdict":"approve"}"#,
            r#"{"nonce":"n11","verdict":"approve"}"#,
        ] {
            assert_eq!(found(text, "n1"), Vec::<&str>::new(), "{text}");
        }
    }

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

    #[test]
    fn hostile_text_is_read_in_linear_time() {
        const MIB: usize = 1 << 20;
        for (unit, size) in [("{", MIB), ("{\"a\":", MIB / 8)].into_iter().chain(
            [
                "{\"a\":[",
                "[{",
                "{\"",
                "{\"{\"",
                "{\",\":1,\":\":",
                "{\"a\":\"",
                "{\"a\":{},\"b\":",
                "{\"n1\":{}},",
                "{}",
                "{\"a\":\"\\\"",
                "{\"nonce\":\"n1\"",
                "{\"a\":{\"nonce\":\"n2\"},\"n1\":",
            ]
            .map(|unit| (unit, MIB / 32)),
        ) {
            let mut text = unit.repeat(size / unit.len());
            text.push_str(" {\"nonce\":\"n1\"}");
            let scan = scan(&text, &["n1"], |object| carries(object, "n1"));
            assert!(
                scan.read <= text.len() * 2 * MAX_DEPTH,
                "{unit}: read {} times its length",
                scan.read / text.len()
            );
        }
    }

    #[test]
    fn an_answer_after_a_mebibyte_of_braces_is_still_found() {
        let text = format!("{}\n{{\"nonce\":\"n1\"}}", "{\"a\":".repeat(200_000));
        assert_eq!(found(&text, "n1"), [r#"{"nonce":"n1"}"#]);
    }

    proptest! {
        #[test]
        fn no_text_of_json_pieces_costs_more_than_the_bound(pieces in prop::collection::vec(
            prop::sample::select(vec!["{", "}", "[", "]", "\"", ":", ",", "\\", "a", "1", " ", "{\"a\":", "\"n1\"", "\"nonce\":"]),
            0..400,
        )) {
            let text = pieces.concat();
            let scan = scan(&text, &["n1"], |object| carries(object, "n1"));
            prop_assert!(scan.read <= text.len() * 2 * MAX_DEPTH);
        }

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
