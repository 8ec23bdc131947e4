//! The journal's lines: one JSON object each, a format with a version and a schema.

use crate::role::Phase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the format that this program writes.
pub const VERSION: u32 = 1;

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A run on this issue begins for the first time here.
    RunStart,
    /// A later start takes it up.
    Resume,
    /// Preflight is to run, or has passed.
    Preflight,
    /// The plan is to be committed or read, or has been.
    Plan,
    /// Work on a step begins.
    StepStart,
    /// A leaf is about to be launched (`launch` is its id).
    Launch,
    /// A leaf has ended.
    Exit,
    /// A candidate is to be taken or checked, or has been.
    Check,
    /// What a verifier answered (`verdict`, `reasons`).
    Verdict,
    /// Another developer attempt begins.
    Revise,
    /// A commit is to be made, or has been (`commit`).
    Commit,
    /// A step is ticked and its refactor settled.
    StepDone,
    /// The issue's thread was brought up to date, or could not be.
    Mirror,
    /// A stop was asked for.
    Stop,
    /// The run cannot go on (`cause`, `class`, `detail`).
    Bail,
    /// The finished branch is to be accepted, or has been.
    Evaluate,
    /// The pull request is to be made, or has been (`url`).
    Pr,
    /// The conductor ends (`exit`).
    RunEnd,
}

impl Kind {
    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::RunStart => "run-start",
            Kind::Resume => "resume",
            Kind::Preflight => "preflight",
            Kind::Plan => "plan",
            Kind::StepStart => "step-start",
            Kind::Launch => "launch",
            Kind::Exit => "exit",
            Kind::Check => "check",
            Kind::Verdict => "verdict",
            Kind::Revise => "revise",
            Kind::Commit => "commit",
            Kind::StepDone => "step-done",
            Kind::Mirror => "mirror",
            Kind::Stop => "stop",
            Kind::Bail => "bail",
            Kind::Evaluate => "evaluate",
            Kind::Pr => "pr",
            Kind::RunEnd => "run-end",
        }
    }
}

/// One line of the journal. The keys here are always present; a kind's own fields follow them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// The version of the format: 1.
    pub v: u32,
    /// One more than the line before.
    pub seq: u64,
    /// RFC 3339, UTC, milliseconds.
    pub ts: String,
    /// Which start of the conductor wrote it.
    pub run: String,
    /// The issue's number.
    pub issue: u64,
    /// The step's number, outside steps null.
    pub step: Option<u32>,
    /// The step's title, outside steps empty.
    pub title: String,
    /// plan, red, green or refactor, elsewhere null.
    pub phase: Option<PhaseWord>,
    /// conductor, planner, developer, verifier or suite.
    pub actor: String,
    /// 1 + revisions, where a claim is under way.
    pub attempt: Option<u32>,
    /// What it tells.
    pub event: Kind,
    /// The snapshot in force, before there is one null.
    pub skill_commit: Option<String>,
    /// The kind's own fields. `intent` holds an effect that is about to be performed, `input` an event
    /// that the machine was given: replaying the inputs gives the state.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A phase as the journal writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseWord {
    /// Splitting the issue.
    Plan,
    /// Writing a failing test.
    Red,
    /// Making it pass.
    Green,
    /// Changing the code and not its behaviour.
    Refactor,
}

impl From<Phase> for PhaseWord {
    fn from(phase: Phase) -> PhaseWord {
        match phase {
            Phase::Plan => PhaseWord::Plan,
            Phase::Red => PhaseWord::Red,
            Phase::Green => PhaseWord::Green,
            Phase::Refactor => PhaseWord::Refactor,
        }
    }
}

impl PhaseWord {
    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            PhaseWord::Plan => "plan",
            PhaseWord::Red => "red",
            PhaseWord::Green => "green",
            PhaseWord::Refactor => "refactor",
        }
    }
}

impl Line {
    /// What every line has; no field of a kind's own may be named so.
    pub const KEYS: [&str; 12] = [
        "v",
        "seq",
        "ts",
        "run",
        "issue",
        "step",
        "title",
        "phase",
        "actor",
        "attempt",
        "event",
        "skill_commit",
    ];

    /// A field as text, or the empty text.
    pub fn text(&self, key: &str) -> &str {
        self.fields
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Whether the line tells how a leaf ended that ran until it ended or was given up.
    pub fn ends_a_leaf(&self) -> bool {
        let end = self.fields.get("input").and_then(|i| i.get("leaf-ended"));
        end.is_some()
            && !matches!(
                self.text("end"),
                "lost" | "never-started" | "refused" | "killed-by-stop"
            )
    }
}

/// How many leaves were started. A launch that a crash or a stop cut off is made again, and counts then.
pub fn started_leaves(lines: &[Line]) -> usize {
    lines.iter().filter(|line| line.ends_a_leaf()).count()
}

/// The JSON schema of a line (`veri prompt schema events`).
pub fn schema() -> Value {
    schemars::schema_for!(Line).to_value()
}
