//! Processes, as `/proc` tells of them.

use std::fs;

/// The fields of `/proc/<pid>/stat` after the name: state, parent, …; none when there is no such process.
pub fn stat(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = text.rsplit_once(") ").map_or("", |(_, after)| after);
    after.split_ascii_whitespace().map(str::to_owned).collect()
}

/// The parent of a process that lives.
#[track_caller]
pub fn parent(pid: u32) -> u32 {
    let stat = stat(pid);
    let parent = stat.get(1).and_then(|parent| parent.parse().ok());
    parent.unwrap_or_else(|| panic!("process {pid} has no parent: {stat:?}"))
}

/// Whether it lives; zombies count as dead.
pub fn alive(pid: u32) -> bool {
    stat(pid).first().is_some_and(|state| state != "Z")
}
