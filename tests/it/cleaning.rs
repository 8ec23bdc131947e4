//! Cleaning a ground: what outlives it is what the tree itself ignores, and nothing that merely says so.

use crate::ground::{ground, listing};
use crate::project::Project;
use std::fs;

#[test]
fn ignored_build_folders_survive_and_ignored_input_files_do_not_reach_the_ground() {
    let project = Project::new();
    let tree = project.tree(&[(".gitignore", "target/\n.env\ngenerated.txt\n"), ("a", "1")]);
    // What a developer filled in the checkout.
    for name in [".env", "generated.txt"] {
        fs::write(project.checkout().join(name), "secret").unwrap();
    }
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    let root = ground.path().to_owned();
    assert!(!root.join(".env").exists() && !root.join("generated.txt").exists());
    // What a suite makes: builds, and ignored files that a later suite could lean on.
    for path in [
        "target/debug/x",
        "src/__pycache__/a.pyc",
        "generated.txt",
        ".env",
        "sub/deep/cache/CACHEDIR.TAG",
        "deps/node_modules/x",
    ] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(
            root.join(path),
            "Signature: 8a477f597d28d172789f06886806bc55\n",
        )
        .unwrap();
    }
    let next = project.tree(&[
        (".gitignore", "/target\n__pycache__/\nall-of-it/\n"),
        ("src/a.py", "2"),
        ("sub/deep/b", "2"),
        ("sub/.gitignore", "*/cache\n!*/cache/kept\n"),
        ("deps/.gitignore", "node_modules/*\n"),
    ]);
    ground.bring_to(&project.repo, next).unwrap();
    let left: Vec<String> = listing(&root)
        .into_iter()
        .filter(|p| root.join(p).is_file())
        .collect();
    assert_eq!(
        left,
        [
            ".gitignore",
            "deps/.gitignore",
            "deps/node_modules/x",
            "src/__pycache__/a.pyc",
            "src/a.py",
            "sub/.gitignore",
            "sub/deep/b",
            "sub/deep/cache/CACHEDIR.TAG",
            "target/debug/x",
        ]
    );
}

#[test]
fn what_calls_itself_a_cache_and_is_not_ignored_by_the_tree_is_cleaned_away() {
    let project = Project::new();
    let tree = project.tree(&[("a", "1")]);
    // The rules of the person, and those that a suite writes, are not the tree's.
    fs::create_dir_all(project.checkout().join(".git/info")).unwrap();
    fs::write(project.checkout().join(".git/info/exclude"), ".c\ntarget\n").unwrap();
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    let root = ground.path().to_owned();
    for path in [
        ".c/CACHEDIR.TAG",
        ".c/v",
        ".c/.gitignore",
        "target/v",
        "__pycache__/v",
        ".gitignore",
    ] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        let text = match path {
            ".c/CACHEDIR.TAG" => "Signature: 8a477f597d28d172789f06886806bc55\n",
            _ => "*\n",
        };
        fs::write(root.join(path), text).unwrap();
    }
    ground.bring_to(&project.repo, tree).unwrap();
    assert_eq!(listing(&root), ["a"]);
}

#[test]
fn a_tracked_file_in_a_folder_named_like_a_build_is_part_of_the_tree() {
    let project = Project::new();
    let with = project.tree(&[("target/fixture", "1"), ("a", "")]);
    let without = project.tree(&[("a", "")]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, with).unwrap();
    fs::write(ground.path().join("target/other"), "x").unwrap();
    ground.bring_to(&project.repo, with).unwrap();
    assert_eq!(listing(ground.path()), ["a", "target", "target/fixture"]);
    ground.bring_to(&project.repo, without).unwrap();
    assert!(!ground.path().join("target/fixture").exists());
}
