//! The locks that git calls of a killed conductor have left, told from those of somebody else.

use super::record::is_input;
use super::run::Run;
use crate::event::Kind;
use crate::leaf::{self, LaunchId};
use anyhow::Result;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Files bear the time of the kernel's coarse clock, which may lie behind the journal's.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// Which locks are those of a killed conductor.
pub(super) struct DeadLocks {
    /// Those that its start found and left; None when it was killed before it could say so.
    before: Option<Vec<PathBuf>>,
    /// When it began, by the clock of that time.
    since: SystemTime,
}

impl DeadLocks {
    /// Whether it is one of them. What that start found and left is not its own; all else is, whatever the clock has done
    /// since.
    fn hold(&self, lock: &Path, changed: SystemTime) -> bool {
        match &self.before {
            Some(before) => !before.iter().any(|other| other == lock),
            None => changed >= self.since,
        }
    }
}

impl Run<'_> {
    /// Ends what git calls of a killed conductor left running (a hook), and says which locks are theirs; None when the last
    /// start was not killed.
    pub(super) fn end_dead_gits(&self) -> Option<DeadLocks> {
        // `veri leaf` may have told something since, and is no start.
        let last = self.lines.iter().rev();
        let mut last = last.filter_map(|l| Some((l, LaunchId::parse(&l.run)?)));
        let Some((last, run)) = last.next() else {
            return Some(DeadLocks {
                before: None,
                since: SystemTime::UNIX_EPOCH,
            });
        };
        if last.fields.contains_key("ending") {
            return None;
        }
        leaf::sweep_launch(&run);
        let of_run = || self.lines.iter().filter(|l| l.run == last.run);
        let mut began =
            of_run().filter(|l| matches!(l.event, Kind::RunStart | Kind::Resume) && is_input(l));
        let before = began.next().map(|l| match l.fields.get("locks") {
            Some(Value::Array(locks)) => locks
                .iter()
                .filter_map(Value::as_str)
                .map(PathBuf::from)
                .collect(),
            _ => Vec::new(),
        });
        let first = of_run().next();
        let at = first.and_then(|l| l.ts.parse::<jiff::Timestamp>().ok());
        let millis = at.map_or(0, |at| u64::try_from(at.as_millisecond()).unwrap_or(0));
        let since =
            SystemTime::UNIX_EPOCH + Duration::from_millis(millis).saturating_sub(CLOCK_SLACK);
        Some(DeadLocks { before, since })
    }

    /// Removes the locks that git calls of a killed conductor, or of what it ran, have left.
    pub(super) fn remove_dead_locks(&mut self, locks: &DeadLocks) -> Result<()> {
        let is_its = |lock: &Path, changed| locks.hold(lock, changed);
        for lock in self.tree.stale_locks(self.issue_number, &is_its)? {
            let said = format!(
                "a lock that a killed git left is removed: {}",
                lock.display()
            );
            self.say(Kind::Resume, said)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the last start found belongs to whoever made it, though its git is killed by now and the lock is older or newer.
    #[test]
    fn a_lock_that_the_killed_start_found_is_never_taken_for_one_of_its_own() {
        let (own, others) = (Path::new("/g/HEAD.lock"), Path::new("/g/index.lock"));
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let locks = DeadLocks {
            before: Some(vec![others.to_owned()]),
            since,
        };
        for changed in [since - CLOCK_SLACK * 50, since, since + CLOCK_SLACK * 50] {
            assert!(
                locks.hold(own, changed),
                "whatever the clock has done since"
            );
            assert!(!locks.hold(others, changed));
        }
    }

    /// Killed before it could say what it found: only the time of change is left to tell them by.
    #[test]
    fn of_a_start_that_said_nothing_the_locks_are_those_made_since_it_began() {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let locks = DeadLocks {
            before: None,
            since,
        };
        let lock = Path::new("/g/index.lock");
        assert!(locks.hold(lock, since) && locks.hold(lock, since + CLOCK_SLACK));
        assert!(!locks.hold(lock, since - CLOCK_SLACK));
    }
}
