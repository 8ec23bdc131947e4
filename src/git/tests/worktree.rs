//! veri's worktree beside the person's checkout.

use super::*;
use crate::git::run::{self, Git};

#[test]
fn the_persons_checkout_is_byte_for_byte_what_it_was() {
    let person = Person::new();
    person.write("a.txt", "stashed\n");
    person.git(&["stash", "push", "--quiet"]);
    person.write("a.txt", "staged\n");
    person.git(&["add", "a.txt"]);
    person.write("a.txt", "unstaged\n");
    person.write("scratch", "scratch\n");
    let outside_git = |all: Vec<(PathBuf, u32, std::time::SystemTime, Vec<u8>)>| {
        let git = person.checkout().join(".git");
        let mine = [
            "index",
            "HEAD",
            "refs/stash",
            "logs/refs/stash",
            "refs/heads/main",
            "config",
        ];
        all.into_iter()
            .filter(|(path, ..)| match path.strip_prefix(&git) {
                Ok(inner) => mine.iter().any(|name| Path::new(name) == inner),
                Err(_) => true,
            })
            .collect::<Vec<_>>()
    };
    let before = outside_git(everything(&person.checkout()));
    let repo = person.repo();
    repo.dirt().unwrap();
    let wt = person.worktree();
    let guard = wt.guard().unwrap();
    person.leaf(
        wt.path(),
        "echo x > x; git stash -qu; echo y > y; git add y; git commit -qm y",
    );
    settle(&guard, &wt);
    let candidate = wt.candidate(&[]).unwrap();
    wt.discard(42, candidate, "x").unwrap();
    wt.restore(None).unwrap();
    wt.remove().unwrap();
    // The stash's log was written anew when the leaf's entry went; what it says is the same.
    let strip = |all: Vec<(PathBuf, u32, std::time::SystemTime, Vec<u8>)>| {
        all.into_iter()
            .map(|(path, mode, time, bytes)| {
                let stash = path.ends_with("stash");
                (path, mode, (!stash).then_some(time), bytes)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        strip(outside_git(everything(&person.checkout()))),
        strip(before)
    );
}

#[test]
fn runtime_files_are_excluded_once_and_the_ledger_is_not() {
    let person = Person::new();
    let exclude = person.checkout().join(".git/info/exclude");
    put(&exclude, "mine");
    let wt = person.worktree();
    wt.exclude_runtime_files().unwrap();
    assert_eq!(
        read(&exclude),
        "mine\n# Runtime files of veri, never its ledgers\n/.tdd/*\n!/.tdd/issue-*.md\n"
    );
    for name in [
        "events.jsonl",
        "issue-42-timeout",
        "runs/1.out",
        "issue-42.md",
    ] {
        put(&wt.tdd().join(name), "");
    }
    let status = ["status", "--porcelain", "--untracked-files=all"];
    assert_eq!(person.git_in(wt.path(), &status), "?? .tdd/issue-42.md");
}

#[test]
fn a_worktree_is_found_again_with_what_is_in_it() {
    let person = Person::new();
    let wt = person.worktree();
    put(&wt.path().join("x"), "x");
    let head = wt.head().unwrap();
    let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    assert_eq!(again.branch().as_deref(), Some("tdd/issue-42"));
    assert_eq!(read(&again.path().join("x")), "x");
}

#[test]
fn a_folder_that_vanished_is_made_again() {
    let person = Person::new();
    let wt = person.worktree();
    let head = wt.head().unwrap();
    fs::remove_dir_all(wt.path()).unwrap();
    let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    again.take_branch(42, head).unwrap();
    assert_eq!(read(&again.path().join("a.txt")), "two\n");
}

#[test]
fn a_registration_that_vanished_is_made_again_and_the_files_stay() {
    let person = Person::new();
    let wt = person.worktree();
    let head = wt.head().unwrap();
    put(&wt.tdd().join("events.jsonl"), "journal");
    fs::remove_dir_all(wt.git_dir()).unwrap();
    let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    assert_eq!(read(&again.tdd().join("events.jsonl")), "journal");
    again.take_branch(42, head).unwrap();
    assert_eq!(again.candidate(&[]).unwrap(), again.head_tree().unwrap());
}

/// Where git says that its worktrees are, the person's checkout aside.
fn registered(person: &Person) -> Vec<String> {
    let listed = person.git(&["worktree", "list", "--porcelain"]);
    let paths = listed.lines().filter_map(|l| l.strip_prefix("worktree "));
    paths.skip(1).map(str::to_owned).collect()
}

#[test]
fn a_registration_that_is_made_again_and_cut_off_is_made_all_the_same() {
    for moved in [false, true] {
        let person = Person::new();
        let wt = person.worktree();
        let head = wt.head().unwrap();
        put(&wt.tdd().join("events.jsonl"), "journal");
        fs::remove_dir_all(wt.git_dir()).unwrap();
        // As a start leaves it that is killed after the first git call, or after the link was moved.
        let new = person.work().with_extension("new");
        let at = new.display().to_string();
        person.git(&["worktree", "add", "-q", "--detach", "--no-checkout", &at]);
        if moved {
            fs::rename(new.join(".git"), person.work().join(".git")).unwrap();
        }
        let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
        assert_eq!(read(&again.tdd().join("events.jsonl")), "journal");
        assert_eq!(again.candidate(&[]).unwrap(), again.head_tree().unwrap());
        assert_eq!(registered(&person), [again.path().display().to_string()]);
        assert!(!new.exists(), "{moved}");
    }
}

#[test]
fn a_registration_that_is_led_back_and_cut_off_before_its_index_is_whole_at_the_next_start() {
    let person = Person::new();
    let wt = person.worktree();
    let head = wt.head().unwrap();
    fs::remove_file(wt.git_dir().join("index")).unwrap();
    let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    again.take_branch(42, head).unwrap();
    assert_eq!(again.candidate(&[]).unwrap(), again.head_tree().unwrap());
}

#[test]
fn a_tie_to_the_repository_whose_writing_was_cut_off_is_written_again() {
    let person = Person::new();
    let head = person.worktree().head().unwrap();
    fs::write(person.work().join(".git"), "").unwrap();
    let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    assert_eq!(again.candidate(&[]).unwrap(), again.head_tree().unwrap());
}

#[test]
fn a_worktree_that_was_moved_with_veris_home_is_registered_where_it_is() {
    let person = Person::new();
    let head = person.worktree().head().unwrap();
    let moved = person.root().join("moved");
    fs::rename(person.work(), &moved).unwrap();
    let again = WorkTree::linked(&person.repo(), &moved, head).unwrap();
    assert_eq!(registered(&person), [again.path().display().to_string()]);
    assert_eq!(again.candidate(&[]).unwrap(), again.head_tree().unwrap());
}

#[test]
fn a_worktree_whose_making_was_cut_off_is_made_again() {
    let person = Person::new();
    let wt = person.worktree();
    let head = wt.head().unwrap();
    fs::write(wt.git_dir().join("locked"), "initializing").unwrap();
    fs::remove_file(wt.path().join("a.txt")).unwrap();
    let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    assert_eq!(read(&again.path().join("a.txt")), "two\n");
}

#[test]
fn a_worktree_whose_removal_was_cut_off_is_veris_own_all_the_same() {
    let person = Person::new();
    let wt = person.worktree();
    let head = wt.head().unwrap();
    put(&wt.path().join("left"), "left");
    for gone in [".git", "a.txt"] {
        fs::remove_file(wt.path().join(gone)).unwrap();
    }
    let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    assert_eq!(read(&again.path().join("left")), "left");
    again.restore(None).unwrap();
    assert_eq!(read(&again.path().join("a.txt")), "two\n");
    fs::remove_file(again.path().join(".git")).unwrap();
    let again = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    again.remove().unwrap();
    assert!(!person.work().exists());
}

#[test]
fn folders_of_others_are_refused() {
    let person = Person::new();
    let repo = person.repo();
    let at = repo.git2().refname_to_id("HEAD").unwrap();
    let refused = |path: &Path| needs_user(WorkTree::linked(&repo, path, at));
    put(&person.root().join("full/x"), "");
    assert!(refused(&person.root().join("full")).contains("not veri's"));
    assert!(refused(&person.checkout()).contains("repository of its own"));
    put(&person.root().join("file"), "");
    assert!(refused(&person.root().join("file")).contains("a file"));
    let other = Person::new();
    let theirs = other.worktree();
    assert!(refused(theirs.path()).contains("another repository"));
}

#[test]
fn a_hook_of_the_checkout_does_not_run_when_the_worktree_is_made() {
    let person = Person::new();
    person.hook(
        "post-checkout",
        "#!/bin/sh\necho ran > \"$(git rev-parse --git-common-dir)/ran\"\n",
    );
    let wt = person.worktree();
    assert!(!person.checkout().join(".git/ran").exists());
    assert!(wt.path().join("a.txt").exists());
}

#[test]
fn a_git_that_is_killed_below_a_hook_or_another_git_leaves_no_lock() {
    let person = Person::new();
    let wt = person.worktree();
    let admin = wt.git_dir.clone();
    let index = admin.join("index.lock");
    // What a hook ran, which says nothing of its death; and a git that a git waited for.
    person.hook(
        "pre-commit",
        "#!/bin/sh\n: > \"$(git rev-parse --git-dir)/index.lock\"\nexit 0\n",
    );
    assert!(matches!(
        wt.pre_commit(SOON).unwrap(),
        crate::git::Hook::Passed
    ));
    assert!(!index.exists());
    let alias = format!("!: > '{}'; kill -9 $$", index.display());
    let call = ["-c", &format!("alias.dies={alias}"), "dies"];
    let theirs = Git::new(wt.path(), &person.env).quiet(call);
    assert!(!run::run(theirs, "dying").unwrap().success() && index.exists());
    fs::remove_file(&index).unwrap();
    assert!(!run::run(wt.git.quiet(call), "dying").unwrap().success());
    assert!(!index.exists());
}

#[test]
fn a_folder_or_a_pipe_in_the_place_of_a_lock_is_a_dead_lock_too() {
    let person = Person::new();
    let wt = person.worktree();
    let refs = wt.common_dir.join("refs/veri/issue-42");
    fs::create_dir_all(refs.join("red.lock/full")).unwrap();
    fs::create_dir(wt.git_dir.join("index.lock")).unwrap();
    nix::unistd::mkfifo(&wt.git_dir.join("HEAD.lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let removed = wt.stale_locks(42, &|_, _| true).unwrap();
    assert_eq!(removed.len(), 3, "{removed:?}");
    assert!(wt.locks(42).is_empty());
}

#[test]
fn a_git_that_is_killed_while_it_writes_leaves_no_lock_of_its_own_and_takes_nobody_elses() {
    let person = Person::new();
    let wt = person.worktree();
    let admin = wt.git_dir.clone();
    let others = [admin.join("HEAD.lock"), wt.common_dir.join("index.lock")];
    for lock in &others {
        fs::write(lock, "").unwrap();
    }
    put(&wt.path().join(".gitattributes"), "* filter=deadly\n");
    let kill = ["-c", "filter.deadly.clean=kill -9 $PPID", "add", "-A"];
    let index = admin.join("index.lock");
    // Without the mechanism it stays: what is killed does hold it.
    let tool = Git::new(wt.path(), &person.env).quiet(kill);
    run::must(tool, "adding").unwrap_err();
    assert!(index.exists());
    fs::remove_file(&index).unwrap();
    let said = bail(run::must(wt.git.quiet(kill), "adding"));
    assert_eq!(said.cause, Cause::GitFailed);
    assert!(
        said.detail.contains("the lock that it left is removed")
            && said.detail.contains("index.lock"),
        "{}",
        said.detail
    );
    assert!(!index.exists() && others.iter().all(|lock| lock.exists()));
    // One that refuses by itself has left nothing, and nothing is taken.
    fs::write(&index, "").unwrap();
    run::must(wt.git.quiet(["add", "-A"]), "adding").unwrap_err();
    assert!(index.exists());
    // In the person's checkout any git may be at work.
    let here = WorkTree::here(&person.repo()).unwrap();
    put(&here.path().join(".gitattributes"), "* filter=deadly\n");
    fs::remove_file(&others[1]).unwrap();
    run::must(here.git.quiet(kill), "adding").unwrap_err();
    assert!(others[1].exists());
}
