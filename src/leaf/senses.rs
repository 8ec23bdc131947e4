//! What the shim sees and hears of its leaf while that runs, for its watchdog: what is new in the output, whether the transcript
//! changes, whether the leaf is suspended, and what the processes below it use.
//!
//! What is not there (no `/proc`, a transcript that does not exist yet) shows no change: the deadlines then hold as if
//! the leaf were silent, and never suspended.

use super::end::KillWhy;
use super::lines::Lines;
use super::output::Output;
use super::process::{self, Stat};
use super::signs::{Ear, Heard};
use super::watch::{Next, Orders, Seen, Watchdog};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much is read at one look, in bytes: the leaf's end must not wait for its output to be read.
const READ_AT_ONCE: usize = 8 << 20;

/// How far reading may lag behind, in bytes; beyond it the rest is passed over.
const MAX_LAG: u64 = 64 << 20;

/// The most files of a transcript's folder that are looked at, and how deep.
const TRANSCRIPT: (usize, usize) = (512, 5);

/// Below this part of the time the processor counts as unused: timers of an idle program take less.
const IDLE_SHARE: u32 = 100;

/// Disk use that counts, in bytes: less is a log line.
const DISK: u64 = 4096;

/// Clock ticks a second: `USER_HZ`, which is 100 on every Linux that there is.
const TICK: Duration = Duration::from_millis(10);

/// The senses of one shim.
pub(super) struct Senses {
    leaf: Pid,
    began: Instant,
    /// Whether there is more to watch than the wall time.
    watching: bool,
    watchdog: Watchdog,
    hearing: Option<Hearing>,
    transcript: Option<PathBuf>,
    usage: Usage,
}

/// The leaf's standard output as it grows.
struct Hearing {
    file: File,
    at: u64,
    lines: Lines,
    ear: Ear,
}

impl Senses {
    /// `began` is when the leaf was spawned, `stdout` its standard output.
    pub(super) fn new(
        leaf: Pid,
        began: Instant,
        wall: Duration,
        orders: Option<&Orders>,
        stdout: Option<&Output>,
    ) -> Senses {
        let none = Orders::default();
        let given = orders.unwrap_or(&none);
        let hearing = stdout.filter(|_| !given.signs.is_empty());
        Senses {
            leaf,
            began,
            watching: orders.is_some(),
            watchdog: Watchdog::new(wall, given),
            hearing: hearing.and_then(|o| o.reader().ok()).map(|file| Hearing {
                file,
                at: 0,
                lines: Lines::default(),
                ear: Ear::new(&given.signs),
            }),
            transcript: given.transcript.as_ref().map(|t| t.path().to_owned()),
            usage: Usage::default(),
        }
    }

    /// Looks at the leaf and says how long to wait at most until the next look, or why it is to be ended.
    pub(super) fn look(
        &mut self,
        outputs: &[Output],
        most: Duration,
    ) -> ControlFlow<KillWhy, Duration> {
        let seen = Seen {
            written: outputs.iter().map(Output::bytes).sum(),
            transcript: self.transcript.as_deref().map_or(0, fingerprint),
            suspended: self.watching && is_suspended(self.leaf),
        };
        let mut heard = self.hearing.as_mut().map_or_else(Vec::new, Hearing::read);
        loop {
            let now = self.began.elapsed();
            match self
                .watchdog
                .look(now, seen, std::mem::take(&mut heard), most)
            {
                Next::Measure => {
                    let busy = self.usage.busy(self.leaf, now);
                    self.watchdog.measured(busy);
                }
                Next::Wait(wait) => return ControlFlow::Continue(wait),
                Next::End(why) => return ControlFlow::Break(why),
            }
        }
    }
}

