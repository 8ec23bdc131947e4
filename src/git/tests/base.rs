//! Preflight 5: the base and the issue branch.

use super::*;
use crate::git::{BaseAsk, Merge, Pushed, Relation};

fn ask(flag: Option<&str>) -> BaseAsk<'_> {
    BaseAsk {
        flag,
        remote: "origin",
        ..BaseAsk::default()
    }
}

/// A remote of the checkout, and a second clone of it in which others work.
fn with_remote(person: &Person) -> PathBuf {
    let remote = person.root().join("origin.git");
    let other = person.root().join("other");
    person.git(&["clone", "--quiet", "--bare", ".", remote.to_str().unwrap()]);
    person.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    person.git(&[
        "clone",
        "--quiet",
        remote.to_str().unwrap(),
        other.to_str().unwrap(),
    ]);
    other
}

fn commit_in(person: &Person, dir: &Path, branch: &str, subject: &str) {
    person.git_in(dir, &["checkout", "--quiet", "-B", branch]);
    person.git_in(dir, &["commit", "--quiet", "--allow-empty", "-m", subject]);
}

fn oid(person: &Person, dir: &Path, rev: &str) -> Oid {
    Oid::from_str(&person.git_in(dir, &["rev-parse", rev])).unwrap()
}

#[test]
fn the_base_is_the_branch_that_one_is_on() {
    let person = Person::new();
    let base = person.repo().resolve_base(&ask(None)).unwrap();
    assert_eq!((base.name.as_str(), base.remote), ("main", None));
    assert_eq!(base.commit, oid(&person, &person.checkout(), "main"));
}

#[test]
fn the_flag_wins_over_the_ledger_and_the_ledger_over_the_config() {
    let person = Person::new();
    for branch in ["flag", "ledger", "config"] {
        person.git(&["branch", branch]);
    }
    let repo = person.repo();
    let mut all = BaseAsk {
        flag: Some("flag"),
        ledger: Some("ledger @ 3f2c9e1b"),
        config: Some("config"),
        remote: "origin",
    };
    assert_eq!(repo.resolve_base(&all).unwrap().name, "flag");
    all.flag = None;
    assert_eq!(repo.resolve_base(&all).unwrap().name, "ledger");
    all.ledger = None;
    assert_eq!(repo.resolve_base(&all).unwrap().name, "config");
}

#[test]
fn no_branch_no_base() {
    let person = Person::new();
    person.git(&["checkout", "--quiet", "--detach"]);
    assert!(needs_user(person.repo().resolve_base(&ask(None))).contains("detached"));
    person.git(&["checkout", "--quiet", "-b", "tdd/issue-7"]);
    assert!(needs_user(person.repo().resolve_base(&ask(None))).contains("tdd/issue-7"));
    assert!(needs_user(person.repo().resolve_base(&ask(Some("nope")))).contains("neither"));
    assert!(needs_user(person.repo().resolve_base(&ask(Some("--upload-pack=x")))).contains("name"));
}

#[test]
fn a_base_that_is_behind_starts_from_the_remotes_tip() {
    let person = Person::new();
    let other = with_remote(&person);
    commit_in(&person, &other, "main", "theirs");
    person.git_in(&other, &["push", "--quiet", "origin", "main"]);
    let base = person.repo().resolve_base(&ask(None)).unwrap();
    assert_eq!(base.commit, oid(&person, &other, "main"));
    assert_eq!(base.remote.as_deref(), Some("origin"));
    assert!(
        base.notes[0].contains("1 commits behind"),
        "{:?}",
        base.notes
    );
    let by_remote_name = person
        .repo()
        .resolve_base(&ask(Some("origin/main")))
        .unwrap();
    assert_eq!(by_remote_name.name, "main");
}

