//! Signals that were ignored when the tests were started (in the background, under `nohup`) are at their defaults for what
//! the tests start.

use nix::libc::{SIGHUP, SIGINT, SIGQUIT};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

/// Puts a handler that does nothing in the place of ignoring: the tests go on ignoring it, and no handler outlives an exec.
pub fn default_for_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
        for signal in [SIGHUP, SIGINT, SIGQUIT] {
            if mask.unwrap_or(0) >> (signal - 1) & 1 == 1 {
                signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).unwrap();
            }
        }
    });
}
