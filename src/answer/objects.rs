//! Finding JSON objects in prose, in time that is linear in its length, whatever it is.

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// How deeply an object may nest and still be an answer. A verdict needs three levels.
const MAX_DEPTH: usize = 16;

/// How many times its own length of a text is read before the search gives up. [`scan`] argues for
/// `2 * MAX_DEPTH`; the rest is slack.
const MAX_READ: usize = 4 * MAX_DEPTH;

/// Whether the object's own `nonce` (not that of an object inside it) is this one.
pub(super) fn carries(object: &str, nonce: &str) -> bool {
    #[derive(Deserialize)]
    struct Carrier<'a> {
        #[serde(borrow)]
        nonce: Cow<'a, str>,
    }
    serde_json::from_str::<Carrier<'_>>(object).is_ok_and(|carrier| carrier.nonce == nonce)
}

/// What a search found, and what it cost.
#[derive(Debug, Default)]
pub(super) struct Scan<'a> {
    /// The wanted objects, in the order of the text; none lies inside another.
    pub(super) objects: Vec<&'a str>,
    /// Why the last object that could not be read could not.
    pub(super) broken: Option<serde_json::Error>,
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
pub(super) fn scan<'a>(text: &'a str, needles: &[&str], wanted: impl Fn(&str) -> bool) -> Scan<'a> {
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
    }
}
