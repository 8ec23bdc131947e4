//! A ground that is brought on by what differs is what one made anew would be, git in it included.

use crate::ground::{ground, listing};
use crate::project::{FILE, LINK, PROGRAM, Project, SUBMODULE, git};
use git2::Oid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What git in the ground says, without ever looking at a file's content: plumbing takes the index's word.
fn told_by_git(root: &Path) -> [String; 3] {
    [
        git(root, &["ls-files", "--stage"]),
        git(root, &["diff-files", "--raw"]),
        git(root, &["diff-index", "--cached", "--raw", "HEAD"]),
    ]
}

fn trees(project: &Project) -> Vec<Oid> {
    let kept: (&[u8], u32, &[u8]) = (b"kept/same", FILE, b"same");
    vec![
        project.tree_of(&[
            kept,
            (b"a", FILE, b"1"),
            (b"d/x", FILE, b"1"),
            (b"d/y", FILE, b"1"),
        ]),
        project.tree_of(&[
            kept,
            (b"a/in", FILE, b"1"),
            (b"d", FILE, b"1"),
            (b"l", LINK, b"d"),
        ]),
        project.tree_of(&[
            kept,
            (b"a/in", PROGRAM, b"1"),
            (b"d", LINK, b"a"),
            (b"l", FILE, b"d"),
        ]),
        project.tree_of(&[kept]),
        project.tree_of(&[
            kept,
            (b".gitattributes", FILE, b"*.txt text eol=crlf\n"),
            (b"n.txt", FILE, b"one\ntwo\n"),
            (b"odd \xff\n", FILE, b""),
            (b"sub", SUBMODULE, b""),
        ]),
        project.tree_of(&[kept, (b"sub", FILE, b"1"), (b"a", SUBMODULE, b"")]),
    ]
}

#[test]
fn gits_own_index_in_a_ground_knows_every_file_whatever_was_laid_before() {
    let project = Project::new();
    let mut used = ground(&project);
    let trees = trees(&project);
    for pair in [
        [0, 1],
        [1, 2],
        [2, 0],
        [0, 3],
        [3, 4],
        [4, 5],
        [5, 0],
        [0, 5],
        [5, 4],
        [2, 4],
        [4, 4],
        [4, 0],
    ] {
        for tree in pair {
            used.bring_to(&project.repo, trees[tree]).unwrap();
        }
        let tree = trees[pair[1]];
        let mut fresh = ground(&project);
        assert_ne!(fresh.path(), used.path());
        fresh.make_anew().unwrap();
        fresh.bring_to(&project.repo, tree).unwrap();
        assert_eq!(listing(used.path()), listing(fresh.path()), "{pair:?}");
        let told = told_by_git(used.path());
        assert_eq!(told, told_by_git(fresh.path()), "{pair:?}");
        assert_eq!((told[1].as_str(), told[2].as_str()), ("", ""), "{pair:?}");
        assert!(used.verify_exact(tree).unwrap().is_empty());
        if pair[1] == 4 {
            // Another process takes it over, and knows neither the last tree nor what the index was behind by.
            drop(used);
            used = ground(&project);
            fs::write(used.records().join("index"), "of something else").unwrap();
        }
    }
}

#[test]
fn in_a_ground_of_many_files_nothing_that_a_suite_did_is_overlooked() {
    let project = Project::new();
    let names: Vec<String> = (0..1500)
        .map(|n| format!("d{}/e{}/f{n}", n % 7, n % 50))
        .collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "same")).collect();
    let first = project.tree(&files);
    files[700].1 = "next";
    files.remove(900);
    let second = project.tree(&files);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, first).unwrap();
    let at = |n: usize| ground.path().join(&names[n]);
    let [written, deleted, opened] = [at(3), at(700), at(1400)];
    let (root, left) = (ground.path().to_owned(), at(20).with_file_name("left"));
    ground.settle_clock();
    fs::write(&written, "SAME").unwrap();
    fs::remove_file(&deleted).unwrap();
    fs::set_permissions(&opened, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&left, "").unwrap();
    let mut wrong = [3, 700, 1400].map(|n| names[n].clone().into_bytes());
    wrong.sort();
    assert_eq!(ground.verify_exact(first).unwrap(), wrong);
    // Two put right, one written anew, one that the next tree does not have, one that no tree has.
    assert_eq!(ground.bring_to(&project.repo, second).unwrap().changed, 5);
    assert!(ground.verify_exact(second).unwrap().is_empty());
    assert_eq!(fs::read_to_string(&written).unwrap(), "same");
    assert_eq!(fs::read_to_string(&deleted).unwrap(), "next");
    assert!(!left.exists());
    let told = told_by_git(&root);
    assert_eq!((told[1].as_str(), told[2].as_str()), ("", ""));
    assert_eq!(told[0].lines().count(), 1499);
}
