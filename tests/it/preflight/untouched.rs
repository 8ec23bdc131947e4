//! A run of its own, and the checkout that it was started from.

use super::{OF_A_RUN, refused, scene};
use crate::picture::Picture;
use crate::scene::{Agent, Scene};
use std::fs;
use std::path::Path;

#[test]
fn a_checkout_in_full_use_is_byte_for_byte_what_it_was() {
    let scene = Scene::new();
    // The repository ignores .tdd/ itself: the ledger is committed all the same.
    scene.write(".gitignore", ".tdd/\n*.log\n");
    scene.write("kept", "kept\n");
    scene.commit_all("ignore");
    scene.write("kept", "stashed\n");
    scene.git(&["stash", "-q"]);
    scene.write("src/lib.sh", "greet() { echo half of my own change; }\n");
    scene.write("kept", "staged\n");
    scene.git(&["add", "kept"]);
    scene.write("kept", "staged, and then changed\n");
    scene.write("scratch/notes", "mine\n");
    scene.write("build.log", "ignored\n");
    scene.write("-leading", "mine\n");
    std::os::unix::fs::symlink("/nowhere", scene.repo().join("dangling")).unwrap();
    fs::write(scene.repo().join(".git/index.lock"), "").unwrap();
    scene.agent(&Agent {
        // A leaf that uses the stash, branches and tags of the repository that it shares with the person.
        green: format!(
            "{}\necho mine > stashed.txt; git add -A; git stash -q; git stash apply -q; git tag leaf-tag; git branch leaf-branch",
            Agent::default().green
        ),
        ..Agent::default()
    });
    let before = Picture::of(&scene.repo()).without(OF_A_RUN);
    let stash = scene.git(&["stash", "list"]);
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out
            .contains("uncommitted changes of the checkout are not part of this run"),
        "{}",
        ran.out
    );
    before.is_still(&Picture::of(&scene.repo()).without(OF_A_RUN));
    assert_eq!(scene.git(&["stash", "list"]), stash);
    assert_eq!(scene.git(&["tag"]), "");
    assert!(!scene.git(&["branch", "--list"]).contains("leaf-branch"));
    let files = scene.git(&["ls-tree", "-r", "--name-only", "tdd/issue-42"]);
    assert!(
        files.contains(".tdd/issue-42.md") && !files.contains(".tdd/events.jsonl"),
        "{files}"
    );
    assert!(
        !files.contains("scratch") && !files.contains("-leading"),
        "{files}"
    );
    scene.nothing_is_left_running();
}

#[test]
fn the_state_folder_that_cannot_be_written() {
    let scene = scene();
    let state = scene.path("state");
    fs::remove_dir(&state).unwrap();
    fs::write(&state, "a file").unwrap();
    refused(&scene, "storage-failed", &["/state", "run again"], || {
        scene.tdd(&[])
    });
    assert!(Path::new(&state).is_file());
}
