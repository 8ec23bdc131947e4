//! Files whose end nobody lives to see, since they have holes or are pipes: in the place of whatever veri or git reads.

use crate::attempts::{FRESH, NAME_TEST, each_is_sent_back};
use crate::scene::Scene;
use std::fs;
use std::path::Path;
use veri::role::Phase;

#[test]
fn a_sparse_file_of_two_tebibytes_is_sent_back_before_git_reads_it() {
    let scene = Scene::new();
    scene.write("empty", "");
    scene.commit_all("a file that git must read to compare it");
    let moves = [
        "truncate -s 2T huge.bin",
        "truncate -s 2T empty",
        "git add -N .; truncate -s 2T tests/name.sh",
    ];
    let moves = moves.map(|huge| {
        (
            format!("{NAME_TEST}; {huge}"),
            "2199023255552 bytes, more than the 5242880 of limits.max_file_mib",
        )
    });
    each_is_sent_back(&scene, Phase::Red, FRESH, &moves);
}

#[test]
fn rules_of_two_tebibytes_are_moved_away_before_git_reads_them() {
    let scene = Scene::new();
    let moves = [".gitignore", "tests/.gitattributes"];
    let moves = moves.map(|huge| {
        (
            format!("{NAME_TEST}; truncate -s 2T {huge}"),
            "which git cannot read",
        )
    });
    each_is_sent_back(&scene, Phase::Red, FRESH, &moves);
}

/// Puts what has no end in the place of a file: a pipe, or one with holes.
fn endless(path: &Path) {
    let _ = fs::remove_file(path);
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

fn holes(path: &Path) {
    let _ = fs::remove_file(path);
    let file = fs::File::create(path).unwrap();
    file.set_len(2 << 40).unwrap();
}

#[test]
fn a_ledger_without_an_end_holds_neither_status_nor_clean() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let ledger = scene.worktree().join(".tdd/issue-42.md");
    for put in [endless, holes] {
        put(&ledger);
        let ran = scene.veri(&["status"]).expect(0);
        assert!(ran.out.contains("issue 42"), "{}", ran.out);
    }
    let tree = scene.worktree();
    scene.veri(&["clean", "42", "--unfinished"]).expect(0);
    assert!(!tree.exists());
}

#[test]
fn what_a_person_names_and_has_no_end_is_said_at_once() {
    let scene = Scene::new();
    let given = scene.path("given");
    let name = given.display().to_string();
    let config = scene.repo().join(".veri.toml");
    for (put, said) in [
        (endless as fn(&Path), "it is not a regular file"),
        (holes, "it is larger than"),
    ] {
        put(&given);
        scene.tdd(&["--plan", &name]).bails("needs-user").says(said);
        let mut arguments = scene.arguments();
        arguments[1].clone_from(&name);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        scene.veri(&arguments).bails("needs-user").says(said);
        put(&config);
        scene.tdd(&[]).bails("needs-user").says(said);
        fs::remove_file(&config).unwrap();
    }
}
