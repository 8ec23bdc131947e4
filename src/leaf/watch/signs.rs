//! What lines of an agent's output mean, described as data: the shim knows no agent.
//!
//! An agent that streams writes one JSON object a line. A `Sign` says which lines mean what, by JSON pointers (RFC 6901,
//! with `*` for any element of an array) and the values that stand there. Lines are read as they come, in bounded
//! memory: what is not JSON means nothing, and neither does a line that is too long.

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// The most elements of an array that are looked at.
const MAX_ELEMENTS: usize = 1024;

/// The longest string that is compared or kept, in bytes: names of kinds and ids of calls are short.
const MAX_TEXT: usize = 256;

/// The longest wait that is taken at its word.
const MAX_WAIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// One kind of line, and what it means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sign {
    /// What it means.
    pub means: Means,
    /// What must stand in the line, all of it. A `*` stands for the same element wherever it is used in one sign; when
    /// several elements fit, the sign is there several times.
    pub when: Vec<Stands>,
}

/// A value that must stand at a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stands {
    /// Where.
    pub at: Pointer,
    /// A string of at most 256 bytes, a number, a boolean or null.
    pub value: Value,
}

/// What a line means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// The agent has given its result.
    Result,
    /// A turn begins: a result before it was not the final one.
    Begun,
    /// A tool call is opened.
    ToolOpened {
        /// Where the call's id stands.
        id: Pointer,
    },
    /// A tool call is over.
    ToolClosed {
        /// Where the call's id stands.
        id: Pointer,
    },
    /// The agent waits for a usage limit to pass.
    Waiting(Wait),
}

/// Where a line says how long the agent waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// So many milliseconds.
    ForMillis(Pointer),
    /// So many seconds.
    ForSeconds(Pointer),
    /// Until a time, in seconds since 1970.
    UntilSeconds(Pointer),
    /// Until a time, in RFC 3339.
    UntilTime(Pointer),
}

/// Where in a line something stands: `/message/content/*/type`. At most one `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Key(String),
    Any,
}

impl Pointer {
    /// Reads a pointer.
    ///
    /// # Errors
    /// When it does not begin with a slash, or has more than one `*`.
    pub fn parse(text: &str) -> Result<Pointer, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!(
                "{text:?} is no JSON pointer: it begins with a slash"
            ));
        };
        let parts: Vec<Part> = rest
            .split('/')
            .map(|part| match part {
                "*" => Part::Any,
                key => Part::Key(key.replace("~1", "/").replace("~0", "~")),
            })
            .collect();
        if parts.iter().filter(|p| **p == Part::Any).count() > 1 {
            return Err(format!("{text:?} has more than one `*`"));
        }
        Ok(Pointer {
            text: text.to_owned(),
            parts,
        })
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;
    fn try_from(text: String) -> Result<Pointer, String> {
        Pointer::parse(&text)
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> String {
        pointer.text
    }
}

impl Stands {
    /// Reads `/type=result`. What stands right of the first `=` is JSON where it can be read as such, else a string.
    ///
    /// # Errors
    /// When there is no `=`, or no pointer before it, or a list or table after it.
    pub fn parse(text: &str) -> Result<Stands, String> {
        let Some((at, value)) = text.split_once('=') else {
            return Err(format!(
                "{text:?} says no value: write POINTER=VALUE, as in /type=result"
            ));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        if value.is_array() || value.is_object() {
            return Err(format!("{text:?}: only one value can be compared"));
        }
        Ok(Stands {
            at: Pointer::parse(at)?,
            value,
        })
    }
}

/// What a line said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::leaf) enum Heard {
    Result,
    Begun,
    Opened(String),
    Closed(String),
    Waits(Duration),
}

/// Signs made ready to be looked for.
pub(in crate::leaf) struct Ear {
    signs: Vec<Sign>,
    /// Each pointer of a sign; `found` counts by it.
    pointers: Vec<Pointer>,
}

/// A value that a pointer leads to, and by which element of an array.
struct Found {
    pointer: usize,
    element: Option<usize>,
    value: Value,
}

impl Ear {
    pub(in crate::leaf) fn new(signs: &[Sign]) -> Ear {
        let mut pointers: Vec<Pointer> = Vec::new();
        for pointer in signs.iter().flat_map(Sign::pointers) {
            if !pointers.contains(pointer) {
                pointers.push(pointer.clone());
            }
        }
        Ear {
            signs: signs.to_vec(),
            pointers,
        }
    }

    /// What a line means, in the order of the signs; `now` is the wall clock in milliseconds since 1970.
    pub(in crate::leaf) fn hear(&self, line: &[u8], now: i64) -> Vec<Heard> {
        if line.trim_ascii_start().first() != Some(&b'{') {
            return Vec::new();
        }
        let mut found = Vec::new();
        let probe = Probe {
            paths: (0..)
                .zip(&self.pointers)
                .map(|(i, p)| (i, p.parts.as_slice(), None))
                .collect(),
            found: &mut found,
        };
        let mut reader = serde_json::Deserializer::from_slice(line);
        if probe
            .deserialize(&mut reader)
            .and_then(|()| reader.end())
            .is_err()
        {
            return Vec::new();
        }
        let mut heard = Vec::new();
        for sign in &self.signs {
            for element in self.elements(sign, &found) {
                let value = |at: &Pointer| self.value(at, element, &found);
                if sign.when.iter().all(|s| value(&s.at) == Some(&s.value)) {
                    heard.extend(sign.means.heard(value, now));
                }
            }
        }
        heard
    }

