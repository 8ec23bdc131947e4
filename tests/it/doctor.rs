//! `veri doctor` and a run say by what this machine lets leaves be ended and confined.

use crate::kernel;
use crate::scene::{Scene, VERI, finish};
use nix::errno::Errno;

#[test]
fn doctor_says_by_what_processes_are_ended_and_confined_here() {
    let scene = Scene::bare();
    let mut command = scene.command(VERI);
    // Whether or not in a repository.
    command.current_dir(scene.path("tmp")).arg("doctor");
    let ran = finish(command).expect(0);
    let lines: Vec<&str> = ran.out.lines().collect();
    let processes = format!("processes: {}", veri::leaf::reach());
    assert_eq!(lines[0], processes);
    assert!(processes.contains("subreaper, launch ids of environments"));
    let sandbox = match kernel::landlock() {
        Some(confined) => format!("sandbox: Landlock ABI {}", confined.landlock),
        None => "sandbox: none; not here: ".to_owned(),
    };
    assert!(lines[1].starts_with(&sandbox), "{}", ran.out);
    assert_eq!(lines.len(), 2, "{}", ran.out);
}

#[test]
fn a_kernel_without_holds_on_processes_and_without_landlock_is_told_by_doctor_and_once_in_a_run() {
    // landlock_create_ruleset and pidfd_open
    let Some(veri) = kernel::refusing(Errno::ENOSYS, &[444, 434], &[VERI]) else {
        return;
    };
    let scene = Scene::new();
    let run = |arguments: &[&str]| {
        let words: Vec<String> = arguments.iter().map(|a| format!("'{a}'")).collect();
        let mut command = scene.command("sh");
        command.args(["-c", &format!("exec {veri} {}", words.join(" "))]);
        finish(command)
    };
    let ran = run(&["doctor"]).expect(0);
    assert!(ran.out.contains("; not here: pidfd"), "{}", ran.out);
    let none = "sandbox: none; not here: this kernel has no Landlock";
    assert!(ran.out.contains(none), "{}", ran.out);

    let arguments = scene.arguments();
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let first = run(&[&arguments[..], &["--plan-only"]].concat()).expect(0);
    let second = run(&arguments).expect(0);
    let said = |text: &str| text.matches("start is ended by: process group").count();
    assert_eq!((said(&first.out), said(&second.out)), (1, 0), "{first:?}");
    assert_eq!(scene.subjects().len(), 3);
    scene.nothing_is_left_running();
}