impl Hearing {
    fn read(&mut self) -> Vec<Heard> {
        let len = self.file.metadata().map_or(0, |m| m.len());
        // It was cut off, or there is more than can be caught up with.
        let lag = len.checked_sub(self.at);
        if lag.is_none_or(|lag| lag > MAX_LAG) {
            self.at = len;
            self.lines.lost();
        }
        let now = jiff::Timestamp::now().as_millisecond();
        let mut heard = Vec::new();
        let mut piece = vec![0; READ_AT_ONCE.min(64 << 10)];
        for _ in 0..READ_AT_ONCE / piece.len() {
            let Ok(read @ 1..) = self.file.read_at(&mut piece, self.at) else {
                break;
            };
            self.at += read as u64;
            let piece = piece.get(..read).unwrap_or_default();
            self.lines
                .feed(piece, |line| heard.extend(self.ear.hear(line, now)));
        }
        heard
    }
}

/// A number that changes when the file, or a file of the folder, does.
fn fingerprint(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut left = TRANSCRIPT.0;
    add_fingerprint(path, TRANSCRIPT.1, &mut left, &mut hasher);
    hasher.finish()
}

fn add_fingerprint(path: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return;
    };
    *left = left.saturating_sub(1);
    (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()).hash(hasher);
    if !meta.is_dir() || depth == 0 {
        return;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    for entry in entries {
        if *left == 0 {
            return;
        }
        add_fingerprint(&entry.path(), depth - 1, left, hasher);
    }
}

/// Whether the process is stopped, by a signal or by a debugger. Of the leaf alone: what it has stopped below itself is its
/// own affair.
fn is_suspended(pid: Pid) -> bool {
    fields(pid).is_some_and(|f| f.starts_with(['T', 't']))
}

/// The fields of `/proc/<pid>/stat` from the state on.
fn fields(pid: Pid) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let close = text.iter().rposition(|b| *b == b')')?;
    let rest = String::from_utf8(text.get(close + 1..)?.to_vec()).ok()?;
    Some(rest.trim_start().to_owned())
}

/// What each process had used when they were last measured.
#[derive(Default)]
struct Usage {
    at: Duration,
    used: HashMap<(i32, u64), Used>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    cpu: Duration,
    disk: u64,
}

impl Usage {
    /// Whether the processes below the leaf have used processor or disk since the last time: a hundredth of the time, or a
    /// block. What has ended meanwhile is in its parent's account.
    fn busy(&mut self, leaf: Pid, now: Duration) -> bool {
        let time = now.saturating_sub(self.at);
        let all = process::all();
        let below = process::descendants(Pid::this(), &all);
        let used: HashMap<_, _> = below
            .iter()
            .map(|stat| {
                (
                    (stat.pid.as_raw(), stat.start),
                    Used::of(stat, stat.pid == leaf),
                )
            })
            .collect();
        let before = |id| self.used.get(id).copied().unwrap_or_default();
        let cpu: Duration = used
            .iter()
            .map(|(id, u)| u.cpu.saturating_sub(before(id).cpu))
            .sum();
        let disk: u64 = used
            .iter()
            .map(|(id, u)| u.disk.saturating_sub(before(id).disk))
            .sum();
        (self.at, self.used) = (now, used);
        cpu >= (time / IDLE_SHARE).max(TICK) || disk >= DISK
    }
}

impl Used {
    /// Of the leaf itself, only what its ended children have used counts: it is the agent that is suspected.
    fn of(stat: &Stat, is_leaf: bool) -> Used {
        let fields = fields(stat.pid).unwrap_or_default();
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // proc_pid_stat(5): utime, stime, cutime, cstime are 14 to 17, counted from 3 (state).
        let ticks = |i: usize| fields.get(i).and_then(|f| f.parse().ok()).unwrap_or(0u32);
        let children = TICK * ticks(13).saturating_add(ticks(14));
        if is_leaf {
            return Used {
                cpu: children,
                disk: 0,
            };
        }
        let io = fs::read_to_string(format!("/proc/{}/io", stat.pid)).unwrap_or_default();
        let bytes = |name: &str| {
            let value = io.lines().find_map(|l| l.strip_prefix(name));
            value.and_then(|v| v.trim().parse().ok()).unwrap_or(0u64)
        };
        Used {
            cpu: TICK * ticks(11).saturating_add(ticks(12)) + children,
            disk: bytes("read_bytes:").saturating_add(bytes("write_bytes:")),
        }
    }
}
