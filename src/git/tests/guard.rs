//! What a leaf does to git, folded back or undone.

use super::*;

/// Guards, lets a leaf loose in veri's worktree, settles.
pub(super) fn after(person: &Person, wt: &WorkTree, script: &str) -> Settled {
    let guard = wt.guard().unwrap();
    person.leaf(wt.path(), script);
    let settled = settle(&guard, wt);
    // Settled again after a crash, nothing more happens.
    let kept = wt.refs(42).discarded().unwrap();
    assert_eq!(settle(&guard, wt).tampered, Vec::<String>::new());
    assert_eq!(wt.refs(42).discarded().unwrap(), kept);
    wt.drop_guard().unwrap();
    settled
}

pub(super) fn tampered(settled: &Settled, what: &str) {
    let all = settled.tampered.join("\n");
    assert!(
        all.contains(what),
        "{what} is not in: {all} / {:?}",
        settled.noted
    );
}

fn noted(settled: &Settled, what: &str) {
    assert!(settled.tampered.is_empty(), "{settled:?}");
    assert!(
        settled.noted.join("\n").contains(what),
        "{what} is not in {settled:?}"
    );
}

fn rev(person: &Person, name: &str) -> String {
    person.git(&["rev-parse", name])
}

#[test]
fn a_leaf_that_leaves_git_alone_is_not_bothered() {
    let person = Person::new();
    let wt = person.worktree();
    let settled = after(&person, &wt, "echo x > x; git status; git diff; git log -1");
    assert_eq!(settled, Settled::default());
    assert!(wt.open_guard().unwrap().is_none());
}

#[test]
fn own_commits_are_folded_back_into_plain_changes() {
    let person = Person::new();
    let wt = person.worktree();
    let head = wt.head().unwrap();
    let settled = after(
        &person,
        &wt,
        "echo x > x; git add x; git commit -qm mine; echo y > y; git add y; echo z > z; \
         git commit -q --amend -m again; git tag v1; git tag -m annotated v2",
    );
    noted(&settled, "folded back");
    assert_eq!(wt.head().unwrap(), head);
    assert_eq!(wt.branch().as_deref(), Some("tdd/issue-42"));
    assert_eq!(
        person.git_in(wt.path(), &["diff", "--cached", "--name-only"]),
        ""
    );
    let candidate = wt.candidate(&[]).unwrap();
    for name in ["x", "y", "z"] {
        assert_eq!(text(&wt, candidate, name).unwrap(), format!("{name}\n"));
    }
    assert_eq!(person.git(&["tag"]), "");
    // The commit itself, with its words, can still be had.
    let kept = wt.refs(42).discarded().unwrap();
    let log = person.git(&["log", "--format=%s", &kept[0].refname]);
    assert!(log.contains("again"), "{log}");
}

#[test]
fn resets_switches_and_detached_heads_are_put_back() {
    let person = Person::new();
    let wt = person.worktree();
    let head = wt.head().unwrap();
    for script in [
        "echo x > x; git reset -q --hard HEAD~",
        "echo x > x; git checkout -q -b mine; git add x; git commit -qm x",
        "echo x > x; git checkout -q --detach HEAD~; git branch -D tdd/issue-42",
        "echo x > x; git update-ref refs/heads/tdd/issue-42 HEAD~; git checkout -q --orphan o",
    ] {
        let settled = after(&person, &wt, script);
        noted(&settled, "");
        assert_eq!(wt.head().unwrap(), head, "{script}");
        assert_eq!(wt.branch().as_deref(), Some("tdd/issue-42"), "{script}");
        assert_eq!(
            person.git(&["branch", "--format=%(refname:short)"]),
            "main\ntdd/issue-42"
        );
        assert_eq!(read(&wt.path().join("x")), "x\n", "{script}");
        assert_eq!(
            person.git_in(wt.path(), &["diff", "--cached", "--name-only"]),
            ""
        );
        wt.restore(None).unwrap();
    }
}

