//! The issue (4), and the branches that work on it starts from (5).

use super::{OF_A_RUN, refused, scene};
use crate::picture::Picture;
use crate::scene::{Agent, Scene};
use std::fs;

#[test]
fn an_issue_that_is_missing_closed_a_pull_request_or_blank() {
    let scene = scene();
    let body = "`greet Ann` prints `hello Ann`.\n";
    scene.issue("title: Greet\nstate: closed", body);
    refused(
        &scene,
        "needs-user",
        &["Issue 42 is closed", "Reopen"],
        || scene.tdd(&[]),
    );
    scene.issue(
        "title: Greet",
        " \n\t\n<!-- nothing that a reader sees -->\n",
    );
    refused(
        &scene,
        "needs-user",
        &["The body of issue 42 is blank", "veri tdd 42"],
        || scene.tdd(&[]),
    );
    scene.issue("state: open", body);
    refused(
        &scene,
        "needs-user",
        &["title", "issues/42/issue.md"],
        || scene.tdd(&[]),
    );
    fs::write(
        scene.path("forge/issues/42/issue.md"),
        b"---\ntitle: x\n---\n\n\xff\xfe",
    )
    .unwrap();
    refused(
        &scene,
        "needs-user",
        &["issues/42/issue.md", "UTF-8"],
        || scene.tdd(&[]),
    );
    fs::remove_dir_all(scene.path("forge/issues/42")).unwrap();
    refused(
        &scene,
        "needs-user",
        &["is not there", "veri tdd ./issue.md"],
        || scene.tdd(&[]),
    );
    fs::create_dir_all(scene.path("forge/pulls")).unwrap();
    fs::write(
        scene.path("forge/pulls/42.md"),
        "---\ntitle: x\nhead: a\nbase: main\ndraft: true\nstate: open\n---\n\nx\n",
    )
    .unwrap();
    refused(&scene, "needs-user", &["pull request"], || scene.tdd(&[]));
    assert!(
        scene.comments().is_empty(),
        "nobody's text was trusted: {:?}",
        scene.comments()
    );
}

#[test]
fn a_stranger_s_issue_is_not_worked_on_under_ci_and_gets_no_comment() {
    let mut scene = scene();
    scene.env.push(("CI".into(), "true".into()));
    scene.issue(
        "title: Greet\nauthor: mallory\nauthor_association: NONE",
        "`greet Ann` prints `hello Ann`.\n",
    );
    refused(&scene, "needs-user", &["mallory", "--trust"], || {
        scene.tdd(&[])
    });
    assert!(scene.comments().is_empty());
    // A person at a terminal vouches for it.
    scene.env.clear();
    scene.issue(
        "title: Greet\nauthor: mallory\nauthor_association: NONE",
        "`greet Ann` prints `hello Ann`. `bye` prints `bye`.\n",
    );
    scene.agent(&Agent::default());
    scene.tdd(&["--plan-only"]).expect(0);
}

#[test]
fn an_issue_of_a_mebibyte_is_worked_on() {
    let scene = Scene::new();
    let mut body = "`greet Ann` prints `hello Ann`.\n".to_owned();
    body.push_str(&"All work and no play {\"nonce\": \n".repeat(32 * 1024));
    body.push_str("`bye` prints `bye`.\n");
    assert!(body.len() > 1024 * 1024);
    scene.issue("title: Greet people by name", &body);
    let prompts = scene.agent_keeping_prompts(&Agent::default());
    scene.tdd(&["--plan-only"]).expect(0);
    assert!(fs::metadata(prompts.join("planner-1")).unwrap().len() > 1024 * 1024);
}

/// A bare repository as `origin` of the scene's, which has main.
fn with_origin(scene: &Scene) {
    let origin = scene.path("origin.git");
    scene.git(&[
        "init",
        "-q",
        "--bare",
        "-b",
        "main",
        origin.to_str().unwrap(),
    ]);
    scene.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
    scene.git(&["push", "-q", "origin", "main"]);
}

