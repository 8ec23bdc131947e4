//! The agent of `veri demo`: a program like any other that reads a prompt and does its part. It plays every role by a
//! script, and is honest about two of its faults: its first test is too weak, and once it hangs.
//!
//! It knows nothing but what every leaf is told: its prompt, its environment, its working folder.

mod script;

use crate::config::Env;
use crate::tool::{Tool, ToolEnd};
use anyhow::{Context, Result, anyhow, bail};
use script::{Edit, PROBE, SOURCE, STEPS, Step, TESTS, TESTS_HEAD};
use serde_json::json;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// The hidden subcommand.
pub(super) const COMMAND: &str = "__demo-agent";

/// Longer than any deadline of a demo: whoever hangs is ended by others.
const FOREVER: Duration = Duration::from_secs(60 * 60);

pub(super) fn main() -> u8 {
    match answer(&Env::of_process()) {
        Ok(words) => match writeln!(std::io::stdout(), "{words}") {
            Ok(()) => 0,
            Err(_) => 1,
        },
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "demo agent: {error:#}");
            1
        }
    }
}

/// Does the work of the role that the environment names, in the current folder; gives the answer.
fn answer(env: &Env) -> Result<String> {
    let mut prompt = String::new();
    std::io::stdin().read_to_string(&mut prompt)?;
    let word = |name: &str| {
        env.text(name)
            .ok_or_else(|| anyhow!("{name} is not set: this agent is run by `veri demo`"))
    };
    match (word("VERI_ROLE")?, word("VERI_PHASE")?) {
        ("planner", _) => Ok(plan(word("VERI_NONCE")?)),
        ("developer", phase) => {
            let first_attempt = word("VERI_ATTEMPT")? == "1";
            develop(number(word("VERI_STEP")?)?, phase, first_attempt, &prompt)
        }
        ("verifier", phase) => {
            let step = &STEPS[number(word("VERI_STEP")?)?];
            let found = verify(step, phase, word("VERI_TEST_CMD")?)?;
            Ok(verdict(&found, word("VERI_NONCE")?, word("VERI_TEST_CMD")?))
        }
        (role, phase) => bail!("there is nothing in the script for a {role} in {phase}"),
    }
}

fn number(title: &str) -> Result<usize> {
    STEPS
        .iter()
        .position(|step| step.title == title)
        .ok_or_else(|| anyhow!("the script has no step {title:?}"))
}

fn plan(nonce: &str) -> String {
    let id = |index: usize| format!("AC{}", index + 1);
    let criteria: Vec<_> = STEPS
        .iter()
        .enumerate()
        .map(|(n, step)| json!({ "id": id(n), "text": step.criterion, "quote": step.quote }))
        .collect();
    let steps: Vec<_> = STEPS
        .iter()
        .enumerate()
        .map(|(n, step)| json!({ "title": step.title, "criteria": [id(n)] }))
        .collect();
    json!({ "nonce": nonce, "criteria": criteria, "steps": steps }).to_string()
}

fn develop(number: usize, phase: &str, first_attempt: bool, prompt: &str) -> Result<String> {
    let step = &STEPS[number];
    match phase {
        "red" => {
            let test = match step.weak_test {
                Some(weak) if first_attempt => weak,
                _ => step.test,
            };
            let earlier = STEPS[..number].iter().map(|step| step.test);
            let text: String = [TESTS_HEAD]
                .into_iter()
                .chain(earlier)
                .chain([test])
                .collect();
            write(TESTS, &text)?;
            Ok("The test states what the step asks for, and fails.".to_owned())
        }
        "green" => {
            if let Some(edit) = &step.hangs_after
                // The prompt of a launch that follows a stuck one says so.
                && !prompt.contains("did not end within")
            {
                apply(std::slice::from_ref(edit))?;
                hang()?;
            }
            apply(step.green)?;
            Ok("The code does what the test states.".to_owned())
        }
        "refactor" => {
            apply(step.refactor)?;
            Ok(match step.refactor {
                [] => "There is nothing to simplify.",
                _ => "What was computed in two places has one name now.",
            }
            .to_owned())
        }
        _ => bail!("there is nothing in the script for the phase {phase}"),
    }
}

/// Waits for a program that does not end, as agents do that start a server or a pager.
fn hang() -> Result<()> {
    Tool::new("sleep").arg("3600").deadline(FOREVER).run()?;
    Ok(())
}

/// What a verifier found: Err with a reason to reject.
type Found = Result<&'static str, String>;

/// Puts the claim to the test, in a checkout that is thrown away afterwards.
fn verify(step: &Step, phase: &str, test_command: &str) -> Result<Found> {
    if phase == "red" {
        apply(step.wrong.edits)?;
        return Ok(match suite(test_command)? {
            Suite::Passes => Err(step.wrong.reason.to_owned()),
            Suite::Fails => {
                Ok("The test fails for want of the behaviour, and for a wrong implementation.")
            }
            Suite::Unclear(output) => Err(unclear(&output)),
        });
    }
    write(PROBE, &format!("use bank::Account;\n{}", step.probe))?;
    Ok(match suite(test_command)? {
        Suite::Passes => Ok("The suite passes, and so does a test of inputs that it does not try."),
        Suite::Fails => {
            Err("A test of inputs that the step's own test does not try fails.".to_owned())
        }
        Suite::Unclear(output) => Err(unclear(&output)),
    })
}

fn unclear(output: &str) -> String {
    format!("The suite did not run to its end:\n{output}")
}

fn verdict(found: &Found, nonce: &str, ran: &str) -> String {
    let (word, reason) = match found {
        Ok(reason) => ("approve", *reason),
        Err(reason) => ("reject", reason.as_str()),
    };
    json!({ "nonce": nonce, "verdict": word, "reasons": [reason], "ran": [ran] }).to_string()
}

enum Suite {
    Passes,
    Fails,
    /// It did not compile, or was cut off.
    Unclear(String),
}

fn suite(test_command: &str) -> Result<Suite> {
    let ran = Tool::new("sh")
        .args(["-c", test_command])
        .deadline(FOREVER)
        .run()?;
    let output = ran.stdout_text();
    Ok(match ran.end {
        ToolEnd::Code(0) => Suite::Passes,
        ToolEnd::Code(_) if output.contains("test result: FAILED") => Suite::Fails,
        _ => Suite::Unclear(ran.stderr_text()),
    })
}

fn apply(edits: &[Edit]) -> Result<()> {
    if edits.is_empty() {
        return Ok(());
    }
    let mut text =
        std::fs::read_to_string(SOURCE).with_context(|| format!("cannot read {SOURCE}"))?;
    for edit in edits {
        if text.matches(edit.old).count() != 1 {
            bail!("{SOURCE} is not what the script expects: {:?}", edit.old);
        }
        text = text.replacen(edit.old, edit.new, 1);
    }
    write(SOURCE, &text)
}

fn write(path: &str, text: &str) -> Result<()> {
    let path = Path::new(path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
