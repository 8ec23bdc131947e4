//! What `veri leaf` adds to the journal, when the variables of a run name an issue.
//!
//! The same events as the conductor's, without `intent` and `input`: they tell, and nothing is replayed
//! from them.

use crate::config::Env;
use crate::event::{Kind, PhaseWord};
use crate::journal::{self, Journal, Source, Subject};
use crate::leaf::{End, LaunchId, Records};
use anyhow::Result;
use serde_json::{Map, Value, json};

/// Where launches and ends are told.
#[derive(Debug)]
pub(super) struct Telling {
    source: Source,
    step: String,
    attempt: Option<u32>,
}

impl Telling {
    /// Reads `VERI_ISSUE` and its kin; None outside a run.
    pub(super) fn of(env: &Env) -> Option<Telling> {
        let issue = env.text("VERI_ISSUE")?.parse().ok()?;
        let skill_commit = env.text("VERI_SKILL_COMMIT").map(str::to_owned);
        Some(Telling {
            source: Source {
                run: journal::LEAF_RUN.to_owned(),
                issue,
                skill_commit,
            },
            step: env.text("VERI_STEP").unwrap_or_default().to_owned(),
            attempt: env.text("VERI_ATTEMPT").and_then(|n| n.parse().ok()),
        })
    }

    /// A launch is about to be made.
    pub(super) fn launch(&self, records: &Records, leaf: &str, launch: &LaunchId) -> Result<()> {
        self.write(
            records,
            leaf,
            Kind::Launch,
            json!({ "leaf": leaf, "launch": launch.as_str() }),
        )
    }

    /// A launch has ended; told once, however often it is waited for.
    pub(super) fn exit(
        &self,
        records: &Records,
        leaf: &str,
        launch: &LaunchId,
        end: &End,
    ) -> Result<()> {
        let path = records.dir().join("events.jsonl");
        let told = path.exists()
            && journal::read(&path)?
                .iter()
                .any(|l| l.event == Kind::Exit && l.text("launch") == launch.as_str());
        if told || *end == End::StillRunning {
            return Ok(());
        }
        let fields = json!({ "leaf": leaf, "launch": launch.as_str(), "end": end.to_string() });
        self.write(records, leaf, Kind::Exit, fields)
    }

    fn write(&self, records: &Records, leaf: &str, event: Kind, fields: Value) -> Result<()> {
        std::fs::create_dir_all(records.dir())?;
        let (mut journal, _) = Journal::open(&records.dir().join("events.jsonl"))?;
        let (actor, phase) = role_of(leaf);
        let subject = Subject {
            step: None,
            title: self.step.clone(),
            phase,
            actor: actor.to_owned(),
            attempt: self.attempt,
        };
        let fields = match fields {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        journal.append(&self.source, &subject, event, fields)?;
        Ok(())
    }
}

/// Actor and phase follow from a leaf's name.
fn role_of(leaf: &str) -> (&str, Option<PhaseWord>) {
    let phase = |word: &str| match word {
        "red" => Some(PhaseWord::Red),
        "green" => Some(PhaseWord::Green),
        "refactor" => Some(PhaseWord::Refactor),
        _ => None,
    };
    match leaf.split_once('-') {
        Some(("develop", word)) => ("developer", phase(word)),
        Some(("verify", word)) => ("verifier", phase(word)),
        _ if leaf == "plan" => ("planner", Some(PhaseWord::Plan)),
        _ => (leaf, None),
    }
}
