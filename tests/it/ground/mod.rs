//! The check ground: exactly one tree, whatever was there before.

mod beside;
mod records;

use crate::project::{FILE, LINK, PROGRAM, Project, SUBMODULE, git};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use veri::cause::{Bail, Cause};
use veri::ground::{Ground, Kind};

/// The check ground of a project.
pub fn ground(project: &Project) -> Ground {
    Ground::acquire(&project.home(), Kind::Check).unwrap()
}

fn read(ground: &Ground, path: &str) -> String {
    fs::read_to_string(ground.path().join(path)).unwrap()
}

/// Every path in a folder, sorted, without its `.git`.
pub fn listing(root: &Path) -> Vec<String> {
    fn add(root: &Path, folder: &Path, list: &mut Vec<String>) {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path == root.join(".git") {
                continue;
            }
            list.push(
                path.strip_prefix(root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
            );
            if path.is_dir() && !path.is_symlink() {
                add(root, &path, list);
            }
        }
    }
    let mut list = Vec::new();
    add(root, root, &mut list);
    list.sort();
    list
}

#[test]
fn files_links_executable_bits_and_odd_names_are_laid_as_a_clone_has_them() {
    let project = Project::new();
    let tree = project.tree_of(&[
        (b"plain.txt", FILE, b"hello\n"),
        (b"bin/run", PROGRAM, b"#!/bin/sh\n"),
        (b"link", LINK, b"bin/run"),
        (b"dangling", LINK, b"/nowhere/at/all"),
        (b"-dash and space", FILE, b"x"),
        (b"new\nline", FILE, b"x"),
        (b"not\xffutf8/\xfe", FILE, b"bytes"),
        (b"empty", FILE, b""),
        (b"sub", SUBMODULE, b""),
    ]);
    let mut ground = ground(&project);
    let brought = ground.bring_to(&project.repo, tree).unwrap();
    assert_eq!(brought.changed, 9);
    let at = |name: &[u8]| ground.path().join(OsStr::from_bytes(name));
    assert_eq!(fs::read(at(b"plain.txt")).unwrap(), b"hello\n");
    assert_eq!(at(b"bin/run").metadata().unwrap().mode() & 0o100, 0o100);
    assert_eq!(at(b"plain.txt").metadata().unwrap().mode() & 0o111, 0);
    assert_eq!(fs::read_link(at(b"link")).unwrap(), Path::new("bin/run"));
    assert!(at(b"dangling").is_symlink());
    assert_eq!(fs::read(at(b"not\xffutf8/\xfe")).unwrap(), b"bytes");
    assert!(at(b"new\nline").is_file());
    assert!(at(b"sub").is_dir());
    assert!(ground.verify_exact(tree).unwrap().is_empty());
    assert_eq!(
        ground.bring_to(&project.repo, tree).unwrap().changed,
        0,
        "nothing to do again"
    );
}

#[test]
fn the_next_tree_is_laid_by_difference_and_unchanged_files_keep_their_times() {
    let project = Project::new();
    let first = project.tree(&[
        ("kept", "1"),
        ("gone/deep/x", "2"),
        ("f", "a"),
        ("d/x", "3"),
    ]);
    // A folder becomes a file and a file becomes a folder.
    let second = project.tree(&[("kept", "1"), ("f/x", "a"), ("d", "3"), ("new", "4")]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, first).unwrap();
    let kept = ground.path().join("kept").metadata().unwrap();
    ground.bring_to(&project.repo, second).unwrap();
    assert_eq!(listing(ground.path()), ["d", "f", "f/x", "kept", "new"]);
    let after = ground.path().join("kept").metadata().unwrap();
    assert_eq!(
        (kept.ino(), kept.mtime_nsec()),
        (after.ino(), after.mtime_nsec())
    );
    // Another process takes up where this one ended.
    drop(ground);
    let mut ground = self::ground(&project);
    assert_eq!(ground.bring_to(&project.repo, second).unwrap().changed, 0);
    ground.bring_to(&project.repo, first).unwrap();
    assert_eq!(read(&ground, "gone/deep/x"), "2");
}

#[test]
fn a_same_size_edit_within_a_second_gets_a_later_whole_second_that_is_past_before_a_suite() {
    let project = Project::new();
    let (one, two) = (
        project.tree(&[("m.py", "x = 1\n")]),
        project.tree(&[("m.py", "x = 2\n")]),
    );
    let mut ground = ground(&project);
    let mut last = 0;
    for tree in [one, two, one] {
        ground.bring_to(&project.repo, tree).unwrap();
        ground.settle_clock();
        let seconds = ground.path().join("m.py").metadata().unwrap().mtime();
        assert!(seconds > last, "{seconds} after {last}");
        last = seconds;
        let probe = ground.records().join("probe");
        fs::write(&probe, "").unwrap();
        let (file, now) = (ground.path().join("m.py"), probe);
        assert!(
            now.metadata().unwrap().modified().unwrap()
                > file.metadata().unwrap().modified().unwrap()
        );
    }
}

