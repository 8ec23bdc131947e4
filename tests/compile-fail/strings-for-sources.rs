//! Text where a verifier's inputs are wanted, or where their sources are.

use git2::{Oid, Repository};
use veri::blind::{BehaviourSpec, Claim, SuiteLog, TestChange, VerifierPrompt};
use veri::suite::paths::TestPaths;

fn as_an_input(spec: BehaviourSpec, change: TestChange, claim: Claim, log: SuiteLog) {
    let prose = || String::from("the developer says that it is right");
    let _ = VerifierPrompt::new(prose(), change, claim, log, None); //~ E0308
    let _ = VerifierPrompt::new(spec, "prose", prose(), &prose(), Some("prose")); //~ E0308
}

fn as_a_source(repo: &Repository, tree: Oid, paths: &TestPaths) {
    let _ = BehaviourSpec::of("title and body", repo, tree, 1); //~ E0308
    let _ = TestChange::of(repo, tree, "added lines", paths); //~ E0308
    let _ = Claim::of("green, honestly", repo, tree, tree, paths); //~ E0308
    let _ = Claim::of(veri::role::Claim::Green, repo, tree, tree, "prose"); //~ E0308
    let _ = SuiteLog::of("all tests pass", 1); //~ E0308
    let _ = veri::blind::BaseCommit::of(repo, "looks good to me"); //~ E0308
}

fn main() {}
