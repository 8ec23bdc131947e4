//! Which room performs which effect, and what must stand meanwhile.

use super::run::Run;
use super::standing::Standing;
use crate::machine::{Effect, Event, Notice};
use crate::role::Role;
use anyhow::Result;
use serde_json::Value;

impl Run<'_> {
    /// Performs an awaited effect; gives its outcome and what the journal should hold of it.
    pub(super) fn perform(&mut self, effect: &Effect) -> Result<(Event, Value)> {
        match effect {
            Effect::Preflight => self.preflight(),
            Effect::Launch(leaf) => self.launch(leaf),
            Effect::CommitPlan(plan) => self.commit_plan(plan),
            Effect::ReadLedger => self.read_ledger(),
            Effect::Collect(work) => self.collect(work),
            Effect::Check(work) => self.check(work),
            Effect::Prove(work) => self.prove(work),
            Effect::KeepRed(work) => self.keep_red(work),
            Effect::Commit(work) => self.commit(work),
            Effect::Drop(work) => self.drop_refactor(work),
            Effect::Accept => self.accept(),
            Effect::Publish => self.publish(),
            Effect::Unwind(ending) => Ok((self.unwind(ending), Value::Null)),
            Effect::Note(_) | Effect::Mirror | Effect::Push => {
                unreachable!("nothing awaits {effect:?}")
            }
        }
    }

    /// What a notice asks of the outside world beside its journal line.
    pub(super) fn noticed(&mut self, notice: &Notice) {
        if let Notice::RedStale(tree) = notice {
            self.put_red_aside(tree);
        }
    }

    /// The folders that nobody has any business to take away during an effect. A developer that removes `.tdd/` is told
    /// so, and goes on.
    pub(super) fn what_stands(&self, effect: &Effect) -> Standing {
        // Whoever writes objects makes it again, or what looks like it.
        let mut folders = vec![self.repo.git2().commondir().to_owned()];
        let (own, tdd) = (self.tree.path().to_owned(), self.tree.tdd());
        // What a developer locked may be found as late as when its work is taken.
        let mut developer = true;
        match effect {
            Effect::Launch(leaf) if leaf.role == Role::Developer => folders.push(own),
            Effect::Launch(_) | Effect::Check(_) | Effect::Prove(_) | Effect::Accept => {
                folders.extend([own, tdd.join("runs"), tdd]);
                developer = false;
            }
            _ => {}
        }
        Standing::now(folders).beside_a_developer(developer)
    }
}
