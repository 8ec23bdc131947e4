//! Which processes a scene has left, and an end of them all.

use crate::scene::{PATIENCE, Scene};
use std::fs;
use std::time::{Duration, Instant};

impl Scene {
    /// Asserts that no process is left whose environment or working folder belongs to this scene.
    #[track_caller]
    pub fn nothing_is_left_running(&self) {
        let start = Instant::now();
        loop {
            let left: Vec<String> = self.processes().into_iter().map(|(_, line)| line).collect();
            if left.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "still running: {left:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills every process of this scene, and those that these start meanwhile, until none is left.
    pub fn kill_everything(&self) {
        let left = self.killed();
        assert!(left.is_empty(), "cannot be killed: {left:?}");
    }

    /// The same; gives what cannot be killed.
    fn killed(&self) -> Vec<(i32, String)> {
        let start = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() || start.elapsed() > PATIENCE {
                return left;
            }
            // All are stopped first: a power cut gives nobody the time to see the others die. One may have ended
            // by itself.
            use nix::sys::signal::Signal::{SIGKILL, SIGSTOP};
            for signal in [SIGSTOP, SIGKILL] {
                for (pid, _) in &left {
                    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), signal);
                }
            }
        }
    }

    /// The processes of this scene: id and command line.
    fn processes(&self) -> Vec<(i32, String)> {
        let scene = self.dir.path().as_os_str().as_encoded_bytes();
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            if pid.unsigned_abs() == std::process::id() {
                continue;
            }
            let proc = entry.path();
            let environment = fs::read(proc.join("environ")).unwrap_or_default();
            let folder = fs::read_link(proc.join("cwd")).unwrap_or_default();
            if find(&environment, scene) || folder.starts_with(self.dir.path()) {
                let line = fs::read(proc.join("cmdline")).unwrap_or_default();
                if !line.is_empty() {
                    let line = String::from_utf8_lossy(&line).replace('\0', " ");
                    left.push((pid, format!("{pid}: {line}")));
                }
            }
        }
        left
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}

/// A test that fails leaves its run behind, stopped processes included.
impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.killed();
        }
    }
}
