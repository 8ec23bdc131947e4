//! Whose what lies in the working tree is.
//!
//! While a developer has the tree in its hands, everything in it is the developer's. At any other time the run
//! knows to the byte what it left there; a difference is somebody else's. In veri's own worktree that is put
//! aside, and said. In the person's checkout (`--here`) it is never moved: the run ends before it would have to.

use super::run::Run;
use crate::cause::Bail;
use crate::check;
use crate::event::Kind;
use crate::git::tree;
use anyhow::Result;
use git2::Oid;

/// How many paths a message names.
pub(super) const NAMED: usize = 20;

/// What is in the working tree and not the run's.
pub(super) struct Foreign {
    tree: Oid,
    paths: Vec<String>,
}

impl Foreign {
    /// The paths, one a line.
    pub(super) fn listed(&self) -> String {
        listed(&self.paths)
    }
}

/// Paths, one a line, the first of many.
pub(super) fn listed(paths: &[String]) -> String {
    let mut lines: Vec<String> = paths.iter().take(NAMED).map(|p| format!("  {p}")).collect();
    if paths.len() > NAMED {
        lines.push(format!("  and {} more", paths.len() - NAMED));
    }
    lines.join("\n")
}

impl Run<'_> {
    /// What is in the working tree, but is neither committed, nor a tree of the claim under way, nor what the
    /// last developer left when its work was collected.
    pub(super) fn foreign(&self) -> Result<Option<Foreign>> {
        if self.is_in_hands() {
            return Ok(None);
        }
        let now = self.tree.salvage()?;
        let mut known = vec![self.tree.head_tree()?];
        // After a commit of a tree that was put back before (a rerun), the tree is still the one before it.
        let head = self.tree.git2().find_commit(self.tree.head()?)?;
        for parent in head.parents() {
            known.push(tree::without_tdd(self.tree.git2(), parent.tree_id())?);
        }
        let work = self.state.work.iter().flat_map(|w| w.trees());
        known.extend(work.filter_map(|t| Oid::from_str(&t.0).ok()));
        let mut lines = self.lines.iter().rev();
        let left = lines.find_map(|l| l.fields.get("left")?.as_str());
        known.extend(left.and_then(|left| Oid::from_str(left).ok()));
        if known.contains(&now) {
            return Ok(None);
        }
        // Named as the difference from the nearest of what is known.
        let repo = self.tree.git2();
        let mut nearest: Option<Vec<String>> = None;
        for known in known.into_iter().filter(|id| repo.find_tree(*id).is_ok()) {
            let changes = tree::changed_paths(repo, known, now)?;
            if nearest.as_ref().is_none_or(|n| changes.len() < n.len()) {
                nearest = Some(changes.iter().map(|c| check::show(&c.path)).collect());
            }
        }
        Ok(Some(Foreign {
            tree: now,
            paths: nearest.unwrap_or_default(),
        }))
    }

    /// Before the working tree is changed: what is somebody else's goes to the discarded work, or, in the
    /// person's checkout, ends the run.
    pub(super) fn make_way(&mut self) -> Result<()> {
        let Some(foreign) = self.foreign()? else {
            return Ok(());
        };
        if !self.tree.is_linked() {
            return Err(Bail::needs_user(format!(
                "--here works in the checkout {} itself, and these changes in it are not the run's:\n{}\n\
                 Nothing of them was touched. Commit or move them away, then run again.",
                self.tree.path().display(),
                foreign.listed()
            ))
            .into());
        }
        let why = "changes in veri's worktree that no leaf made";
        let Some(kept) = self.tree.discard(self.issue_number, foreign.tree, why)? else {
            return Ok(());
        };
        let said = format!(
            "somebody changed files in veri's own worktree; that is kept in {kept} (`veri discarded {}`):\n{}",
            self.issue_number,
            foreign.listed()
        );
        self.say(Kind::Check, said)
    }

    /// Whether a person's changes in their checkout forbid putting it back; says so.
    pub(super) fn must_leave_alone(&mut self) -> Result<bool> {
        if self.tree.is_linked() {
            self.make_way()?;
            return Ok(false);
        }
        let Some(foreign) = self.foreign()? else {
            return Ok(false);
        };
        let said = format!(
            "the checkout is left as it is, since these changes in it are not the run's:\n{}",
            foreign.listed()
        );
        self.say(Kind::Check, said)?;
        Ok(true)
    }
}
