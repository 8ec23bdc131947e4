//! Issues and comments as a forge read them: readable by everybody, made only in this room.

use jiff::Timestamp;

/// What a forge says about an author's relation to the repository (GitHub's `author_association`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Association {
    /// Owns the repository.
    Owner,
    /// Member of the organisation that owns it.
    Member,
    /// Invited to collaborate.
    Collaborator,
    /// Has had work merged.
    Contributor,
    /// Has had nothing merged here, or anywhere.
    FirstTime,
    /// A placeholder account.
    Mannequin,
    /// None of these, or not known.
    None,
}

impl Association {
    /// Reads the forge's word, in any case; None for an unknown one.
    pub fn parse(word: &str) -> Option<Association> {
        Some(match word.to_ascii_uppercase().as_str() {
            "OWNER" => Association::Owner,
            "MEMBER" => Association::Member,
            "COLLABORATOR" => Association::Collaborator,
            "CONTRIBUTOR" => Association::Contributor,
            "FIRST_TIME_CONTRIBUTOR" | "FIRST_TIMER" => Association::FirstTime,
            "MANNEQUIN" => Association::Mannequin,
            "NONE" => Association::None,
            _ => return None,
        })
    }

    /// Whether people so associated can write to the repository.
    pub fn can_write(self) -> bool {
        matches!(
            self,
            Association::Owner | Association::Member | Association::Collaborator
        )
    }
}

/// What a forge fills an [`Issue`] from.
pub(super) struct IssueParts {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub open: bool,
    pub author: Option<String>,
    pub association: Association,
    pub labels: Vec<String>,
    pub is_pull: bool,
    pub locked: bool,
}

/// An issue as its forge has it. Its text is untrusted until [`super::trust::trusted`] has read it.
#[derive(Debug, Clone)]
pub struct Issue {
    number: u64,
    title: String,
    body: String,
    open: bool,
    author: Option<String>,
    association: Association,
    labels: Vec<String>,
    is_pull: bool,
    locked: bool,
}

impl Issue {
    pub(super) fn new(parts: IssueParts) -> Issue {
        Issue {
            number: parts.number,
            title: parts.title,
            body: parts.body.replace("\r\n", "\n"),
            open: parts.open,
            author: parts.author,
            association: parts.association,
            labels: parts.labels,
            is_pull: parts.is_pull,
            locked: parts.locked,
        }
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its title, as written.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its body, as written, with LF line ends.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Who wrote it; None for a deleted account, or for the owner of a directory forge.
    pub fn author(&self) -> Option<&str> {
        self.author.as_deref()
    }

    /// The author's relation to the repository.
    pub fn association(&self) -> Association {
        self.association
    }

    /// Its labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Whether it is a pull request, which some forges return as an issue.
    pub fn is_pull(&self) -> bool {
        self.is_pull
    }

    /// Whether its conversation is locked. Not a reason to refuse it: people with write access, and
    /// so veri, can still comment.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// SHA-256 of title and body in hexadecimal: differs when the text that somebody vouched for does.
    pub fn hash(&self) -> String {
        crate::hash::of(format!("{}\0{}", self.title, self.body).as_bytes())
    }
}

/// What a forge fills a [`Comment`] from.
pub(super) struct CommentParts {
    pub id: u64,
    pub author: Option<String>,
    pub association: Association,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub body: String,
    pub by_veri: bool,
}

/// A comment as its forge has it; untrusted, like its issue.
#[derive(Debug, Clone)]
pub struct Comment {
    id: u64,
    author: Option<String>,
    association: Association,
    created_at: Timestamp,
    updated_at: Timestamp,
    body: String,
    by_veri: bool,
}

impl Comment {
    pub(super) fn new(parts: CommentParts) -> Comment {
        Comment {
            id: parts.id,
            author: parts.author,
            association: parts.association,
            created_at: parts.created_at,
            updated_at: parts.updated_at,
            body: parts.body.replace("\r\n", "\n"),
            by_veri: parts.by_veri,
        }
    }

    /// Its id, unique and growing within the issue.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Who wrote it, where the forge knows.
    pub fn author(&self) -> Option<&str> {
        self.author.as_deref()
    }

    /// The author's relation to the repository.
    pub fn association(&self) -> Association {
        self.association
    }

    /// When it was written.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// When it was last edited; never before it was written.
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at.max(self.created_at)
    }

    /// Its text, as written, with LF line ends.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Whether veri wrote it: by the forge's account, or by a marker at the head of any line.
    pub fn is_veris(&self) -> bool {
        self.by_veri
            || self
                .body
                .lines()
                .any(|line| line.trim_start().starts_with("<!-- veri:issue-"))
    }
}
