//! A mount namespace of a test's own: small disks and read-only file systems that nobody else sees, and that are gone
//! with the test however it ends.

use crate::scene::Scene;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says, in a process that was started in a namespace of its own, for which test.
const INSIDE: &str = "VERI_TEST_ALONE";

/// Whether this is the process that the test is to run in. Elsewhere, this runs the test in one that is, and fails as
/// it does; or says that it is skipped where namespaces are not allowed.
#[track_caller]
#[allow(clippy::print_stdout)] // a test that is skipped says so, and what one inside says is its own
pub fn alone(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some_and(|name| name == *test) {
        return true;
    }
    let map = match nix::unistd::geteuid().is_root() {
        true => "-m",
        false => "-rm",
    };
    let probe = "d=$(mktemp -d) && mount -t tmpfs veri-test \"$d\"; r=$?; umount \"$d\"; rmdir \"$d\"; exit $r";
    let allowed = Command::new("unshare")
        .args([map, "sh", "-c", probe])
        .output();
    if !allowed.is_ok_and(|out| out.status.success()) {
        println!("skipped: {test}: mounting in a namespace of its own is not allowed here");
        return false;
    }
    let out = Command::new("unshare")
        .arg(map)
        .arg(std::env::current_exe().expect("this program"))
        .args([test, "--exact", "--include-ignored", "--nocapture"])
        .env(INSIDE, test)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("unshare runs");
    let (said, errors) = (
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr),
    );
    println!("{said}");
    assert!(said.contains("1 passed"), "{test}:\n{said}\n{errors}");
    false
}

/// A little file system, in the place of one folder of a scene, with what was in it.
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts it over the folder. `options`: of tmpfs (`size=24m`, `nr_inodes=100`).
    pub fn over(scene: &Scene, folder: &str, options: &str) -> Disk {
        let at = scene.path(folder);
        let aside = scene.path(&format!("{folder}.aside"));
        copy(&at, &aside);
        let options = format!("{options},mode=755");
        let at_text = at.display().to_string();
        mount(&["-t", "tmpfs", "-o", &options, "veri-test", &at_text]);
        let disk = Disk(at);
        copy(&aside, &disk.0);
        std::fs::remove_dir_all(aside).expect("a folder");
        disk
    }

    /// Changes it: `ro`, `rw`, `size=64m`.
    pub fn again(&self, options: &str) {
        let options = format!("remount,{options}");
        let at = self.0.display().to_string();
        // The options that it has name an owner whom an ordinary user's namespace does not know: they are left out.
        mount(&["--options-mode", "ignore", "-o", &options, &at]);
    }

    /// How much is used of it, in KiB and in files.
    pub fn used(&self) -> (u64, u64) {
        let about = nix::sys::statvfs::statvfs(&self.0).expect("a file system");
        let kib = (about.blocks() - about.blocks_free()) * about.fragment_size() / 1024;
        (kib, about.files() - about.files_free())
    }
}

/// The mount goes before the scene: a folder that something is mounted on cannot be removed.
impl Drop for Disk {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    let from = from.join(".");
    std::fs::create_dir_all(to).expect("a folder");
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(done.expect("cp runs").success());
}

#[track_caller]
fn mount(args: &[&str]) {
    let out = Command::new("mount").args(args).output().expect("mount");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "mount {args:?}: {said}");
}

/// Makes a folder read-only for whoever opens something in it from now on: what is open stays so.
pub fn bind_read_only(folder: &Path) {
    let at = folder.display().to_string();
    mount(&["--bind", &at, &at]);
    mount(&["-o", "remount,bind,ro", &at]);
}

/// Undoes [`bind_read_only`].
pub fn unmount(folder: &Path) {
    let done = Command::new("umount").arg("-l").arg(folder).status();
    let unmounted = done.expect("umount runs").success();
    assert!(
        unmounted || std::thread::panicking(),
        "{}",
        folder.display()
    );
}
