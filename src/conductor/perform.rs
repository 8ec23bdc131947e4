//! Which room performs which effect.

use super::run::Run;
use crate::machine::{Effect, Event, Notice};
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
}
