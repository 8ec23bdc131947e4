//! The story of a step, told line by line of the journal: attempts, checks, verdicts.

use crate::event::{Kind, Line, PhaseWord};
use crate::forge::facts::{Answer, Attempt, Check, PhaseStory, StepStory, Verdict};
use crate::role::{Claim, Phase};
use serde_json::Value;

/// Adds a line's news to the story of its step.
pub(in crate::conductor) fn tell(story: &mut StepStory, line: &Line) {
    let Some(phase) = line.phase else { return };
    let phase = match phase {
        PhaseWord::Plan => Phase::Plan,
        PhaseWord::Red => Phase::Red,
        PhaseWord::Green => Phase::Green,
        PhaseWord::Refactor => Phase::Refactor,
    };
    let at = match story.phases.iter().rposition(|p| p.phase == phase) {
        Some(at) => at,
        None => {
            story.phases.push(PhaseStory {
                phase,
                attempts: Vec::new(),
                outcome: None,
            });
            story.phases.len() - 1
        }
    };
    let Some(part) = story.phases.get_mut(at) else {
        return;
    };
    let claim = match (line.text("what"), phase) {
        ("already-there" | "breaks-with", _) => Claim::AlreadyThere,
        ("no-test", _) => Claim::NoTest,
        (_, Phase::Red | Phase::Plan) => Claim::Red,
        (_, Phase::Green) => Claim::Green,
        (_, Phase::Refactor) => Claim::Refactor,
    };
    let number = line.attempt.unwrap_or(1);
    if !matches!(
        line.event,
        Kind::Launch | Kind::Exit | Kind::Check | Kind::Verdict | Kind::Commit
    ) {
        return;
    }
    if part.attempts.last().is_none_or(|a| a.number != number) {
        part.attempts.push(Attempt {
            number,
            claim,
            ended: None,
            checks: Vec::new(),
            verdicts: Vec::new(),
        });
    }
    let Some(attempt) = part.attempts.last_mut() else {
        return;
    };
    if line.text("what") == "no-test" {
        attempt.claim = Claim::NoTest;
    }
    let reasons = || -> Vec<String> {
        let list = line.fields.get("reasons").and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|r| Some(r.as_str()?.to_owned()))
            .collect()
    };
    match line.event {
        Kind::Exit if !matches!(line.text("end"), "answered" | "") && line.ends_a_leaf() => {
            attempt.ended = Some(format!("{} {}", line.actor, line.text("said")));
        }
        // The same once more, before the commit: nothing new to tell.
        Kind::Check if line.fields.contains_key("recheck") => {}
        Kind::Check if line.fields.contains_key("result") => {
            let passed = matches!(line.text("result"), "holds" | "unchanged");
            let said = line.text("said").trim_start_matches("check: ").to_owned();
            let evidence = (!passed)
                .then(|| reasons().join("\n\n"))
                .filter(|e| !e.is_empty());
            attempt.checks.push(Check {
                passed,
                what: said,
                evidence,
            });
        }
        Kind::Check if line.text("what") == "refactor-dropped" => {
            part.outcome = Some("dropped; the step stands".to_owned());
        }
        Kind::Verdict => {
            let answer = match line.text("verdict") {
                "approve" => Answer::Approve,
                "reject" => Answer::Reject,
                _ => {
                    attempt.ended = Some(format!(
                        "the verifier's answer could not be read: {}",
                        reasons().join("; ")
                    ));
                    return;
                }
            };
            let claim = attempt.claim;
            attempt.verdicts.push(Verdict {
                claim,
                attempt: number,
                answer,
                reasons: reasons(),
            });
        }
        Kind::Commit => match line.text("what") {
            "red" => part.outcome = Some("approved; kept for green".to_owned()),
            "step" => {
                let commit: String = line.text("commit").chars().take(9).collect();
                part.outcome = Some(format!("committed as {commit}"));
            }
            _ => {}
        },
        _ => {}
    }
    if line.event == Kind::Check && line.text("result") == "unchanged" && phase == Phase::Refactor {
        part.outcome = Some("nothing to refactor".to_owned());
    }
}
