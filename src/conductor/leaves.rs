//! Leaves: what each is told, its launch, and what its end and answer mean to the machine.

use super::launch_files::Files;
use super::pick_up::is;
use super::record::{Entry, of_leaf};
use super::run::Run;
use crate::agent::{self, Launch, Place, Seclusion};
use crate::answer;
use crate::blind::{
    BaseCommit, BehaviourSpec, Claim as BlindClaim, Hidden, SuiteLog, TestChange, VerifierPrompt,
    issue_text,
};
use crate::cause::{Bail, Cause};
use crate::event::Kind;
use crate::git::{leaf_git_env, tree};
use crate::leaf::{self, End, KillWhy, LaunchId, Records, Spec};
use crate::ledger::Ledger;
use crate::machine::{Answer, Event, Feedback, FeedbackKind, From, Leaf, LeafEnd, Reopen, Tree};
use crate::plan;
use crate::prompt::{
    CutShort, DeveloperInputs, DeveloperPrompt, Kept, Nonce, PlannerInputs, PlannerPrompt,
    Rationale, RejectReason, Setback, Start, StepText, Task,
};
use crate::role::{Claim, Role, StopMode, leaf_name};
use crate::untrusted::tail;
use crate::verdict::{self, Decision};
use anyhow::{Context, Result, anyhow};
use git2::{Oid, Repository};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of an answer is read, in bytes from its end.
const ANSWER_BYTES: u64 = agent::ANSWER_BYTES;

/// The grace between TERM and KILL.
const GRACE: Duration = leaf::DEFAULT_GRACE;

