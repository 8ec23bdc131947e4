//! What the front matter of issues, comments and pull requests means.

use super::front::{Document, FrontError};
use crate::forge::issue::{Association, Comment, CommentParts, Issue, IssueParts};
use crate::forge::{Pull, PullState, VERI};
use jiff::Timestamp;
use std::path::Path;

/// Author and association. Nobody named: the owner of the directory. A name alone: nobody special.
fn author_of(document: &Document) -> Result<(Option<String>, Association), FrontError> {
    let author = document.text("author")?;
    let association = match document.text("author_association")? {
        Some(word) => Association::parse(&word).ok_or_else(|| FrontError {
            line: document.line_of("author_association"),
            message: format!(
                "`author_association` must be OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR or NONE, \
                 not `{word}`"
            ),
        })?,
        None if author.is_none() => Association::Owner,
        None => Association::None,
    };
    Ok((author, association))
}

fn required(document: &Document, key: &str) -> Result<String, FrontError> {
    document.text(key)?.ok_or_else(|| FrontError {
        line: document.line_of(key),
        message: format!("`{key}: …` is missing from the front matter, or blank"),
    })
}

pub(super) fn issue_of(number: u64, document: &Document) -> Result<Issue, FrontError> {
    let (author, association) = author_of(document)?;
    let open = match document.text("state")?.as_deref() {
        None | Some("open") => true,
        Some("closed") => false,
        Some(other) => {
            return Err(FrontError {
                line: document.line_of("state"),
                message: format!("`state` must be open or closed, not `{other}`"),
            });
        }
    };
    Ok(Issue::new(IssueParts {
        number,
        title: required(document, "title")?,
        body: document.body.clone(),
        open,
        author,
        association,
        labels: document.list("labels")?,
        is_pull: false,
        locked: document.flag("locked")?.unwrap_or(false),
    }))
}

pub(super) fn comment_of(
    id: u64,
    document: &Document,
    written: Timestamp,
) -> Result<Comment, FrontError> {
    let (author, association) = author_of(document)?;
    let time = |key: &str| -> Result<Option<Timestamp>, FrontError> {
        let Some(text) = document.text(key)? else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| FrontError {
            line: document.line_of(key),
            message: format!("`{key}` must be a time like 2026-01-31T09:00:00Z, not `{text}`"),
        })
    };
    let created_at = time("created_at")?.unwrap_or(written);
    Ok(Comment::new(CommentParts {
        id,
        by_veri: author.as_deref() == Some(VERI),
        author,
        association,
        created_at,
        updated_at: time("updated_at")?.unwrap_or(created_at),
        body: document.body.clone(),
    }))
}

pub(super) fn pull_of(number: u64, path: &Path, document: &Document) -> Result<Pull, FrontError> {
    let state = match document.text("state")?.as_deref() {
        None | Some("open") => PullState::Open,
        Some("merged") => PullState::Merged,
        Some("closed") => PullState::Closed,
        Some(other) => {
            return Err(FrontError {
                line: document.line_of("state"),
                message: format!("`state` must be open, merged or closed, not `{other}`"),
            });
        }
    };
    Ok(Pull {
        number,
        state,
        draft: document.flag("draft")?.unwrap_or(false),
        url: path.display().to_string(),
        title: required(document, "title")?,
        body: document.body.clone(),
    })
}
