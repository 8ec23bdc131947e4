//! `veri log`: read the journal of a run.

use super::console::{Console, Style};
use super::whereabouts::{here, one, places};
use crate::config::Env;
use crate::event::Line;
use crate::{exit, journal};
use anyhow::Result;
use clap::Args;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

/// How often a followed journal is looked at.
const GLANCE: Duration = Duration::from_millis(200);

/// Arguments of `veri log`.
#[derive(Debug, Args)]
pub struct LogCommand {
    /// The issue's number; may be left out when only one is known here
    number: Option<u64>,
    /// The same
    #[arg(long, conflicts_with = "number")]
    issue: Option<u64>,
    /// Wait for what is written from here on, and show it, too; end with Ctrl-C
    #[arg(long)]
    follow: bool,
    /// The lines as they are: one JSON object each
    #[arg(long)]
    json: bool,
}

impl LogCommand {
    pub(super) fn run(self, env: &Env, out: &mut dyn Write) -> Result<u8> {
        let (repo, home) = here(env)?;
        let number = self.number.or(self.issue);
        let kept = number.map(|n| home.join("journals").join(format!("issue-{n}.jsonl")));
        let found = one(&places(&repo, &home), number);
        // Of a run whose worktree was removed, the journal is kept.
        let (journal, issue) = match (found, kept) {
            (Ok(place), _) => (place.journal(), place.issue),
            (Err(_), Some(kept)) if kept.is_file() => (kept, number.unwrap_or_default()),
            (Err(error), _) => return Err(error),
        };
        let mut console = Console::new(if self.json {
            Style::Json
        } else {
            Style::Verbose
        });
        let mut seen = 0;
        loop {
            for line in journal::read(&journal)? {
                if line.issue == issue && line.seq > seen {
                    seen = line.seq;
                    if !print(&mut console, &line, out) {
                        return Ok(exit::DONE);
                    }
                }
            }
            if !self.follow {
                return Ok(exit::DONE);
            }
            if reader_is_gone() {
                return Ok(exit::DONE);
            }
            std::thread::sleep(GLANCE);
        }
    }
}

/// Whether nobody reads standard output any more: without a look, that shows only with the next line, which may never
/// come.
fn reader_is_gone() -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    poll(&mut fds, PollTimeout::ZERO).is_ok()
        && fds[0].revents().is_some_and(|seen| seen.intersects(gone))
}

/// Whether the reader is still there.
fn print(console: &mut Console, line: &Line, out: &mut dyn Write) -> bool {
    let mut text = Vec::from_iter(console.render(line));
    text.extend(console.why(line));
    text.iter()
        .try_for_each(|text| writeln!(out, "{text}"))
        .and_then(|()| out.flush())
        .is_ok()
}
