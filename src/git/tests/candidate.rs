//! Candidates, the pre-commit hook on them, and putting the working tree back.

use super::*;
use crate::git::{CannotStage, Hook, Status, tree};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

/// The changes of a tree against HEAD, as letters and paths.
fn changes(wt: &WorkTree, candidate: Oid) -> Vec<String> {
    tree::changed_paths(wt.git2(), wt.head_tree().unwrap(), candidate)
        .unwrap()
        .into_iter()
        .map(|change| {
            let letter = match change.status {
                Status::Added => 'A',
                Status::Deleted => 'D',
                Status::Modified => 'M',
                Status::TypeChanged => 'T',
            };
            format!("{letter} {}", String::from_utf8_lossy(&change.path))
        })
        .collect()
}

fn status(person: &Person, wt: &WorkTree) -> String {
    person.git_in(
        wt.path(),
        &["status", "--porcelain", "--untracked-files=all"],
    )
}

#[test]
fn everything_but_ignored_and_own_files_is_in_a_candidate() {
    let person = Person::new();
    let wt = person.worktree();
    put(&wt.path().join("new file"), "");
    put(&wt.path().join("-rf"), "");
    put(&wt.path().join(":(top)x"), "");
    fs::write(wt.path().join(OsStr::from_bytes(b"\xff.txt")), "raw").unwrap();
    symlink("/etc/passwd", wt.path().join("link")).unwrap();
    fs::remove_file(wt.path().join("src/lib.rs")).unwrap();
    put(&wt.path().join("a.txt"), "changed\n");
    put(&wt.path().join("target/ignored"), "");
    put(&wt.path().join(".veri.toml"), "push = \"end\"\n");
    put(&wt.path().join(".tdd/issue-42.md"), "ledger");
    put(&wt.path().join(".tdd/events.jsonl"), "");
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(
        changes(&wt, candidate),
        [
            "A -rf",
            "A :(top)x",
            "M a.txt",
            "A link",
            "A new file",
            "D src/lib.rs",
            "A \u{fffd}.txt"
        ]
    );
    let raw = tree::read_blob(wt.git2(), candidate, b"\xff.txt").unwrap();
    assert_eq!(raw.as_deref(), Some(&b"raw"[..]));
    assert_eq!(
        person.git_in(wt.path(), &["diff", "--cached", "--name-only"]),
        ""
    );
}

#[test]
fn paths_that_are_left_out_are_as_head_has_them() {
    let person = Person::new();
    let wt = person.worktree();
    put(&wt.path().join("a.txt"), "changed\n");
    put(&wt.path().join("src/more/x"), "");
    put(&wt.path().join("b.txt"), "");
    let left_out = [b"a.txt".to_vec(), b"src".to_vec()];
    assert_eq!(changes(&wt, wt.candidate(&left_out).unwrap()), ["A b.txt"]);
}

#[test]
fn what_is_staged_does_not_count() {
    let person = Person::new();
    let wt = person.worktree();
    put(&wt.path().join("a.txt"), "staged\n");
    put(&wt.path().join("b.txt"), "staged\n");
    person.git_in(wt.path(), &["add", "--all"]);
    put(&wt.path().join("a.txt"), "final\n");
    fs::remove_file(wt.path().join("b.txt")).unwrap();
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(changes(&wt, candidate), ["M a.txt"]);
    assert_eq!(text(&wt, candidate, "a.txt").unwrap(), "final\n");
}

#[test]
fn a_change_right_after_a_restore_is_seen() {
    let person = Person::new();
    let wt = person.worktree();
    for round in 0..20 {
        wt.restore(None).unwrap();
        put(&wt.path().join("a.txt"), "2wo\n"); // the same size as "two\n"
        assert_eq!(
            changes(&wt, wt.candidate(&[]).unwrap()),
            ["M a.txt"],
            "round {round}"
        );
    }
}