#[test]
fn a_merge_that_a_leaf_left_is_called_off() {
    let person = Person::new();
    person.git(&["checkout", "--quiet", "-b", "other", "HEAD~"]);
    person.write("a.txt", "three\n");
    person.commit("clash");
    person.git(&["checkout", "--quiet", "main"]);
    let wt = person.worktree();
    let settled = after(
        &person,
        &wt,
        "git merge -q other || true; touch \"$(git rev-parse --git-dir)/index.lock\"",
    );
    noted(&settled, "merge");
    assert!(read(&wt.path().join("a.txt")).contains("<<<<<<<"));
    let candidate = wt.candidate(&[]).unwrap();
    assert!(text(&wt, candidate, "a.txt").unwrap().contains("<<<<<<<"));
    assert!(!wt.git_dir().join("MERGE_HEAD").exists());
}

#[test]
fn a_leafs_stash_goes_to_discarded_and_the_persons_stays() {
    let person = Person::new();
    person.write("a.txt", "the person's\n");
    person.git(&["stash", "push", "--quiet", "-m", "mine"]);
    let wt = person.worktree();
    let before = rev(&person, "stash@{0}");
    let settled = after(
        &person,
        &wt,
        "echo leaf > a.txt; git stash push -q -m leafs",
    );
    noted(&settled, "stash was kept");
    assert_eq!(person.git(&["stash", "list", "--format=%H"]), before);
    let kept = wt.refs(42).discarded().unwrap();
    assert_eq!(kept[0].files, ["a.txt"]);
    wt.apply_discarded(&kept[0].refname).unwrap();
    assert_eq!(read(&wt.path().join("a.txt")), "leaf\n");
}

#[test]
fn a_stash_entry_of_the_person_that_a_leaf_drops_can_be_had_again() {
    let person = Person::new();
    person.write("a.txt", "the person's\n");
    person.git(&["stash", "push", "--quiet", "-m", "mine"]);
    let stash = rev(&person, "stash@{0}");
    let wt = person.worktree();
    let settled = after(&person, &wt, "git stash clear");
    noted(&settled, "vanished");
    let kept = wt.refs(42).discarded().unwrap();
    assert_eq!(rev(&person, &kept[0].refname), stash);
}

#[test]
fn other_refs_that_a_leaf_moved_go_back_and_the_persons_stay() {
    let person = Person::new();
    for name in ["moved", "mine", "gone"] {
        person.git(&["branch", name]);
    }
    let wt = person.worktree();
    person.git(&["pack-refs", "--all"]);
    let old = rev(&person, "main");
    let guard = wt.guard().unwrap();
    person.leaf(
        wt.path(),
        "git branch -f moved HEAD~; git branch new; git update-ref refs/heads/main HEAD~; \
         git branch -D gone; git update-ref refs/veri/issue-42/red HEAD",
    );
    // The person at work meanwhile, in the checkout.
    person.git(&["checkout", "--quiet", "mine"]);
    person.git(&["commit", "--quiet", "--allow-empty", "-m", "my own"]);
    person.git(&["branch", "my-new"]);
    let mine = rev(&person, "mine");
    let settled = settle(&guard, &wt);
    assert!(settled.tampered.is_empty());
    assert_eq!(rev(&person, "moved"), old);
    assert_eq!(rev(&person, "main"), old);
    assert_eq!(rev(&person, "mine"), mine);
    assert_eq!(rev(&person, "my-new"), mine);
    let branches = person.git(&["branch", "--format=%(refname:short)"]);
    assert!(
        !branches.contains("new\n") || branches.contains("my-new"),
        "{branches}"
    );
    assert!(!branches.lines().any(|line| line == "new"), "{branches}");
    assert_eq!(wt.refs(42).load("red").unwrap(), None);
    let said = settled.noted.join("\n");
    assert!(said.contains("refs/heads/mine changed while the leaf ran, but not by the leaf"));
    assert!(said.contains("refs/heads/gone was deleted"), "{said}");
}

