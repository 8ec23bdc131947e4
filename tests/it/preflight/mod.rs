//! Every refusal of preflight, as a user meets it: the cause, the exit code, a message that says what to do,
//! no leaf launched, no branch made, and the checkout byte for byte what it was.

mod commits;
mod ground;
mod issue;
mod repository;
mod tools;
mod untouched;

use crate::picture::Picture;
use crate::scene::{Ran, Scene, VERI, executable, finish};
use std::fs;

/// A scene whose agent leaves a trace when it is launched: in preflight it never is.
fn scene() -> Scene {
    let scene = Scene::new();
    watch_launches(&scene);
    scene
}

fn watch_launches(scene: &Scene) {
    let text = format!("#!/bin/sh\ntouch '{}'\n", scene.note("launched").display());
    fs::write(scene.path("agent"), text).unwrap();
    executable(&scene.path("agent"));
}

/// `veri tdd 42` with some of the scene's flags replaced (Some) or left out (None).
fn tdd(scene: &Scene, flags: &[(&str, Option<&str>)], more: &[&str]) -> Ran {
    let mut arguments = scene.arguments();
    for (flag, value) in flags {
        let at = arguments.iter().position(|a| a == flag).expect("a flag");
        match value {
            Some(value) => arguments[at + 1] = (*value).to_owned(),
            None => drop(arguments.drain(at..at + 2)),
        }
    }
    let mut command = scene.command(VERI);
    command.args(arguments).args(more);
    finish(command)
}

/// Runs something that must be refused: with this cause, these words, and nothing touched.
#[track_caller]
fn refused(scene: &Scene, cause: &str, words: &[&str], run: impl FnOnce() -> Ran) -> Ran {
    let before = Picture::of(&scene.repo());
    let mut ran = run().bails(cause);
    for word in words {
        ran = ran.says(word);
    }
    before.is_still(&Picture::of(&scene.repo()));
    assert!(!scene.note("launched").exists(), "a leaf was launched");
    ran
}

/// What a run adds to the repository: its branch and its refs.
const OF_A_RUN: &[&str] = &[
    ".git/refs/heads/tdd",
    ".git/logs/refs/heads/tdd",
    ".git/refs/veri",
    ".git/logs/refs/veri",
];