#[test]
fn filters_and_line_endings_are_those_of_git() {
    let person = Person::new();
    person.git(&["config", "filter.shout.clean", "tr a-z A-Z"]);
    person.git(&["config", "filter.shout.smudge", "tr A-Z a-z"]);
    person.write(".gitattributes", "*.loud filter=shout\n");
    person.commit("attributes");
    person.git(&["config", "core.autocrlf", "true"]);
    person.git(&["config", "core.safecrlf", "true"]);
    let wt = person.worktree();
    put(&wt.path().join("x.loud"), "quiet\n");
    put(&wt.path().join("crlf.txt"), "a\r\nb\r\n");
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(text(&wt, candidate, "x.loud").unwrap(), "QUIET\n");
    assert_eq!(text(&wt, candidate, "crlf.txt").unwrap(), "a\nb\n");
    wt.restore(None).unwrap();
    assert!(!wt.path().join("x.loud").exists());
    wt.restore(Some(candidate)).unwrap();
    assert_eq!(read(&wt.path().join("x.loud")), "quiet\r\n");
    assert_eq!(read(&wt.path().join("crlf.txt")), "a\r\nb\r\n");
    assert_eq!(wt.candidate(&[]).unwrap(), candidate);
}

#[test]
fn a_file_that_cannot_be_staged_is_the_works_fault() {
    let person = Person::new();
    person.git(&["config", "filter.no.clean", "false"]);
    person.git(&["config", "filter.no.required", "true"]);
    let wt = person.worktree();
    put(&wt.path().join(".gitattributes"), "*.no filter=no\n");
    put(&wt.path().join("x.no"), "x");
    let error = wt.candidate(&[]).unwrap_err();
    let cannot = error.downcast_ref::<CannotStage>().unwrap();
    assert!(cannot.words.contains("x.no"), "{}", cannot.words);
}

#[test]
fn a_submodule_stays_as_it_is() {
    let person = Person::new();
    let inner = person.root().join("inner");
    fs::create_dir(&inner).unwrap();
    person.git_in(&inner, &["init", "--quiet"]);
    person.git_in(&inner, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
    person.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.to_str().unwrap(),
        "sub",
    ]);
    person.commit("with a submodule");
    let wt = person.worktree();
    put(&wt.path().join("a.txt"), "changed\n");
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(changes(&wt, candidate), ["M a.txt"]);
    wt.restore(Some(candidate)).unwrap();
    wt.restore(None).unwrap();
    assert_eq!(status(&person, &wt), "");
}

#[test]
fn a_sparse_checkout_does_not_look_like_deletions() {
    let person = Person::new();
    let wt = person.worktree();
    person.git_in(wt.path(), &["sparse-checkout", "set", "--cone", "docs"]);
    assert!(!wt.path().join("src/lib.rs").exists());
    put(&wt.path().join("docs/x"), "");
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(changes(&wt, candidate), ["A docs/x"]);
    wt.restore(Some(candidate)).unwrap();
    assert!(!wt.path().join("src/lib.rs").exists());
    assert_eq!(wt.candidate(&[]).unwrap(), candidate);
}

