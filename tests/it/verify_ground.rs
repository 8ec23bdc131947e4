//! Wall 2: a verifier's checkout holds the claim's trees and not one object, name or word more.

use crate::project::{Project, git, git_command};
use std::fs;
use std::path::Path;
use veri::ground::Verify;

/// A history with a secret in an old file, messages, a branch, a tag, a note, a stash and config.
fn telling() -> (Project, git2::Oid, git2::Oid) {
    let project = Project::new();
    let old = project.tree(&[("a", "OLD-SECRET-CONTENT"), ("gone", "GONE-SECRET-CONTENT")]);
    project.commit(old, "TELLING-MESSAGE one");
    let base = project.tree(&[("a", "base"), ("same", "s")]);
    project.commit(base, "TELLING-MESSAGE two");
    let candidate = project.tree(&[("a", "candidate"), ("same", "s"), ("d/n", "new")]);
    let checkout = project.checkout();
    git(&checkout, &["reset", "-q", "--hard"]);
    for (key, value) in [("user.name", "TELLING-NAME"), ("user.email", "t@t")] {
        git(&checkout, &["config", key, value]);
    }
    git(&checkout, &["branch", "TELLING-BRANCH"]);
    git(
        &checkout,
        &["tag", "-a", "TELLING-TAG", "-m", "TELLING-MESSAGE"],
    );
    git(&checkout, &["notes", "add", "-m", "TELLING-NOTE"]);
    git(
        &checkout,
        &[
            "remote",
            "add",
            "TELLING-REMOTE",
            "https://example.invalid/",
        ],
    );
    fs::write(checkout.join("a"), "STASHED-SECRET").unwrap();
    git(&checkout, &["stash", "push", "-q", "-m", "TELLING-STASH"]);
    git(&checkout, &["update-ref", "refs/veri/issue-1/red", "HEAD"]);
    // Old objects in a pack, with deltas against each other.
    git(&checkout, &["gc", "-q"]);
    (project, base, candidate)
}

fn objects(root: &Path) -> Vec<String> {
    let format = "--batch-check=%(objectname) %(objecttype)";
    let text = git(root, &["cat-file", "--batch-all-objects", format]);
    let mut list: Vec<String> = text.lines().map(str::to_owned).collect();
    list.sort();
    list
}

/// Every object that can be reached from the given names.
fn reachable(root: &Path, from: &[&str]) -> usize {
    let mut args = vec!["rev-list", "--objects", "--no-object-names"];
    args.extend(from);
    git(root, &args).lines().count()
}

fn every_file(folder: &Path, see: &mut dyn FnMut(&Path)) {
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            every_file(&path, see);
        } else {
            see(&path);
        }
    }
}

#[test]
fn a_verifier_that_looks_everywhere_finds_no_history() {
    let (project, _, candidate) = telling();
    let verify = Verify::make(&project.home(), &project.repo, candidate, None).unwrap();
    let root = verify.path();
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "candidate");
    assert_eq!(git(root, &["rev-parse", "HEAD"]), verify.head().to_string());
    assert_eq!(git(root, &["rev-list", "--all", "--count"]), "1");
    assert_eq!(
        git(root, &["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main"
    );
    assert_eq!(git(root, &["reflog", "--all"]), "");
    assert_eq!(git(root, &["stash", "list"]), "");
    assert_eq!(git(root, &["remote"]), "");
    assert_eq!(
        git(root, &["fsck", "--full", "--lost-found", "--unreachable"]),
        ""
    );
    assert_eq!(
        objects(root).len(),
        reachable(root, &["HEAD"]),
        "nothing but what HEAD needs"
    );
    let dot_git = root.join(".git");
    for absent in [
        "objects/info/alternates",
        "hooks",
        "logs",
        "packed-refs",
        "refs/notes",
        "worktrees",
        "info",
    ] {
        assert!(!dot_git.join(absent).exists(), "{absent}");
    }
    let person = project.checkout();
    let mut seen = 0;
    every_file(root, &mut |path| {
        let bytes = fs::read(path).unwrap();
        for word in ["TELLING", person.to_str().unwrap()] {
            let found = bytes.windows(word.len()).any(|w| w == word.as_bytes());
            assert!(!found, "{} holds {word}", path.display());
        }
        seen += 1;
    });
    assert!(seen > 5);
    for (tree, path) in [("HEAD~1", "a"), ("TELLING-BRANCH", "a")] {
        let name = git(&person, &["rev-parse", &format!("{tree}:{path}")]);
        let asked = git_command(root, &["cat-file", "-e", &name])
            .output()
            .unwrap();
        assert!(!asked.status.success(), "{tree}:{path} is there");
    }
    assert_eq!(git(root, &["status", "--porcelain"]), "");
}

#[test]
fn a_refactors_verifier_gets_the_base_as_one_commit_before_the_candidate() {
    let (project, base, candidate) = telling();
    let verify = Verify::make(&project.home(), &project.repo, candidate, Some(base)).unwrap();
    let root = verify.path();
    let base_name = verify.base().unwrap().to_string();
    assert_eq!(git(root, &["rev-parse", "HEAD~1"]), base_name);
    assert_eq!(git(root, &["show", &format!("{base_name}:a")]), "base");
    assert_eq!(
        git(root, &["diff", "--name-only", &base_name, "HEAD"]),
        "a\nd/n"
    );
    assert_eq!(git(root, &["rev-list", "--all", "--count"]), "2");
    assert_eq!(objects(root).len(), reachable(root, &["HEAD"]));
    let messages = git(root, &["log", "--format=%an %ae %s"]);
    assert!(!messages.contains("TELLING"), "{messages}");
}

#[test]
fn the_next_verifier_finds_nothing_of_the_one_before() {
    let (project, _, candidate) = telling();
    let first = Verify::make(&project.home(), &project.repo, candidate, None).unwrap();
    let root = first.path().to_owned();
    git(
        &root,
        &[
            "-c",
            "user.name=v",
            "-c",
            "user.email=v@v",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "LEFT-BEHIND",
        ],
    );
    git(&root, &["config", "alias.x", "LEFT-BEHIND"]);
    fs::create_dir_all(root.join("target")).unwrap();
    fs::write(root.join("target/LEFT-BEHIND"), "").unwrap();
    fs::write(root.join("a"), "LEFT-BEHIND").unwrap();
    let held = Verify::make(&project.home(), &project.repo, candidate, None).unwrap();
    assert_ne!(
        held.path(),
        root,
        "two verifiers at once have a ground each"
    );
    drop(first);
    let second = Verify::make(&project.home(), &project.repo, candidate, None).unwrap();
    assert_eq!(second.path(), root);
    every_file(&root, &mut |path| {
        assert!(!path.to_string_lossy().contains("LEFT-BEHIND"));
        let bytes = fs::read(path).unwrap();
        assert!(
            !bytes.windows(11).any(|w| w == b"LEFT-BEHIND"),
            "{}",
            path.display()
        );
    });
    assert_eq!(git(&root, &["rev-list", "--all", "--count"]), "1");
}

#[test]
fn a_tree_without_files_is_a_checkout_too() {
    let project = Project::new();
    let empty = project.tree(&[]);
    let verify = Verify::make(&project.home(), &project.repo, empty, None).unwrap();
    assert_eq!(git(verify.path(), &["ls-files"]), "");
    assert_eq!(git(verify.path(), &["status", "--porcelain"]), "");
}
