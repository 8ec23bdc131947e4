//! `sandbox = "require"`, where there is a sandbox and where there is none.

use crate::kernel;
use crate::scene::{Scene, VERI, finish};

#[test]
fn a_sandbox_that_is_required_and_not_there_ends_the_run_before_it_begins() {
    let Some(veri) = kernel::without_landlock(&[VERI]) else {
        return;
    };
    let scene = Scene::new();
    let run = |text: &str| {
        scene.configure(text);
        let words: Vec<String> = scene.arguments().iter().map(|a| format!("'{a}'")).collect();
        let mut command = scene.command("sh");
        command.args(["-c", &format!("exec {veri} {}", words.join(" "))]);
        finish(command)
    };
    let ran = run("sandbox = \"require\"\n");
    ran.bails("needs-user")
        .says("sandbox = \"require\", and there is none: this kernel has no Landlock");
    assert_eq!(scene.git(&["branch", "--list", "tdd/*"]), "");
    // Without it the run goes on, and says what there is not, once.
    let ran = run("").expect(0);
    let said = ran
        .out
        .matches("no sandbox: a verifier can read and write whatever you can")
        .count();
    assert_eq!(said, 1, "{}", ran.out);
    assert_eq!(scene.subjects().len(), 3);
}

#[test]
fn a_sandbox_that_is_required_and_there_is_used() {
    let Some(confined) = kernel::landlock() else {
        return;
    };
    if !confined.without.is_empty() {
        println!("skipped: the sandbox of this kernel is not whole: {confined:?}");
        return;
    }
    let scene = Scene::new();
    scene.configure("sandbox = \"require\"\n");
    scene.tdd(&["--plan-only"]).expect(0);
    // With developers, it takes mounts of their own, too.
    let Some(veri) = kernel::refusing(&[442], &[VERI]) else {
        // mount_setattr
        return;
    };
    let scene = Scene::new();
    let agent = scene.path("agent").display().to_string();
    let developer = format!("agents.developer = {{ use = \"command:{agent}\", sandbox = true }}\n");
    let run = |text: &str| {
        scene.configure(&format!("{text}{developer}"));
        let words: Vec<String> = scene.arguments().iter().map(|a| format!("'{a}'")).collect();
        let mut command = scene.command("sh");
        command.args(["-c", &format!("exec {veri} {}", words.join(" "))]);
        finish(command)
    };
    run("sandbox = \"require\"\n")
        .bails("needs-user")
        .says("does not keep leaves from changes of .tdd and .git in its working folder");
    let ran = run("").expect(0);
    assert!(
        ran.out
            .contains("but not kept from changes of .tdd and .git"),
        "{}",
        ran.out
    );
}
