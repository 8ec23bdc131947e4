//! The deadlines of one leaf: what is asked for, and when which of them is over.
//!
//! `Watchdog` is pure: it is told what was seen and at what time, and says how long to wait, what to measure and whether
//! to end the leaf. It keeps two clocks, both monotonic and standing still while the machine is suspended:
//!
//! - the *wall*, from the spawn on. It never pauses.
//! - *patience*, by which the other deadlines are measured. It pauses while the leaf is suspended (stopped by a signal or a
//!   debugger) and while a wait lasts that the agent has announced, and of the time between two looks it counts
//!   no more than was planned: who was itself stopped meanwhile has not seen that the leaf was idle.
//!
//! The rules:
//!
//! - *first sign*: nothing on either stream since the spawn. Until then idle does not count.
//! - *idle*: nothing new on either stream and no change of the transcript. When a tool call is open, and the processes below the
//!   leaf have used processor or disk in the second half of that time, the leaf gets the same time once more. Only once: after
//!   that nothing but a sign of life helps, and the next silence starts afresh.
//! - *lingering*: so long after the final result the leaf is ended. It has answered. A result is not final when a turn
//!   begins or a tool call is opened after it. A leaf that has given its result is not idle, and answered also when its wall
//!   time comes first.
//! - *wait*: over at the announced time, or with the first sign that the agent works again.

use super::signs::{Heard, Sign};
use crate::leaf::end::KillWhy;
use crate::leaf::raw::Raw;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// The most tool calls that are kept track of at once; agents open a handful.
const MAX_OPEN: usize = 1024;

/// The deadlines of a leaf that streams what it does, beside the wall time that every leaf has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Watch {
    /// How long it may take until it first writes to either stream.
    pub first_sign: Option<Duration>,
    /// How long it may be silent.
    pub idle: Option<Duration>,
    /// How long it may go on after its final result.
    pub lingering: Option<Duration>,
    /// The agent's own transcript, a file or a folder: a change of it is a sign of life.
    pub transcript: Option<PathBuf>,
    /// What lines of its standard output mean.
    pub signs: Vec<Sign>,
}

/// A watch as it is handed to the shim.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::leaf) struct Orders {
    first_sign_ms: Option<u64>,
    idle_ms: Option<u64>,
    lingering_ms: Option<u64>,
    pub(in crate::leaf) transcript: Option<Raw>,
    pub(in crate::leaf) signs: Vec<Sign>,
}

impl From<&Watch> for Orders {
    fn from(watch: &Watch) -> Orders {
        let millis =
            |d: Option<Duration>| d.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
        Orders {
            first_sign_ms: millis(watch.first_sign),
            idle_ms: millis(watch.idle),
            lingering_ms: millis(watch.lingering),
            transcript: watch.transcript.as_ref().map(Raw::new),
            signs: watch.signs.clone(),
        }
    }
}

/// What a look at the leaf shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::leaf) struct Seen {
    /// How much it has written to both streams, in bytes.
    pub(in crate::leaf) written: u64,
    /// What its transcript looks like: any number that changes with it.
    pub(in crate::leaf) transcript: u64,
    /// Whether it is suspended.
    pub(in crate::leaf) suspended: bool,
}

/// What is to be done after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::leaf) enum Next {
    /// Look again, at the latest after so long.
    Wait(Duration),
    /// Measure what the processes below the leaf use, hand it to `measured`, and look again.
    Measure,
    /// End the leaf.
    End(KillWhy),
}

/// How far the use of processor and disk in the present silence is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measured {
    Nothing,
    /// At half of the time.
    Begun,
    /// At its end: whether they were in use in between.
    Whole(bool),
}

/// The deadlines of a running leaf. All times are since its spawn.
pub(in crate::leaf) struct Watchdog {
    wall: Duration,
    first_sign: Option<Duration>,
    idle: Option<Duration>,
    lingering: Option<Duration>,
    /// The last look: when, what it showed, and how long after it the next one was planned.
    looked: Duration,
    seen: Seen,
    planned: Duration,
    /// The time by the clock of patience.
    patience: Duration,
    /// When patience last began to be tried.
    quiet_since: Duration,
    measured: Measured,
    waits_until: Duration,
    open: HashSet<String>,
    /// By the clock of patience.
    result_at: Option<Duration>,
}

