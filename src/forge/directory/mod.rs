//! A directory as a forge: issues, comments and pull requests as Markdown files with front matter.
//!
//! ```text
//! PATH/issues/42/issue.md            title, state, author, author_association, labels, locked; body
//! PATH/issues/42/comments/<id>.md    author, author_association, created_at, updated_at; body
//! PATH/pulls/<k>.md                  title, head, base, draft, state, issue; body
//! ```
//!
//! Whoever can write here is the owner: an issue or comment without `author` is the owner's.
//! `PATH/.lock` is held for every write, so that two processes double nothing.

mod files;
mod filing;
mod front;
mod records;
#[cfg(test)]
mod tests;

pub use files::MAX_FILE_BYTES;

use super::issue::{Association, Comment, CommentParts, Issue};
use super::{CommentRef, Forge, NewPull, Pull, PullState, VERI, carries_marker, with_marker};
use crate::cause::{Bail, Cause};
use files::{Lock, numbered, read_text, unusable, write_atomic};
use front::{Document, FrontError};
use jiff::Timestamp;
use records::{comment_of, issue_of, pull_of};
use std::path::{Component, Path, PathBuf};

/// The same folder without `..` in its path, which people read in links; the last part need not exist yet.
fn without_detours(path: PathBuf) -> PathBuf {
    if !path.components().any(|part| part == Component::ParentDir) {
        return path;
    }
    let real = path.canonicalize().ok().or_else(|| {
        let parent = path.parent()?.canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    });
    real.unwrap_or(path)
}

/// A forge in a directory.
#[derive(Debug, Clone)]
pub struct DirectoryForge {
    root: PathBuf,
}

impl DirectoryForge {
    /// The forge at a path; made by its first write.
    pub fn new(root: impl Into<PathBuf>) -> DirectoryForge {
        DirectoryForge {
            root: without_detours(root.into()),
        }
    }

    fn issue_path(&self, number: u64) -> PathBuf {
        self.root.join(format!("issues/{number}/issue.md"))
    }

    fn comments_path(&self, number: u64) -> PathBuf {
        self.root.join(format!("issues/{number}/comments"))
    }

    fn pull_path(&self, number: u64) -> PathBuf {
        self.root.join(format!("pulls/{number}.md"))
    }

    /// Why an issue is not there, and how to make it.
    fn no_issue(&self, number: u64) -> anyhow::Error {
        let path = self.issue_path(number);
        let there = match numbered(&self.root.join("issues"), "") {
            Ok(issues) if !issues.is_empty() => {
                let list: Vec<String> = issues.keys().take(20).map(u64::to_string).collect();
                let more = if issues.len() > 20 { ", …" } else { "" };
                format!(" It has: {}{more}.", list.join(", "))
            }
            _ => " It has no issues yet.".to_owned(),
        };
        let pull = if self.pull_path(number).is_file() {
            format!(" (pulls/{number}.md is a pull request, not an issue.)")
        } else {
            String::new()
        };
        Bail::needs_user(format!(
            "Issue {number} was looked for in {} and is not there: {} does not exist.{there}{pull} \
             Write that file, beginning with\n\n---\ntitle: What should change\n---\n\n\
             and then what is wanted, or file a Markdown file that begins with `# Title`: \
             `veri tdd ./issue.md --forge dir:{}`.",
            self.describe(),
            path.display(),
            self.root.display()
        ))
        .into()
    }

    fn read_issue(&self, number: u64) -> anyhow::Result<Issue> {
        let path = self.issue_path(number);
        if self.root.exists() && !self.root.is_dir() {
            return Err(unusable(
                &self.root,
                "a forge is a directory, and this is not",
            ));
        }
        let text = read_text(&path)?.ok_or_else(|| self.no_issue(number))?;
        let document = Document::parse(&text)
            .map_err(|error| in_file(&path, error))?
            .ok_or_else(|| {
                unusable(
                    &path,
                    "it must begin with front matter, at least\n\n---\ntitle: What should change\n---\n",
                )
            })?;
        issue_of(number, &document).map_err(|error| in_file(&path, error))
    }

    fn read_comments(&self, number: u64) -> anyhow::Result<Vec<Comment>> {
        let mut comments = vec![];
        for (id, path) in numbered(&self.comments_path(number), ".md")? {
            // One that was removed since the folder was read is not there.
            let Some(text) = read_text(&path)? else {
                continue;
            };
            let document = Document::parse(&text)
                .map_err(|error| in_file(&path, error))?
                .unwrap_or_else(|| {
                    Document::of_body(text.trim_start_matches('\u{feff}').to_owned())
                });
            let written = modified(&path);
            comments
                .push(comment_of(id, &document, written).map_err(|error| in_file(&path, error))?);
        }
        Ok(comments)
    }

