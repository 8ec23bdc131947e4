//! Which process is which: `/proc`, start times, boot ids and handles that survive the reuse of pids.

use crate::leaf::spec::{LAUNCH_VAR, LaunchId};
use crate::leaf::sys;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// What `/proc/<pid>/stat` says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::leaf) struct Stat {
    pub(in crate::leaf) pid: Pid,
    pub(in crate::leaf) parent: Pid,
    pub(in crate::leaf) session: Pid,
    /// Clock ticks since boot; with the pid it names a process for as long as the machine runs.
    pub(in crate::leaf) start: u64,
    /// One letter (proc_pid_stat(5)): `Z` is a zombie, `T` is stopped, …
    state: u8,
    /// The processor time that it has used itself, in clock ticks ([`CLOCK_TICK`]).
    pub(in crate::leaf) own_ticks: u64,
    /// The processor time of those that have ended and that it has waited for, in clock ticks.
    pub(in crate::leaf) ended_ticks: u64,
}

/// A clock tick of the kernel's accounts: `USER_HZ`, which is 100 on every Linux that there is.
pub(in crate::leaf) const CLOCK_TICK: Duration = Duration::from_millis(10);

impl Stat {
    /// Names it for as long as the machine runs: its pid and start time.
    pub(in crate::leaf) fn id(&self) -> (i32, u64) {
        (self.pid.as_raw(), self.start)
    }

    /// Whether it has ended, and only its parent has not asked how.
    pub(in crate::leaf) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Whether it is stopped, by a signal or by a debugger.
    pub(in crate::leaf) fn is_suspended(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// Reads one process; None when there is none, or no `/proc`.
    pub(in crate::leaf) fn of(pid: Pid) -> Option<Stat> {
        parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }
}

/// A process in words: its id, and what it calls itself.
pub(super) fn named(pid: Pid) -> String {
    let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let comm = String::from_utf8_lossy(comm.trim_ascii_end());
    format!("process {pid} ({})", comm.escape_debug())
}

fn parse_stat(text: &[u8]) -> Option<Stat> {
    // The name in parentheses may hold anything, blanks and parentheses included: the last one closes it.
    let close = text.iter().rposition(|b| *b == b')')?;
    let open = text.iter().position(|b| *b == b'(')?;
    let pid = std::str::from_utf8(text.get(..open)?).ok()?.trim();
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // proc_pid_stat(5), counted from field 3 (state).
    let number = |i: usize| fields.get(i)?.parse::<i32>().ok().map(Pid::from_raw);
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse().ok()).unwrap_or(0u64);
    Some(Stat {
        pid: Pid::from_raw(pid.parse().ok()?),
        parent: number(1)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
        state: *fields.first()?.as_bytes().first()?,
        own_ticks: ticks(11).saturating_add(ticks(12)),
        ended_ticks: ticks(13).saturating_add(ticks(14)),
    })
}

/// Every process that can be seen; empty where there is no `/proc`.
pub(in crate::leaf) fn all() -> Vec<Stat> {
    pids().filter_map(Stat::of).collect()
}

fn pids() -> impl Iterator<Item = Pid> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
}

/// All descendants of a process, out of one look at all processes; linear in their number.
pub(in crate::leaf) fn descendants(of: Pid, all: &[Stat]) -> Vec<Stat> {
    let mut children: HashMap<Pid, Vec<Stat>> = HashMap::new();
    for stat in all {
        children.entry(stat.parent).or_default().push(*stat);
    }
    let mut found = children.remove(&of).unwrap_or_default();
    let mut next = 0;
    // Ends: the children of each pid are taken once. The look is not atomic, so that a pid which was reused meanwhile
    // could close a circle.
    while let Some(parent) = found.get(next).map(|s| s.pid) {
        next += 1;
        found.extend(children.remove(&parent).unwrap_or_default());
    }
    found
}

