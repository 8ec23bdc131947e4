//! Conversions from text into a verifier's inputs.

use veri::blind::{BehaviourSpec, Claim, SuiteLog, TestChange, VerifierPrompt};
use veri::prompt::Nonce;

fn main() {
    let prose = || String::from("it is right");
    let _: BehaviourSpec = prose().into(); //~ E0277
    let _: TestChange = prose().into(); //~ E0277
    let _: Claim = prose().into(); //~ E0277
    let _: SuiteLog = prose().into(); //~ E0277
    let _: VerifierPrompt = prose().into(); //~ E0277
    let _: Nonce = prose().into(); //~ E0277
    let _ = serde_json::from_str::<BehaviourSpec>("{}"); //~ E0277
    let _ = serde_json::from_str::<VerifierPrompt>("{}"); //~ E0277
    let _ = BehaviourSpec::default(); //~ E0599
}
