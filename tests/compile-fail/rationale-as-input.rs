//! A developer's words where a verifier's inputs are wanted, or where their sources are.

use git2::{Oid, Repository};
use veri::blind::{BehaviourSpec, Claim, Hidden, SuiteLog, TestChange, VerifierPrompt};
use veri::prompt::{Rationale, Templates};

fn as_an_input(words: Rationale, change: TestChange, claim: Claim, log: SuiteLog) {
    let _ = VerifierPrompt::new(words, change, claim, log, None); //~ E0308
}

fn as_a_source(words: &Rationale, repo: &Repository, tree: Oid) {
    let _ = BehaviourSpec::of(words, repo, tree, 1); //~ E0308
    let _ = SuiteLog::of(words, 1); //~ E0308
}

fn as_a_nonce(words: &Rationale, prompt: &VerifierPrompt, hidden: &Hidden) {
    let _ = prompt.render(&Templates::bundled(), words, hidden); //~ E0308
}

fn main() {}
