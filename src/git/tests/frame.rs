//! What a leaf does to what git stands on: folders, pipes, refs in the way of the run's own.

use super::guard::{after, tampered};
use super::*;

/// The repository's git folder and the working tree's own, for scripts.
const PLACES: &str = "c=$(cd \"$(git rev-parse --git-common-dir)\" && pwd -P); g=$(git rev-parse --absolute-git-dir); ";

fn spoilt(script: &str, what: &str) -> (Person, WorkTree) {
    let person = Person::new();
    put(
        &person.checkout().join(".git/hooks/pre-commit"),
        "#!/bin/sh\n",
    );
    let wt = person.worktree();
    wt.exclude_runtime_files().unwrap();
    wt.refs(42)
        .save("red", wt.head_tree().unwrap(), None, "red\n")
        .unwrap();
    let head = wt.head().unwrap();
    let settled = after(&person, &wt, &format!("echo x > x; {PLACES}{script}"));
    match what {
        "" => {}
        _ => tampered(&settled, what),
    }
    assert_eq!(wt.head().unwrap(), head, "{script}");
    assert_eq!(wt.branch().as_deref(), Some("tdd/issue-42"), "{script}");
    assert!(wt.refs(42).load("red").unwrap().is_some(), "{script}");
    assert_eq!(
        read(&person.checkout().join(".git/hooks/pre-commit")),
        "#!/bin/sh\n"
    );
    person.git(&["status"]);
    person.git(&["rev-parse", "main"]);
    // The run can go on: a candidate, refs of its own, a commit.
    let candidate = wt.candidate(&[]).unwrap();
    wt.refs(42)
        .save("candidate", candidate, None, "candidate\n")
        .unwrap();
    person.git_in(wt.path(), &["add", "x"]);
    person.git_in(wt.path(), &["commit", "--quiet", "-m", "goes on"]);
    (person, wt)
}

#[test]
fn files_of_a_folder_that_a_leaf_put_in_the_place_of_the_hooks_are_not_removed() {
    let (person, _) = spoilt(
        "mkdir $c/../../precious; echo mine > $c/../../precious/thesis; rm -rf $c/hooks; ln -s $c/../../precious $c/hooks",
        "hooks was replaced",
    );
    let precious = person.root().join("precious");
    assert_eq!(read(&precious.join("thesis")), "mine\n");
    assert_eq!(
        fs::read_dir(precious).unwrap().count(),
        1,
        "nothing is written there"
    );
    assert!(!person.checkout().join(".git/hooks").is_symlink());
}

#[test]
fn a_hook_among_thousands_of_new_files_does_not_stay() {
    let (person, _) = spoilt(
        "cd $c/hooks; for i in $(seq 1500); do : > z$i; done; for h in post-commit reference-transaction; do \
         printf '#!/bin/sh\\ntouch %s/owned' $c > $h; chmod +x $h; done",
        "more files were written into",
    );
    let git = person.checkout().join(".git");
    assert!(!git.join("owned").exists());
    assert!(fs::read_dir(git.join("hooks")).unwrap().all(|e| {
        let name = e.unwrap().file_name();
        name == "pre-commit" || name.to_string_lossy().ends_with(".sample")
    }));
}

