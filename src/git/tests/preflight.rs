//! Preflight 1, 3 and 8: what must hold before anything is done.

use super::*;
use crate::git::message;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_folder_without_a_repository_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let said = needs_user(Repo::discover(dir.path()));
    assert!(said.contains("not inside a git repository"), "{said}");
}

#[test]
fn a_bare_repository_is_refused() {
    let person = Person::new();
    let bare = person.root().join("bare.git");
    person.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    assert!(needs_user(Repo::discover_with(&bare, &person.env)).contains("bare repository"));
    let inner = person.checkout().join(".git/refs");
    assert!(needs_user(Repo::discover_with(&inner, &person.env)).contains(".git folder"));
}

#[test]
fn a_repository_without_commits_is_refused() {
    let person = Person::new();
    let dir = person.root().join("fresh");
    fs::create_dir(&dir).unwrap();
    person.git_in(&dir, &["init", "--quiet"]);
    assert!(needs_user(Repo::discover_with(&dir, &person.env)).contains("no commit yet"));
}

#[test]
fn no_git_on_path_is_said() {
    let person = Person::new();
    let mut env = person.env.clone();
    env.push(("PATH".into(), person.root().into_os_string()));
    let said = needs_user(Repo::discover_with(&person.checkout(), &env));
    assert!(said.contains("no `git` on PATH"), "{said}");
}

#[test]
fn an_old_git_is_refused() {
    let person = Person::new();
    let fake = person.root().join("bin/git");
    put(&fake, "#!/bin/sh\necho git version 2.37.9\n");
    crate::executable::executable(&fake);
    let mut env = person.env.clone();
    env.push(("PATH".into(), person.root().join("bin").into_os_string()));
    let said = needs_user(Repo::discover_with(&person.checkout(), &env));
    assert!(said.contains("2.38") && said.contains("2.37.9"), "{said}");
}

#[test]
fn a_git_that_is_killed_when_it_is_asked_for_its_version_is_not_called_an_old_one() {
    let person = Person::new();
    let fake = person.root().join("bin/git");
    put(&fake, "#!/bin/sh\nkill -9 $$\n");
    crate::executable::executable(&fake);
    let mut env = person.env.clone();
    env.push(("PATH".into(), person.root().join("bin").into_os_string()));
    let said = bail(Repo::discover_with(&person.checkout(), &env));
    assert_eq!(said.cause, Cause::GitFailed, "{}", said.detail);
}

#[test]
fn a_format_that_libgit2_cannot_read_is_said() {
    let person = Person::new();
    let dir = person.root().join("sha256");
    fs::create_dir(&dir).unwrap();
    person.git_in(&dir, &["init", "--quiet", "--object-format=sha256"]);
    person.git_in(&dir, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
    let said = needs_user(Repo::discover_with(&dir, &person.env));
    assert!(said.contains("libgit2"), "{said}");
}

#[test]
fn the_id_is_that_of_the_repository_from_every_worktree() {
    let person = Person::new();
    let repo = person.repo();
    let id = repo.id();
    assert!(
        id.starts_with("bank-") && id.len() == "bank-".len() + 12,
        "{id}"
    );
    let wt = person.worktree();
    assert_eq!(
        Repo::discover_with(wt.path(), &person.env).unwrap().id(),
        id
    );
    let sub = Repo::discover_with(&person.checkout().join("src"), &person.env).unwrap();
    assert_eq!(sub.id(), id);
    assert_eq!(sub.checkout(), person.checkout());
    assert_eq!(sub.branch().as_deref(), Some("main"));
}

#[test]
fn a_merge_under_way_is_named() {
    let person = Person::new();
    assert_eq!(person.repo().in_progress(), None);
    person.git(&["checkout", "--quiet", "-b", "other", "HEAD~"]);
    person.write("a.txt", "three\n");
    person.commit("third");
    let merge = person
        .tool("git", &person.checkout())
        .args(["merge", "main"])
        .run()
        .unwrap();
    assert!(!merge.success());
    assert_eq!(person.repo().in_progress(), Some("merge"));
}

#[test]
fn dirt_is_told_by_path_and_veris_own_files_are_none() {
    let person = Person::new();
    let repo = person.repo();
    assert!(repo.dirt().unwrap().is_empty());
    person.write(".veri.toml", "");
    person.write(".tdd/events.jsonl", "");
    person.write("target/x", "");
    person.write("issues/1.md", "");
    person.write("sp ace/-dash", "");
    person.write("a.txt", "changed\n");
    fs::remove_file(person.checkout().join("src/lib.rs")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(person.checkout().join(odd), "").unwrap();
    let dirt = repo.dirt_except(&[b"issues".to_vec()]).unwrap();
    let expected: Vec<OsString> = vec![
        "a.txt".into(),
        odd.to_owned(),
        "sp ace/-dash".into(),
        "src/lib.rs".into(),
    ];
    assert_eq!(dirt, expected);
    assert_eq!(repo.dirt().unwrap().len(), 5);
}

fn probe(person: &Person, subject: &str) -> anyhow::Result<()> {
    let trailers = [("Veri-Issue".to_owned(), "42".to_owned())];
    person
        .worktree()
        .commit_probe(&[message(subject, &trailers)], SOON)
}

#[test]
fn a_missing_identity_is_found_before_work_starts() {
    let person = Person::new();
    probe(&person, "x").unwrap();
    fs::write(
        person.root().join("home/gitconfig"),
        "[user]\n\tuseConfigOnly = true\n",
    )
    .unwrap();
    let said = needs_user(probe(&person, "x"));
    assert!(said.contains("who commits"), "{said}");
}

#[test]
fn a_signing_key_that_does_not_exist_is_found_before_work_starts() {
    let person = Person::new();
    person.git(&["config", "commit.gpgSign", "true"]);
    person.git(&["config", "gpg.format", "ssh"]);
    person.git(&["config", "user.signingKey", "/nowhere/key.pub"]);
    let said = needs_user(probe(&person, "x"));
    assert!(
        said.contains("cannot be signed") && said.contains("/nowhere/key.pub"),
        "{said}"
    );
}

#[test]
fn a_signing_key_that_works_passes() {
    let person = Person::new();
    let key = person.root().join("home/key");
    let made = person
        .tool("ssh-keygen", &person.root())
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .run();
    let Ok(made) = made else { return }; // a machine without ssh-keygen cannot sign with ssh
    assert!(made.success());
    person.git(&["config", "commit.gpgSign", "true"]);
    person.git(&["config", "gpg.format", "ssh"]);
    person.git(&["config", "user.signingKey", key.to_str().unwrap()]);
    probe(&person, "x").unwrap();
}

#[test]
fn a_commit_msg_hook_is_asked_about_the_subjects() {
    let person = Person::new();
    person.hook(
        "commit-msg",
        "#!/bin/sh\ngrep -q '^feat: ' \"$1\" || { echo no feat; exit 1; }\n",
    );
    probe(&person, "feat: $(touch pwned) `x`").unwrap();
    assert!(!person.work().join("pwned").exists());
    let said = needs_user(probe(&person, "something"));
    assert!(
        said.contains("no feat") && said.contains("something"),
        "{said}"
    );
}

#[test]
fn a_hook_that_cannot_run_is_found_before_work_starts() {
    let person = Person::new();
    person.hook("pre-commit", "#!/no/such/interpreter\n");
    assert!(needs_user(probe(&person, "x")).contains("/no/such/interpreter"));
}