/// All descendants of a process by way of each one's own list of children, which costs what they are and not what all
/// processes are; some that are being born or orphaned meanwhile may be missing. None where the kernel keeps no lists.
pub(in crate::leaf) fn quick_descendants(of: Pid) -> Option<Vec<Stat>> {
    let mut found: Vec<Stat> = Vec::new();
    let mut next = 0;
    let mut parent = of;
    let mut known = HashSet::from([of]);
    loop {
        for child in children_of(parent, parent == of)? {
            if known.insert(child) {
                found.extend(Stat::of(child));
            }
        }
        match found.get(next) {
            Some(stat) => parent = stat.pid,
            None => return Some(found),
        }
        next += 1;
    }
}

/// The children of this process that `/proc` does not show (`hidepid`, and who lets nobody look into it), which
/// would be seen at its place. Until this process waits for them, their pids are theirs.
pub(super) fn hidden_children() -> Vec<Pid> {
    let mut children = children_of(Pid::this(), true).unwrap_or_default();
    children.retain(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true));
    children
}

/// The children of all threads of a process; none when it has ended, unless it `must` be there.
fn children_of(pid: Pid, must: bool) -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(text) => children.extend(
                text.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse().ok())
                    .map(Pid::from_raw),
            ),
            Err(_) if must => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

/// Names this boot of the machine: start times of another boot mean nothing. Empty where it has no name.
pub(in crate::leaf) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|s| s.trim().to_owned())
        .unwrap_or_default()
}

/// A hold on one process: signals go to it or to nobody.
#[derive(Debug)]
pub(in crate::leaf) struct Handle {
    pid: Pid,
    /// None where there is no `/proc`.
    start: Option<u64>,
    /// None where the kernel has no pidfd (before 5.3, some containers): start times are compared instead.
    fd: Option<OwnedFd>,
}

impl Handle {
    /// Takes hold of whatever has this pid now; None when nothing has.
    pub(in crate::leaf) fn open(pid: Pid) -> Option<Handle> {
        let fd = match sys::pidfd_open(pid) {
            Ok(fd) => Some(fd),
            Err(e) if e.raw_os_error() == Some(nix::libc::ESRCH) => return None,
            Err(_) => None,
        };
        let start = Stat::of(pid).map(|s| s.start);
        Some(Handle { pid, start, fd })
    }

    /// Takes hold of the process that was seen; None when it has ended since.
    pub(in crate::leaf) fn of(seen: &Stat) -> Option<Handle> {
        Handle::open(seen.pid).filter(|h| h.start == Some(seen.start))
    }

    /// Takes hold of the process with this pid and start time; None when it has ended. Where start times are
    /// not known the pid must do, and the caller has other evidence (a held lock).
    pub(in crate::leaf) fn recorded(pid: Pid, start: Option<u64>) -> Option<Handle> {
        Handle::open(pid).filter(|h| h.start == start)
    }

    /// The process's id.
    pub(in crate::leaf) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether the process has ended; zombies have.
    pub(in crate::leaf) fn ended(&self) -> bool {
        match &self.fd {
            Some(fd) => readable(fd, Duration::ZERO),
            None => !alive(self.pid, self.start),
        }
    }

    /// Waits until it has ended, at most so long; says whether it has.
    pub(in crate::leaf) fn wait_ended(&self, limit: Duration) -> bool {
        if let Some(fd) = &self.fd {
            return readable(fd, limit);
        }
        let until = Instant::now() + limit;
        while alive(self.pid, self.start) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5).min(limit));
        }
        true
    }

    /// Sends a signal; an error of kind `NotFound` when it has ended.
    pub(in crate::leaf) fn signal(&self, signal: Signal) -> io::Result<()> {
        if let Some(fd) = &self.fd {
            return sys::pidfd_signal(fd.as_fd(), signal);
        }
        if !alive(self.pid, self.start) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        Ok(kill(self.pid, signal)?)
    }
}

