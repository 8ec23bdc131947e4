//! Suites that have run and now wait for changes: noticed within seconds, and not at their deadline.
//!
//! To end a suite that works is worse than to wait for one that does not. So its own words are not enough: they stand at
//! the end of what it has printed, nothing follows them for a while, and meanwhile no process of its tree begins, ends or
//! works.

use super::waiters::{WAITERS, Waiter};
use crate::leaf::Seen;
use crate::untrusted;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long nothing is printed until the end of the output is read at all.
const SETTLED: Duration = Duration::from_millis(500);

/// How long, from then on, nothing may happen.
const QUIET: Duration = Duration::from_secs(5);

/// The same where processes cannot be seen.
const QUIET_UNSEEN: Duration = Duration::from_secs(15);

/// How much of the output's end is read, in bytes.
const TAIL: u64 = 4096;

/// Among how many of its last lines the words must stand, empty ones aside: a menu of keys may follow them.
const LAST: usize = 4;

/// A program that waits for changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits {
    /// Its name.
    pub tool: &'static str,
    /// What to run instead.
    pub instead: &'static str,
}

/// Watches one run for the moment in which it waits for changes.
#[derive(Debug)]
pub struct Waiting {
    log: PathBuf,
    length: u64,
    /// Since when it has that length.
    since: Instant,
    quiet: Quiet,
}

/// What is known of the quiet since the last that was printed.
#[derive(Debug)]
enum Quiet {
    /// The end of the output is not read yet.
    Unread,
    /// It says nothing of waiting.
    Dull,
    /// It does, and so the processes looked then.
    Suspect(Vec<Waiter>, Instant, Option<Seen>),
}

impl Waiting {
    /// Watches what is printed into a file.
    pub fn on(log: &Path, now: Instant) -> Waiting {
        Waiting {
            log: log.to_owned(),
            length: 0,
            since: now,
            quiet: Quiet::Unread,
        }
    }

    /// To be called over and over: says when it waits. `below` looks at the processes, and is seldom asked.
    pub fn look(&mut self, now: Instant, below: &mut dyn FnMut() -> Option<Seen>) -> Option<Waits> {
        let length = std::fs::symlink_metadata(&self.log).map_or(0, |about| about.len());
        if length != self.length {
            (self.length, self.since, self.quiet) = (length, now, Quiet::Unread);
            return None;
        }
        match &self.quiet {
            Quiet::Dull => None,
            Quiet::Unread => {
                if length > 0 && now.saturating_duration_since(self.since) >= SETTLED {
                    let waiters = self.suspects();
                    self.quiet = match waiters.is_empty() {
                        true => Quiet::Dull,
                        false => suspect(waiters, now, below()),
                    };
                }
                None
            }
            Quiet::Suspect(waiters, at, before) => {
                let quiet = now.saturating_duration_since(*at);
                let needed = if before.is_some() {
                    QUIET
                } else {
                    QUIET_UNSEEN
                };
                if quiet < needed {
                    return None;
                }
                let seen = below();
                let rested = match (before, &seen) {
                    (Some(before), Some(seen)) => seen.has_rested_since(before, quiet),
                    (before, seen) => before.is_none() && seen.is_none(),
                };
                if let (Some(waiter), true) = (waiters.first(), rested) {
                    return Some(Waits {
                        tool: waiter.tool,
                        instead: waiter.instead,
                    });
                }
                self.quiet = suspect(waiters.clone(), now, seen);
                None
            }
        }
    }

    /// Who prints what stands at the end.
    fn suspects(&self) -> Vec<Waiter> {
        let tail = untrusted::tail(&self.log, TAIL);
        let text = tail.map_or(String::new(), |(bytes, _)| {
            untrusted::plain(&String::from_utf8_lossy(&bytes))
        });
        let lines = text.lines().map(str::trim).rev().filter(|l| !l.is_empty());
        let last: Vec<&str> = lines.take(LAST).collect();
        let says = |waiter: &&Waiter| last.iter().any(|line| waiter.says(line));
        WAITERS.iter().filter(says).copied().collect()
    }
}

fn suspect(mut waiters: Vec<Waiter>, now: Instant, seen: Option<Seen>) -> Quiet {
    // Where no command line can be seen, only the words can tell.
    let arguments = seen.as_ref().map_or(&[][..], |seen| &seen.arguments);
    waiters.retain(|waiter| waiter.is_run_as(arguments));
    match waiters.is_empty() {
        true => Quiet::Dull,
        false => Quiet::Suspect(waiters, now, seen),
    }
}

#[cfg(test)]
mod tests;