#[test]
fn a_file_that_went_and_comes_back_is_later_than_the_one_that_went() {
    let project = Project::new();
    let with = project.tree(&[("m.py", "x = 1\n"), ("k", "")]);
    let without = project.tree(&[("k", "")]);
    let other = project.tree(&[("m.py", "x = 2\n"), ("k", "")]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, with).unwrap();
    let first = ground.path().join("m.py").metadata().unwrap().mtime();
    ground.bring_to(&project.repo, without).unwrap();
    ground.bring_to(&project.repo, other).unwrap();
    let second = ground.path().join("m.py").metadata().unwrap().mtime();
    assert!(second > first);
}

#[test]
fn what_a_suite_did_to_the_ground_is_seen_and_put_right() {
    let project = Project::new();
    let tree = project.tree_of(&[
        (b"same-size", FILE, b"aaaa"),
        (b"touched", FILE, b"t"),
        (b"deleted", FILE, b"d"),
        (b"chmodded", FILE, b"c"),
        (b"unreadable", FILE, b"u"),
        (b"to-link", FILE, b"l"),
        (b"folder/in", FILE, b"i"),
        (b"link", LINK, b"touched"),
    ]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    ground.settle_clock();
    let root = ground.path().to_owned();
    let outside = project.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("in"), "the person's").unwrap();
    // The same size and modification time as before: the change time still tells.
    let path = root.join("same-size");
    let modified = path.metadata().unwrap().modified().unwrap();
    fs::write(&path, "bbbb").unwrap();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    fs::write(root.join("touched"), "t").unwrap();
    fs::remove_file(root.join("deleted")).unwrap();
    let mode = |name: &str, mode| {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("chmodded", 0o755);
    mode("unreadable", 0o000);
    fs::remove_file(root.join("to-link")).unwrap();
    symlink("/etc/passwd", root.join("to-link")).unwrap();
    fs::remove_file(root.join("link")).unwrap();
    symlink("deleted", root.join("link")).unwrap();
    fs::remove_dir_all(root.join("folder")).unwrap();
    symlink(&outside, root.join("folder")).unwrap();
    fs::write(root.join("left-behind"), "x").unwrap();
    fs::remove_dir_all(root.join(".git")).unwrap();

    let seen: Vec<String> = ground
        .verify_exact(tree)
        .unwrap()
        .into_iter()
        .map(|path| String::from_utf8(path).unwrap())
        .collect();
    for path in [
        "same-size",
        "deleted",
        "chmodded",
        "to-link",
        "link",
        "folder/in",
    ] {
        assert!(seen.iter().any(|s| s == path), "{path} is not in {seen:?}");
    }
    assert!(
        !seen.contains(&"touched".to_owned()),
        "the content is what it was"
    );

    ground.bring_to(&project.repo, tree).unwrap();
    assert!(ground.verify_exact(tree).unwrap().is_empty());
    assert_eq!(read(&ground, "same-size"), "aaaa");
    assert_eq!(read(&ground, "unreadable"), "u");
    assert_eq!(read(&ground, "folder/in"), "i");
    assert!(!root.join("left-behind").exists());
    assert_eq!(
        fs::read_to_string(outside.join("in")).unwrap(),
        "the person's"
    );
    assert_eq!(git(&root, &["status", "--porcelain"]), "");
}

#[test]
fn attributes_and_filters_apply_as_in_a_clone_also_when_only_the_attributes_change() {
    let project = Project::new();
    let mut config = project.repo.config().unwrap();
    config.set_str("filter.shout.smudge", "tr a-z A-Z").unwrap();
    config.set_str("filter.shout.clean", "tr A-Z a-z").unwrap();
    let plain = project.tree(&[
        ("a.txt", "one\ntwo\n"),
        ("b.bin", "x\n"),
        ("s.loud", "quiet\n"),
    ]);
    let crlf = project.tree(&[
        (
            ".gitattributes",
            "*.txt text eol=crlf\n*.loud filter=shout\n",
        ),
        ("a.txt", "one\ntwo\n"),
        ("b.bin", "x\n"),
        ("s.loud", "quiet\n"),
    ]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, plain).unwrap();
    let untouched = ground.path().join("b.bin").metadata().unwrap().ino();
    assert_eq!(read(&ground, "a.txt"), "one\ntwo\n");
    ground.bring_to(&project.repo, crlf).unwrap();
    assert_eq!(read(&ground, "a.txt"), "one\r\ntwo\r\n");
    assert_eq!(read(&ground, "s.loud"), "QUIET\n");
    assert_eq!(
        ground.path().join("b.bin").metadata().unwrap().ino(),
        untouched
    );
    // A suite that writes attributes of its own changes nothing about what is compared.
    ground.settle_clock();
    fs::write(ground.path().join(".gitattributes"), "* -text\n").unwrap();
    fs::write(ground.path().join("a.txt"), "one\r\ntwo\r\n").unwrap();
    assert_eq!(ground.verify_exact(crlf).unwrap(), [b".gitattributes"]);
    ground.bring_to(&project.repo, crlf).unwrap();
    assert_eq!(read(&ground, "a.txt"), "one\r\ntwo\r\n");
    ground.bring_to(&project.repo, plain).unwrap();
    assert_eq!(read(&ground, "a.txt"), "one\ntwo\n");
    assert_eq!(read(&ground, "s.loud"), "quiet\n");
}

#[test]
fn hooks_sparse_checkouts_and_the_index_of_the_person_play_no_part() {
    let project = Project::new();
    let tree = project.tree(&[("in/a", "1"), ("out/b", "2")]);
    project.commit(tree, "first");
    let checkout = project.checkout();
    git(&checkout, &["reset", "-q", "--hard"]);
    git(&checkout, &["sparse-checkout", "set", "in"]);
    let hooks = checkout.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "post-index-change"] {
        let ran = project.beside("ran");
        fs::write(
            hooks.join(hook),
            format!("#!/bin/sh\ntouch {}\n", ran.display()),
        )
        .unwrap();
        crate::executable::executable(&hooks.join(hook));
    }
    let index = fs::read(checkout.join(".git/index")).unwrap();
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    assert_eq!(listing(ground.path()), ["in", "in/a", "out", "out/b"]);
    assert!(!project.beside("ran").exists());
    assert_eq!(fs::read(checkout.join(".git/index")).unwrap(), index);
    assert!(!checkout.join("out").exists());
}