fn alive(pid: Pid, start: Option<u64>) -> bool {
    match (Stat::of(pid), start) {
        (Some(now), Some(start)) => now.start == start && !now.is_zombie(),
        (None, Some(_)) => false,
        (_, None) => kill(pid, None).is_ok(),
    }
}

fn readable(fd: &OwnedFd, limit: Duration) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut fds, poll_timeout(limit)), Ok(n) if n > 0)
}

/// A duration as a timeout of poll, rounded up so that a loop around it does not spin.
pub(in crate::leaf) fn poll_timeout(limit: Duration) -> PollTimeout {
    let millis = limit.as_micros().div_ceil(1000).min(60_000);
    PollTimeout::try_from(millis as i32).unwrap_or(PollTimeout::ZERO)
}

/// Every living process of this user whose environment carries the launch id, except `except`.
///
/// The handle is taken before the environment is read and signals go through it: when a signal arrives, the
/// process lived all the while, and the environment was its own.
pub(in crate::leaf) fn of_launch(launch: &LaunchId, except: &[Pid]) -> Vec<Handle> {
    let user = nix::unistd::Uid::effective().as_raw();
    let entry = format!("{LAUNCH_VAR}={launch}");
    let mut found = Vec::new();
    for pid in pids().filter(|pid| !except.contains(pid)) {
        // A first look without a handle: nearly every process is none of ours, and the look is all it costs.
        if carries(pid, &entry)
            && let Some(handle) = Handle::open(pid)
            && fs::metadata(format!("/proc/{pid}")).is_ok_and(|m| m.uid() == user)
            && carries(pid, &entry)
            && !handle.ended()
        {
            found.push(handle);
        }
    }
    found
}

fn carries(pid: Pid, entry: &str) -> bool {
    // Zombies and kernel threads have an empty environment, other users' cannot be read.
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|env| env.split(|b| *b == 0).any(|e| e == entry.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_shift_the_fields() {
        let text = b"42 (a) R (b 7) S 1 42 40 0 -1 4194560 0 0 0 0 3 4 7 8 20 0 1 0 12345 99 1";
        let stat = parse_stat(text).unwrap();
        assert_eq!(
            (stat.pid, stat.parent),
            (Pid::from_raw(42), Pid::from_raw(1))
        );
        assert_eq!((stat.session, stat.start), (Pid::from_raw(40), 12345));
        assert_eq!((stat.own_ticks, stat.ended_ticks), (7, 15));
        assert!(!stat.is_zombie() && !stat.is_suspended());
        let stopped = parse_stat(&text.map(|b| if b == b'S' { b'T' } else { b })).unwrap();
        assert!(stopped.is_suspended());
        for bad in [
            &b""[..],
            b"42",
            b"42 (x",
            b")(",
            b"42 (x) S 1",
            b"42 (\xff) \xff",
        ] {
            assert_eq!(parse_stat(bad), None);
        }
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_circles_end() {
        let stat = |pid, parent| Stat {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(parent),
            session: Pid::from_raw(1),
            start: 0,
            state: b'S',
            own_ticks: 0,
            ended_ticks: 0,
        };
        let all = [
            stat(4, 3),
            stat(3, 2),
            stat(2, 1),
            stat(9, 1),
            stat(7, 8),
            stat(8, 7),
        ];
        let below = |of| {
            let mut pids: Vec<i32> = descendants(Pid::from_raw(of), &all)
                .iter()
                .map(|s| s.pid.as_raw())
                .collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(below(2), [3, 4]);
        assert_eq!(below(1), [2, 3, 4, 9]);
        assert_eq!(below(7), [7, 8]);
        assert!(below(4).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_with_another_start_time_is_another_process() {
        let me = Stat::of(Pid::this()).unwrap();
        assert!(Handle::of(&me).is_some());
        assert!(Handle::recorded(me.pid, Some(me.start)).is_some());
        assert!(Handle::recorded(me.pid, Some(me.start + 1)).is_none());
    }
}
