//! One call, from its start until nothing of its group is left.

use super::ear::{Spent, asked_to_end};
use super::group::{DYING, Group, cannot_be_ended};
use super::pipes::Pipes;
use super::{ToolEnd, ToolOutput};
use nix::sys::signal::Signal;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a call that is asked to end has until it is made to.
const GRACE: Duration = Duration::from_secs(2);

/// How long pipes are still read that something holds open which the ended call has left running: while they are silent, and
/// at all. What the call itself had said is read long before.
const LINGER: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Runs a command to its end or its deadline; whatever it left in its process group is ended.
pub(super) fn run(
    command: &mut Command,
    stdin: Option<Vec<u8>>,
    limit: Duration,
    kept: Option<usize>,
) -> io::Result<ToolOutput> {
    let given = match stdin {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    };
    command
        .stdin(given)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut group = Group::of(command.spawn()?);
    let mut watch = Watch::new(limit);
    let pipes = Pipes::of(group.leader(), stdin, kept)
        .and_then(|pipes| attend(&mut group, &mut watch, pipes));
    let status = group.end();
    let (stdout, stderr) = pipes?.into_said();
    let status = status?;
    let end = match (watch.timed_out, status.code(), status.signal()) {
        (true, _, _) => ToolEnd::TimedOut,
        (_, Some(code), _) => ToolEnd::Code(code),
        (_, None, signal) => ToolEnd::Signal(signal.unwrap_or(0)),
    };
    Ok(ToolOutput {
        end,
        stdout,
        stderr,
    })
}

/// Moves what goes through the pipes until the call has ended and they are closed, or are given up.
fn attend(group: &mut Group, watch: &mut Watch, mut pipes: Pipes) -> io::Result<Pipes> {
    let mut ended_at: Option<Instant> = None;
    loop {
        let said = pipes.turn()?;
        if ended_at.is_none() && group.has_ended()? {
            ended_at = Some(Instant::now());
        }
        let Some(since) = ended_at.map(|at| at.elapsed()) else {
            watch.look(group);
            if watch.is_in_vain() {
                return Err(cannot_be_ended());
            }
            continue;
        };
        if pipes.are_closed() || (!said && since > LINGER.0) || since > LINGER.1 {
            return Ok(pipes);
        }
    }
}

/// Keeps a call's deadline, and ends it when that is asked for.
struct Watch {
    spent: Spent,
    limit: Duration,
    timed_out: bool,
    /// When it is made to end that was asked to.
    killed_at: Option<Duration>,
    /// Since it was made to.
    killed: Option<Instant>,
}

impl Watch {
    fn new(limit: Duration) -> Watch {
        Watch {
            spent: Spent::from_now(),
            limit,
            timed_out: false,
            killed_at: None,
            killed: None,
        }
    }

    fn look(&mut self, group: &Group) {
        let spent = self.spent.by_now();
        if !self.timed_out && spent > self.limit {
            self.timed_out = true;
            self.kill(group);
        }
        if self.killed_at.is_some_and(|at| spent > at) {
            self.kill(group);
        }
        if asked_to_end() {
            self.killed_at.get_or_insert(spent + GRACE);
            group.signal(Signal::SIGTERM);
        }
    }

    fn kill(&mut self, group: &Group) {
        self.killed.get_or_insert_with(Instant::now);
        group.signal(Signal::SIGKILL);
    }

    fn is_in_vain(&self) -> bool {
        self.killed.is_some_and(|since| since.elapsed() > DYING)
    }
}
