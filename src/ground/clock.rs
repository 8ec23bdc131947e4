//! Modification times: build tools trust them, some to the whole second only.
//!
//! Two kinds of tools read them. *Rememberers* (Python's byte code, mypy, bootsnap) keep a source's time in whole
//! seconds beside its size, and take the source for unchanged while both are equal. *Comparers* (cargo, make,
//! ninja) take an output for current while it is no older than its source. So a file that is laid gets a time
//!
//! - not before now: it is newer than whatever was built here from an older version;
//! - in a later whole second than every time that its own path carried: the one that it was laid with, those that
//!   a suite gave it, and those of what was removed from its path (or from a folder above it);
//! - and a suite starts only when that time is past, so that what is built from the file is newer than it; and when
//!   the kernel's clock has moved on since the file came to its place, so that no write of the suite's is overlooked.
//!
//! Only a path that is written twice within a second gets a time ahead of the clock, and only then is it waited
//! for. What a path carried before the current second cannot be given again, so that little has to be kept:
//! the record says what each standing file was laid with, and [`Clock::gone`] holds the removals of this second.
//!
//! A clock that was set back a little is outrun: no time is given before the latest reading that this ground has
//! seen. When it was set back further, what was built claims a future, and the ground is made anew.
//!
//! Not guaranteed: times in the future that a suite made up itself (they are not outdone, only avoided as long
//! as they are within a second); comparers that read whole seconds only (bmake, make 3.81 on macOS), for which
//! an edit must come a second after the build; file systems that store whole seconds; a link that is pointed
//! at another file of the same second and size; folders, which carry the kernel's own times; and what setup
//! commands write.

use super::path::TreePath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The step between two times that every build tool tells apart.
const STEP: Duration = Duration::from_secs(1);

/// File systems stamp with the kernel's tick, which lags the clock by up to 10 ms.
const TICK: Duration = Duration::from_millis(10);

/// A clock that is further behind than this was set back: its own corrections are smaller.
const BEHIND: Duration = Duration::from_secs(10);

/// How many removals of one second are kept apart; more of them count as one, of everything.
const REMOVALS: usize = 1000;

/// A time since the epoch.
pub(super) type Stamp = Duration;

/// The wall clock.
pub(super) fn now() -> Stamp {
    // This is the place: files carry wall-clock times, and these are compared with them.
    #[allow(clippy::disallowed_methods)]
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// What a ground knows about times. It reads no clock: it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Clock {
    /// The latest time that was given to a file, or that one is known by.
    given: Stamp,
    /// The latest reading of the wall clock: nothing that was built here is newer.
    seen: Stamp,
    /// Whether the last reading was before that: then what suites wrote since carries times that were there before.
    #[serde(skip)]
    behind: bool,
    /// When something was removed from these paths, if that was in the second of `seen`.
    #[serde(with = "pairs")]
    gone: BTreeMap<TreePath, Stamp>,
}

/// A map as a list of pairs: the keys of JSON are text, and paths need not be.
mod pairs {
    use super::{BTreeMap, Stamp, TreePath};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<TreePath, Stamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<TreePath, Stamp>, D::Error> {
        Ok(Vec::deserialize(from)?.into_iter().collect())
    }
}

impl Clock {
    /// Takes a reading of the wall clock.
    pub(super) fn read(&mut self, now: Stamp) {
        self.behind = now < self.seen;
        self.seen = self.seen.max(now);
        let second = self.seen.as_secs();
        self.gone.retain(|_, at| at.as_secs() >= second);
    }

    /// Whether the clock was set back further than can be outrun.
    pub(super) fn went_back(&self, now: Stamp) -> bool {
        self.seen > now + BEHIND
    }

    /// Notes that what stands at a path, and below it, is about to be removed or is found to be.
    pub(super) fn removed(&mut self, path: &[u8]) {
        if self.gone.len() < REMOVALS {
            self.gone.insert(path.to_vec(), self.seen);
        } else {
            self.gone = BTreeMap::from([(TreePath::new(), self.seen)]);
        }
    }

    /// Whether one of these times, which files carry, is one that has to be waited for before they are replaced:
    /// else times would run ahead of the clock further with every file that is laid and replaced at once.
    pub(super) fn ahead(&self, carried: &[Stamp]) -> bool {
        carried
            .iter()
            .any(|at| *at > self.seen && *at <= self.seen + STEP)
    }

