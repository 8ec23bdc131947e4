//! Files that are too large for git.

use super::{Person, needs_user, put, text};
use crate::git::worktree::LARGEST;
use crate::git::{CannotStage, WorkTree};
use std::fs::File;
use std::path::Path;

/// A file that takes no room on the disk.
fn sparse(path: &Path) {
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).open(path);
    file.unwrap().set_len(LARGEST + 1).unwrap();
}

#[test]
fn a_sparse_file_that_git_would_read_for_hours_is_refused_by_name_and_does_not_come_back_at_every_start()
 {
    let person = Person::new();
    person.write("empty", "");
    person.commit("base");
    for name in ["new \n.bin", "empty", "src/.gitignore", ".gitignore"] {
        let wt = person.worktree();
        put(&wt.path().join("kept.txt"), "kept\n");
        let large = wt.path().join(name);
        sparse(&large);
        let error = wt.candidate(&[]).unwrap_err();
        let cannot = error.downcast_ref::<CannotStage>().unwrap();
        assert!(
            cannot.words.contains(&format!("{name}: ")),
            "{}",
            cannot.words
        );
        assert!(!large.exists(), "{name}");
        // A start that finds one keeps all the rest.
        sparse(&large);
        let kept = wt.salvage().unwrap();
        assert_eq!(text(&wt, kept, "kept.txt").unwrap(), "kept\n");
        wt.restore(None).unwrap();
        assert_eq!(wt.candidate(&[]).unwrap(), wt.head_tree().unwrap());
    }
}

#[test]
fn a_large_file_that_git_ignores_or_that_a_filter_takes_in_is_nobodys_business() {
    let person = Person::new();
    person.git(&["config", "filter.big.clean", "echo pointer; cat >/dev/null"]);
    person.write(".gitignore", "*.log\n");
    person.write(".gitattributes", "*.big filter=big\n");
    person.commit("base");
    let wt = person.worktree();
    sparse(&wt.path().join("x.log"));
    sparse(&wt.path().join("x.big"));
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(text(&wt, candidate, "x.big").unwrap(), "pointer\n");
    assert!(wt.path().join("x.log").exists());
}

#[test]
fn a_large_file_in_a_persons_checkout_is_named_and_stays() {
    let person = Person::new();
    let wt = WorkTree::here(&person.repo()).unwrap();
    let large = person.checkout().join("film");
    sparse(&large);
    for said in [needs_user(wt.candidate(&[])), needs_user(wt.salvage())] {
        assert!(
            said.contains("film: ") && said.contains("Move it away"),
            "{said}"
        );
    }
    assert!(large.exists());
}