    /// The elements that a sign may be about; none in particular where it has no `*`.
    fn elements(&self, sign: &Sign, found: &[Found]) -> Vec<Option<usize>> {
        let Some(starred) = sign.pointers().find(|p| p.parts.contains(&Part::Any)) else {
            return vec![None];
        };
        let of = found
            .iter()
            .filter(|f| self.pointers.get(f.pointer) == Some(starred));
        let elements: BTreeSet<usize> = of.filter_map(|f| f.element).collect();
        elements.into_iter().map(Some).collect()
    }

    fn value<'f>(
        &self,
        at: &Pointer,
        element: Option<usize>,
        found: &'f [Found],
    ) -> Option<&'f Value> {
        let of = |f: &&Found| {
            self.pointers.get(f.pointer) == Some(at)
                && (f.element.is_none() || f.element == element)
        };
        found.iter().find(of).map(|f| &f.value)
    }
}

impl Sign {
    fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        let more = match &self.means {
            Means::Result | Means::Begun => None,
            Means::ToolOpened { id } | Means::ToolClosed { id } => Some(id),
            Means::Waiting(
                Wait::ForMillis(at)
                | Wait::ForSeconds(at)
                | Wait::UntilSeconds(at)
                | Wait::UntilTime(at),
            ) => Some(at),
        };
        self.when.iter().map(|s| &s.at).chain(more)
    }
}

impl Means {
    /// None when what it needs does not stand in the line.
    fn heard<'f>(&self, value: impl Fn(&Pointer) -> Option<&'f Value>, now: i64) -> Option<Heard> {
        let id = |at: &Pointer| match value(at)? {
            Value::String(id) => Some(id.clone()),
            other => Some(other.to_string()),
        };
        Some(match self {
            Means::Result => Heard::Result,
            Means::Begun => Heard::Begun,
            Means::ToolOpened { id: at } => Heard::Opened(id(at)?),
            Means::ToolClosed { id: at } => Heard::Closed(id(at)?),
            Means::Waiting(wait) => {
                let millis = match wait {
                    Wait::ForMillis(at) => value(at)?.as_f64()?,
                    Wait::ForSeconds(at) => value(at)?.as_f64()? * 1000.0,
                    Wait::UntilSeconds(at) => value(at)?.as_f64()? * 1000.0 - now as f64,
                    Wait::UntilTime(at) => {
                        let at: jiff::Timestamp = value(at)?.as_str()?.parse().ok()?;
                        (at.as_millisecond() - now) as f64
                    }
                };
                let wait = Duration::try_from_secs_f64(millis.max(0.0) / 1000.0);
                Heard::Waits(wait.unwrap_or(MAX_WAIT).min(MAX_WAIT))
            }
        })
    }
}

/// Which pointer it is, what is left of it, and through which element of an array it went.
type Path<'p> = (usize, &'p [Part], Option<usize>);

/// Follows pointers into a value while it is being read, and keeps nothing else of it.
struct Probe<'p, 'f> {
    paths: Vec<Path<'p>>,
    found: &'f mut Vec<Found>,
}

impl<'p> Probe<'p, '_> {
    fn below(&self, leads: impl Fn(&Part) -> bool, through: Option<usize>) -> Vec<Path<'p>> {
        let paths = self.paths.iter().filter_map(|(pointer, parts, element)| {
            let (first, rest) = parts.split_first()?;
            leads(first).then(|| (*pointer, rest, through.or(*element)))
        });
        paths.collect()
    }

    fn keep(self, value: &Value) {
        let ends = self.paths.iter().filter(|(_, rest, _)| rest.is_empty());
        self.found.extend(ends.map(|(pointer, _, element)| Found {
            pointer: *pointer,
            element: *element,
            value: value.clone(),
        }));
    }
}

impl<'de> DeserializeSeed<'de> for Probe<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Probe<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.keep(&Value::from(value));
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.keep(&Value::from(value));
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.keep(&Value::from(value));
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.keep(&Value::from(value));
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        if value.len() <= MAX_TEXT {
            self.keep(&Value::from(value));
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.keep(&Value::Null);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let paths = self.below(|part| matches!(part, Part::Key(k) if *k == key), None);
            if paths.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            map.next_value_seed(Probe {
                paths,
                found: &mut *self.found,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        for index in 0..MAX_ELEMENTS {
            let number = index.to_string();
            let mut paths = self.below(|part| *part == Part::Any, Some(index));
            paths.extend(self.below(|part| matches!(part, Part::Key(k) if *k == number), None));
            let probe = Probe {
                paths,
                found: &mut *self.found,
            };
            if seq.next_element_seed(probe)?.is_none() {
                return Ok(());
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests;
