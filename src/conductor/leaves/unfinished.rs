//! What a developer starts from, and what becomes of work that was cut off.

use super::oid;
use crate::conductor::pick_up::is;
use crate::conductor::record::Entry;
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::machine::{From, Tree};
use anyhow::Result;
use git2::Oid;
use serde_json::json;

impl Run<'_> {
    /// The tree that a developer starts from; None for the branch as it is.
    pub(in crate::conductor) fn start_tree(&self, from: &From) -> Result<Option<Oid>> {
        match from {
            From::Head => Ok(None),
            From::Tree(tree) => Ok(Some(oid(Some(tree))?)),
            From::Merge { base, red, code } => {
                let repo = self.tree.git2();
                let find = |tree: &Tree| -> Result<git2::Tree<'_>> {
                    Ok(repo.find_tree(oid(Some(tree))?)?)
                };
                let red_tree = find(red)?;
                let mut index = repo.merge_trees(&find(base)?, &red_tree, &find(code)?, None)?;
                // Code that conflicts with the new red is written again, from the red alone.
                if index.has_conflicts() {
                    return Ok(Some(red_tree.id()));
                }
                Ok(Some(index.write_tree_to(repo)?))
            }
        }
    }

    /// Unfinished work of an earlier launch, `now`, is kept unless it is `start` or a known tree; gives where.
    pub(in crate::conductor) fn set_aside(
        &mut self,
        now: Oid,
        start: Option<Oid>,
        why: &str,
    ) -> Result<Option<String>> {
        let mut known: Vec<Oid> = start.into_iter().chain([self.tree.head_tree()?]).collect();
        let candidate = self.state.work.as_ref().and_then(|w| w.candidate.as_ref());
        known.extend(candidate.and_then(|tree| Oid::from_str(&tree.0).ok()));
        let is_known = |tree| known.contains(&tree);
        if is_known(now) || self.without_debris()?.is_some_and(is_known) {
            return Ok(None);
        }
        self.tree.discard(self.issue_number, now, why)
    }

    /// Whether the last leaf was ended because it gave no sign of life, by the journal.
    pub(super) fn was_silent(&self) -> bool {
        let last = self.lines.iter().rev().find(|l| is(l, "leaf-ended"));
        last.and_then(|l| l.fields.get("input")?.get("leaf-ended")?.get("silent"))
            .is_some()
    }

    /// How many seconds the last leaf had, by the journal: this start may have been told others.
    pub(super) fn last_timeout(&self) -> Option<u64> {
        let mut newest = self.lines.iter().rev();
        newest.find_map(|l| l.fields.get("deadlines")?.get("timeout")?.as_u64())
    }

    /// The line that says where work is that is not in the working tree any more.
    pub(in crate::conductor) fn kept_aside(&self, kind: Kind, refname: &str) -> Entry {
        let n = self.issue_number;
        let said = format!("unfinished work is kept in {refname} (`veri discarded {n}`)");
        Entry::new(kind, Default::default(), json!({ "kept": refname })).say(said)
    }
}
