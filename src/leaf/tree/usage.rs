//! What the processes below a shim use of processor and disk, and whether that is work: asked of a leaf that is silent, and
//! of a suite that may only be waiting.

use super::process::{self, CLOCK_TICK, Stat};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Below this part of the time the processor counts as unused: timers of an idle program take less.
const IDLE_SHARE: u32 = 50;

/// Disk use that counts, in bytes: less is a log line.
const DISK: u64 = 4096;

/// A process by pid and start time.
type Id = (i32, u64);

/// What the processes have used by one look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Used {
    living: BTreeMap<Id, Account>,
    /// By all that have ended and were waited for, in clock ticks.
    ended: u64,
}

/// What one of them has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Account {
    /// Its parent's pid.
    parent: i32,
    /// In clock ticks, by itself alone.
    ticks: u64,
    /// Read and written, in bytes; with what it has waited for, which the kernel does not tell apart.
    disk: u64,
}

impl Used {
    /// By the descendants `below` a shim. Of the one that is `apart`, only what its ended children have used counts, and no
    /// disk.
    pub(in crate::leaf) fn by(shim: &Stat, below: &[Stat], apart: Option<Pid>) -> Used {
        let account = |stat: &Stat| {
            let counts = Some(stat.pid) != apart;
            Account {
                parent: stat.parent.as_raw(),
                ticks: if counts { stat.own_ticks } else { 0 },
                disk: if counts { disk(stat.pid) } else { 0 },
            }
        };
        Used {
            living: below.iter().map(|s| (s.id(), account(s))).collect(),
            // The shim itself only for those it has taken in and reaped.
            ended: below.iter().chain([shim]).map(|s| s.ended_ticks).sum(),
        }
    }

    /// As `by`, out of a look at all processes; nothing where they cannot be seen.
    pub(in crate::leaf) fn below(shim: Pid, apart: Option<Pid>) -> Used {
        let all = process::all();
        let own = all.iter().find(|s| s.pid == shim);
        own.map_or_else(Used::default, |own| {
            Used::by(own, &process::descendants(shim, &all), apart)
        })
    }

    /// Whether the same processes live as before.
    pub fn is_by_the_same_as(&self, before: &Used) -> bool {
        self.living.keys().eq(before.living.keys())
    }

    /// Whether so much was used in the time since another look that something was at work.
    pub fn is_work_since(&self, before: &Used, time: Duration) -> bool {
        let ticks = u32::try_from(self.ticks_since(before)).unwrap_or(u32::MAX);
        let processor = CLOCK_TICK.saturating_mul(ticks);
        processor >= (time / IDLE_SHARE).max(CLOCK_TICK) || self.disk_since(before) >= DISK
    }

    fn gone<'u>(&'u self, before: &'u Used) -> impl Iterator<Item = &'u Account> {
        let gone = before.living.iter();
        gone.filter(|(id, _)| !self.living.contains_key(id))
            .map(|(_, account)| account)
    }

    /// What ended meanwhile is in the account of whoever waited for it, with what it had used before.
    fn ticks_since(&self, before: &Used) -> u64 {
        let had_used: u64 = self.gone(before).map(|account| account.ticks).sum();
        let ended = self.ended.saturating_sub(before.ended);
        let own = self.living.iter().map(|(id, now)| {
            let then = before.living.get(id).map_or(0, |then| then.ticks);
            now.ticks.saturating_sub(then)
        });
        ended.saturating_sub(had_used) + own.sum::<u64>()
    }

    /// As `ticks_since`, but each heir's account by itself: that of one that is apart is not looked at, and what it inherits
    /// must not hide what others use.
    fn disk_since(&self, before: &Used) -> u64 {
        let mut then: BTreeMap<Id, u64> = BTreeMap::new();
        for (id, account) in &before.living {
            if let Some(heir) = self.heir(*id, before) {
                *then.entry(heir).or_default() += account.disk;
            }
        }
        let living = self.living.iter().map(|(id, now)| {
            let then = then.get(id).copied().unwrap_or_default();
            now.disk.saturating_sub(then)
        });
        living.sum()
    }