#[test]
fn what_stands_in_the_place_of_a_folder_of_git_is_moved_away() {
    for (script, what) in [
        ("rm -rf $c/hooks; echo x > $c/hooks", "hooks was replaced"),
        ("rm -rf $c/info; echo x > $c/info", "info was replaced"),
        (
            "rm -rf $c/info; ln -s /nowhere $c/info",
            "info was replaced",
        ),
        ("rm -rf $c/worktrees", "worktrees was removed"),
        ("rm -rf $g; mkfifo $g", "replaced"),
        ("rm $c/HEAD", "HEAD was spoilt"),
        ("rm $g/HEAD; mkdir $g/HEAD", "HEAD was spoilt"),
        ("echo /evil > $c/commondir", "commondir was written"),
    ] {
        spoilt(script, what);
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_git_holds_nobody() {
    for (script, what) in [
        ("rm $g/index; mkfifo $g/index", "index was made"),
        ("rm $g/HEAD; mkfifo $g/HEAD", "HEAD was made"),
        ("mkfifo $c/packed-refs", "packed-refs was made"),
        ("mkfifo $c/refs/heads/pipe", "pipe was made"),
        (
            "mkfifo $c/pipe; ln -s ../../pipe $c/refs/heads/link",
            "link was made",
        ),
        (
            "rm -f $g/logs/HEAD; mkfifo $g/logs/HEAD",
            "logs/HEAD was made",
        ),
    ] {
        spoilt(script, what);
    }
}

#[test]
fn what_a_leaf_locked_away_of_git_is_opened_again() {
    for (script, what) in [
        ("chmod 0 $c/hooks", "hooks was locked away"),
        ("chmod 0 $c/info", "info was locked away"),
        ("chmod 0 $c/refs/heads/tdd $c/refs", "refs was locked away"),
        ("chmod 500 $g", "locked away"),
        (
            "chmod 0 $c/logs/refs/heads/tdd/issue-42 $g/logs/HEAD",
            "HEAD was locked away",
        ),
        ("chmod 0 $c/objects", "objects was locked away"),
    ] {
        let (person, wt) = spoilt(script, what);
        let script = format!(
            "{PLACES}find $c $g \\! -perm -u+rw -not -path '*/objects/*'; find $c -type d \\! -perm -u+rwx"
        );
        let found = person
            .tool("sh", wt.path())
            .args(["-c", &script])
            .run()
            .unwrap();
        assert_eq!(found.stdout_text(), "");
    }
}

#[test]
fn refs_and_locks_in_the_way_of_the_runs_own_are_removed() {
    for script in [
        "git checkout -q --detach; git branch -D tdd/issue-42; git branch tdd",
        "git checkout -q --detach; git branch -D tdd/issue-42; git branch tdd/issue-42/x",
        "git branch evil; git symbolic-ref refs/heads/tdd/issue-42 refs/heads/evil",
        "git update-ref -d refs/veri/issue-42/red; git update-ref refs/veri/issue-42 HEAD",
        "git update-ref -d refs/veri/issue-42/red; git update-ref refs/veri/issue-42/red/x HEAD",
        "git update-ref refs/veri/issue-42/candidate/x HEAD; git update-ref refs/veri/issue-42/discarded HEAD",
        "git update-ref -d refs/veri/issue-42/red; git symbolic-ref refs/veri/issue-42/red refs/heads/main",
        "mkdir $g/index.lock $g/HEAD.lock $g/veri-index; touch $g/index.lock/x",
        "touch $c/refs/heads/tdd/issue-42.lock $c/refs/veri/issue-42/candidate.lock $c/refs/veri/issue-42/red.lock",
    ] {
        let (person, _) = spoilt(script, "");
        assert_eq!(
            person.git(&["branch", "--format=%(refname:short)"]),
            "main\ntdd/issue-42"
        );
    }
}

#[test]
fn folders_in_the_place_of_reflogs_keep_nobody_from_committing() {
    spoilt(
        "l=$c/logs/refs/heads/tdd/issue-42; rm -f $l $g/logs/HEAD; mkdir -p $l/x $g/logs/HEAD/x; touch $l/x/y $g/logs/HEAD/x/y",
        "was made",
    );
}

#[test]
fn what_was_blown_up_is_put_back_and_not_read() {
    for (script, what) in [
        ("truncate -s 100G $c/packed-refs", "packed-refs was spoilt"),
        (
            "truncate -s 100G $g/index $g/HEAD $c/hooks/pre-commit $c/info/exclude",
            "pre-commit was changed",
        ),
    ] {
        spoilt(script, what);
    }
}

#[test]
fn packed_refs_that_are_gone_or_cannot_be_read_are_written_anew() {
    for script in [
        "git pack-refs --all; echo garbage > $c/packed-refs",
        "git pack-refs --all; printf garbage >> $c/packed-refs",
    ] {
        spoilt(script, "packed-refs was spoilt");
    }
    let person = Person::new();
    person.git(&["tag", "-m", "one", "v1"]);
    person.write("a.txt", "the person's\n");
    person.git(&["stash", "push", "--quiet"]);
    let wt = person.worktree();
    person.git(&["pack-refs", "--all"]);
    let refs = || person.git(&["for-each-ref"]);
    let before = refs();
    let packed = person.checkout().join(".git/packed-refs");
    let rights = || fs::metadata(&packed).unwrap().permissions();
    let rights_before = rights();
    let settled = after(&person, &wt, &format!("{PLACES}rm $c/packed-refs"));
    tampered(&settled, "packed-refs was spoilt");
    assert_eq!(refs(), before);
    assert_eq!(
        rights(),
        rights_before,
        "others who share the repository read them, too"
    );
}

#[test]
fn logs_that_the_person_keeps_behind_a_link_are_no_doing_of_the_leaf() {
    let person = Person::new();
    let logs = person.checkout().join(".git/logs/refs");
    let elsewhere = person.root().join("logs");
    fs::rename(&logs, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &logs).unwrap();
    let wt = person.worktree();
    let settled = after(&person, &wt, "echo x > x");
    assert_eq!(settled, Default::default());
    assert!(logs.is_symlink());
}

#[test]
fn the_socket_of_a_file_system_monitor_is_nobodys_tampering() {
    let person = Person::new();
    let wt = person.worktree();
    let guard = wt.guard().unwrap();
    let sockets = [&wt.git_dir, &wt.common_dir].map(|folder| folder.join("fsmonitor--daemon.ipc"));
    let listening = sockets
        .each_ref()
        .map(|path| std::os::unix::net::UnixListener::bind(path).unwrap());
    assert_eq!(settle(&guard, &wt), Default::default());
    drop(listening);
    assert!(sockets.iter().all(|path| path.exists()));
}

#[test]
fn a_pipe_in_the_place_of_what_git_ignores_holds_nobody() {
    let (_person, wt) = spoilt(
        "mkdir -p new; rm -f .gitignore; mkfifo .gitignore new/.gitattributes; ln -s ../.gitignore new/.gitignore",
        ".gitignore was made",
    );
    assert!(!wt.path().join(".gitignore").exists());
}
