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
use crate::leaf::tree::process::Stat;
use crate::leaf::tree::usage::Used;
use nix::unistd::Pid;
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

/// The senses of one shim.
pub(in crate::leaf) struct Senses {
    leaf: Pid,
    began: Instant,
    /// Whether there is more to watch than the wall time.
    watching: bool,
    watchdog: Watchdog,
    hearing: Option<Hearing>,
    transcript: Option<PathBuf>,
    /// What the processes below the shim had used when they were last measured, and when that was. Of the leaf itself, only
    /// its ended children count: it is the agent that is suspected.
    measured: (Duration, Used),
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
            measured: Default::default(),
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
                    let used = Used::below(Pid::this(), Some(self.leaf));
                    let (at, before) = &self.measured;
                    let busy = used.is_work_since(before, now.saturating_sub(*at));
                    self.watchdog.measured(busy);
                    self.measured = (now, used);
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
        match len.checked_sub(self.at) {
            // There is more than can be caught up with: its end is read, where a result stands.
            Some(lag) if lag > MAX_LAG => {
                self.at = len - READ_AT_ONCE as u64;
                self.lines.lost();
            }
            Some(_) => {}
            // It was cut off.
            None => {
                self.at = len;
                self.lines.lost();
            }
        }
        let now = jiff::Timestamp::now().as_millisecond();
        let mut heard = Vec::new();
        let mut piece = vec![0; READ_AT_ONCE.min(64 << 10)];
        let before = self.at;
        for _ in 0..READ_AT_ONCE / piece.len() {
            let Ok(read @ 1..) = self.file.read_at(&mut piece, self.at) else {
                break;
            };
            self.at += read as u64;
            let piece = piece.get(..read).unwrap_or_default();
            self.lines
                .feed(piece, |line| heard.extend(self.ear.hear(line, now)));
        }
        if self.at == before {
            self.lines.rest(|line| {
                heard = self.ear.hear(line, now);
                !heard.is_empty()
            });
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