    /// In whose account a process is by now: its own as long as it lives, else that of the nearest that lived above it. None
    /// for the shim's.
    fn heir(&self, id: Id, before: &Used) -> Option<Id> {
        let mut at = id;
        // Ends: each step leads to a parent, and there are no more of them.
        for _ in 0..=before.living.len() {
            if self.living.contains_key(&at) {
                return Some(at);
            }
            let parent = before.living.get(&at)?.parent;
            at = *before.living.range((parent, 0)..).next()?.0;
            if at.0 != parent {
                return None;
            }
        }
        None
    }

    #[cfg(test)]
    pub(crate) fn of(living: &[Id], ended: u64) -> Used {
        let living = living.iter().map(|id| (*id, Account::default()));
        Used {
            living: living.collect(),
            ended,
        }
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

    /// Of processes: pid, parent, ticks, bytes.
    fn used(living: &[(i32, i32, u64, u64)], ended: u64) -> Used {
        let account = |&(pid, parent, ticks, disk): &(i32, i32, u64, u64)| {
            let account = Account {
                parent,
                ticks,
                disk,
            };
            ((pid, 1), account)
        };
        Used {
            living: living.iter().map(account).collect(),
            ended,
        }
    }

    #[test]
    fn what_ended_meanwhile_has_not_used_again_what_it_had_used_before() {
        let before = used(&[(2, 1, 500, 0), (3, 1, 10, 0)], 40);
        let ticks = |after: Used| after.ticks_since(&before);
        assert_eq!(ticks(used(&[(2, 1, 500, 0), (3, 1, 10, 0)], 40)), 0);
        let one_more = [(2, 1, 503, 0), (3, 1, 10, 0), (4, 1, 2, 0)];
        assert_eq!(ticks(used(&one_more, 40)), 5);
        // Process 2 ended: what it had used is in another's account now, and what it used since.
        assert_eq!(ticks(used(&[(3, 1, 10, 0)], 540)), 0);
        assert_eq!(ticks(used(&[(3, 1, 10, 0)], 547)), 7);
        // Nobody waited for it: its account is gone.
        assert_eq!(ticks(used(&[(3, 1, 14, 0)], 40)), 4);
    }

    #[test]
    fn disk_that_a_process_used_before_it_ended_is_not_used_again_by_whoever_waited_for_it() {
        // 3 and 4 below 2 below the leaf, which is apart; 5 below the leaf.
        let leaf = (9, 1, 0, 0);
        let before = used(
            &[
                leaf,
                (2, 9, 0, 10),
                (3, 2, 0, 1000),
                (4, 3, 0, 500),
                (5, 9, 0, 70),
            ],
            0,
        );
        let disk = |after: &[(i32, i32, u64, u64)]| used(after, 0).disk_since(&before);
        assert_eq!(disk(&[leaf, (2, 9, 0, 1510), (5, 9, 0, 70)]), 0);
        assert_eq!(disk(&[leaf, (2, 9, 0, 1517), (5, 9, 0, 72)]), 9);
        // What the leaf, or the shim, has waited for hides nothing of the others.
        assert_eq!(disk(&[leaf, (5, 9, 0, 75)]), 5);
        assert_eq!(disk(&[(5, 9, 0, 75)]), 5);
        // A process that is new has used all that it has.
        let all = [
            leaf,
            (2, 9, 0, 10),
            (3, 2, 0, 1000),
            (4, 3, 0, 500),
            (5, 9, 0, 70),
            (6, 9, 0, 3),
        ];
        assert_eq!(disk(&all), 3);
    }

    #[test]
    fn a_fiftieth_of_the_time_or_a_block_is_work_and_less_is_none() {
        let idle = used(&[(2, 1, 100, 0)], 0);
        let work = |ticks: u64, disk: u64, seconds: u64| {
            used(&[(2, 1, 100 + ticks, disk)], 0).is_work_since(&idle, Duration::from_secs(seconds))
        };
        assert!(work(10, 0, 5) && work(0, DISK, 5) && work(1, 0, 0));
        assert!(!work(9, DISK - 1, 5) && !work(0, 0, 0));
    }
}
