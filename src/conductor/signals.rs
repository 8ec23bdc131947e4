//! The terminal's signals: the first Ctrl-C or TERM asks for at-leaf, the second for now.
//!
//! HUP and a vanished terminal are ignored: a run goes on overnight without the person who started it.

use crate::role::StopMode;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What has been asked for by signals so far.
#[derive(Debug)]
pub(super) struct Asked {
    signals: Option<Signals>,
    count: u32,
}

impl Asked {
    /// Begins to listen. Where that is not possible the signals keep their defaults.
    pub(super) fn listen() -> Asked {
        Asked {
            signals: Signals::new([SIGINT, SIGTERM, SIGHUP]).ok(),
            count: 0,
        }
    }

    /// Listens to nothing: a test's own signals are its runner's.
    #[cfg(test)]
    pub(super) fn nothing() -> Asked {
        Asked {
            signals: None,
            count: 0,
        }
    }

    /// The strongest mode that was asked for by now.
    pub(super) fn mode(&mut self) -> Option<StopMode> {
        if let Some(signals) = &mut self.signals {
            self.count += signals.pending().filter(|s| *s != SIGHUP).count() as u32;
        }
        match self.count {
            0 => None,
            1 => Some(StopMode::AtLeaf),
            _ => Some(StopMode::Now),
        }
    }
}
