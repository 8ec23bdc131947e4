//! Ending a living launch from outside: its shim is asked to, and one that hangs is killed, with which its leaf dies. All
//! that a shim, or its end, leaves to do is in `tree/sweep.rs`.

use super::end::KillWhy;
use super::records::Records;
use super::spec::LaunchId;
use super::tree::process::Handle;
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// Writes the reason down, then signals: a kill of ours must never look like somebody else's.
pub(super) fn ask(
    records: &Records,
    launch: &LaunchId,
    shim: &Handle,
    why: KillWhy,
) -> anyhow::Result<()> {
    records.intend_kill(launch, why)?;
    // An error means that it has ended meanwhile: then its record tells. It may be suspended: then it would not hear.
    let _ = shim.signal(Signal::SIGTERM);
    let _ = shim.signal(Signal::SIGCONT);
    Ok(())
}

/// When a shim is taken for hung (stopped, or stuck on a dead disk): it has not kept its own deadlines.
#[derive(Debug)]
pub(super) struct Backstop {
    /// None: never.
    at: Option<Instant>,
    beyond: Duration,
}

impl Backstop {
    /// Of a shim whose leaf may run so long from now on, grace included.
    pub(super) fn new(records: &Records, longest: Duration) -> Backstop {
        let beyond = records.backstop();
        Backstop {
            at: Instant::now().checked_add(longest.saturating_add(beyond)),
            beyond,
        }
    }

    /// Its end was asked for: it has its grace, and no more.
    pub(super) fn ending(&mut self, grace: Duration) {
        let ended = Instant::now().checked_add(grace.saturating_add(self.beyond));
        self.at = ended.into_iter().chain(self.at).min();
    }

    /// Ends the shim when it is that time.
    pub(super) fn look(
        &self,
        records: &Records,
        launch: &LaunchId,
        shim: &Handle,
    ) -> anyhow::Result<()> {
        if self.at.is_some_and(|at| Instant::now() >= at) {
            records.intend_kill(launch, KillWhy::Wall)?;
            // An error means that it has ended meanwhile.
            let _ = shim.signal(Signal::SIGKILL);
        }
        Ok(())
    }
}
