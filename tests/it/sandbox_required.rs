//! `sandbox = "require"` and `"auto"` in worlds that offer a sandbox, a part of one, and none.

use crate::kernel;
use crate::scene::{Ran, Scene, VERI, finish};
use crate::watching::plain;
use nix::errno::Errno;

/// A run with the words of a world before it, and a configuration.
fn run(scene: &Scene, world: &str, text: &str, more: &[&str]) -> Ran {
    scene.configure(text);
    let words = scene.arguments().into_iter();
    let words: Vec<String> = words
        .chain(more.iter().map(|word| (*word).to_owned()))
        .map(|word| format!("'{word}'"))
        .collect();
    let mut command = scene.command("sh");
    command.args(["-c", &format!("exec {world} {}", words.join(" "))]);
    finish(command)
}

const REQUIRED: &str = "sandbox = \"require\"\n";

/// A configuration that has the developer confined, too.
fn developers(scene: &Scene) -> String {
    let agent = scene.path("agent").display().to_string();
    format!("agents.developer = {{ use = \"command:{agent}\", sandbox = true }}\n")
}

/// A sandbox that is not there ends a run that requires it before any leaf has run; another goes on, and says so once.
fn nothing_offered(world: Option<String>, why: &str) {
    let Some(world) = world else { return };
    let scene = plain();
    run(&scene, &world, REQUIRED, &[])
        .bails("needs-user")
        .says("sandbox = \"require\", and there is none: ")
        .says(why)
        .says("write sandbox = \"auto\"");
    assert!(scene.launches().is_empty());
    assert_eq!(scene.git(&["branch", "--list", "tdd/*"]), "");
    let ran = run(&scene, &world, "", &[]).expect(0);
    let said = "no sandbox: a verifier can read and write whatever you can, since ";
    assert_eq!(ran.out.matches(said).count(), 1, "{}", ran.out);
    assert!(ran.out.contains(why), "{}", ran.out);
    assert_eq!(scene.subjects().len(), 2);
}

#[test]
fn a_kernel_without_landlock_or_with_it_switched_off_is_told_from_one_that_has_it() {
    nothing_offered(
        kernel::without_landlock(&[VERI]),
        "this kernel has no Landlock",
    );
    let off = kernel::refusing(Errno::EOPNOTSUPP, &kernel::LANDLOCK[..1], &[VERI]);
    nothing_offered(off, "not switched on");
}

#[test]
fn a_landlock_that_tells_its_version_and_can_not_be_put_on_is_none() {
    if kernel::landlock().is_none() {
        return;
    }
    let refused = |call: u32| kernel::refusing(Errno::EPERM, &[call], &[VERI]);
    for call in &kernel::LANDLOCK[1..] {
        nothing_offered(refused(*call), "is there and cannot be put on");
    }
    nothing_offered(kernel::nested(16, &[VERI]), "in each other (16)");
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
    scene.configure(REQUIRED);
    scene.tdd(&["--plan-only"]).expect(0);
    // In the innermost place that is left, and in a container: they take nothing that a verifier needs.
    for world in [kernel::nested(15, &[VERI]), kernel::contained(&[VERI])] {
        let Some(world) = world else { continue };
        let scene = plain();
        let ran = run(&scene, &world, REQUIRED, &[]).expect(0);
        assert!(ran.out.contains("verifiers are confined"), "{}", ran.out);
    }
}

#[test]
fn what_cannot_be_sealed_from_a_confined_developer_is_said_with_what_the_system_lacks() {
    if kernel::landlock().is_none() {
        return;
    }
    let old = kernel::refusing(Errno::ENOSYS, &[kernel::MOUNT_SETATTR], &[VERI]);
    for (world, why) in [
        (old, "lacks user namespaces or mount_setattr"),
        (kernel::contained(&[VERI]), "as containers do"),
        (
            kernel::without_user_namespaces(&[VERI]),
            "sysctl user.max_user_namespaces",
        ),
    ] {
        let Some(world) = world else { continue };
        let scene = plain();
        let developers = developers(&scene);
        run(&scene, &world, &format!("{REQUIRED}{developers}"), &[])
            .bails("needs-user")
            .says("does not keep leaves from changes of .tdd and .git in its working folder")
            .says(why);
        assert!(scene.launches().is_empty());
        let ran = run(&scene, &world, &developers, &[]).expect(0);
        let said = "but not kept from changes of .tdd and .git";
        assert_eq!(ran.out.matches(said).count(), 1, "{}", ran.out);
        assert!(ran.out.contains(why), "{}", ran.out);
        // Of verifiers nothing is missing.
        run(&scene, &world, REQUIRED, &[]).expect(0);
    }
}
