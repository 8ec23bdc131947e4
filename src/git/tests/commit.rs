//! Commits, and the refs beside the branch.

use super::*;
use crate::git::{Commit, Committed};

const LEDGER: &str = ".tdd/issue-42.md";

struct Ask {
    tree: Oid,
    parent: Oid,
    ledger: &'static str,
    subject: &'static str,
    trailers: Vec<(String, String)>,
}

impl Ask {
    /// The working tree as it is, on HEAD.
    fn of(wt: &WorkTree) -> Ask {
        Ask {
            tree: wt.candidate(&[]).unwrap(),
            parent: wt.head().unwrap(),
            ledger: "# Issue 42\n\n- [x] 1. It works (AC1)\n",
            subject: "It works",
            trailers: vec![
                ("Veri-Issue".to_owned(), "42".to_owned()),
                ("Veri-Step".to_owned(), "1".to_owned()),
            ],
        }
    }

    fn make(&self, wt: &WorkTree) -> anyhow::Result<Committed> {
        self.within(wt, SOON)
    }

    fn within(&self, wt: &WorkTree, deadline: Duration) -> anyhow::Result<Committed> {
        let commit = Commit {
            tree: self.tree,
            ledger_path: LEDGER,
            ledger: self.ledger.as_bytes(),
            subject: self.subject,
            trailers: &self.trailers,
            parent: self.parent,
        };
        wt.commit(&commit, deadline)
    }
}

fn changed(person: &Person) -> WorkTree {
    let wt = person.worktree();
    put(&wt.path().join("a.txt"), "changed\n");
    wt
}

fn is_clean(person: &Person, wt: &WorkTree) {
    assert_eq!(person.git_in(wt.path(), &["status", "--porcelain"]), "");
}

#[test]
fn a_commit_holds_the_candidate_and_the_ledger_and_leaves_all_clean() {
    let person = Person::new();
    let wt = changed(&person);
    let ask = Ask::of(&wt);
    let Committed::Done(oid) = ask.make(&wt).unwrap() else {
        panic!()
    };
    assert_eq!(wt.head().unwrap(), oid);
    assert_eq!(wt.head_tree().unwrap(), ask.tree);
    is_clean(&person, &wt);
    let shown = person.git_in(wt.path(), &["log", "-1", "--format=%an <%ae>%n%B"]);
    assert_eq!(
        shown,
        "Ada <ada@example.org>\nIt works\n\nVeri-Issue: 42\nVeri-Step: 1"
    );
    assert_eq!(
        person.git_in(wt.path(), &["show", &format!("HEAD:{LEDGER}")]),
        ask.ledger.trim_end()
    );
    assert_eq!(ask.make(&wt).unwrap(), Committed::Already(oid));
    is_clean(&person, &wt);
}

#[test]
fn a_commit_that_was_made_before_a_crash_is_found_though_index_and_ledger_lag() {
    let person = Person::new();
    let wt = changed(&person);
    let ask = Ask::of(&wt);
    let Committed::Done(oid) = ask.make(&wt).unwrap() else {
        panic!()
    };
    person.git_in(wt.path(), &["read-tree", "HEAD~"]);
    fs::write(wt.path().join(LEDGER), "older").unwrap();
    assert_eq!(ask.make(&wt).unwrap(), Committed::Already(oid));
    is_clean(&person, &wt);
}

#[test]
fn a_commit_of_somebody_else_on_top_is_not_taken_for_ours() {
    let person = Person::new();
    let wt = changed(&person);
    let ask = Ask::of(&wt);
    person.git_in(
        wt.path(),
        &["commit", "--quiet", "--allow-empty", "-m", "It works"],
    );
    assert_eq!(bail(ask.make(&wt)).cause, Cause::GitFailed);
}

#[test]
fn no_shell_and_no_cleanup_sees_a_subject() {
    let person = Person::new();
    let wt = person.worktree();
    for subject in ["# 1 $(touch pwned) `touch pwned` \"'\\", "🦀 --amend", "#"] {
        put(&wt.path().join("a.txt"), subject);
        let ask = Ask {
            subject,
            ..Ask::of(&wt)
        };
        let Committed::Done(_) = ask.make(&wt).unwrap() else {
            panic!("{subject}")
        };
        assert_eq!(
            person.git_in(wt.path(), &["log", "-1", "--format=%s"]),
            subject
        );
    }
    assert!(!wt.path().join("pwned").exists());
}

