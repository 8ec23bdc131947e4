//! What something costs, as the benches measure it.

use nix::sys::resource::{UsageWho, getrusage};
use std::time::{Duration, Instant};

/// Processor time and wall time of the same work.
#[derive(Clone, Copy)]
pub struct Cost {
    pub cpu: Duration,
    pub wall: Duration,
}

/// What some work costs.
pub fn measured(work: impl FnOnce()) -> Cost {
    let (began, before) = (Instant::now(), cpu());
    work();
    Cost {
        cpu: cpu().saturating_sub(before),
        wall: began.elapsed(),
    }
}

/// Processor time of this process and of all children that have been waited for.
fn cpu() -> Duration {
    let used = |who| {
        let usage = getrusage(who).unwrap();
        let of = |t: nix::sys::time::TimeVal| {
            Duration::new(t.tv_sec() as u64, t.tv_usec() as u32 * 1000)
        };
        of(usage.user_time()) + of(usage.system_time())
    };
    used(UsageWho::RUSAGE_SELF) + used(UsageWho::RUSAGE_CHILDREN)
}

/// Of each time, the middle one.
pub fn middle(costs: &[Cost]) -> Cost {
    let of = |time: fn(&Cost) -> Duration| {
        let mut times: Vec<Duration> = costs.iter().map(time).collect();
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    Cost {
        cpu: of(|c| c.cpu),
        wall: of(|c| c.wall),
    }
}
