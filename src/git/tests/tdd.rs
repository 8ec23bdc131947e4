//! What a leaf does to `.tdd/`, undone.

use super::guard::{after, tampered};
use super::*;
use crate::git::Settled;

#[test]
fn what_lies_in_tdd_is_put_back_and_what_is_new_there_is_moved_away() {
    let person = Person::new();
    let wt = person.worktree();
    put(&wt.tdd().join("issue-42-timeout"), "60\n");
    put(&wt.tdd().join("runs/aa.out"), "words");
    let settled = after(
        &person,
        &wt,
        "echo 1 > .tdd/issue-42-timeout; echo x > .tdd/note; mkdir .tdd/more; echo now > .tdd/stop; \
         echo x > .tdd/develop-red.out",
    );
    for what in [
        "issue-42-timeout was changed",
        "note was written",
        "more was made",
    ] {
        tampered(&settled, what);
    }
    assert_eq!(settled.tampered.len(), 3, "{settled:?}");
    assert_eq!(read(&wt.tdd().join("issue-42-timeout")), "60\n");
    assert_eq!(read(&wt.tdd().join("stop")), "now\n");
    // What was kept of earlier launches cannot be had again, only told.
    let guard = wt.guard().unwrap();
    person.leaf(wt.path(), "rm -rf .tdd; ln -s src .tdd");
    let settled = settle(&guard, &wt);
    tampered(&settled, "1 files of");
    tampered(&settled, ".tdd was removed");
    tampered(&settled, "issue-42-timeout was removed");
    assert!(wt.tdd().join("runs").is_dir() && !wt.tdd().is_symlink());
}

#[test]
fn what_veri_itself_was_just_writing_is_not_the_leafs_doing() {
    let person = Person::new();
    let wt = person.worktree();
    fs::create_dir_all(wt.tdd().join("runs")).unwrap();
    put(
        &wt.tdd().join("runs/.tmpAAAAAA"),
        "moved to its place meanwhile",
    );
    let script = "rm .tdd/runs/.tmp*; echo at-leaf > .tdd/.tmpBBBBBB; echo > .tdd/.ledger-CCCCCC";
    assert_eq!(after(&person, &wt, script), Settled::default());
    // Somebody's `veri stop` may be about to move it.
    assert!(wt.tdd().join(".tmpBBBBBB").exists());
}
