//! `veri clean`: remove worktrees and grounds that are done, and say what the rest takes.

use super::whereabouts::{Place, here, places};
use crate::conductor::{debris_file, end_left_services, kept_stem, quoted};
use crate::config::Env;
use crate::event::Kind;
use crate::git::{Repo, WorkTree, tree};
use crate::ground::disk;
use crate::leaf::{self, End, Records};
use crate::ledger;
use crate::lock::{Lock, LockInfo};
use crate::untrusted::whole;
use crate::{exit, journal};
use anyhow::Result;
use clap::Args;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Arguments of `veri clean`.
#[derive(Debug, Args)]
pub struct CleanCommand {
    /// The issue's number; without it, every issue that is done
    issue: Option<u64>,
    /// Also what is not done: what its budgets were and which answers wait is forgotten, its branch stays
    #[arg(long)]
    unfinished: bool,
    /// Remove the grounds (clean checkouts that tests run in), too: the next run sets them up again
    #[arg(long)]
    grounds: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

impl CleanCommand {
    pub(super) fn run(self, env: &Env, out: &mut dyn Write) -> Result<u8> {
        let (repo, home) = here(env)?;
        if !self.dry_run {
            end_left_services(&home)?;
        }
        let mut places = places(&repo, &home);
        places.retain(|place| self.issue.is_none_or(|n| n == place.issue));
        if let (Some(n), true) = (self.issue, places.iter().all(|place| place.here)) {
            let why = match places.is_empty() {
                true => "no run of it is known here",
                false => "it ran in this checkout (--here)",
            };
            writeln!(
                out,
                "nothing  issue {n}: {why}, so there is no worktree to remove"
            )?;
            if let Some(place) = places.first().filter(|place| is_done(place)) {
                let stem = kept_stem(&home, &place.tree, n, true);
                let copy = WorkTree::here(&repo)?.with_kept(stem).journal_copy();
                writeln!(
                    out,
                    "note     to forget what ran in this checkout, of all its issues: rm -f {} {}",
                    quoted(&place.journal().to_string_lossy()),
                    quoted(&copy.to_string_lossy())
                )?;
                say_what_stays(&repo, n, out)?;
            }
        }
        for place in places {
            if place.tree == repo.checkout() {
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
            if let Some(leaf) = live_leaf(&place)? {
                writeln!(
                    out,
                    "kept     issue {}: the leaf {leaf} still runs in {tree}; `veri tdd {}` takes it up",
                    place.issue, place.issue
                )?;
                continue;
            }
            if self.dry_run {
                writeln!(out, "would remove issue {}: {size}, {tree}", place.issue)?;
            } else {
                remove(&repo, &home, &place, out)?;
                writeln!(out, "removed  issue {}: {size}, {tree}", place.issue)?;
                if self.issue.is_some() {
                    say_what_stays(&repo, place.issue, out)?;
                }
            }
            drop(lock);
        }
        for used in disk::disk_use(&home)? {
            let fate = match (used.in_use, self.grounds, self.dry_run) {
                (true, _, _) => "kept     ground in use",
                (_, false, _) => "kept     ground",
                (_, true, true) => "would remove ground",
                (_, true, false) => continue,
            };
            let hint = match (used.in_use, self.grounds) {
                (true, _) => "; nothing removes it until the run that uses it has ended",
                (false, false) => "; --grounds removes it",
                (false, true) => "",
            };
            writeln!(
                out,
                "{fate}: {}, {}{hint}",
                human(used.bytes),
                used.path.display()
            )?;
        }
        if self.grounds && !self.dry_run {
            for path in disk::remove_unused(&home)? {
                writeln!(out, "removed  ground: {}", path.display())?;
            }
        }
        Ok(exit::DONE)
    }
}

/// Says which refs of a run stay, and what would remove them.
fn say_what_stays(repo: &Repo, issue: u64, out: &mut dyn Write) -> Result<()> {
    let refs = format!("refs/veri/issue-{issue}/");
    if repo.git2().references_glob(&format!("{refs}*"))?.count() == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "note     issue {issue}: {refs} stays (templates, settings, work that was put aside); this removes it:\n         \
         git for-each-ref --format='delete %(refname)' {refs} | git update-ref --stdin"
    )?;
    Ok(())
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

/// Whether the last that was done for this issue is a run that ended in done.
fn is_done(place: &Place) -> bool {
    let lines = journal::read(&place.journal()).unwrap_or_default();
    let last = lines.iter().rev().find(|l| l.issue == place.issue);
    last.is_some_and(|l| l.event == Kind::RunEnd && l.text("ending") == "done")
}

/// A leaf that is alive by its records.
fn live_leaf(place: &Place) -> Result<Option<String>> {
    let listed = leaf::list(&Records::new(place.tdd())?)?;
    let live = listed.into_iter().find(|l| l.end == End::StillRunning);
    Ok(live.map(|l| l.started.leaf))
}

/// Removes the worktree of a run whose lock is held: what a leaf did to git is put back, what is uncommitted goes to
/// discarded, and the journal is kept, and the ledger where a person has edited it.
fn remove(repo: &Repo, home: &Path, place: &Place, out: &mut dyn Write) -> Result<()> {
    let head = repo.git2().head()?.peel_to_commit()?.id();
    let stem = kept_stem(home, &place.tree, place.issue, false);
    let tree = WorkTree::linked(repo, &place.tree, head)?.with_kept(stem);
    if let Some(guard) = tree.open_guard()?.filter(|guard| guard.fits(&tree)) {
        let n = place.issue;
        let settled = guard.settle(&tree, n, &mut |said| {
            Ok(writeln!(out, "note     issue {n}: {said}")?)
        })?;
        for said in &settled.noted {
            writeln!(out, "note     issue {n}: {said}")?;
        }
    }
    tree.drop_guard()?;
    let now = tree.salvage()?;
    let why = "what was not committed when the worktree was removed";
    if let Some(kept) = tree.discard(place.issue, now, why)? {
        let n = place.issue;
        writeln!(
            out,
            "note     issue {n}: uncommitted work is kept in {kept} (`veri discarded {n}`)"
        )?;
    }
    let ledger = place.tdd().join(format!("issue-{}.md", place.issue));
    let committed = committed(&tree, place.issue)?;
    let held = whole(&ledger, ledger::LARGEST).or_else(|e| match e.kind() {
        ErrorKind::NotFound => Ok(None),
        _ => Err(e),
    })?;
    let edited = held.is_some_and(|held| held != committed);
    for (what, file, extension) in [
        ("edited ledger", ledger, "md"),
        ("journal", place.journal(), "jsonl"),
    ] {
        let about = std::fs::symlink_metadata(&file);
        if !about.is_ok_and(|about| about.is_file()) || extension == "md" && !edited {
            continue;
        }
        let kept = keep(home, place.issue, &file, extension)?;
        writeln!(
            out,
            "note     issue {}: its {what} is kept in {}",
            place.issue,
            kept.display()
        )?;
    }
    // First the copy: without its journal it would bring back what is over. What the suite left in the tree goes with it.
    let debris = debris_file(home, place.issue);
    for own in [tree.journal_copy(), debris] {
        match std::fs::remove_file(own) {
            // A folder in its place is nobody's record.
            Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
                return Err(e.into());
            }
            _ => {}
        }
    }
    tree.remove()
}

/// The ledger as the worktree's commit has it; empty where it has none.
fn committed(tree: &WorkTree, issue: u64) -> Result<Vec<u8>> {
    let repo = tree.git2();
    let commit = tree::of_commit(repo, tree.head()?)?;
    let path = format!(".tdd/issue-{issue}.md");
    let blob = tree::read_blob(repo, commit, path.as_bytes())?;
    Ok(blob.unwrap_or_default())
}

/// Copies a file to where it outlives its worktree, beside those of earlier runs of the issue.
fn keep(home: &Path, issue: u64, file: &Path, extension: &str) -> Result<PathBuf> {
    let folder = home.join("journals");
    std::fs::create_dir_all(&folder)?;
    let name = |number: u32| match number {
        0 => folder.join(format!("issue-{issue}.{extension}")),
        n => folder.join(format!("issue-{issue}.{n}.{extension}")),
    };
    // The newest bears the plain name.
    let free = (0..u32::MAX).find(|n| !name(*n).exists()).unwrap_or(0);
    for number in (0..free).rev() {
        std::fs::rename(name(number), name(number + 1))?;
    }
    std::fs::copy(file, name(0))?;
    Ok(name(0))
}
