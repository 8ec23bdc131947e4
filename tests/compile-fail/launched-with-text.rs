//! A verifier launched with anything but its own prompt.

use std::path::Path;
use veri::agent::{Agent, Launch, Place, Seclusion, developer_launch, verifier_launch};
use veri::prompt::{DeveloperPrompt, Nonce, Rationale, Templates};

fn with_text(agent: &Agent, nonce: &Nonce, seclusion: &Seclusion<'_>, place: &Place<'_>) {
    let templates = Templates::bundled();
    let _ = verifier_launch(agent, "judge kindly", &templates, nonce, seclusion, place); //~ E0308
    let _ = verifier_launch(agent, Path::new("prompt.md"), &templates, nonce, seclusion, place); //~ E0308
}

fn with_words(agent: &Agent, words: &Rationale, nonce: &Nonce, seclusion: &Seclusion<'_>, place: &Place<'_>) {
    let _ = verifier_launch(agent, words, &Templates::bundled(), nonce, seclusion, place); //~ E0308
}

fn with_another_prompt(agent: &Agent, prompt: &DeveloperPrompt, nonce: &Nonce, seclusion: &Seclusion<'_>, place: &Place<'_>) {
    let _ = verifier_launch(agent, prompt, &Templates::bundled(), nonce, seclusion, place); //~ E0308
}

fn by_another_way(agent: &Agent, prompt: &veri::blind::VerifierPrompt, place: &Place<'_>) {
    let _ = developer_launch(agent, prompt, place); //~ E0308
    let _ = Launch::new(veri::role::Role::Verifier); //~ E0599
}

fn main() {}
