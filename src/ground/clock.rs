//! Modification times: build tools trust them, some to the whole second only.
//!
//! A file of the same size that is replaced within a second looks unchanged to Python's byte code and to others
//! that compare whole seconds. So every file gets a time one second or more after all that were given before,
//! and a suite starts only when that time is past.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The step between two times that every build tool tells apart.
const STEP: Duration = Duration::from_secs(1);

/// File systems stamp with the kernel's tick, which lags the clock by up to 10 ms.
const TICK: Duration = Duration::from_millis(10);

/// A recorded time further ahead than this means that the clock was set back.
const AHEAD: Duration = Duration::from_secs(10);

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

/// The time for files that are written now, given the latest that was given before.
pub(super) fn next(now: Stamp, last: Stamp) -> Stamp {
    now.max(last + STEP)
}

/// The time for a file that replaces one: later than it by a second, unless that one claims a far future.
pub(super) fn replacing(stamp: Stamp, old: Stamp) -> Stamp {
    if old > stamp + AHEAD {
        // Some test set it. The whole seconds differ, which is what build tools need.
        return stamp;
    }
    stamp.max(old + STEP)
}

/// Whether the clock was set back since `last`: then what was built claims to be newer than what is written now.
pub(super) fn went_back(now: Stamp, last: Stamp) -> bool {
    last > now + AHEAD
}

/// Waits until a time is past. Bounded: no time is given that is further ahead than [`AHEAD`] and a step.
pub(super) fn settle(stamp: Stamp) {
    let until = stamp + TICK;
    for _ in 0..64 {
        let Some(left) = until
            .checked_sub(now())
            .filter(|left| !left.is_zero() && *left <= AHEAD + STEP + STEP)
        else {
            return;
        };
        std::thread::sleep(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn a_time_is_a_second_after_the_last_one_and_never_before_now() {
        assert_eq!(next(S(100), S(50)), S(100));
        assert_eq!(
            next(S(100) + Duration::from_millis(300), S(100)),
            S(101),
            "within the second"
        );
        assert_eq!(replacing(S(100), S(100)), S(101));
        assert_eq!(replacing(S(100), S(3)), S(100));
        assert_eq!(
            replacing(S(100), S(4_000_000_000)),
            S(100),
            "a far future is not outdone"
        );
    }

    #[test]
    fn a_clock_that_was_set_back_is_seen() {
        assert!(went_back(S(100), S(200)));
        assert!(!went_back(S(100), S(101)));
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
}