#[test]
fn a_base_that_cannot_be_worked_from() {
    let scene = scene();
    scene.git(&["checkout", "-q", "--detach"]);
    refused(
        &scene,
        "needs-user",
        &["HEAD is detached", "--base"],
        || scene.tdd(&[]),
    );
    refused(&scene, "needs-user", &["gone", "--base"], || {
        scene.tdd(&["--base", "gone"])
    });
    refused(&scene, "needs-user", &["--base"], || {
        scene.tdd(&["--base=--upload-pack=touch launched"])
    });
    scene.git(&["checkout", "-q", "-b", "tdd/issue-7", "main"]);
    refused(&scene, "needs-user", &["tdd/issue-7", "--base"], || {
        scene.tdd(&[])
    });
}

#[test]
fn a_base_that_is_not_where_its_remote_is() {
    let scene = scene();
    with_origin(&scene);
    scene.commit_all("only here");
    refused(
        &scene,
        "needs-user",
        &["main is ahead of origin/main", "--base"],
        || scene.tdd(&[]),
    );
    scene.git(&["push", "-q", "origin", "main"]);
    scene.git(&["reset", "-q", "--hard", "HEAD~1"]);
    scene.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    scene.commit_all("another");
    refused(
        &scene,
        "needs-user",
        &[
            "main is diverged from origin/main",
            "1 commits are only here",
        ],
        || scene.tdd(&[]),
    );
    // Behind: the remote's tip is what counts, and the local branch stays where it is.
    scene.git(&["reset", "-q", "--hard", "HEAD~1"]);
    scene.agent(&Agent::default());
    let before = Picture::of(&scene.repo()).without(OF_A_RUN);
    let ran = scene.tdd(&["--plan-only"]).expect(0);
    assert!(
        ran.out.contains("1 commits behind origin/main"),
        "{}",
        ran.out
    );
    assert_eq!(
        scene.git(&["rev-parse", "tdd/issue-42~1"]),
        scene.git(&["rev-parse", "origin/main"])
    );
    before.is_still(&Picture::of(&scene.repo()).without(OF_A_RUN));
}

#[test]
fn a_remote_that_does_not_answer() {
    let scene = scene();
    scene.git(&[
        "remote",
        "add",
        "origin",
        scene.path("nowhere.git").to_str().unwrap(),
    ]);
    refused(
        &scene,
        "git-failed",
        &["Fetching", "origin", "nowhere.git"],
        || scene.tdd(&[]),
    );
}

#[test]
fn an_issue_branch_that_veri_cannot_go_on_with() {
    let scene = scene();
    scene.git(&["branch", "tdd/issue-42"]);
    scene.git(&["checkout", "-q", "tdd/issue-42"]);
    refused(
        &scene,
        "needs-user",
        &["tdd/issue-42 is checked out in", "/repo"],
        || scene.tdd(&["--base", "main"]),
    );
    scene.commit_all("somebody's own");
    scene.git(&["checkout", "-q", "main"]);
    refused(
        &scene,
        "needs-user",
        &["no ledger", "Rename or delete"],
        || scene.tdd(&[]),
    );
    let elsewhere = scene.path("elsewhere");
    scene.git(&[
        "worktree",
        "add",
        "-q",
        elsewhere.to_str().unwrap(),
        "tdd/issue-42",
    ]);
    refused(
        &scene,
        "needs-user",
        &["checked out in", "/elsewhere"],
        || scene.tdd(&[]),
    );
}

#[test]
fn an_issue_branch_that_has_diverged_from_its_remote() {
    let scene = scene();
    with_origin(&scene);
    scene.git(&["checkout", "-q", "-b", "tdd/issue-42"]);
    scene.commit_all("there");
    scene.git(&["push", "-q", "origin", "tdd/issue-42"]);
    scene.git(&["reset", "-q", "--hard", "main"]);
    scene.commit_all("here");
    scene.git(&["checkout", "-q", "main"]);
    refused(
        &scene,
        "needs-user",
        &["has diverged", "1 commits are only here, 1 only there"],
        || scene.tdd(&[]),
    );
}
