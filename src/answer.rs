//! STAND-IN for room A's `answer`: dropped at merge.
#![allow(missing_docs)]

/// What a developer may ask instead of working.
#[derive(Debug, PartialEq, Eq)]
pub enum DeveloperAsk {
    NeedsUser(String),
    ReopenRed(Vec<Reopen>),
}

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Reopen {
    pub test: String,
    pub why: String,
}

pub fn developer(text: &str) -> Option<DeveloperAsk> {
    #[derive(serde::Deserialize)]
    struct Ask {
        needs_user: Option<String>,
        reopen_red: Option<Vec<Reopen>>,
    }
    let from = text.find("{\"")?;
    let ask: Ask = serde_json::from_str(text[from..].trim()).ok()?;
    let question = ask.needs_user.map(DeveloperAsk::NeedsUser);
    question.or(ask.reopen_red.map(DeveloperAsk::ReopenRed))
}
