//! What every forge must do, whatever it is made of. A forge's own tests call [`conformance`] on an
//! empty forge of theirs, in which `issue` can be read.

use super::{Forge, NewPull, PullState, carries_marker};
use crate::cause::{Bail, Cause};

pub(super) const MARKER: &str = "<!-- veri:issue-1:run -->";

fn cause(error: &anyhow::Error) -> Option<Cause> {
    error.downcast_ref::<Bail>().map(|bail| bail.cause)
}

/// Runs the whole of it.
pub(super) fn conformance(forge: &dyn Forge, issue: u64) {
    a_missing_issue_is_the_persons_to_mend(forge);
    a_comment_is_found_by_its_marker(forge, issue);
    one_pull_request_a_head(forge, issue);
}

fn a_missing_issue_is_the_persons_to_mend(forge: &dyn Forge) {
    let error = forge.issue(987_654).unwrap_err();
    assert_eq!(cause(&error), Some(Cause::NeedsUser));
    assert!(error.to_string().contains("987654"));
    let error = forge.put_comment(987_654, MARKER, "x").unwrap_err();
    assert_eq!(cause(&error), Some(Cause::NeedsUser));
}

fn a_comment_is_found_by_its_marker(forge: &dyn Forge, issue: u64) {
    let before = forge.comments(issue).unwrap().len();
    let first = forge.put_comment(issue, MARKER, "one\r\ntwo\n").unwrap();
    assert!(first.changed);
    let again = forge.put_comment(issue, MARKER, "one\ntwo").unwrap();
    assert_eq!(
        (again.id, again.changed),
        (first.id, false),
        "the same text is not sent again"
    );
    let edited = forge.put_comment(issue, MARKER, "three").unwrap();
    assert_eq!((edited.id, edited.changed), (first.id, true));
    let other = forge
        .put_comment(issue, "<!-- veri:issue-1:stop -->", "stopped")
        .unwrap();
    assert_ne!(other.id, first.id);
    let comments = forge.comments(issue).unwrap();
    assert_eq!(comments.len(), before + 2);
    let comment = comments.iter().find(|c| c.id() == first.id).unwrap();
    assert!(carries_marker(comment.body(), MARKER) && comment.body().contains("three"));
    assert!(comment.is_veris());
    assert!(comment.updated_at() >= comment.created_at());
}

fn one_pull_request_a_head(forge: &dyn Forge, issue: u64) {
    let new = NewPull {
        head: "tdd/issue-1".to_owned(),
        base: "main".to_owned(),
        title: "It's \"odd\": `x` # 1".to_owned(),
        body: "Body\n\n---\n\nmore".to_owned(),
        draft: true,
        issue,
    };
    assert_eq!(forge.find_pull(&new.head).unwrap(), None);
    let opened = forge.open_pull(&new).unwrap();
    assert_eq!((opened.state, opened.draft), (PullState::Open, true));
    assert_eq!(forge.find_pull(&new.head).unwrap(), Some(opened.clone()));
    assert_eq!(
        forge.open_pull(&new).unwrap(),
        opened,
        "opening it again opens no second"
    );
    let updated = forge.update_pull(opened.number, "Title", "Body 2").unwrap();
    assert_eq!(
        (updated.title.as_str(), updated.body.as_str()),
        ("Title", "Body 2")
    );
    assert_eq!(forge.find_pull(&new.head).unwrap(), Some(updated));
    assert_eq!(
        forge.find_pull("tdd/issue").unwrap(),
        None,
        "the whole name counts"
    );
}
