//! A kernel or container that refuses what veri asks of it: the run says which of them it was, and is no bug of veri's.
#![cfg(target_os = "linux")]

use crate::scene::{Ran, Scene, VERI, finish};
use nix::errno::Errno;
use nix::libc;

/// Has a system call fail for a program and all that it starts (seccomp(2), a filter of four instructions).
const DENYING: &str = r#"
import ctypes, os, struct, sys
call, error = int(sys.argv[1]), int(sys.argv[2])
code = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | error), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit(97)
os.execvp(sys.argv[3], sys.argv[3:])
"#;

/// A run in which a system call fails; None where that cannot be arranged.
fn without(scene: &Scene, call: libc::c_long, error: Errno) -> Option<Ran> {
    let mut command = scene.command("python3");
    command
        .args(["-c", DENYING])
        .args([call.to_string(), (error as i32).to_string()])
        .arg(VERI)
        .args(scene.arguments());
    if !crate::project::has_python() {
        return None;
    }
    let ran = finish(command);
    if ran.code == Some(97) {
        #[allow(clippy::print_stderr)] // a test that is skipped says so
        {
            eprintln!("skipped: no filter of system calls can be made here");
        }
        return None;
    }
    Some(ran)
}

#[test]
fn a_file_system_without_locks_is_the_storages_fault_and_no_bug_of_veris() {
    let scene = Scene::unconfined();
    let Some(ran) = without(&scene, libc::SYS_flock, Errno::ENOLCK) else {
        return;
    };
    ran.bails("storage-failed").says("issue-42.lock");
}

#[test]
fn a_supervisor_that_cannot_begin_says_what_the_system_refused_and_blames_no_git() {
    let scene = Scene::unconfined();
    let Some(ran) = without(&scene, libc::SYS_signalfd4, Errno::ENOSYS) else {
        return;
    };
    ran.bails("agent-unavailable")
        .says("Function not implemented");
    scene.nothing_is_left_running();
}

#[test]
fn a_system_that_gives_no_threads_ends_a_run_in_words_and_not_in_a_panic() {
    let scene = Scene::unconfined();
    let Some(ran) = without(&scene, libc::SYS_clone3, Errno::EPERM) else {
        return;
    };
    // A C library that does without this call notices nothing.
    assert!(matches!(ran.code, Some(0 | 11)), "{ran:?}");
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

#[test]
fn too_few_open_files_for_git_are_no_bug_of_veris() {
    let scene = Scene::unconfined();
    for files in [9, 12] {
        let mut command = scene.command("sh");
        let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        command.args(["-c", &limited, VERI]).args(scene.arguments());
        finish(command).bails("git-failed").says("ulimit -n");
    }
}

#[test]
fn a_program_that_cannot_find_itself_blames_no_command_line() {
    let scene = Scene::unconfined();
    let mut command = scene.command("sh");
    let gone = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\"";
    command.args(["-c", gone, VERI]).args(scene.arguments());
    finish(command)
        .bails("storage-failed")
        .says("then run again");
}
