//! What the shim sees and hears of its leaf while that runs, for its watchdog: what is new in the output, whether the transcript
//! changes, whether the leaf is suspended, and what the processes below it use.
//!
//! What is not there (no `/proc`, a transcript that does not exist yet) shows no change: the deadlines then hold as if
//! the leaf were silent, and never suspended.

use super::lines::Lines;
use super::signs::{Ear, Heard};
use super::watchdog::{Next, Orders, Seen, Watchdog};
use crate::leaf::end::KillWhy;
use crate::leaf::output::Output;
use crate::leaf::tree::process::{self, CLOCK_TICK, Stat};
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

/// The senses of one shim.
pub(in crate::leaf) struct Senses {
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
    pub(in crate::leaf) fn new(
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
    pub(in crate::leaf) fn look(
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

/// Whether the leaf is stopped. Of the leaf alone: what it has stopped below itself is its own affair.
fn is_suspended(leaf: Pid) -> bool {
    Stat::of(leaf).is_some_and(|stat| stat.is_suspended())
}

/// What the processes below the shim had used when they were last measured.
#[derive(Default)]
struct Usage {
    at: Duration,
    used: Used,
}

/// What they have used.
#[derive(Default)]
struct Used {
    /// Each of those that live, in clock ticks and bytes.
    living: HashMap<(i32, u64), (u64, u64)>,
    /// All that have ended, in clock ticks.
    ended: u64,
}

impl Usage {
    /// Whether the processes below the leaf have used processor or disk since the last time: a hundredth of the time, or a
    /// block.
    fn busy(&mut self, leaf: Pid, now: Duration) -> bool {
        let time = now.saturating_sub(self.at);
        let used = Used::below(Pid::this(), leaf);
        let (ticks, disk) = used.since(&self.used);
        (self.at, self.used) = (now, used);
        let ticks = CLOCK_TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
        ticks >= (time / IDLE_SHARE).max(CLOCK_TICK) || disk >= DISK
    }
}

impl Used {
    /// Of the leaf itself, only what its ended children have used counts: it is the agent that is suspected.
    fn below(shim: Pid, leaf: Pid) -> Used {
        let all = process::all();
        let below = process::descendants(shim, &all);
        // The shim itself only for those it has taken in and reaped.
        let accounts = below.iter().chain(all.iter().find(|s| s.pid == shim));
        Used {
            ended: accounts.map(|s| s.ended_ticks).sum(),
            living: below
                .iter()
                .filter(|s| s.pid != leaf)
                .map(|s| (s.id(), (s.own_ticks, disk(s.pid))))
                .collect(),
        }
    }

    /// What was used meanwhile. What ended meanwhile is in the account of whoever waited for it, with what it had used
    /// before.
    fn since(&self, before: &Used) -> (u64, u64) {
        let known = |id| before.living.get(id).copied().unwrap_or_default();
        let gone = before
            .living
            .iter()
            .filter(|(id, _)| !self.living.contains_key(id));
        let had_used: u64 = gone.map(|(_, (ticks, _))| ticks).sum();
        let grown = self.ended.saturating_sub(before.ended);
        let living = self.living.iter().map(|(id, (ticks, disk))| {
            let (ticks_before, disk_before) = known(id);
            (
                ticks.saturating_sub(ticks_before),
                disk.saturating_sub(disk_before),
            )
        });
        living.fold(
            (grown.saturating_sub(had_used), 0),
            |(ticks, disk), (t, d)| (ticks + t, disk + d),
        )
    }
}

/// What a process has read from disk and written to it, in bytes.
fn disk(pid: Pid) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let bytes = |name: &str| {
        let value = io.lines().find_map(|l| l.strip_prefix(name));
        value.and_then(|v| v.trim().parse().ok()).unwrap_or(0u64)
    };
    bytes("read_bytes:").saturating_add(bytes("write_bytes:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(living: &[(i32, u64)], ended: u64) -> Used {
        let living = living.iter().map(|(pid, ticks)| ((*pid, 1), (*ticks, 0)));
        Used {
            living: living.collect(),
            ended,
        }
    }

    #[test]
    fn what_ended_meanwhile_has_not_used_again_what_it_had_used_before() {
        let before = used(&[(2, 500), (3, 10)], 40);
        let ticks = |after: Used| after.since(&before).0;
        assert_eq!(ticks(used(&[(2, 500), (3, 10)], 40)), 0);
        assert_eq!(ticks(used(&[(2, 503), (3, 10), (4, 2)], 40)), 5);
        // Process 2 ended: what it had used is in another's account now, and what it used since.
        assert_eq!(ticks(used(&[(3, 10)], 540)), 0);
        assert_eq!(ticks(used(&[(3, 10)], 547)), 7);
        // Nobody waited for it: its account is gone.
        assert_eq!(ticks(used(&[(3, 14)], 40)), 4);
    }
}
