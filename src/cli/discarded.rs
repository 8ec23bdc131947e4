//! `veri discarded`: unfinished work that was put aside, and how to get it back.

use super::whereabouts::here;
use crate::config::Env;
use crate::exit;
use crate::git::WorkTree;
use anyhow::Result;
use clap::Args;
use std::io::Write;

/// How many files of one piece of work are listed.
const LISTED: usize = 20;

/// Arguments of `veri discarded`.
#[derive(Debug, Args)]
pub struct DiscardedCommand {
    /// The issue's number
    issue: u64,
    /// Lay one of them over the current checkout: its number in the list, the newest without one
    #[arg(long, num_args = 0..=1, default_missing_value = "0")]
    apply: Option<usize>,
}

impl DiscardedCommand {
    pub(super) fn run(self, env: &Env, out: &mut dyn Write) -> Result<u8> {
        let (repo, _) = here(env)?;
        let kept = repo.refs(self.issue).discarded()?;
        if kept.is_empty() {
            writeln!(out, "nothing was put aside for issue {}", self.issue)?;
            return Ok(exit::DONE);
        }
        let Some(number) = self.apply else {
            for (index, work) in kept.iter().enumerate() {
                let when = jiff::Timestamp::from_second(work.when).unwrap_or_default();
                writeln!(out, "{:>3}  {when}  {}", index + 1, work.why)?;
                writeln!(out, "     {}", work.refname)?;
                for path in work.files.iter().take(LISTED) {
                    writeln!(out, "       {path}")?;
                }
                if let Some(more @ 1..) = work.files.len().checked_sub(LISTED) {
                    writeln!(out, "       and {more} more")?;
                }
            }
            writeln!(
                out,
                "`veri discarded {} --apply [N]` lays one over this checkout; `git show <ref>` shows it",
                self.issue
            )?;
            return Ok(exit::DONE);
        };
        let chosen = if number == 0 {
            kept.last()
        } else {
            kept.get(number - 1)
        };
        let work = chosen.ok_or_else(|| {
            super::NotThere(format!(
                "there is no number {number}: `veri discarded {}` lists what was put aside, 1 to {}",
                self.issue,
                kept.len()
            ))
        })?;
        WorkTree::here(&repo)?.apply_discarded(&work.refname)?;
        writeln!(
            out,
            "laid {} over {}",
            work.refname,
            repo.checkout().display()
        )?;
        Ok(exit::DONE)
    }
}
