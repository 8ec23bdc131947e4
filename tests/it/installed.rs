//! Programs that some tests need and a machine, or the user on it, may lack: such a test is skipped, and says so.

use crate::scene::Scene;

/// Whether a scene can run a program; a test that does without it says so.
#[allow(clippy::print_stdout)] // a test that is skipped says so
pub fn there(scene: &Scene, program: &str) -> bool {
    let there = runs(scene, program);
    if !there {
        println!("partly skipped: there is no {program} here");
    }
    there
}

/// Whether there is a cargo here, without which the test is not run at all.
#[allow(clippy::print_stdout)] // a test that is skipped says so
pub fn cargo() -> bool {
    let there = runs(&Scene::bare(), "cargo");
    if !there {
        println!("skipped: there is no cargo here");
    }
    there
}

fn runs(scene: &Scene, program: &str) -> bool {
    let out = scene.command(program).arg("--version").output();
    out.is_ok_and(|out| out.status.success())
}