#[test]
fn a_base_that_is_ahead_or_diverged_needs_the_user() {
    let person = Person::new();
    let other = with_remote(&person);
    person.git(&["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    assert!(needs_user(person.repo().resolve_base(&ask(None))).contains("ahead of"));
    commit_in(&person, &other, "main", "theirs");
    person.git_in(&other, &["push", "--quiet", "origin", "main"]);
    assert!(needs_user(person.repo().resolve_base(&ask(None))).contains("diverged"));
}

#[test]
fn a_remote_that_is_gone_is_git_failed() {
    let person = Person::new();
    person.git(&["remote", "add", "origin", "/nowhere/at/all"]);
    assert_eq!(
        bail(person.repo().resolve_base(&ask(None))).cause,
        Cause::GitFailed
    );
}

#[test]
fn the_issue_branch_is_taken_up_from_the_remote() {
    let person = Person::new();
    let other = with_remote(&person);
    let repo = person.repo();
    let look = || repo.issue_branch(42, "origin", &person.work());
    assert_eq!(look().unwrap().relation, Relation::Absent);
    commit_in(&person, &other, "tdd/issue-42", "one");
    person.git_in(&other, &["push", "--quiet", "origin", "tdd/issue-42"]);
    let found = look().unwrap();
    assert_eq!(found.relation, Relation::RemoteOnly);
    let wt = person.worktree(); // made at main, which is behind the remote's issue branch
    assert_eq!(look().unwrap().relation, Relation::Behind);
    wt.take_branch(42, found.tip().unwrap()).unwrap();
    wt.take_branch(42, found.tip().unwrap()).unwrap();
    assert_eq!(wt.head().unwrap(), oid(&person, &other, "HEAD"));
    assert_eq!(wt.branch().as_deref(), Some("tdd/issue-42"));
    assert_eq!(look().unwrap().relation, Relation::Same);
    person.git_in(
        wt.path(),
        &["commit", "--quiet", "--allow-empty", "-m", "mine"],
    );
    assert_eq!(look().unwrap().relation, Relation::Ahead);
    commit_in(&person, &other, "tdd/issue-42", "two");
    person.git_in(&other, &["push", "--quiet", "origin", "tdd/issue-42"]);
    assert!(needs_user(look()).contains("diverged"));
}

#[test]
fn a_branch_checked_out_elsewhere_needs_the_user() {
    let person = Person::new();
    person.git(&["checkout", "--quiet", "-b", "tdd/issue-42"]);
    let said = needs_user(person.repo().issue_branch(42, "origin", &person.work()));
    assert!(said.contains(person.checkout().to_str().unwrap()), "{said}");
    person
        .repo()
        .issue_branch(42, "origin", &person.checkout())
        .unwrap();
}

#[test]
fn pushes_end_in_one_of_four_ways() {
    let person = Person::new();
    let other = with_remote(&person);
    let wt = person.worktree();
    let push = || {
        wt.push(
            "origin",
            "refs/heads/tdd/issue-42:refs/heads/tdd/issue-42",
            SOON,
        )
    };
    assert_eq!(push().unwrap(), Pushed::Done);
    assert_eq!(push().unwrap(), Pushed::UpToDate);
    person.git_in(&other, &["fetch", "--quiet"]);
    person.git_in(&other, &["checkout", "--quiet", "tdd/issue-42"]);
    commit_in(&person, &other, "tdd/issue-42", "theirs");
    person.git_in(&other, &["push", "--quiet", "origin", "tdd/issue-42"]);
    person.git_in(
        wt.path(),
        &["commit", "--quiet", "--allow-empty", "-m", "mine"],
    );
    assert!(matches!(push().unwrap(), Pushed::Rejected { .. }));
    person.hook("pre-push", "#!/bin/sh\necho not on fridays >&2; exit 1\n");
    let Pushed::Rejected { words } = push().unwrap() else {
        panic!()
    };
    assert!(words.contains("not on fridays"), "{words}");
    fs::rename(person.root().join("origin.git"), person.root().join("gone")).unwrap();
    assert!(matches!(push().unwrap(), Pushed::Unreachable { .. }));
}

#[test]
fn a_merge_is_tried_without_touching_anything() {
    let person = Person::new();
    person.git(&["checkout", "--quiet", "-b", "clean", "HEAD~"]);
    person.write("new.txt", "new\n");
    person.commit("clean");
    person.git(&["checkout", "--quiet", "-b", "clash", "HEAD~"]);
    person.write("a.txt", "three\n");
    person.commit("clash");
    let repo = person.repo();
    let rev = |name: &str| {
        repo.git2()
            .refname_to_id(&format!("refs/heads/{name}"))
            .unwrap()
    };
    assert!(matches!(
        repo.merge_trial(rev("main"), rev("clean")).unwrap(),
        Merge::Clean(_)
    ));
    assert_eq!(
        repo.merge_trial(rev("main"), rev("clash")).unwrap(),
        Merge::Conflict(vec![b"a.txt".to_vec()])
    );
}