impl Watchdog {
    pub(in crate::leaf) fn new(wall: Duration, orders: &Orders) -> Watchdog {
        let millis = |ms: Option<u64>| ms.map(Duration::from_millis);
        Watchdog {
            wall,
            first_sign: millis(orders.first_sign_ms),
            idle: millis(orders.idle_ms),
            lingering: millis(orders.lingering_ms),
            looked: Duration::ZERO,
            seen: Seen::default(),
            planned: Duration::ZERO,
            patience: Duration::ZERO,
            quiet_since: Duration::ZERO,
            measured: Measured::Nothing,
            waits_until: Duration::ZERO,
            open: HashSet::new(),
            result_at: None,
        }
    }

    /// Takes in a look and what was heard since the last one, and says what is next; `most` is the longest that the caller
    /// wants to wait.
    pub(in crate::leaf) fn look(
        &mut self,
        now: Duration,
        seen: Seen,
        heard: Vec<Heard>,
        most: Duration,
    ) -> Next {
        self.count(now, seen.suspended);
        if (seen.written, seen.transcript) != (self.seen.written, self.seen.transcript) {
            self.alive();
        }
        self.seen = seen;
        for heard in heard {
            self.hear(heard, now);
        }
        let Some(left) = self.wall.checked_sub(now).filter(|d| !d.is_zero()) else {
            return Next::End(match self.result_at {
                Some(_) => KillWhy::Lingering,
                None => KillWhy::Wall,
            });
        };
        match self.patience_left() {
            Ok(patience) => {
                // A timer that is set for less than it can measure would have the caller spin.
                let wait = left.min(patience).min(most).max(Duration::from_millis(1));
                self.planned = wait;
                Next::Wait(wait)
            }
            Err(next) => next,
        }
    }

    fn hear(&mut self, heard: Heard, now: Duration) {
        self.alive();
        // Whatever else it says, it works again.
        self.waits_until = Duration::ZERO;
        match heard {
            Heard::Waits(wait) => self.waits_until = now.saturating_add(wait),
            Heard::Result => {
                self.result_at = Some(self.patience);
                self.open.clear();
            }
            Heard::Begun => self.result_at = None,
            Heard::Opened(id) => {
                self.result_at = None;
                if self.open.len() < MAX_OPEN {
                    self.open.insert(id);
                }
            }
            Heard::Closed(id) => drop(self.open.remove(&id)),
        }
    }

    /// Takes in whether the processes below the leaf have used processor or disk since the last time they were measured.
    pub(in crate::leaf) fn measured(&mut self, busy: bool) {
        self.measured = match self.measured {
            Measured::Nothing => Measured::Begun,
            Measured::Begun | Measured::Whole(_) => Measured::Whole(busy),
        };
    }

    fn count(&mut self, now: Duration, suspended: bool) {
        let gap = now.saturating_sub(self.looked);
        let waited = self.waits_until.min(now).saturating_sub(self.looked);
        if !suspended && !self.seen.suspended {
            self.patience += gap.saturating_sub(waited).min(self.planned);
        }
        self.looked = now;
    }

    fn alive(&mut self) {
        self.quiet_since = self.patience;
        self.measured = Measured::Nothing;
    }

    /// How long until the next thing that patience is measured for, or that thing.
    fn patience_left(&self) -> Result<Duration, Next> {
        if let Some(result_at) = self.result_at {
            return self.until(result_at, self.lingering, KillWhy::Lingering);
        }
        if self.first_sign.is_some() && self.seen.written == 0 {
            return self.until(Duration::ZERO, self.first_sign, KillWhy::FirstSign);
        }
        let Some(idle) = self.idle else {
            return Ok(Duration::MAX);
        };
        let quiet = self.patience.saturating_sub(self.quiet_since);
        if self.open.is_empty() {
            return self.until(self.quiet_since, self.idle, KillWhy::Idle);
        }
        let until = |mark: Duration| mark.checked_sub(quiet).filter(|d| !d.is_zero());
        match self.measured {
            Measured::Nothing => until(idle / 2).ok_or(Next::Measure),
            Measured::Begun => until(idle).ok_or(Next::Measure),
            Measured::Whole(true) => until(idle.saturating_mul(2)).ok_or(Next::End(KillWhy::Idle)),
            Measured::Whole(false) => until(idle).ok_or(Next::End(KillWhy::Idle)),
        }
    }

    fn until(
        &self,
        since: Duration,
        limit: Option<Duration>,
        why: KillWhy,
    ) -> Result<Duration, Next> {
        let Some(limit) = limit else {
            return Ok(Duration::MAX);
        };
        match limit.checked_sub(self.patience.saturating_sub(since)) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(Next::End(why)),
        }
    }
}

#[cfg(test)]
mod tests;
