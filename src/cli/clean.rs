//! `veri clean`: remove worktrees and grounds that are done, and say what the rest takes.

use super::whereabouts::{Place, here, places};
use crate::config::Env;
use crate::event::Kind;
use crate::git::WorkTree;
use crate::lock::{Lock, LockInfo};
use crate::{exit, ground, journal};
use anyhow::Result;
use clap::Args;
use std::io::Write;

/// Arguments of `veri clean`.
#[derive(Debug, Args)]
pub struct CleanCommand {
    /// The issue's number; without it, every issue that is done
    issue: Option<u64>,
    /// Remove the grounds too: the next run sets them up again
    #[arg(long)]
    grounds: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

impl CleanCommand {
    pub(super) fn run(self, env: &Env, out: &mut dyn Write) -> Result<u8> {
        let (repo, home) = here(env)?;
        for place in places(&repo, &home) {
            if place.tree == repo.checkout() || self.issue.is_some_and(|n| n != place.issue) {
                continue;
            }
            let size = ground::human_size(ground::disk_use(&place.tree));
            let done = is_done(&place);
            if !done && self.issue.is_none() {
                writeln!(
                    out,
                    "kept     issue {}: not done ({size}, {})",
                    place.issue,
                    place.tree.display()
                )?;
                continue;
            }
            let info = LockInfo::new("veri clean");
            let Ok(lock) = Lock::try_acquire(&place.lock, &info)? else {
                writeln!(out, "kept     issue {}: a run is going on", place.issue)?;
                continue;
            };
            if !done {
                writeln!(
                    out,
                    "note     issue {} is not done; its branch and what was put aside stay, and \
                     `veri tdd {}` goes on from the branch",
                    place.issue, place.issue
                )?;
            }
            let tree = place.tree.display();
            if self.dry_run {
                writeln!(out, "would remove issue {}: {size}, {tree}", place.issue)?;
            } else {
                WorkTree::open(&repo, &place.tree)?.remove()?;
                writeln!(out, "removed  issue {}: {size}, {tree}", place.issue)?;
            }
            drop(lock);
        }
        let grounds = home.join("ground");
        let size = ground::human_size(ground::disk_use(&grounds));
        if self.grounds && !self.dry_run {
            let kept = ground::remove_all(&home)?;
            writeln!(out, "removed  grounds: {size}")?;
            for path in kept {
                writeln!(out, "kept     {}: in use", path.display())?;
            }
        } else {
            writeln!(out, "grounds  {size}, {} (--grounds removes them)", grounds.display())?;
        }
        Ok(exit::DONE)
    }
}

fn is_done(place: &Place) -> bool {
    let lines = journal::read(&place.journal()).unwrap_or_default();
    let last = lines.iter().rev().find(|l| l.issue == place.issue && l.event == Kind::RunEnd);
    last.is_some_and(|l| l.text("ending") == "done")
}