    fn write_comment(&self, lock: &Lock, issue: u64, comment: &Comment) -> anyhow::Result<()> {
        let mut document = Document::of_body(comment.body().to_owned());
        document.set("author", VERI);
        document.set("author_association", "OWNER");
        document.set("created_at", &comment.created_at().to_string());
        document.set("updated_at", &comment.updated_at().to_string());
        let path = self
            .comments_path(issue)
            .join(format!("{}.md", comment.id()));
        write_atomic(lock, &path, &document.render())
    }

    fn read_pull(&self, number: u64, path: &Path) -> anyhow::Result<Option<(Document, Pull)>> {
        let Some(text) = read_text(path)? else {
            return Ok(None);
        };
        let document = Document::parse(&text)
            .map_err(|error| in_file(path, error))?
            .ok_or_else(|| unusable(path, "a pull request must begin with front matter"))?;
        let pull = pull_of(number, path, &document).map_err(|error| in_file(path, error))?;
        Ok(Some((document, pull)))
    }

    /// The open pull request of a head, else the newest.
    fn pull_of_head(&self, head: &str) -> anyhow::Result<Option<Pull>> {
        let mut best: Option<Pull> = None;
        for (number, path) in numbered(&self.root.join("pulls"), ".md")? {
            let Some((document, pull)) = self.read_pull(number, &path)? else {
                continue;
            };
            let its_head = document
                .text("head")
                .map_err(|error| in_file(&path, error))?;
            let open_already = best.as_ref().is_some_and(|b| b.state == PullState::Open);
            if its_head.as_deref() == Some(head) && (pull.state == PullState::Open || !open_already)
            {
                best = Some(pull);
            }
        }
        Ok(best)
    }

    fn rewrite_pull(
        &self,
        lock: &Lock,
        number: u64,
        title: &str,
        body: &str,
    ) -> anyhow::Result<Pull> {
        let path = self.pull_path(number);
        let (mut document, pull) = self.read_pull(number, &path)?.ok_or_else(|| {
            Bail::new(
                Cause::ForgeFailed,
                format!(
                    "Updating pull request {number} in {} failed: {} is gone. Run the same command \
                     again to open a new one.",
                    self.describe(),
                    path.display()
                ),
            )
        })?;
        let body = body.replace("\r\n", "\n");
        if pull.title == title && pull.body.trim_end() == body.trim_end() {
            return Ok(pull);
        }
        document.set("title", title);
        document.body = body.trim_end().to_owned();
        write_atomic(lock, &path, &document.render())?;
        Ok(Pull {
            title: title.to_owned(),
            body: document.body,
            ..pull
        })
    }
}

impl Forge for DirectoryForge {
    fn issue(&self, number: u64) -> anyhow::Result<Issue> {
        self.read_issue(number)
    }

    fn comments(&self, number: u64) -> anyhow::Result<Vec<Comment>> {
        self.read_comments(number)
    }

    fn file_issue(&self, name: &Path, markdown: &[u8]) -> anyhow::Result<u64> {
        if let Some(number) = self.own_issue(name) {
            return Ok(number);
        }
        files::check_size(name, markdown.len())?;
        let source = format!("sha256:{}", crate::hash::of(markdown));
        let text = files::text_of(name, markdown.to_vec())?;
        let mut issue = filing::issue_from(&text)
            .map_err(|error| in_file(name, error))?
            .ok_or_else(|| {
                unusable(
                    name,
                    "it has no heading to take the title from: begin it with `# Title`",
                )
            })?;
        issue.set("source", &source);
        let lock = Lock::take(&self.root)?;
        let issues = numbered(&self.root.join("issues"), "")?;
        // A number that a writer had taken who was killed before the issue was there.
        let mut begun = None;
        for number in issues.keys() {
            let there = read_text(&self.issue_path(*number))?;
            if there.is_none()
                && files::is_begun(&self.root.join("issues").join(number.to_string()))
            {
                begun = Some(*number);
            }
            // An issue that cannot be read is not this one; it is named when it is asked for.
            let document = there.and_then(|text| Document::parse(&text).ok().flatten());
            if document.and_then(|d| d.text("source").ok().flatten()) == Some(source.clone()) {
                return Ok(*number);
            }
        }
        let next = || issues.keys().next_back().map_or(1, |last| last + 1);
        let number = begun.unwrap_or_else(next);
        write_atomic(&lock, &self.issue_path(number), &issue.render())?;
        Ok(number)
    }

