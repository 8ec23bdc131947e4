//! What runs below a living launch: which processes, what they were started as, and how much processor they have used.

use super::process::{self, Stat};
use nix::unistd::Pid;
use std::fs;

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
    /// Which they are, by pid and start time, in order.
    pub members: Vec<(i32, u64)>,
    /// The command line of each.
    pub arguments: Vec<Vec<String>>,
    /// The processor time that they and what has ended below them have used, in hundredths of a second (USER_HZ).
    pub ticks: u64,
}

impl Below {
    /// Below a shim that is this program's own child, and not reaped before the last look.
    pub(in crate::leaf) fn of(shim: Pid) -> Below {
        Below { shim }
    }

    /// Looks at them; None where there is no `/proc`.
    pub fn look(&self) -> Option<Seen> {
        let shim = Stat::of(self.shim)?;
        let mut below = process::descendants(self.shim, &process::all());
        below.sort_by_key(Stat::id);
        // The shim itself only for those it has taken in and reaped.
        let living = below.iter().map(|s| s.own_ticks + s.ended_ticks);
        Some(Seen {
            ticks: shim.ended_ticks + living.sum::<u64>(),
            members: below.iter().map(Stat::id).collect(),
            arguments: below.iter().map(|stat| arguments(stat.pid)).collect(),
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
