//! The process group of one call.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long a call that was killed is waited for, which takes no time unless it is frozen or stuck in the kernel.
pub(super) const DYING: Duration = Duration::from_secs(10);

pub(super) fn cannot_be_ended() -> io::Error {
    let why = "it was killed and does not end: it is frozen, or stuck in the kernel (a file system that does not answer?)";
    io::Error::new(io::ErrorKind::TimedOut, why)
}

/// The group of a call, which its leader leads. Until the leader is reaped, its pid and so the group's id cannot be
/// another's: it is reaped last, when nothing is signalled any more.
pub(super) struct Group {
    leader: Child,
}

impl Group {
    pub(super) fn of(leader: Child) -> Group {
        Group { leader }
    }

    pub(super) fn leader(&mut self) -> &mut Child {
        &mut self.leader
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.leader.id() as i32)
    }

    /// Whether the leader has ended; it is not reaped by that.
    #[cfg(target_os = "linux")]
    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        use nix::errno::Errno;
        use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.id()), flags) {
            Ok(status) => Ok(status != WaitStatus::StillAlive),
            Err(Errno::EINTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Whether the leader has ended. It is reaped by that: nix has no other way here, and a group's id is at least not used
    /// again while a member lives.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.leader.try_wait()?.is_some())
    }

    /// Signals the group. An error only says that there is nobody left.
    pub(super) fn signal(&self, signal: Signal) {
        let reached = killpg(self.id(), signal).is_ok();
        // The leader may have gone to another group.
        if cfg!(target_os = "linux") && (!reached || signal == Signal::SIGKILL) {
            let _ = kill(self.id(), signal);
        }
    }

    /// Ends what is left of the group, and says how its leader ended.
    pub(super) fn end(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::SIGKILL);
        let until = Instant::now() + DYING;
        while !self.has_ended()? {
            if Instant::now() > until {
                return Err(cannot_be_ended());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.leader.wait()
    }
}