    fn put_comment(&self, issue: u64, marker: &str, body: &str) -> anyhow::Result<CommentRef> {
        let text = with_marker(marker, body);
        let lock = Lock::take(&self.root)?;
        if !self.issue_path(issue).is_file() {
            return Err(self.no_issue(issue));
        }
        let comments = self.read_comments(issue)?;
        let mut own = comments
            .iter()
            .filter(|c| c.author() == Some(VERI) && carries_marker(c.body(), marker));
        let now = Timestamp::now();
        let Some(first) = own.next() else {
            let id = comments.last().map_or(1, |last| last.id() + 1);
            let comment = veris_comment(id, now, now, text);
            self.write_comment(&lock, issue, &comment)?;
            return Ok(CommentRef { id, changed: true });
        };
        let changed = first.body().trim_end() != text;
        if changed {
            let comment = veris_comment(first.id(), first.created_at(), now, text);
            self.write_comment(&lock, issue, &comment)?;
        }
        for double in own {
            files::remove(
                &self
                    .comments_path(issue)
                    .join(format!("{}.md", double.id())),
            )?;
        }
        Ok(CommentRef {
            id: first.id(),
            changed,
        })
    }

    fn find_pull(&self, head: &str) -> anyhow::Result<Option<Pull>> {
        self.pull_of_head(head)
    }

    fn open_pull(&self, new: &NewPull) -> anyhow::Result<Pull> {
        let lock = Lock::take(&self.root)?;
        if let Some(pull) = self
            .pull_of_head(&new.head)?
            .filter(|p| p.state == PullState::Open)
        {
            return self.rewrite_pull(&lock, pull.number, &new.title, &new.body);
        }
        let pulls = numbered(&self.root.join("pulls"), ".md")?;
        let number = pulls.keys().next_back().map_or(1, |last| last + 1);
        let mut document = Document::of_body(new.body.replace("\r\n", "\n").trim_end().to_owned());
        document.set("title", &new.title);
        document.set("head", &new.head);
        document.set("base", &new.base);
        document.set("draft", if new.draft { "true" } else { "false" });
        document.set("state", "open");
        document.set("issue", &new.issue.to_string());
        let path = self.pull_path(number);
        write_atomic(&lock, &path, &document.render())?;
        Ok(Pull {
            number,
            state: PullState::Open,
            draft: new.draft,
            url: path.display().to_string(),
            title: new.title.clone(),
            body: document.body,
        })
    }

    fn update_pull(&self, number: u64, title: &str, body: &str) -> anyhow::Result<Pull> {
        let lock = Lock::take(&self.root)?;
        self.rewrite_pull(&lock, number, title, body)
    }

    fn needs_remote(&self) -> bool {
        false
    }

    fn can_push(&self) -> anyhow::Result<bool> {
        Ok(true)
    }

    fn describe(&self) -> String {
        format!("the directory forge {}", self.root.display())
    }

    fn issue_ref(&self, number: u64) -> String {
        format!("#{number}")
    }
}

impl DirectoryForge {
    /// The number of an issue of this forge that somebody named by its file.
    fn own_issue(&self, name: &Path) -> Option<u64> {
        let name = name.canonicalize().ok()?;
        let inside = name.strip_prefix(self.root.canonicalize().ok()?).ok()?;
        let number: u64 = inside.parent()?.file_name()?.to_str()?.parse().ok()?;
        (inside == Path::new(&format!("issues/{number}/issue.md"))).then_some(number)
    }
}

fn in_file(path: &Path, error: FrontError) -> anyhow::Error {
    unusable(path, &error.to_string())
}

/// When a file was last written, for comments that do not say when they were.
fn modified(path: &Path) -> Timestamp {
    let time = path.metadata().and_then(|metadata| metadata.modified());
    time.ok()
        .and_then(|time| Timestamp::try_from(time).ok())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

fn veris_comment(id: u64, created_at: Timestamp, updated_at: Timestamp, body: String) -> Comment {
    Comment::new(CommentParts {
        id,
        author: Some(VERI.to_owned()),
        association: Association::Owner,
        created_at,
        updated_at,
        body,
        by_veri: true,
    })
}