#[test]
fn hooks_and_excludes_are_put_back_and_kept_as_evidence() {
    let person = Person::new();
    person.hook("commit-msg", "#!/bin/sh\nexit 0\n");
    let wt = person.worktree();
    let common = person.checkout().join(".git");
    let exclude = read(&common.join("info/exclude"));
    let settled = after(
        &person,
        &wt,
        "d=$(git rev-parse --git-common-dir); printf '#!/bin/sh\\ntouch pwned\\n' > $d/hooks/pre-commit; \
         chmod +x $d/hooks/pre-commit; echo exit 1 >> $d/hooks/commit-msg; \
         echo '*.rs' >> $d/info/exclude; echo '* -diff' > $d/info/attributes",
    );
    for what in [
        "hooks/pre-commit was written",
        "commit-msg was changed",
        "info/exclude was changed",
    ] {
        tampered(&settled, what);
    }
    tampered(&settled, "info/attributes was written");
    assert!(!common.join("hooks/pre-commit").exists());
    assert!(!common.join("info/attributes").exists());
    assert_eq!(
        read(&common.join("hooks/commit-msg")),
        "#!/bin/sh\nexit 0\n"
    );
    assert_eq!(read(&common.join("info/exclude")), exclude);
    let kept = wt.refs(42).discarded().unwrap();
    assert_eq!(kept.len(), 1);
    assert!(
        kept[0]
            .files
            .iter()
            .any(|file| file.ends_with("pre-commit")),
        "{kept:?}"
    );
}

#[test]
fn a_hook_made_executable_or_replaced_by_a_link_is_seen() {
    let person = Person::new();
    person.hook("pre-push", "#!/bin/sh\nexit 0\n");
    let wt = person.worktree();
    let file = person.checkout().join(".git/hooks/pre-push");
    let settled = after(
        &person,
        &wt,
        "chmod -x $(git rev-parse --git-common-dir)/hooks/pre-push",
    );
    tampered(&settled, "pre-push was changed");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o755
    );
    after(
        &person,
        &wt,
        "ln -sf /bin/true $(git rev-parse --git-common-dir)/hooks/pre-push",
    );
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
}

#[test]
fn settings_that_make_git_run_something_are_put_back_before_git_runs() {
    let person = Person::new();
    let wt = person.worktree();
    let config = read(&person.checkout().join(".git/config"));
    for setting in [
        "core.hooksPath evil",
        "core.fsmonitor ./evil",
        "filter.x.clean ./evil",
        "include.path ../evil",
        "alias.status '!./evil'",
        "core.excludesFile evil",
        "gpg.program ./evil",
        "core.sshCommand ./evil",
        "merge.x.driver ./evil",
        "credential.helper '!./evil'",
    ] {
        let script = format!(
            "printf '#!/bin/sh\\ntouch pwned\\n' > evil; chmod +x evil; git config {setting}"
        );
        let settled = after(&person, &wt, &script);
        tampered(&settled, &setting.split(' ').next().unwrap().to_lowercase());
        assert_eq!(
            read(&person.checkout().join(".git/config")),
            config,
            "{setting}"
        );
        wt.candidate(&[]).unwrap();
        assert!(!wt.path().join("pwned").exists(), "{setting}");
    }
}

#[test]
fn what_the_person_set_meanwhile_in_the_same_file_stays() {
    let person = Person::new();
    let wt = person.worktree();
    let settled = after(
        &person,
        &wt,
        "git config core.hooksPath evil; git config branch.main.description kept; \
         git config remote.new.url https://example.org/x.git",
    );
    tampered(&settled, "core.hookspath");
    assert!(
        settled.noted.join("\n").contains("other settings"),
        "{settled:?}"
    );
    assert_eq!(person.git(&["config", "branch.main.description"]), "kept");
    assert!(!read(&person.checkout().join(".git/config")).contains("evil"));
    let settled = after(
        &person,
        &wt,
        "git config remote.new.url https://example.org/evil.git",
    );
    tampered(&settled, "remote.new.url");
}

#[test]
fn the_identity_is_put_back_without_a_failed_check() {
    let person = Person::new();
    let wt = person.worktree();
    let settled = after(
        &person,
        &wt,
        "git config user.name Robot; git config user.email r@x",
    );
    noted(&settled, "user.email, user.name put back");
    assert_eq!(person.git(&["config", "user.name"]), "Ada");
}