#[test]
fn restore_brings_head_back_and_lays_a_candidate_on_top() {
    let person = Person::new();
    let wt = person.worktree();
    put(&wt.tdd().join("events.jsonl"), "journal");
    put(&wt.path().join("target/debug/x"), "built");
    put(&wt.path().join("a.txt"), "changed\n");
    put(&wt.path().join("new/file"), "new");
    fs::remove_file(wt.path().join("src/lib.rs")).unwrap();
    let candidate = wt.candidate(&[]).unwrap();

    // A leaf in a bad mood: files for folders, links out of the tree, folders that cannot be entered.
    fs::remove_dir_all(wt.path().join("src")).unwrap();
    symlink(person.checkout().join("src"), wt.path().join("src")).unwrap();
    fs::remove_file(wt.path().join("a.txt")).unwrap();
    put(&wt.path().join("a.txt/inside"), "");
    put(&wt.path().join("locked/x"), "");
    fs::set_permissions(wt.path().join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    put(&wt.tdd().join("issue-42.md"), "forged");
    person.git_in(wt.path(), &["add", "a.txt"]);
    person.git_in(wt.path(), &["init", "--quiet", "nested"]);

    wt.restore(None).unwrap();
    assert_eq!(status(&person, &wt), "");
    assert_eq!(read(&wt.path().join("a.txt")), "two\n");
    assert_eq!(read(&person.checkout().join("src/lib.rs")), "fn f() {}\n");
    assert!(!wt.path().join("locked").exists() && !wt.path().join("nested").exists());
    assert!(!wt.tdd().join("issue-42.md").exists());
    assert_eq!(read(&wt.tdd().join("events.jsonl")), "journal");
    assert_eq!(read(&wt.path().join("target/debug/x")), "built");

    wt.restore(Some(candidate)).unwrap();
    assert_eq!(status(&person, &wt), " M a.txt\n D src/lib.rs\n?? new/file");
    assert_eq!(wt.candidate(&[]).unwrap(), candidate);
}

#[test]
fn restore_in_the_checkout_leaves_the_persons_own_files() {
    let person = Person::new();
    person.write(".veri.toml", "old\n");
    person.commit("config");
    person.write(".veri.toml", "new\n");
    person.write("issues/42.md", "# An issue\n");
    let wt = WorkTree::here(&person.repo())
        .unwrap()
        .with_own_files([b"issues/".to_vec()]);
    put(&wt.path().join("b.txt"), "");
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(changes(&wt, candidate), ["A b.txt"]);
    wt.restore(None).unwrap();
    assert!(!wt.path().join("b.txt").exists());
    wt.restore(Some(candidate)).unwrap();
    assert!(wt.path().join("b.txt").exists());
    assert_eq!(read(&wt.path().join(".veri.toml")), "new\n");
    assert_eq!(read(&wt.path().join("issues/42.md")), "# An issue\n");
}

#[test]
fn the_first_tree_may_be_empty() {
    let person = Person::new();
    person.git(&["rm", "--quiet", "-r", "."]);
    person.git(&["commit", "--quiet", "-m", "nothing left"]);
    let wt = person.worktree();
    assert_eq!(wt.candidate(&[]).unwrap(), wt.head_tree().unwrap());
    put(&wt.path().join("x"), "");
    let candidate = wt.candidate(&[]).unwrap();
    wt.restore(None).unwrap();
    wt.restore(Some(candidate)).unwrap();
    assert!(wt.path().join("x").exists());
}

#[test]
fn what_git_cannot_stage_is_named_and_the_rest_is_saved() {
    let person = Person::new();
    person.git(&["config", "filter.no.clean", "false"]);
    person.git(&["config", "filter.no.required", "true"]);
    let wt = person.worktree();
    assert_eq!(wt.salvage().unwrap(), wt.candidate(&[]).unwrap());
    put(&wt.path().join(".gitattributes"), "*.no filter=no\n");
    put(&wt.path().join("x.no"), "x");
    put(&wt.path().join("y.txt"), "y\n");
    put(&wt.tdd().join("stop"), "now");
    let error = wt.candidate(&[]).unwrap_err();
    let words = &error
        .downcast_ref::<crate::git::CannotStage>()
        .unwrap()
        .words;
    assert!(words.contains("x.no"), "{words}");
    assert_eq!(
        changes(&wt, wt.salvage().unwrap()),
        ["A .gitattributes", "A y.txt"]
    );
    wt.restore(None).unwrap();
    assert_eq!(status(&person, &wt), "");
}

#[test]
fn no_hook_is_none_and_a_hook_that_agrees_has_passed() {
    let person = Person::new();
    let wt = person.worktree();
    assert_eq!(wt.pre_commit(SOON).unwrap(), Hook::None);
    person.hook("pre-commit", "#!/bin/sh\nexit 0\n");
    assert_eq!(wt.pre_commit(SOON).unwrap(), Hook::Passed);
}

#[test]
fn a_hook_sees_the_candidate_staged_and_what_it_changes_belongs_to_it() {
    let person = Person::new();
    person.hook(
        "pre-commit",
        "#!/bin/sh\ngit diff --cached --name-only > \"$(git rev-parse --git-dir)/seen\"\n\
         echo formatted > new.txt && git add new.txt\n",
    );
    let wt = person.worktree();
    put(&wt.path().join("new.txt"), "unformatted\n");
    assert_eq!(wt.pre_commit(SOON).unwrap(), Hook::Passed);
    assert_eq!(read(&wt.git_dir().join("seen")), "new.txt\n");
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(text(&wt, candidate, "new.txt").unwrap(), "formatted\n");
    assert_eq!(
        person.git_in(wt.path(), &["diff", "--cached", "--name-only"]),
        ""
    );
}

#[test]
fn a_hook_that_refuses_says_why() {
    let person = Person::new();
    person.hook("pre-commit", "#!/bin/sh\necho out; echo err >&2; exit 1\n");
    let Hook::Refused { words } = person.worktree().pre_commit(SOON).unwrap() else {
        panic!()
    };
    assert_eq!(words, "out\nerr");
}

#[test]
fn a_hook_that_hangs_is_ended_at_its_deadline() {
    let person = Person::new();
    person.hook("pre-commit", "#!/bin/sh\nsleep 1000\n");
    let wt = person.worktree();
    assert_eq!(
        wt.pre_commit(Duration::from_millis(300)).unwrap(),
        Hook::TimedOut
    );
    // The lock that a dead hook's git may hold on veri's index does not stop the next call.
    fs::write(wt.git_dir().join("veri-index.lock"), "").unwrap();
    wt.candidate(&[]).unwrap();
}

#[test]
fn a_hook_that_cannot_run_is_not_skipped() {
    let person = Person::new();
    let wt = person.worktree();
    let cannot = |why: &str| {
        let Hook::Cannot { words } = wt.pre_commit(SOON).unwrap() else {
            panic!("{why}")
        };
        assert!(words.contains(why), "{words}");
    };
    person.hook("pre-commit", "#!/no/such/thing -x\n");
    cannot("/no/such/thing");
    person.hook("pre-commit", "#!/bin/sh\nno-such-program-of-anybody\n");
    cannot("no-such-program-of-anybody");
    let file = person.checkout().join(".git/hooks/pre-commit");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    cannot("not executable");
    person.git(&["config", "core.hooksPath", ".husky/_"]);
    cannot(".husky/_");
    person.git(&["config", "core.hooksPath", "/dev/null"]);
    assert_eq!(wt.pre_commit(SOON).unwrap(), Hook::None);
}

#[test]
fn an_index_in_a_form_that_only_git_reads_makes_no_difference() {
    let person = Person::new();
    let wt = person.worktree();
    for setting in ["core.splitIndex", "index.skipHash", "feature.manyFiles"] {
        person.git(&["config", setting, "true"]);
        person.git_in(wt.path(), &["update-index", "--force-write-index"]);
        wt.restore(None).unwrap();
        assert_eq!(wt.candidate(&[]).unwrap(), wt.head_tree().unwrap());
        put(&wt.path().join("a.txt"), setting);
        let candidate = wt.candidate(&[]).unwrap();
        assert_eq!(changes(&wt, candidate), ["M a.txt"], "{setting}");
        wt.restore(Some(candidate)).unwrap();
        assert_eq!(text(&wt, candidate, "a.txt").unwrap(), setting);
    }
}

#[test]
fn an_own_file_is_as_head_has_it_whatever_stands_in_its_place() {
    let person = Person::new();
    person.write("issues/1/issue.md", "one\n");
    person.commit("an issue");
    let wt = person.worktree();
    let own = [&b"issues/1"[..], b"made/by/us", b"a.txt/x"].map(<[u8]>::to_vec);
    let wt = wt.with_own_files(own);
    fs::remove_dir_all(wt.path().join("issues")).unwrap();
    put(&wt.path().join("issues"), "a file");
    put(&wt.path().join("made/by/us/1"), "");
    put(&wt.path().join("b.txt"), "");
    assert_eq!(changes(&wt, wt.candidate(&[]).unwrap()), ["A b.txt"]);
    fs::remove_file(wt.path().join("issues")).unwrap();
    put(&wt.path().join("made/by/hand"), "");
    assert_eq!(
        changes(&wt, wt.candidate(&[]).unwrap()),
        ["A b.txt", "A made/by/hand"]
    );
}

#[test]
fn an_encoding_that_a_file_is_not_written_in_is_the_works_fault_and_not_gits() {
    let person = Person::new();
    let wt = person.worktree();
    put(
        &wt.path().join(".gitattributes"),
        "*.txt working-tree-encoding=UTF-16\n*.utf working-tree-encoding=UTF-8\n",
    );
    put(&wt.path().join("new.txt"), "no mark\n");
    let error = wt.candidate(&[]).unwrap_err();
    assert!(error.is::<CannotStage>(), "{error:#}");
}
