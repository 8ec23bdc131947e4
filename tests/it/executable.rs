//! Scripts that a test writes and runs.

use std::path::Path;

/// Makes a file executable, so that it can be run at once.
///
/// The file is replaced by a copy that a process of its own makes. What this process wrote must not be executed:
/// another thread may have forked while it was open for writing, and until that child has become another program
/// it holds the file open, too, and `execve` gives ETXTBSY.
#[allow(clippy::disallowed_methods)] // a tool of tests
pub fn executable(path: &Path) {
    let script = "cp -- \"$1\" \"$1.new\" && chmod 755 -- \"$1.new\" && mv -f -- \"$1.new\" \"$1\"";
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", script, "sh"])
        .arg(path)
        .status()
        .expect("sh runs");
    assert!(
        status.success(),
        "{} cannot be made executable",
        path.display()
    );
}
