//! What the end of a leaf and its answer mean to the machine.

use super::deadlines::overdue;
use super::oid;
use crate::answer::clip;
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::leaf::End;
use crate::machine::{Answer, Event, Leaf, LeafEnd, Reopen};
use crate::prompt::Rationale;
use crate::role::{Role, StopMode, leaf_name};
use crate::untrusted::{plain, tail};
use crate::verdict::Decision;
use crate::{agent, verdict};
use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use std::path::Path;

/// How much of an answer is read, in bytes from its end.
const ANSWER_BYTES: u64 = agent::ANSWER_BYTES;

impl Run<'_> {
    pub(in crate::conductor) fn outcome(
        &mut self,
        leaf: &Leaf,
        end: &End,
        stdout: &Path,
        nonce: Option<&str>,
        record: Option<Value>,
        deadlines: &Value,
    ) -> Result<(Event, Value)> {
        self.say_what_is_left(leaf, record.as_ref())?;
        let ended = match end {
            End::Done { code } => self.answer(leaf, *code, stdout, nonce)?,
            // It had given its result: how it was made to go says nothing of that.
            End::Lingered => self.answer(leaf, 0, stdout, nonce)?,
            // A stop that came while the deadline passed is a stop, not a stuck leaf.
            End::KilledStuck { .. } if self.stop_mode() == Some(StopMode::Now) => LeafEnd::Stopped,
            End::KilledStuck { why } => overdue(leaf.role, *why, deadlines),
            End::KilledByStop => LeafEnd::Stopped,
            End::KilledExternal { signal } => LeafEnd::External {
                detail: format!(
                    "The leaf {} was ended by {} that was not veri's. Somebody or something on this machine \
                     killed it (an operator, the out-of-memory killer, a scheduler); run again to go on.",
                    leaf_name(leaf.role, leaf.phase),
                    signal.map_or("a kill of its supervisor".to_owned(), |n| format!(
                        "signal {n}"
                    ))
                ),
            },
            End::Lost => LeafEnd::Lost,
            End::NeverStarted => LeafEnd::NeverStarted,
            End::SpawnFailed { message, .. } => LeafEnd::SpawnFailed {
                detail: message.clone(),
            },
            End::StillRunning => return Err(anyhow!("a wait without an end has ended")),
        };
        let found = self.findings_of_effect();
        let ended = match ended {
            // What a verifier ran has laid hands on what is not its own.
            LeafEnd::Answered(Answer::Approve { .. } | Answer::Reject { .. })
                if !found.is_empty() =>
            {
                LeafEnd::Answered(Answer::Reject { reasons: found })
            }
            ended => ended,
        };
        if let LeafEnd::Answered(Answer::Approve { .. }) = ended {
            self.seen.approved = leaf.candidate.as_ref().and_then(|t| oid(Some(t)).ok());
        }
        let mut fields = json!({ "record": record });
        if *end == End::Lingered {
            fields["lingered"] = Value::Bool(true);
        }
        Ok((Event::LeafEnded(ended), fields))
    }

    /// Says which processes of a leaf could not be ended: nobody else will find them by its launch.
    fn say_what_is_left(&mut self, leaf: &Leaf, record: Option<&Value>) -> Result<()> {
        let count = record.and_then(|r| r.get("unswept")?.as_u64()).unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        let left = record.and_then(|r| r.get("left")?.as_array());
        let names = left.into_iter().flatten().filter_map(Value::as_str);
        let names: Vec<String> = names.take(8).map(|name| clip(&plain(name), 100)).collect();
        let said = format!(
            "of what {} started, {count} could not be ended: frozen, stuck in the kernel, or another user's: \
             {}. What is killed ends when it is let go",
            leaf_name(leaf.role, leaf.phase),
            match names.is_empty() {
                true => "their names are not known".to_owned(),
                false => names.join(", "),
            }
        );
        self.say(Kind::Check, said)
    }

    fn answer(
        &self,
        leaf: &Leaf,
        code: i32,
        stdout: &Path,
        nonce: Option<&str>,
    ) -> Result<LeafEnd> {
        let bytes = match tail(stdout, ANSWER_BYTES) {
            Ok((bytes, _)) => bytes,
            // A developer can remove or replace the file; its work is what counts.
            Err(_) if leaf.role == Role::Developer && !stdout.is_file() => Vec::new(),
            // Nor is what somebody has put in its place an answer.
            Err(_) if stdout.symlink_metadata().is_ok_and(|m| !m.is_file()) => Vec::new(),
            Err(e) => {
                let name = leaf_name(leaf.role, leaf.phase);
                return Err(e).with_context(|| format!("reading what the leaf {name} answered"));
            }
        };
        match leaf.role {
            Role::Developer => {
                let words = Rationale::from_output(bytes);
                if code != 0 {
                    return Ok(LeafEnd::Failed { code });
                }
                if let Some(question) = words.needs_user() {
                    return Ok(LeafEnd::Answered(Answer::NeedsUser {
                        question: question.to_owned(),
                    }));
                }
                let reopen: Vec<Reopen> = words
                    .reopen_red()
                    .iter()
                    .map(|r| Reopen {
                        test: r.test.clone(),
                        why: r.why.clone(),
                    })
                    .collect();
                Ok(LeafEnd::Answered(match reopen.is_empty() {
                    true => Answer::Developed,
                    false => Answer::ReopenRed(reopen),
                }))
            }
            Role::Planner => {
                if code != 0 {
                    return Ok(LeafEnd::Malformed {
                        reason: format!("the planner exited with code {code}"),
                    });
                }
                self.planned(&String::from_utf8_lossy(&bytes), nonce.unwrap_or_default())
            }
            Role::Verifier => {
                let text = String::from_utf8_lossy(&bytes);
                Ok(
                    match verdict::read(&text, nonce.unwrap_or_default(), code) {
                        Err(malformed) => LeafEnd::Malformed {
                            reason: malformed.to_string(),
                        },
                        Ok(verdict::Answer::NeedsUser(question)) => {
                            LeafEnd::Answered(Answer::NeedsUser { question })
                        }
                        Ok(verdict::Answer::Verdict(v)) => LeafEnd::Answered(match v.verdict {
                            Decision::Approve => Answer::Approve {
                                breaks_with: v.breaks_with,
                            },
                            Decision::Reject => Answer::Reject {
                                reasons: v.reasons.into_iter().map(|r| r.text).collect(),
                            },
                        }),
                    },
                )
            }
        }
    }
}