#[test]
fn the_ledger_is_committed_though_the_repository_ignores_its_folder() {
    let person = Person::new();
    person.write(".gitignore", ".tdd/\n*.md\n.veri.toml\n");
    person.commit("ignored");
    let wt = changed(&person);
    put(&wt.tdd().join("events.jsonl"), "journal");
    put(&wt.path().join(".veri.toml"), "");
    for round in ["one", "two"] {
        put(&wt.path().join("a.txt"), round);
        let tree = wt.candidate(&[]).unwrap();
        wt.restore(None).unwrap();
        wt.restore(Some(tree)).unwrap();
        assert_eq!(read(&wt.path().join("a.txt")), round);
        assert!(matches!(
            Ask::of(&wt).make(&wt).unwrap(),
            Committed::Done(_)
        ));
    }
    assert_eq!(person.git_in(wt.path(), &["ls-files", ".tdd"]), LEDGER);
    is_clean(&person, &wt);
}

#[test]
fn a_ledger_with_other_line_endings_leaves_no_dirt() {
    let person = Person::new();
    person.git(&["config", "core.autocrlf", "true"]);
    let wt = changed(&person);
    let ask = Ask {
        ledger: "# Issue 42\r\n\r\n- [x] 1. X (AC1)\r\n",
        ..Ask::of(&wt)
    };
    assert!(matches!(ask.make(&wt).unwrap(), Committed::Done(_)));
    assert_eq!(read(&wt.path().join(LEDGER)), ask.ledger);
    is_clean(&person, &wt);
}

#[test]
fn a_refusal_of_content_is_told_from_one_that_no_content_can_mend() {
    let person = Person::new();
    let wt = changed(&person);
    let ask = Ask::of(&wt);
    let parent = ask.parent;
    person.hook(
        "pre-commit",
        "#!/bin/sh\ngit status >/dev/null; echo a.txt is ugly; exit 1\n",
    );
    let Committed::Refused {
        words,
        about_ledger,
    } = ask.make(&wt).unwrap()
    else {
        panic!()
    };
    assert!(words.contains("ugly") && !about_ledger);
    person.hook(
        "pre-commit",
        "#!/bin/sh\necho .tdd/issue-42.md:3 too long; exit 1\n",
    );
    let Committed::Refused { about_ledger, .. } = ask.make(&wt).unwrap() else {
        panic!()
    };
    assert!(about_ledger);
    person.hook("pre-commit", "#!/bin/sh\nexit 0\n");
    person.hook("commit-msg", "#!/bin/sh\necho no ticket; exit 1\n");
    let Committed::Cannot { words } = ask.make(&wt).unwrap() else {
        panic!()
    };
    assert!(words.contains("no ticket"), "{words}");
    fs::remove_file(person.checkout().join(".git/hooks/commit-msg")).unwrap();
    person.git(&["config", "commit.gpgSign", "true"]);
    person.git(&["config", "gpg.program", "/nowhere/gpg"]);
    let Committed::Cannot { words } = ask.make(&wt).unwrap() else {
        panic!()
    };
    assert!(words.contains("/nowhere/gpg"), "{words}");
    // Nothing of it all is left.
    assert_eq!(wt.head().unwrap(), parent);
    assert!(!wt.path().join(LEDGER).exists());
    assert_eq!(wt.candidate(&[]).unwrap(), ask.tree);
    assert_eq!(
        person.git_in(wt.path(), &["diff", "--cached", "--name-only"]),
        ""
    );
}

#[test]
fn a_hook_that_hangs_ends_the_commit_and_leaves_no_lock() {
    let person = Person::new();
    let wt = changed(&person);
    person.hook("pre-commit", "#!/bin/sh\nsleep 1000\n");
    let ask = Ask::of(&wt);
    assert_eq!(
        ask.within(&wt, Duration::from_millis(500)).unwrap(),
        Committed::TimedOut
    );
    fs::remove_file(person.checkout().join(".git/hooks/pre-commit")).unwrap();
    assert!(matches!(ask.make(&wt).unwrap(), Committed::Done(_)));
}

#[test]
fn a_hook_that_commits_something_else_is_undone_and_told() {
    let person = Person::new();
    let wt = changed(&person);
    let ask = Ask::of(&wt);
    person.hook(
        "pre-commit",
        "#!/bin/sh\necho late > late.txt; git add late.txt\n",
    );
    let Committed::TreeDiffers { got } = ask.make(&wt).unwrap() else {
        panic!()
    };
    assert_eq!(wt.head().unwrap(), ask.parent);
    // Checked again with what the hook made, it passes.
    assert_eq!(wt.candidate(&[]).unwrap(), got);
    assert!(matches!(
        Ask::of(&wt).make(&wt).unwrap(),
        Committed::Done(_)
    ));
    is_clean(&person, &wt);
}

