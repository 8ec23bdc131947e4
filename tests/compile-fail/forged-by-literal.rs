//! A verifier's inputs, its prompt and its launch, written down instead of read.

use veri::blind::{BehaviourSpec, SuiteLog, TestChange, VerifierPrompt};
use veri::prompt::{DeveloperPrompt, PlannerPrompt};

fn spec(issue: veri::prompt::IssueText, step: veri::prompt::StepText) {
    let _ = BehaviourSpec { issue, step }; //~ E0451
}

fn change(from: TestChange) {
    let _ = TestChange { ..from }; //~ E0451
}

fn log(end: veri::suite::SuiteEnd) {
    let (command, text) = (String::new(), Some(String::from("prose")));
    let _ = SuiteLog { command, end, wall_ms: 0, text, cut: false }; //~ E0451
}

fn prompt(from: VerifierPrompt, behaviour: BehaviourSpec) {
    let _ = VerifierPrompt { behaviour, ..from }; //~ E0451
}

fn others(planner: PlannerPrompt, developer: DeveloperPrompt) {
    let _ = PlannerPrompt { text: String::from("prose"), ..planner }; //~ E0451
    let _ = DeveloperPrompt { text: String::from("prose"), ..developer }; //~ E0451
}

fn main() {}
