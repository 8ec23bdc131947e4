//! Verifiers: a checkout without history, and a prompt of what they may know.

use super::oid;
use crate::agent;
use crate::agent::Seclusion;
use crate::blind::{
    BaseCommit, BehaviourSpec, Claim as BlindClaim, Hidden, SuiteLog, TestChange, VerifierPrompt,
};
use crate::conductor::leaves::files::Files;
use crate::conductor::run::Run;
use crate::leaf::LaunchId;
use crate::machine::{Event, Leaf};
use crate::role::Claim;
use anyhow::{Result, anyhow};
use git2::Repository;
use serde_json::Value;
use std::path::PathBuf;

impl Run<'_> {
    pub(super) fn launch_verifier(&mut self, leaf: &Leaf, id: LaunchId) -> Result<(Event, Value)> {
        let work = self
            .state
            .work
            .clone()
            .ok_or_else(|| anyhow!("a verifier without a step"))?;
        let candidate = oid(leaf.candidate.as_ref())?;
        let head = self.tree.head_tree()?;
        let repo = Repository::open(self.tree.path())?;
        // What the change is read against: the approved red where there is one, else the branch.
        let from = match &work.red {
            Some(red) if work.claim == Claim::Green => oid(Some(red))?,
            _ => head,
        };
        let base = (work.claim == Claim::Refactor).then_some(head);
        let mut verify = self.verify_ground(candidate, base)?;
        let deadlines = self.deadlines(leaf.role)?;
        let records = self.records()?;
        let temp = self.verifier_temp(&id);
        let files = Files::in_temp(&temp);
        let hidden = Hidden::new([
            self.tree.path(),
            self.repo.checkout(),
            self.repo.common_dir(),
            &self.home.join("work"),
        ]);
        let ledger_blob = self.ledger_blob()?;
        let suite = self.suite_log(candidate)?;
        let base_commit = match (base, verify.base()) {
            (Some(_), Some(commit)) => {
                Some(BaseCommit::of(&Repository::open(verify.path())?, commit)?)
            }
            _ => None,
        };
        let paths = self.test_paths()?;
        let prompt = VerifierPrompt::new(
            BehaviourSpec::of(&self.ready()?.text, &repo, ledger_blob, work.step.number)?,
            TestChange::of(&repo, head, candidate, &paths)?,
            BlindClaim::of(work.claim, &repo, from, candidate, &paths)?,
            SuiteLog::of(&suite, self.settings.tail_bytes() as u64)?,
            base_commit,
        )?;
        let nonce = agent::fresh_nonce()?;
        let declared = self.declared_with_slot(verify.ground().slot());
        let ready = self.ready()?;
        let own = files.own_temp();
        let seclusion = Seclusion {
            hidden: &hidden,
            temp: &own,
        };
        let place = self.place(&files, verify.path(), deadlines.wall, &declared)?;
        let launch = agent::verifier_launch(
            &ready.agents.verifier,
            &prompt,
            &ready.templates,
            &nonce,
            &seclusion,
            &place,
        )?;
        let launch = self.confine_verifier(launch, verify.path(), &own)?;
        let outcome = self.run_leaf(
            leaf,
            &launch,
            id.clone(),
            Some(&nonce),
            &deadlines,
            &records,
        );
        files.keep(&records, &id);
        outcome
    }

    pub(super) fn verifier_temp(&self, id: &LaunchId) -> PathBuf {
        self.home.join("verify").join(id.as_str())
    }
}
