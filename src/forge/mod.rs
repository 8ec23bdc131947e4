//! Where issues, mirrors and pull requests live: one trait, a directory today, GitHub beside it later.
//!
//! **Invariant:** an [`Issue`] or a [`Comment`] is made only in this room, by a forge that read it; a
//! [`trust::TrustedText`] only from those. So what a verifier is told cannot be made up elsewhere.

pub mod body;
mod choose;
mod directory;
mod eye;
pub mod facts;
mod issue;
pub mod mirror;
pub mod over;
mod preflight;
mod redact;
pub mod sanitize;
mod see;
pub mod trust;
mod visible;

#[cfg(test)]
mod conformance;

pub use choose::{ForgeSpec, SpecError, default_for, open};
pub use directory::{DirectoryForge, MAX_FILE_BYTES};
pub use issue::{Association, Comment, Issue};
pub use preflight::preflight4;

use serde::{Deserialize, Serialize};
use std::path::Path;

/// The author of veri's own comments in a forge without accounts.
pub const VERI: &str = "veri";

/// A place where issues and pull requests live.
///
/// Writes are idempotent: each can be sent again after an unknown outcome and leaves what one leaves.
pub trait Forge: Send {
    /// Reads an issue; a `Bail` needs-user when it does not exist or cannot be read as one.
    fn issue(&self, number: u64) -> anyhow::Result<Issue>;

    /// All comments of an issue, oldest first.
    fn comments(&self, number: u64) -> anyhow::Result<Vec<Comment>>;

    /// Files Markdown text as an issue and returns its number; the same bytes are the same issue.
    ///
    /// `name` is the path as the person gave it: an issue of this very forge is itself.
    fn file_issue(&self, name: &Path, markdown: &[u8]) -> anyhow::Result<u64>;

    /// Makes the one comment that carries `marker` read `body`: searched among veri's own (lowest id
    /// wins, doubles are folded into it), edited only when its text differs, created otherwise.
    fn put_comment(&self, issue: u64, marker: &str, body: &str) -> anyhow::Result<CommentRef>;

    /// The pull request of a head branch in any state: an open one, else the newest.
    fn find_pull(&self, head: &str) -> anyhow::Result<Option<Pull>>;

    /// Opens a pull request; an open one of the same head is updated instead.
    fn open_pull(&self, pull: &NewPull) -> anyhow::Result<Pull>;

    /// Gives a pull request this title and body; writes only when they differ.
    fn update_pull(&self, number: u64, title: &str, body: &str) -> anyhow::Result<Pull>;

    /// Whether a run needs a git remote: then having none is needs-user in preflight, otherwise
    /// nothing is pushed and that is said.
    fn needs_remote(&self) -> bool;

    /// Whether veri may write here (comments, branches); without it mirroring is off and said.
    fn can_push(&self) -> anyhow::Result<bool>;

    /// The forge in words, for messages.
    fn describe(&self) -> String;

    /// How people refer to an issue: `#42`, `acme/bank#42`.
    fn issue_ref(&self, number: u64) -> String;
}

/// The comment that a marker stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentRef {
    /// The comment's id in its forge.
    pub id: u64,
    /// Whether this call created or edited it.
    pub changed: bool,
}

/// Where a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullState {
    /// Waiting for a person.
    Open,
    /// A person merged it.
    Merged,
    /// A person closed it unmerged.
    Closed,
}

/// A pull request as the forge has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// Its number.
    pub number: u64,
    /// Where it stands.
    pub state: PullState,
    /// Whether it is a draft.
    pub draft: bool,
    /// Where a person can read it: an address, or the path of its file.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its body.
    pub body: String,
}

/// A pull request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPull {
    /// The branch that holds the work.
    pub head: String,
    /// The branch that it shall go into.
    pub base: String,
    /// Its title: one line.
    pub title: String,
    /// Its body, sanitised by [`body::render`].
    pub body: String,
    /// Whether it is opened as a draft.
    pub draft: bool,
    /// The issue that it closes.
    pub issue: u64,
}

/// Whether a text carries a marker: alone on its first line that is not blank.
pub fn carries_marker(text: &str, marker: &str) -> bool {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .is_some_and(|line| line == marker.trim())
}

/// The text of a comment with its marker in front, once.
fn with_marker(marker: &str, body: &str) -> String {
    let body = body.replace("\r\n", "\n");
    let body = body.trim_end();
    if carries_marker(body, marker) {
        body.to_owned()
    } else {
        format!("{}\n{body}", marker.trim())
    }
}
