//! `veri clean`: remove worktrees and grounds that are done, and say what the rest takes.

use super::whereabouts::{Place, here, places};
use crate::config::Env;
use crate::event::Kind;
use crate::git::WorkTree;
use crate::ground::disk;
use crate::lock::{Lock, LockInfo};
use crate::{exit, journal};
use anyhow::Result;
use clap::Args;
use std::io::Write;

/// Arguments of `veri clean`.
#[derive(Debug, Args)]
pub struct CleanCommand {
    /// The issue's number; without it, every issue that is done
    issue: Option<u64>,
    /// Also what is not done: what its budgets were and which answers wait is forgotten, its branch stays
    #[arg(long)]
    unfinished: bool,
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
            let size = human(disk::bytes_below(&place.tree));
            let done = is_done(&place);
            let info = LockInfo::new("veri clean");
            let Ok(lock) = Lock::try_acquire(&place.lock, &info)? else {
                writeln!(out, "kept     issue {}: a run is going on", place.issue)?;
                continue;
            };
            if !done && !self.unfinished {
                writeln!(
                    out,
                    "kept     issue {}: not done ({size}, {}); `{}` goes on, --unfinished gives it up",
                    place.issue,
                    place.tree.display(),
                    place.resume()
                )?;
                continue;
            }
            if !done {
                writeln!(
                    out,
                    "note     issue {} is not done; its branch and what was put aside stay, and \
                     `{}` goes on from the branch",
                    place.issue,
                    place.resume()
                )?;
            }
            let tree = place.tree.display();
            if self.dry_run {
                writeln!(out, "would remove issue {}: {size}, {tree}", place.issue)?;
            } else {
                let head = repo.git2().head()?.peel_to_commit()?.id();
                WorkTree::linked(&repo, &place.tree, head)?.remove()?;
                writeln!(out, "removed  issue {}: {size}, {tree}", place.issue)?;
            }
            drop(lock);
        }
        for used in disk::disk_use(&home)? {
            let in_use = if used.in_use { ", in use" } else { "" };
            writeln!(
                out,
                "ground   {}: {}{in_use}",
                used.path.display(),
                human(used.bytes)
            )?;
        }
        if self.grounds && !self.dry_run {
            for path in disk::remove_unused(&home)? {
                writeln!(out, "removed  {}", path.display())?;
            }
        }
        Ok(exit::DONE)
    }
}

/// A size for people: three digits at most and a unit.
fn human(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1000.0 {
            return if unit == "B" {
                format!("{size} B")
            } else {
                format!("{size:.1} {unit}")
            };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

fn is_done(place: &Place) -> bool {
    let lines = journal::read(&place.journal()).unwrap_or_default();
    let last = lines
        .iter()
        .rev()
        .find(|l| l.issue == place.issue && l.event == Kind::RunEnd);
    last.is_some_and(|l| l.text("ending") == "done")
}
