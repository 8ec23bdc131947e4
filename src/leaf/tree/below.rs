//! What runs below a living launch: which processes, what they were started as, and what they have used.

use super::process::{self, Stat};
use super::usage::Used;
use nix::unistd::Pid;
use std::fs;
use std::time::Duration;

/// How many of a command line's bytes are looked at.
const LONGEST: u64 = 64 * 1024;

/// The processes below the shim of a launch that this program has started.
#[derive(Debug, Clone, Copy)]
pub struct Below {
    shim: Pid,
}

/// One look at them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The command line of each.
    pub arguments: Vec<Vec<String>>,
    /// Which they are, and what they have used.
    pub used: Used,
}

impl Seen {
    /// Whether, in the time since another look, no process has begun or ended and nothing was at work.
    pub fn has_rested_since(&self, before: &Seen, time: Duration) -> bool {
        self.used.is_by_the_same_as(&before.used) && !self.used.is_work_since(&before.used, time)
    }
}

impl Below {
    /// Below a shim that is this program's own child, and not reaped before the last look.
    pub(in crate::leaf) fn of(shim: Pid) -> Below {
        Below { shim }
    }

    /// Looks at them; None where there is no `/proc`.
    pub fn look(&self) -> Option<Seen> {
        let shim = Stat::of(self.shim)?;
        let below = process::descendants(self.shim, &process::all());
        Some(Seen {
            arguments: below.iter().map(|stat| arguments(stat.pid)).collect(),
            used: Used::by(&shim, &below, None),
        })
    }
}

fn arguments(pid: Pid) -> Vec<String> {
    use std::io::Read;
    let mut line = Vec::new();
    // What has ended meanwhile has none.
    let file = fs::File::open(format!("/proc/{pid}/cmdline"));
    let _ = file.and_then(|file| file.take(LONGEST).read_to_end(&mut line));
    let words = line.split(|b| *b == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_seen_with_its_arguments_and_its_time() {
        let me = Pid::this();
        let said: Vec<String> = std::env::args().collect();
        assert_eq!(arguments(me)[..said.len()], said);
        assert!(Below::of(me).look().is_some());
    }
}