#[test]
fn a_hook_that_reformats_the_ledger_is_told_apart() {
    let person = Person::new();
    let wt = changed(&person);
    person.hook(
        "pre-commit",
        "#!/bin/sh\necho '# tidied' >> .tdd/issue-42.md; git add -f .tdd/issue-42.md\n",
    );
    let ask = Ask::of(&wt);
    let Committed::LedgerChanged { oid, bytes } = ask.make(&wt).unwrap() else {
        panic!()
    };
    assert_eq!(wt.head().unwrap(), oid);
    assert_eq!(bytes, format!("{}# tidied\n", ask.ledger).into_bytes());
    is_clean(&person, &wt);
}

#[test]
fn a_lock_lying_about_is_named_and_nothing_is_lost() {
    let person = Person::new();
    let wt = changed(&person);
    let ask = Ask::of(&wt);
    let lock = wt.git_dir().join("index.lock");
    fs::write(&lock, "").unwrap();
    assert!(needs_user(ask.make(&wt)).contains("index.lock"));
    let made = fs::metadata(&lock).unwrap().modified().unwrap();
    let later = made + Duration::from_secs(1);
    assert!(wt.stale_locks(42, &|_, at| at >= later).unwrap().is_empty());
    assert_eq!(wt.locks(42), std::slice::from_ref(&lock));
    assert_eq!(wt.stale_locks(42, &|_, at| at >= made).unwrap(), [lock]);
    assert!(matches!(ask.make(&wt).unwrap(), Committed::Done(_)));
    let here = WorkTree::here(&person.repo()).unwrap();
    fs::write(here.git_dir().join("index.lock"), "").unwrap();
    assert!(needs_user(here.stale_locks(42, &|_, _| true)).contains("index.lock"));
}

#[test]
fn saved_work_comes_back_as_it_was() {
    let person = Person::new();
    let wt = changed(&person);
    let tree = wt.candidate(&[]).unwrap();
    let refs = wt.refs(42);
    assert_eq!(refs.load("red").unwrap(), None);
    let head = wt.head().unwrap();
    let commit = refs.save("red", tree, Some(head), "key\n\nmore").unwrap();
    let saved = person.repo().refs(42).load("red").unwrap().unwrap();
    assert_eq!(
        (saved.commit, saved.tree, saved.parent),
        (commit, tree, Some(head))
    );
    assert_eq!(saved.message, "key\n\nmore");
    refs.delete("red").unwrap();
    refs.delete("red").unwrap();
    assert_eq!(refs.load("red").unwrap(), None);
}

#[test]
fn discarded_work_is_listed_and_laid_on_top_again() {
    let person = Person::new();
    let wt = person.worktree();
    assert_eq!(
        wt.discard(42, wt.candidate(&[]).unwrap(), "nothing")
            .unwrap(),
        None
    );
    put(&wt.path().join("new.txt"), "new\n");
    put(&wt.path().join("src/lib.rs"), "fn g() {}\n");
    let tree = wt.candidate(&[]).unwrap();
    let name = wt.discard(42, tree, "rejected").unwrap().unwrap();
    assert_eq!(wt.discard(42, tree, "rejected").unwrap().unwrap(), name);
    wt.restore(None).unwrap();
    let listed = person.repo().refs(42).discarded().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].refname.as_str(), listed[0].why.as_str()),
        (name.as_str(), "rejected")
    );
    assert_eq!(listed[0].files, ["new.txt", "src/lib.rs"]);
    put(&wt.path().join("other.txt"), "other\n");
    wt.apply_discarded(&name).unwrap();
    assert_eq!(read(&wt.path().join("src/lib.rs")), "fn g() {}\n");
    assert_eq!(read(&wt.path().join("other.txt")), "other\n");
    wt.restore(None).unwrap();
    put(&wt.path().join("src/lib.rs"), "fn h() {}\n");
    assert!(needs_user(wt.apply_discarded(&name)).contains("src/lib.rs"));
    assert_eq!(read(&wt.path().join("src/lib.rs")), "fn h() {}\n");
    assert!(needs_user(wt.apply_discarded("refs/veri/issue-42/discarded/no")).contains("no"));
}
