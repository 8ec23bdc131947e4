//! Which agent has which role, and how long it may take there.

use super::ranges::{MAX_SECONDS, within};
use anyhow::{Result, bail};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Which agent has which role.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agents {
    /// Splits the issue.
    pub planner: Option<AgentEntry>,
    /// Writes tests and code.
    pub developer: Option<AgentEntry>,
    /// Judges.
    pub verifier: Option<AgentEntry>,
    /// What the name `command` runs.
    pub command: Option<CommandAgent>,
}

/// What the name `command` runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandAgent {
    /// Program and arguments.
    pub argv: Vec<String>,
}

/// A role's agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AgentEntry {
    /// Its name.
    Name(String),
    /// Its name and more.
    Table(AgentTable),
}

/// A role's agent with what is said of it, and the deadlines of the role: each stands above that of `limits`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentTable {
    /// The agent's name.
    pub r#use: String,
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// Further arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Whether a developer is confined, too.
    #[serde(default)]
    pub sandbox: Option<bool>,
    /// As `limits.timeout`.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// As `limits.first_sign`.
    #[serde(default)]
    pub first_sign: Option<u64>,
    /// As `limits.idle`.
    #[serde(default)]
    pub idle: Option<u64>,
    /// As `limits.lingering`.
    #[serde(default)]
    pub lingering: Option<u64>,
    /// As `limits.grace`.
    #[serde(default)]
    pub grace: Option<u64>,
}

impl AgentEntry {
    /// Whether it is to be confined, where that is said.
    pub fn sandbox(&self) -> Option<bool> {
        match self {
            AgentEntry::Name(_) => None,
            AgentEntry::Table(table) => table.sandbox,
        }
    }

    /// Another agent in the same role: what was said of the former goes, the deadlines of the role and its sandbox stay.
    #[must_use]
    pub fn replaced_by(&self, name: String) -> AgentEntry {
        match self {
            AgentEntry::Name(_) => AgentEntry::Name(name),
            AgentEntry::Table(table) => AgentEntry::Table(AgentTable {
                r#use: name,
                model: None,
                args: Vec::new(),
                ..table.clone()
            }),
        }
    }
}

impl Agents {
    /// Refuses deadlines that nothing can be measured with, and a sandbox of other roles than the developer.
    pub(super) fn check(&self) -> Result<()> {
        let roles = [
            ("planner", &self.planner),
            ("developer", &self.developer),
            ("verifier", &self.verifier),
        ];
        for (role, entry) in roles {
            let Some(AgentEntry::Table(table)) = entry else {
                continue;
            };
            if role != "developer" && table.sandbox.is_some() {
                bail!(
                    "the configuration says agents.{role}.sandbox; only a developer's is asked for there: verifiers are \
                     confined wherever they can be, unless sandbox = \"off\""
                );
            }
            for (key, value, least) in [
                ("timeout", table.timeout, 1),
                ("first_sign", table.first_sign, 1),
                ("idle", table.idle, 1),
                ("lingering", table.lingering, 0),
                ("grace", table.grace, 0),
            ] {
                within(&format!("agents.{role}.{key}"), value, least, MAX_SECONDS)?;
            }
        }
        Ok(())
    }
}

/// By hand: an untagged enum would say of a misspelt key only that nothing fits.
impl<'de> Deserialize<'de> for AgentEntry {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<AgentEntry, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = AgentEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an agent's name or a table with `use`")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<AgentEntry, E> {
                Ok(AgentEntry::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AgentEntry, A::Error> {
                AgentTable::deserialize(MapAccessDeserializer::new(map)).map(AgentEntry::Table)
            }
        }
        reader.deserialize_any(Entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn read(text: &str) -> Result<Config> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join(".veri.toml");
        std::fs::write(&path, text)?;
        crate::config::load(Some(&path), None)
    }

    #[test]
    fn a_role_has_deadlines_of_its_own_and_a_misspelt_one_is_named() {
        let config =
            read("agents.planner = 'a'\n[agents.developer]\nuse = 'b'\nidle = 7\ngrace = 0");
        let agents = config.unwrap().agents;
        assert_eq!(agents.planner, Some(AgentEntry::Name("a".to_owned())));
        let Some(AgentEntry::Table(table)) = agents.developer else {
            panic!()
        };
        assert_eq!(
            (table.idle, table.grace, table.timeout),
            (Some(7), Some(0), None)
        );
        for (text, said) in [
            (
                "agents.verifier = { use = 'b', first_sing = 7 }",
                "did you mean `first_sign`?",
            ),
            ("agents.verifier = { idle = 7 }", "missing field `use`"),
            ("agents.verifier = 7", "expected an agent's name or a table"),
            (
                "agents.verifier = { use = 'b', idle = 0 }",
                "agents.verifier.idle = 0; it may be 1 to",
            ),
            (
                "limits.first_sign = 0",
                "limits.first_sign = 0; it may be 1 to",
            ),
            (
                "limits.grace = 99999999999",
                "limits.grace = 99999999999; it may be 0 to",
            ),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn another_agent_in_a_role_keeps_the_roles_deadlines_and_nothing_else() {
        let table = AgentTable {
            r#use: "a".to_owned(),
            model: Some("m".to_owned()),
            args: vec!["x".to_owned()],
            idle: Some(7),
            ..AgentTable::default()
        };
        let replaced = AgentEntry::Table(table).replaced_by("b".to_owned());
        let expected = AgentTable {
            r#use: "b".to_owned(),
            idle: Some(7),
            ..AgentTable::default()
        };
        assert_eq!(replaced, AgentEntry::Table(expected));
    }
}
