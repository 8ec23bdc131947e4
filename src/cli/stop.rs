//! `veri stop`: ask a run to stop; `veri stop --check`: the plumbing.

use super::whereabouts::{here, places};
use crate::conductor::stop::{self, Request};
use crate::config::Env;
use crate::exit;
use crate::lock::Lock;
use crate::role::StopMode;
use anyhow::Result;
use clap::Args;
use std::io::Write;
use std::path::Path;

/// Arguments of `veri stop`.
#[derive(Debug, Args)]
pub struct StopCommand {
    /// The issue's number; without it, the run that is going on
    issue: Option<u64>,
    /// at-ledger: finish the step; at-leaf: finish the agent at work; now: end it
    #[arg(long, default_value = "at-ledger", value_parser = mode)]
    mode: StopMode,
    /// Say whether a stop is asked for in ./.tdd: exit 0 and the mode, 3 nothing, 2 unreadable
    #[arg(long)]
    check: bool,
}

fn mode(word: &str) -> Result<StopMode, String> {
    StopMode::parse(word).ok_or_else(|| "it is one of at-ledger, at-leaf, now".to_owned())
}

impl StopCommand {
    pub(super) fn run(self, env: &Env, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
        if self.check {
            return match stop::look(Path::new(".tdd")) {
                Request::None => Ok(exit::PLUMBING_NOTHING),
                Request::Mode(mode) => {
                    writeln!(out, "{mode}")?;
                    Ok(exit::DONE)
                }
                Request::Doubtful(why) => {
                    writeln!(err, "veri: {why}; it counts as at-ledger")?;
                    Ok(exit::PLUMBING_UNREADABLE)
                }
            };
        }
        let (repo, home) = here(env)?;
        let running: Vec<_> = places(&repo, &home)
            .into_iter()
            .filter(|p| self.issue.is_none_or(|issue| issue == p.issue))
            .filter(|p| Lock::is_held(&p.lock))
            .collect();
        match running.as_slice() {
            [] => {
                writeln!(
                    out,
                    "nothing to stop: no run is going on{}",
                    self.of_issue()
                )?;
                Ok(exit::DONE)
            }
            [place] => {
                let asked = stop::ask(&place.tdd(), self.mode)?;
                let already = match asked == self.mode {
                    true => "asked the run",
                    false => "already asked for more: the run",
                };
                writeln!(
                    out,
                    "{already} of issue {} to stop ({asked}); `{}` goes on later",
                    place.issue,
                    place.resume()
                )?;
                Ok(exit::DONE)
            }
            several => {
                let issues: Vec<_> = several.iter().map(|p| p.issue.to_string()).collect();
                writeln!(
                    err,
                    "veri: several runs are going on: name one of {}",
                    issues.join(", ")
                )?;
                Ok(exit::USAGE)
            }
        }
    }

    fn of_issue(&self) -> String {
        self.issue
            .map_or(String::new(), |n| format!(" for issue {n}"))
    }
}