    /// The time for a file that is laid at a path, where files have carried these times.
    pub(super) fn give(&mut self, path: &[u8], carried: &[Stamp]) -> Stamp {
        let gone = above(path).filter_map(|above| self.gone.get(above));
        let last = carried
            .iter()
            // Whoever made up a future is not outdone: its second is another one already.
            .filter(|at| **at <= self.seen + STEP)
            .chain(gone)
            .chain(self.behind.then_some(&self.seen))
            .max();
        let stamp = match last {
            Some(last) if last.as_secs() >= self.seen.as_secs() => {
                Duration::from_secs(last.as_secs() + 1)
            }
            _ => self.seen,
        };
        self.given = self.given.max(stamp);
        stamp
    }

    /// Notes the change time that a laid file is known by. A suite must not write within the same tick of the kernel's
    /// clock, or what it did to that file would leave no trace.
    pub(super) fn known_by(&mut self, changed: Stamp) {
        self.given = self.given.max(changed);
    }

    /// The time that must be past before anything may read the files.
    pub(super) fn due(&self) -> Stamp {
        self.given
    }
}

/// A path and all that it lies in, the root included.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let folders = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    [&path[..0], path]
        .into_iter()
        .chain(folders.map(|(at, _)| &path[..at]))
}

/// Waits until a time is past. Bounded: no time is given that is further ahead than [`BEHIND`] and two steps.
pub(super) fn settle(stamp: Stamp) {
    let until = stamp + TICK;
    for _ in 0..64 {
        let Some(left) = until
            .checked_sub(now())
            .filter(|left| !left.is_zero() && *left <= BEHIND + STEP + STEP)
        else {
            return;
        };
        std::thread::sleep(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const S: fn(u64) -> Duration = Duration::from_secs;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(now: Stamp) -> Clock {
        let mut clock = Clock::default();
        clock.read(now);
        clock
    }

    #[test]
    fn only_a_path_that_is_written_twice_in_a_second_is_waited_for() {
        let now = S(100) + MS(300);
        let mut clock = at(now);
        assert_eq!(clock.give(b"new", &[]), now);
        assert_eq!(clock.give(b"old", &[S(99) + MS(999)]), now);
        assert_eq!(clock.due(), now);
        assert_eq!(clock.give(b"twice", &[S(100) + MS(1)]), S(101));
        assert_eq!(clock.give(b"another", &[]), now, "a clock per path");
        assert_eq!(clock.due(), S(101));
        assert!(clock.ahead(&[S(101)]));
        assert_eq!(clock.give(b"made up", &[S(4_000_000_000)]), now);
        assert!(!clock.ahead(&[S(4_000_000_000)]));
    }

    #[test]
    fn what_comes_back_within_a_second_is_later_than_what_went_wherever_the_removal_was_made() {
        for removed in [&b"a/b/c"[..], b"a/b", b"a"] {
            let mut clock = at(S(100) + MS(200));
            clock.removed(removed);
            assert_eq!(clock.give(b"a/b/c", &[]), S(101));
            assert_eq!(clock.give(b"a.b", &[]), S(100) + MS(200));
            clock.read(S(101));
            assert_eq!(clock.give(b"a/b/c", &[]), S(101), "the second is over");
            assert!(clock.gone.is_empty());
        }
    }

    #[test]
    fn more_removals_than_are_kept_apart_count_for_every_path() {
        let mut clock = at(S(100));
        for n in 0..=REMOVALS {
            clock.removed(format!("f{n}").as_bytes());
        }
        assert_eq!(clock.gone.len(), 1);
        assert_eq!(clock.give(b"f1", &[]), S(101));
        assert_eq!(clock.give(b"x/y", &[]), S(101));
    }

    #[test]
    fn a_clock_that_was_set_back_is_outrun_or_seen() {
        let mut clock = at(S(200));
        assert!(clock.went_back(S(100)));
        assert!(!clock.went_back(S(195)));
        clock.read(S(195));
        assert_eq!(
            clock.give(b"a", &[]),
            S(201),
            "neither newer nor remembered is what was built at 200"
        );
    }

    #[test]
    fn no_suite_writes_within_the_tick_in_which_the_last_file_came_to_its_place() {
        let mut clock = at(S(100));
        let given = clock.give(b"laid", &[]);
        // Laying many files takes a while.
        clock.known_by(given + MS(400));
        assert_eq!(clock.due(), given + MS(400));
        clock.known_by(given);
        assert_eq!(clock.due(), given + MS(400));
    }

    #[test]
    fn settling_waits_for_the_near_future_only() {
        let stamp = now() + Duration::from_millis(30);
        settle(stamp);
        assert!(now() > stamp);
        let started = std::time::Instant::now();
        settle(now() + S(3600));
        assert!(started.elapsed() < S(60));
    }

    /// What may happen in a ground.
    #[derive(Debug, Clone)]
    enum Op {
        Pass(u64),
        SetBack(u64),
        Lay(usize),
        Remove(usize),
        RemoveFolder,
        Suite,
        /// A suite writes the file, builds from it, and then sets this time if any.
        Touch(usize, Option<u64>),
    }

    const PATHS: [&str; 4] = ["m.py", "d/a.py", "d/b.py", "d/e/c.py"];

    fn op() -> impl Strategy<Value = Op> {
        let path = 0..PATHS.len();
        prop_oneof![
            3 => (1..1500u64).prop_map(Op::Pass),
            1 => (1..3000u64).prop_map(Op::SetBack),
            6 => path.clone().prop_map(Op::Lay),
            2 => path.clone().prop_map(Op::Remove),
            1 => Just(Op::RemoveFolder),
            4 => Just(Op::Suite),
            2 => (path, prop_oneof![
                Just(None), Just(Some(7)), Just(Some(4_000_000_000))
            ]).prop_map(|(path, to)| Op::Touch(path, to)),
        ]
    }

    /// A ground, a rememberer and a comparer, with a clock of their own.
    struct World {
        now: Stamp,
        clock: Clock,
        /// What each standing file carries: the time it was laid with, its change time, its modification time.
        standing: BTreeMap<usize, [Stamp; 3]>,
        /// Whole seconds that a rememberer has for each path.
        remembered: [BTreeSet<u64>; PATHS.len()],
        /// The newest output.
        built: Stamp,
    }

    impl World {
        fn build(&mut self) {
            for (path, carried) in &self.standing {
                self.remembered[*path].insert(carried[2].as_secs());
            }
            self.built = self.built.max(self.now);
        }

        fn lay(&mut self, path: usize) {
            let standing = self.standing.get(&path).copied();
            let carried = standing.as_ref().map_or(&[][..], |times| times);
            self.clock.read(self.now);
            if self.clock.ahead(carried) {
                self.now = self.now.max(self.clock.due() + TICK);
                self.clock.read(self.now);
            }
            let before = self.clock.seen;
            let stamp = self.clock.give(PATHS[path].as_bytes(), carried);
            assert!(!self.remembered[path].contains(&stamp.as_secs()));
            assert!(stamp >= self.now && stamp >= self.built);
            assert!(stamp <= before + STEP, "waits are short");
            self.standing.insert(path, [stamp; 3]);
        }

        fn does(&mut self, op: &Op) {
            match *op {
                Op::Pass(ms) => self.now += MS(ms),
                Op::SetBack(ms) => {
                    // A process that sees a clock always tells it: the ground was used up to now.
                    self.clock.read(self.now);
                    self.now = self.now.max(self.clock.seen) - MS(ms);
                }
                Op::Lay(path) => self.lay(path),
                Op::Remove(path) => {
                    self.clock.read(self.now);
                    if self.standing.remove(&path).is_some() {
                        self.clock.removed(PATHS[path].as_bytes());
                    }
                }
                Op::RemoveFolder => {
                    self.clock.read(self.now);
                    self.clock.removed(b"d");
                    self.standing
                        .retain(|path, _| !PATHS[*path].starts_with("d/"));
                }
                Op::Suite => {
                    self.now = self.now.max(self.clock.due() + TICK);
                    self.build();
                    self.clock.read(self.now);
                }
                Op::Touch(path, to) => {
                    self.now = self.now.max(self.clock.due() + TICK);
                    if let Some(carried) = self.standing.get_mut(&path) {
                        *carried = [carried[0], self.now, to.map_or(self.now, S)];
                        self.remembered[path].insert(self.now.as_secs());
                    }
                    self.build();
                    self.clock.read(self.now);
                }
            }
            // Set-backs of a ground in use never add up beyond what is outrun.
            assert!(!self.clock.went_back(self.now));
        }
    }

    proptest! {
        #[test]
        fn no_sequence_gives_a_time_that_a_tool_takes_for_an_older_version(
            ops in prop::collection::vec(op(), 0..60)
        ) {
            let mut world = World {
                now: S(1000) + MS(500),
                clock: Clock::default(),
                standing: BTreeMap::new(),
                remembered: Default::default(),
                built: Stamp::ZERO,
            };
            for op in &ops {
                world.does(op);
            }
        }
    }
}
