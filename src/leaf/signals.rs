//! The shim's signals: blocked, and taken one by one when it is ready for them.

use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::time::Duration;

/// The signals that the shim acts on.
const TAKEN: [Signal; 5] = [
    Signal::SIGCHLD,
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// Blocked signals, waited for. `Command` hands the block on: who spawns has to lift it.
pub(super) struct Signals {
    #[cfg(target_os = "linux")]
    fd: nix::sys::signalfd::SignalFd,
    #[cfg(not(target_os = "linux"))]
    set: SigSet,
}

impl Signals {
    /// Blocks these signals and no others for the calling thread, which must be the only one.
    pub(super) fn block() -> io::Result<Signals> {
        super::sys::default_signals();
        let set = SigSet::from_iter(TAKEN);
        set.thread_set_mask()?;
        Ok(Signals {
            #[cfg(target_os = "linux")]
            fd: {
                use nix::sys::signalfd::{SfdFlags, SignalFd};
                SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?
            },
            #[cfg(not(target_os = "linux"))]
            set,
        })
    }

    /// The next signal, or None after so long.
    #[cfg(target_os = "linux")]
    pub(super) fn wait(&self, limit: Duration) -> io::Result<Option<Signal>> {
        use nix::errno::Errno;
        use nix::poll::{PollFd, PollFlags, poll};
        use std::os::fd::AsFd;
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, super::tree::process::poll_timeout(limit)) {
            Ok(0) | Err(Errno::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(e) => return Err(e.into()),
        }
        let taken = self.fd.read_signal()?;
        Ok(taken.and_then(|s| Signal::try_from(s.ssi_signo as i32).ok()))
    }

    /// The next signal, or None after so long.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn wait(&self, limit: Duration) -> io::Result<Option<Signal>> {
        let until = std::time::Instant::now() + limit;
        loop {
            let pending = super::sys::pending_signals();
            if TAKEN.iter().any(|s| pending.contains(*s)) {
                return Ok(Some(self.set.wait()?));
            }
            if std::time::Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5).min(limit));
        }
    }
}