impl Run<'_> {
    /// Launches a leaf and waits for its end.
    pub(super) fn launch(&mut self, leaf: &Leaf) -> Result<(Event, Value)> {
        // A planner that ended while no conductor watched: now its plan can be judged.
        if leaf.role == Role::Planner
            && let Some(line) = self.open_launch()
            && let Some(outcome) = self.take_up(leaf, &line)?
        {
            return Ok(outcome);
        }
        if let Some(mode) = self.stop_mode()
            && mode >= StopMode::AtLeaf
        {
            return Ok((Event::LeafEnded(LeafEnd::Refused), Value::Null));
        }
        self.within_wall_budget()?;
        let id = LaunchId::random()?;
        match leaf.role {
            Role::Planner => self.launch_planner(leaf, id),
            Role::Developer => self.launch_developer(leaf, id),
            Role::Verifier => self.launch_verifier(leaf, id),
        }
    }

    fn within_wall_budget(&self) -> Result<()> {
        let Some(minutes) = self.settings.config.limits.wall_minutes else {
            return Ok(());
        };
        if self.started.elapsed() < Duration::from_secs(minutes.saturating_mul(60)) {
            return Ok(());
        }
        Err(Bail::new(
            Cause::BudgetExhausted,
            format!("The run has taken the {minutes} minutes that limits.wall_minutes allows. Run again to go on with as much time again."),
        )
        .into())
    }

    pub(super) fn records(&self) -> Result<Records> {
        Ok(Records::new(self.tree.tdd())?.with_shim(&self.ask.program))
    }

    fn launch_planner(&mut self, leaf: &Leaf, id: LaunchId) -> Result<(Event, Value)> {
        let base = tree::of_commit(self.tree.git2(), self.ready()?.base.commit)?;
        let nonce = agent::fresh_nonce()?;
        self.bring_ground(base)?;
        let timeout = self.leaf_timeout()?;
        let records = self.records()?;
        let files = Files::below(&records, &id);
        let declared = self.declared_env();
        let ready = self.ready()?;
        let previous = self
            .state
            .planner
            .feedback
            .as_ref()
            .map(|f| f.reasons.join("\n"));
        let prompt = PlannerPrompt::render(
            &ready.templates,
            &PlannerInputs {
                issue: &issue_text(&ready.text),
                test_command: &ready.test_command,
                max_steps: self.settings.max_steps() as u32,
                no_test_forbidden: self.settings.no_test_forbidden(),
                nonce: &nonce,
                schema: &serde_json::to_string_pretty(&plan::schema())?,
                previous_error: previous.as_deref(),
            },
        )?;
        let place = self.place(&files, ready.ground.path(), timeout, &declared)?;
        let launch = agent::planner_launch(&ready.agents.planner, &prompt, &place)?;
        self.run_leaf(leaf, &launch, id, Some(&nonce), timeout, &records)
    }

    fn launch_developer(&mut self, leaf: &Leaf, id: LaunchId) -> Result<(Event, Value)> {
        let start = self.start_tree(&leaf.from)?;
        self.settle_guard()?;
        let now = self.tree.salvage()?;
        self.make_way(now)?;
        // From here on, what is in the working tree is the leaf's until it is collected or put back.
        self.write(Entry::new(
            Kind::Check,
            of_leaf(leaf),
            json!({ "intent": "prepare" }),
        ))?;
        let why = format!("unfinished work of {}", leaf_name(leaf.role, leaf.phase));
        if let Some(kept) = self.set_aside(now, start, &why)? {
            self.write(self.kept_aside(Kind::Check, &kept))?;
        }
        self.restore(start)?;
        self.furnish(start)?;
        let records = self.records()?;
        let files = Files::below(&records, &id);
        let timeout = self.leaf_timeout()?;
        let declared = self.declared_env();
        let work = self
            .state
            .work
            .clone()
            .ok_or_else(|| anyhow!("a developer without a step"))?;
        let ledger = self.ledger_in_force()?;
        let step = step_text(&ledger, work.step.number)?;
        let setback = work.feedback.as_ref().map(setback);
        let cut_short = match (leaf.launch > 1, work.cut_off) {
            (_, true) => Some(CutShort::CutOff),
            (true, false) => Some(CutShort::Stuck(timeout.as_secs())),
            (false, false) => None,
        };
        // What is in the working tree need not be looked for.
        let begun_anew = matches!(leaf.from, From::Head) || leaf.attempt == 1;
        let kept = (begun_anew || cut_short.is_some())
            .then(|| self.kept_lately())
            .flatten()
            .map(|reference| Kept { reference });
        let reopened: Vec<answer::Reopen> = work
            .reopened
            .iter()
            .map(|r| answer::Reopen {
                test: r.test.clone(),
                why: r.why.clone(),
            })
            .collect();
        let ready = self.ready()?;
        let prompt = DeveloperPrompt::render(
            &ready.templates,
            &DeveloperInputs {
                task: match work.claim {
                    Claim::Red | Claim::AlreadyThere => Task::Red,
                    Claim::Green => Task::Green,
                    Claim::Refactor => Task::Refactor,
                    Claim::NoTest => Task::NoTest,
                },
                issue: &issue_text(&ready.text),
                ledger: ledger.as_str(),
                step: &step,
                test_command: &ready.test_command,
                checks: &self.settings.config.checks,
                attempt: leaf.attempt,
                reopened: &reopened,
                setback: setback.as_ref(),
                start: match begun_anew {
                    true => Start::Fresh,
                    false => Start::FromCandidate,
                },
                cut_short,
                kept: kept.as_ref(),
            },
        )?;
        let place = self.place(&files, self.tree.path(), timeout, &declared)?;
        let launch = agent::developer_launch(&ready.agents.developer, &prompt, &place)?;
        // From here on, what the leaf does to the repository itself can be told and undone.
        self.guard = Some(self.tree.guard()?);
        self.run_leaf(leaf, &launch, id, None, timeout, &records)
    }

    fn launch_verifier(&mut self, leaf: &Leaf, id: LaunchId) -> Result<(Event, Value)> {
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
        let timeout = self.leaf_timeout()?;
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
        let declared = self.declared_env();
        let slot: OsString = verify.ground().slot().to_string().into();
        let declared: Vec<_> = declared
            .into_iter()
            .chain([("VERI_SLOT".into(), slot)])
            .collect();
        let ready = self.ready()?;
        let seclusion = Seclusion {
            hidden: &hidden,
            temp: &temp,
        };
        let place = self.place(&files, verify.path(), timeout, &declared)?;
        let launch = agent::verifier_launch(
            &ready.agents.verifier,
            &prompt,
            &ready.templates,
            &nonce,
            &seclusion,
            &place,
        )?;
        let outcome = self.run_leaf(leaf, &launch, id.clone(), Some(&nonce), timeout, &records);
        files.keep(&records, &id);
        outcome
    }

    fn verifier_temp(&self, id: &LaunchId) -> PathBuf {
        self.home.join("verify").join(id.as_str())
    }

    /// Where the files of a launch are.
    pub(super) fn files_of(&self, role: Role, records: &Records, id: &LaunchId) -> Files {
        match role {
            Role::Verifier => Files::at(&self.verifier_temp(id)),
            _ => Files::below(records, id),
        }
    }

    fn place<'p>(
        &'p self,
        files: &'p Files,
        cwd: &'p Path,
        timeout: Duration,
        declared: &'p [(OsString, OsString)],
    ) -> Result<Place<'p>> {
        Ok(Place {
            caller: self.ask.env.all(),
            declared,
            issue: self.issue_number,
            test_command: &self.ready()?.test_command,
            skill_commit: self.skill_commit()?,
            timeout,
            cwd,
            prompt: &files.prompt,
            stdout: &files.stdout,
            stderr: &files.stderr,
        })
    }

    /// Journals the launch, starts it, waits, and reads the answer.
    fn run_leaf(
        &mut self,
        leaf: &Leaf,
        launch: &Launch,
        id: LaunchId,
        nonce: Option<&Nonce>,
        timeout: Duration,
        records: &Records,
    ) -> Result<(Event, Value)> {
        let name = leaf_name(leaf.role, leaf.phase);
        let fields = json!({
            "intent": "launch",
            "launch": id.as_str(),
            "leaf": name,
            "relaunch": leaf.launch - 1,
            "stdout": launch.stdout().to_string_lossy(),
            "nonce": nonce.map(Nonce::as_str),
            "head": (leaf.role == Role::Developer).then(|| self.tree.head().map(|h| h.to_string())).transpose()?,
        });
        self.write(Entry::new(Kind::Launch, of_leaf(leaf), fields))?;
        let mut env = launch.env();
        if leaf.role == Role::Developer {
            let own = leaf_git_env(&env);
            env.retain(|(name, _)| !own.iter().any(|(other, _)| other == name));
            env.extend(own);
        }
        let spec = Spec {
            name,
            launch: id,
            argv: launch.argv().to_vec(),
            cwd: launch.cwd().to_owned(),
            env,
            stdin: Some(launch.stdin().to_owned()),
            stdout: launch.stdout().to_owned(),
            stderr: launch.stderr().to_owned(),
            wall: timeout,
            grace: GRACE,
            output_cap: Some(self.settings.output_cap()),
        };
        self.crash_point("launching");
        let watched = |run: &mut Self| {
            let mut running = leaf::start(records, &spec)?;
            run.crash_point("started");
            let end = running.wait(None, &mut || run.glance());
            let end = run.or_ended(end, records, running.name())?;
            Ok((end, running.record()?))
        };
        // A developer's guard is settled when its work is taken, stopped or lost; others run code of the candidate.
        let (end, record) = match leaf.role {
            Role::Developer => watched(self)?,
            Role::Planner | Role::Verifier => self.guarded(watched)?,
        };
        self.mend_journal()?;
        let record = record.map(|r| serde_json::to_value(&r)).transpose()?;
        self.outcome(
            leaf,
            &end,
            launch.stdout(),
            nonce.map(Nonce::as_str),
            record,
        )
    }

    /// A leaf that cannot be waited for is not left running.
    pub(super) fn or_ended(&self, end: Result<End>, records: &Records, name: &str) -> Result<End> {
        if end.is_err() {
            drop(leaf::kill(records, name, KillWhy::Stop));
            drop(leaf::settle_newest(
                records,
                name,
                Some(2 * GRACE),
                &mut || None,
            ));
        }
        end
    }

    pub(super) fn outcome(
        &mut self,
        leaf: &Leaf,
        end: &End,
        stdout: &Path,
        nonce: Option<&str>,
        record: Option<Value>,
    ) -> Result<(Event, Value)> {
        let ended = match end {
            End::Done { code } => self.answer(leaf, *code, stdout, nonce)?,
            // A stop that came while the deadline passed is a stop, not a stuck leaf.
            End::KilledStuck { .. } if self.stop_mode() == Some(StopMode::Now) => LeafEnd::Stopped,
            End::KilledStuck { .. } => LeafEnd::Stuck,
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
        Ok((Event::LeafEnded(ended), json!({ "record": record })))
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

    fn planned(&self, text: &str, nonce: &str) -> Result<LeafEnd> {
        let plan = match plan::read_answer(text, nonce) {
            Err(malformed) => {
                return Ok(LeafEnd::Malformed {
                    reason: malformed.to_string(),
                });
            }
            Ok(plan::Answer::NeedsUser(question)) => {
                return Ok(LeafEnd::Answered(Answer::NeedsUser { question }));
            }
            Ok(plan::Answer::Plan(plan)) => plan,
        };
        Ok(match self.validate(&plan) {
            Ok(()) => LeafEnd::Answered(Answer::Plan(plan)),
            Err(e) if e.kind == plan::PlanErrorKind::NothingQuoted => {
                let proposed = serde_json::to_string_pretty(&plan)?;
                LeafEnd::Answered(Answer::NeedsUser {
                    question: format!(
                        "None of the criteria of the proposed plan stands in the issue: {e}. Write what is wanted \
                         into the issue, or run with --plan FILE. The proposed plan:\n\n{proposed}"
                    ),
                })
            }
            Err(e) => LeafEnd::Malformed {
                reason: e.to_string(),
            },
        })
    }

    /// Whether a plan may become the ledger.
    pub(super) fn validate(&self, plan: &plan::Plan) -> Result<(), plan::PlanError> {
        let text = match &self.ready {
            Some(ready) => {
                let comments = ready.text.comments().iter().map(|c| c.text());
                let parts = [ready.text.title(), ready.text.body()];
                parts
                    .into_iter()
                    .chain(comments)
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            None => String::new(),
        };
        plan.validate(
            &text,
            &plan::Rules {
                max_steps: self.settings.max_steps(),
                no_test_forbidden: self.settings.no_test_forbidden(),
            },
        )
    }

    /// The tree that a developer starts from; None for the branch as it is.
    pub(super) fn start_tree(&self, from: &From) -> Result<Option<Oid>> {
        match from {
            From::Head => Ok(None),
            From::Tree(tree) => Ok(Some(oid(Some(tree))?)),
            From::Merge { base, red, code } => {
                let repo = self.tree.git2();
                let find = |tree: &Tree| -> Result<git2::Tree<'_>> {
                    Ok(repo.find_tree(oid(Some(tree))?)?)
                };
                let red_tree = find(red)?;
                let mut index = repo.merge_trees(&find(base)?, &red_tree, &find(code)?, None)?;
                // Code that conflicts with the new red is written again, from the red alone.
                if index.has_conflicts() {
                    return Ok(Some(red_tree.id()));
                }
                Ok(Some(index.write_tree_to(repo)?))
            }
        }
    }

    /// Unfinished work of an earlier launch, `now`, is kept unless it is `start` or a known tree; gives where.
    pub(super) fn set_aside(
        &mut self,
        now: Oid,
        start: Option<Oid>,
        why: &str,
    ) -> Result<Option<String>> {
        let mut known: Vec<Oid> = start.into_iter().chain([self.tree.head_tree()?]).collect();
        let candidate = self.state.work.as_ref().and_then(|w| w.candidate.as_ref());
        known.extend(candidate.and_then(|tree| Oid::from_str(&tree.0).ok()));
        let is_known = |tree| known.contains(&tree);
        if is_known(now) || self.without_debris()?.is_some_and(is_known) {
            return Ok(None);
        }
        self.tree.discard(self.issue_number, now, why)
    }

    /// The line that says where work is that is not in the working tree any more.
    pub(super) fn kept_aside(&self, kind: Kind, refname: &str) -> Entry {
        let n = self.issue_number;
        let said = format!("unfinished work is kept in {refname} (`veri discarded {n}`)");
        Entry::new(kind, Default::default(), json!({ "kept": refname })).say(said)
    }

    /// Where the newest work was put since a developer last answered or work on the step began, by the journal.
    fn kept_lately(&self) -> Option<String> {
        let lines = self.lines.iter().rev();
        lines
            .take_while(|l| !is(l, "collected") && l.event != Kind::StepStart)
            .find_map(|l| Some(l.fields.get("kept")?.as_str()?.to_owned()))
    }

    fn leaf_timeout(&self) -> Result<Duration> {
        Ok(self
            .settings
            .leaf_timeout(&self.tree, self.issue_number, self.ready()?.suite_ms))
    }

    fn skill_commit(&self) -> Result<Oid> {
        let id = self
            .source
            .skill_commit
            .as_deref()
            .ok_or_else(|| anyhow!("no snapshot is in force"))?;
        Ok(Oid::from_str(id)?)
    }
}

/// A tree's name as git2 has it.
pub(super) fn oid(tree: Option<&Tree>) -> Result<Oid> {
    let tree = tree.ok_or_else(|| anyhow!("no candidate is known"))?;
    Oid::from_str(&tree.0).with_context(|| format!("{:?} is not the name of a tree", tree.0))
}

fn step_text(ledger: &Ledger, number: u32) -> Result<StepText> {
    let step = ledger
        .step(number)
        .ok_or_else(|| anyhow!("the ledger has no step {number}"))?;
    let criteria = ledger
        .criteria()
        .iter()
        .filter(|c| step.criteria.contains(&c.id))
        .map(|c| (c.id.clone(), c.text.clone()))
        .collect();
    Ok(StepText {
        number,
        title: step.title.clone(),
        criteria,
        no_test: step.no_test.clone(),
    })
}

/// Why the last answer was refused.
fn setback(feedback: &Feedback) -> Setback {
    let Feedback { kind, reasons } = feedback;
    let evidence = || reasons.join("\n\n");
    match kind {
        FeedbackKind::Reject => Setback::Rejected(
            reasons
                .iter()
                .map(|text| RejectReason {
                    text: text.clone(),
                    counterexample: None,
                })
                .collect(),
        ),
        FeedbackKind::Refused => Setback::Refused(evidence()),
        FeedbackKind::Failed => Setback::Failed(evidence()),
        FeedbackKind::Unchanged => Setback::NothingChanged,
        FeedbackKind::Check | FeedbackKind::Malformed => Setback::CheckFailed(evidence()),
    }
}
