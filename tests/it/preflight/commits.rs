//! Whether commits are possible (8).

use super::{refused, scene};
use std::fs;

#[test]
fn nobody_to_commit_as() {
    let scene = scene();
    fs::write(
        scene.path("home/.gitconfig"),
        "[user]\nuseConfigOnly = true\n",
    )
    .unwrap();
    refused(
        &scene,
        "needs-user",
        &["git does not know who commits", "user.email"],
        || scene.tdd(&[]),
    );
}

#[test]
fn a_signing_key_that_does_not_exist() {
    let scene = scene();
    scene.git(&["config", "commit.gpgSign", "true"]);
    scene.git(&["config", "gpg.format", "ssh"]);
    scene.git(&[
        "config",
        "user.signingKey",
        scene.path("no.key").to_str().unwrap(),
    ]);
    refused(
        &scene,
        "needs-user",
        &["cannot be signed", "no.key"],
        || scene.tdd(&[]),
    );
}

#[test]
fn hooks_that_no_commit_of_veri_s_can_pass() {
    let scene = scene();
    let hook = |name: &str, text: &str| {
        let path = format!(".git/hooks/{name}");
        scene.write(&path, text);
        scene.executable(&path);
    };
    hook(
        "commit-msg",
        "#!/bin/sh\ngrep -q '^JIRA-' \"$1\" || { echo 'no ticket number' >&2; exit 1; }\n",
    );
    refused(
        &scene,
        "needs-user",
        &[
            "commit-msg hook refuses",
            "no ticket number",
            "commit.subject",
        ],
        || scene.tdd(&[]),
    );
    scene.write(".veri.toml", "[limits]\nhook_timeout = 1\n");
    hook("commit-msg", "#!/bin/sh\nsleep 1000\n");
    refused(
        &scene,
        "needs-user",
        &["commit-msg hook does not end"],
        || scene.tdd(&[]),
    );
    scene.nothing_is_left_running();
    fs::remove_file(scene.repo().join(".git/hooks/commit-msg")).unwrap();
    hook("pre-commit", "#!/no/such/interpreter\n");
    refused(
        &scene,
        "needs-user",
        &["pre-commit hook cannot run"],
        || scene.tdd(&[]),
    );
}