#[test]
fn git_works_in_the_ground_on_one_neutral_commit_and_cannot_reach_the_persons_repository() {
    let project = Project::new();
    let old = project.tree(&[("a", "old secret")]);
    project.commit(old, "a telling message");
    let tree = project.tree(&[("a", "1"), ("b/c", "2")]);
    project.commit(tree, "another");
    project
        .repo
        .config()
        .unwrap()
        .set_str("user.name", "Person")
        .unwrap();
    project
        .repo
        .remote("origin", "https://example.invalid/x")
        .unwrap();
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    let root = ground.path().to_owned();
    assert_eq!(git(&root, &["ls-files"]), "a\nb/c");
    assert_eq!(git(&root, &["status", "--porcelain"]), "");
    assert_eq!(git(&root, &["rev-list", "--count", "--all"]), "1");
    assert_eq!(git(&root, &["remote"]), "");
    assert_eq!(git(&root, &["branch", "--format=%(refname:short)"]), "main");
    assert!(!git(&root, &["config", "--local", "--list"]).contains("Person"));
    let before = git(&project.checkout(), &["for-each-ref"]);
    git(
        &root,
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
    );
    git(&root, &["config", "core.hooksPath", "/tmp"]);
    assert_eq!(git(&project.checkout(), &["for-each-ref"]), before);
    // What a suite did to the ground's repository is gone with the next tree.
    ground.bring_to(&project.repo, tree).unwrap();
    assert_eq!(git(&root, &["rev-list", "--count", "--all"]), "1");
    assert!(!git(&root, &["config", "--local", "--list"]).contains("hookspath"));
}

#[test]
fn a_linked_worktree_is_as_good_a_source() {
    let project = Project::new();
    let tree = project.tree(&[("a", "1")]);
    project.commit(tree, "first");
    let linked = project.beside("linked");
    git(
        &project.checkout(),
        &["worktree", "add", "-q", linked.to_str().unwrap()],
    );
    let repo = git2::Repository::open(&linked).unwrap();
    let mut ground = ground(&project);
    ground.bring_to(&repo, tree).unwrap();
    assert_eq!(read(&ground, "a"), "1");
    assert_eq!(git(ground.path(), &["status", "--porcelain"]), "");
}

#[test]
fn a_folder_whose_rights_a_suite_took_can_be_looked_at_and_laid_into_again() {
    let project = Project::new();
    let tree = |text: &str| project.tree(&[("d/e/f", text), ("k", "")]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree("1")).unwrap();
    let folder = ground.path().join("d/e");
    // Locked, one that can be listed and not more, and one that nothing can be moved into.
    for (mode, text) in [(0o000, "2"), (0o444, "3"), (0o555, "4")] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        ground.bring_to(&project.repo, tree(text)).unwrap();
        let rights = folder.metadata().unwrap().mode() & 0o700;
        assert_eq!(rights, 0o700, "{mode:o}");
        assert_eq!(read(&ground, "d/e/f"), text);
    }
}

#[test]
fn a_missing_object_is_git_failed_and_names_it() {
    let project = Project::new();
    let tree = project.tree_of(&[(b"a", FILE, b"here")]);
    let blob = git(&project.checkout(), &["rev-parse", &format!("{tree}:a")]);
    let object = project
        .checkout()
        .join(".git/objects")
        .join(&blob[..2])
        .join(&blob[2..]);
    fs::remove_file(object).unwrap();
    let error = ground(&project).bring_to(&project.repo, tree).unwrap_err();
    let bail = error
        .chain()
        .find_map(|e| e.downcast_ref::<Bail>())
        .unwrap();
    assert_eq!(bail.cause, Cause::GitFailed);
    assert!(bail.detail.contains(&blob), "{}", bail.detail);
}