#[test]
fn the_users_own_configuration_is_guarded_too() {
    let person = Person::new();
    let wt = person.worktree();
    let file = person.root().join("home/gitconfig");
    let old = read(&file);
    let settled = after(&person, &wt, "git config --global core.hooksPath evil");
    tampered(&settled, "core.hookspath");
    assert_eq!(read(&file), old);
    let settled = after(&person, &wt, "echo '[broken' >> \"$GIT_CONFIG_GLOBAL\"");
    tampered(&settled, "whole file");
    assert_eq!(read(&file), old);
}

#[test]
fn a_replaced_git_file_is_put_back() {
    let person = Person::new();
    let wt = person.worktree();
    let old = read(&wt.path().join(".git"));
    let settled = after(
        &person,
        &wt,
        "rm .git; git init -q .; echo x > x; git add x",
    );
    tampered(&settled, ".git was changed");
    assert_eq!(read(&wt.path().join(".git")), old);
    let settled = after(&person, &wt, "echo 'gitdir: /tmp/nowhere' > .git");
    tampered(&settled, ".git was changed");
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(text(&wt, candidate, "x").unwrap(), "x\n");
}

#[test]
fn a_repository_within_becomes_plain_files() {
    let person = Person::new();
    let wt = person.worktree();
    let settled = after(
        &person,
        &wt,
        "git init -q sub; echo x > sub/x; git init -q sub/deep; echo y > sub/deep/y; \
         (cd sub/deep; git add y; git commit -qm y)",
    );
    noted(&settled, "repository of its own");
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(text(&wt, candidate, "sub/x").unwrap(), "x\n");
    assert_eq!(text(&wt, candidate, "sub/deep/y").unwrap(), "y\n");
}

#[test]
fn bits_that_hide_changes_go_with_the_index() {
    let person = Person::new();
    let wt = person.worktree();
    after(
        &person,
        &wt,
        "git update-index --assume-unchanged a.txt; git update-index --skip-worktree src/lib.rs; \
         echo hidden > a.txt; echo hidden > src/lib.rs",
    );
    let candidate = wt.candidate(&[]).unwrap();
    assert_eq!(text(&wt, candidate, "a.txt").unwrap(), "hidden\n");
    assert_eq!(text(&wt, candidate, "src/lib.rs").unwrap(), "hidden\n");
}

#[test]
fn a_guard_outlives_its_conductor() {
    let person = Person::new();
    let wt = person.worktree();
    let head = wt.head().unwrap();
    drop(wt.guard().unwrap());
    person.leaf(
        wt.path(),
        "echo x > x; git add x; git commit -qm x; git config alias.x y",
    );
    drop(wt);
    let wt = WorkTree::linked(&person.repo(), &person.work(), head).unwrap();
    let settled = settle(&wt.open_guard().unwrap().unwrap(), &wt);
    tampered(&settled, "alias.x");
    assert_eq!(wt.head().unwrap(), head);
    wt.drop_guard().unwrap();
    assert!(wt.open_guard().unwrap().is_none());
}

#[test]
fn in_the_persons_checkout_the_same_holds() {
    let person = Person::new();
    let repo = person.repo();
    let wt = WorkTree::here(&repo).unwrap();
    wt.take_branch(42, wt.head().unwrap()).unwrap();
    let head = wt.head().unwrap();
    let settled = after(
        &person,
        &wt,
        "echo x > x; git add x; git commit -qm x; git checkout -q main; git config alias.st x",
    );
    tampered(&settled, "alias.st");
    assert_eq!(
        (wt.head().unwrap(), wt.branch().unwrap()),
        (head, "tdd/issue-42".to_owned())
    );
}

#[test]
fn settings_that_a_caller_passes_by_environment_stay() {
    let inherited = [
        ("GIT_CONFIG_COUNT".into(), "1".into()),
        ("GIT_CONFIG_KEY_0".into(), "x.y".into()),
    ];
    let env = crate::git::leaf_git_env(&inherited);
    let value = |key: &str| env.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
    assert_eq!(value("GIT_CONFIG_COUNT"), Some("6".into()));
    assert_eq!(value("GIT_CONFIG_KEY_0"), None);
    assert_eq!(
        value("GIT_CONFIG_KEY_1"),
        Some("core.logAllRefUpdates".into())
    );
}
