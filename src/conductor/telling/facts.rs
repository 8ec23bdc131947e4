//! What the journal and the branch tell of a run, for the mirror and the pull request.
//!
//! Everything is read back from what was recorded, so that a resumed run tells the same story.

use super::evidence::{accepted_evidence, eyes_of, note, suite_runs, tests_of};
use super::repeat::Red;
use super::stories::tell;
use crate::conductor::run::Run;
use crate::event::{Kind, Line, PhaseWord, started_leaves};
use crate::forge::facts::{
    self, EyeKind, FileChange, LedgerLine, Merge, PullFacts, Refactor, StepKind, StepStory,
};
use crate::git::{issue_branch_name, tree};
use crate::ledger::Ledger;
use crate::role::Claim;
use crate::role::Phase;
use anyhow::Result;
use git2::{Oid, Repository};

/// How many commits of the branch are looked at.
const COMMITS: usize = 1000;

/// One commit of the issue branch, from its trailers.
struct BranchCommit {
    id: Oid,
    subject: String,
    step: Option<u32>,
    phase: Option<Phase>,
    ours: bool,
}

impl Run<'_> {
    /// The ledger's lines, for people; empty before the plan.
    pub(in crate::conductor) fn ledger_lines(&self) -> Vec<LedgerLine> {
        let Ok(ledger) = self.ledger_in_force() else {
            return Vec::new();
        };
        ledger
            .steps()
            .iter()
            .map(|s| LedgerLine {
                number: s.number,
                title: s.title.clone(),
                criteria: s.criteria.clone(),
                ticked: s.ticked,
                no_test: s.no_test.clone(),
            })
            .collect()
    }

    /// What happened in each step that has begun.
    pub(in crate::conductor) fn stories(&self) -> Vec<StepStory> {
        let ledger = self.ledger_lines();
        let mut stories: Vec<StepStory> = Vec::new();
        for line in &self.lines {
            let Some(number) = line.step else { continue };
            let index = match stories
                .iter()
                .position(|s| s.number == number && s.title == line.title)
            {
                Some(index) => index,
                None => {
                    stories.push(StepStory {
                        number,
                        title: line.title.clone(),
                        phases: Vec::new(),
                        outcome: String::new(),
                    });
                    stories.len() - 1
                }
            };
            if let Some(story) = stories.get_mut(index) {
                tell(story, line);
            }
        }
        // A title that was changed by hand leaves a story behind that the ledger no longer has.
        stories.retain(|s| {
            ledger
                .iter()
                .any(|l| l.number == s.number && l.title == s.title)
        });
        for story in &mut stories {
            let done = ledger.iter().any(|l| l.number == story.number && l.ticked);
            story.outcome = if done { "finished" } else { "under way" }.to_owned();
        }
        stories.sort_by_key(|s| ledger.iter().position(|l| l.number == s.number));
        stories
    }

    /// Everything the pull request tells.
    pub(in crate::conductor) fn pull_facts(&self, merge: Merge) -> Result<PullFacts> {
        let ready = self.ready()?;
        let ledger = self.ledger_in_force()?;
        let commits = self.branch_commits(ready.base.commit)?;
        let stories = self.stories();
        let repo = self.tree.git2();
        let mut eye = Vec::new();
        let mut steps = Vec::new();
        let mut red = None;
        for step in ledger.steps() {
            let own: Vec<&BranchCommit> = commits
                .iter()
                .filter(|c| c.step == Some(step.number))
                .collect();
            let lines: Vec<&Line> = self
                .lines
                .iter()
                .filter(|l| l.step == Some(step.number) && l.title == step.title)
                .collect();
            let mut evidence = accepted_evidence(&lines);
            // What was seen of a refactor that was dropped is nothing that is in the branch.
            if !own.iter().any(|c| c.phase == Some(Phase::Refactor)) {
                evidence.retain(|(claim, _)| claim != Claim::Refactor.as_str());
            }
            let recorded = |claim: Claim| evidence.iter().any(|(known, _)| known == claim.as_str());
            if own.is_empty() {
                eye.push(note(EyeKind::ByHandTick, Some(step.number), &step.title));
            }
            eye.extend(eyes_of(step.number, &evidence, &lines));
            let already = lines
                .iter()
                .any(|l| l.text("what") == "breaks-with" && l.text("result") == "holds");
            let kind = match &step.no_test {
                Some(why) if !own.is_empty() => StepKind::NoTest(why.clone()),
                _ if own.is_empty() => StepKind::ByHand,
                None if already => StepKind::AlreadyThere,
                None if recorded(Claim::Red) && recorded(Claim::Green) => StepKind::Tested,
                _ => StepKind::NotOnRecord,
            };
            if red.is_none() && kind == StepKind::Tested {
                let green = own.iter().find(|c| c.phase == Some(Phase::Green));
                red = green.and_then(|c| Red::of(step.number, c.id, &evidence));
            }
            let story = stories.iter().find(|s| s.number == step.number);
            steps.push(facts::Step {
                number: step.number,
                title: step.title.clone(),
                criteria: step.criteria.clone(),
                kind,
                commits: own
                    .iter()
                    .map(|c| facts::Commit {
                        short: short(c.id),
                        subject: c.subject.clone(),
                        phase: c.phase.unwrap_or(Phase::Green),
                    })
                    .collect(),
                tests: tests_of(&evidence),
                files_changed: files_changed(repo, &own)?,
                verdicts: story
                    .map(|s| {
                        s.phases
                            .iter()
                            .flat_map(|p| &p.attempts)
                            .flat_map(|a| a.verdicts.clone())
                            .collect()
                    })
                    .unwrap_or_default(),
                revisions: lines.iter().filter(|l| l.event == Kind::Revise).count() as u32,
                stuck_retries: lines
                    .iter()
                    .filter(|l| l.event == Kind::Exit && l.text("end") == "killed-stuck")
                    .count() as u32,
                refactor: refactor_of(&own, &lines),
            });
        }
        for commit in commits.iter().filter(|c| !c.ours) {
            let detail = format!("{} {}", short(commit.id), commit.subject);
            eye.push(note(EyeKind::ByHandCommit, None, &detail));
        }
        if let Some(why) = &ready.isolation {
            eye.push(note(EyeKind::Isolation, None, why));
        }
        let criteria = ledger
            .criteria()
            .iter()
            .map(|c| facts::Criterion {
                id: c.id.clone(),
                text: c.text.clone(),
                inferred: c.inferred.clone(),
                steps: ledger
                    .steps()
                    .iter()
                    .filter(|s| s.criteria.contains(&c.id))
                    .map(|s| s.number)
                    .collect(),
            })
            .collect();
        let branch = issue_branch_name(self.issue_number);
        Ok(PullFacts {
            issue_number: self.issue_number,
            issue_ref: self.forge.issue_ref(self.issue_number),
            issue_title: ready.text.title().to_owned(),
            evidence_command: self.evidence_command(&branch)?,
            red_half: red.map(|red| self.red_half(&red)).transpose()?,
            branch,
            base: ready.base.name.clone(),
            test_command: ready.test_command.clone(),
            checks: self.settings.config.checks.clone(),
            criteria,
            steps,
            eye,
            merge,
            ledger_text: String::from_utf8_lossy(ledger.as_bytes()).into_owned(),
            cost_usd: None,
            wall_seconds: self.wall_seconds(),
            leaves: started_leaves(&self.lines) as u32,
            suite_runs: suite_runs(&self.lines) as u32,
        })
    }

    /// The commits of the branch after the base, oldest first.
    fn branch_commits(&self, base: Oid) -> Result<Vec<BranchCommit>> {
        let repo = self.tree.git2();
        let mut walk = repo.revwalk()?;
        walk.push(self.tree.head()?)?;
        walk.hide(base)?;
        let mut commits = Vec::new();
        for id in walk.take(COMMITS) {
            let id = id?;
            let commit = repo.find_commit(id)?;
            let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
            let trailer = |key: &str| {
                message
                    .lines()
                    .rev()
                    .find_map(|l| Some(l.strip_prefix(key)?.strip_prefix(": ")?.trim().to_owned()))
            };
            commits.push(BranchCommit {
                id,
                subject: message.lines().next().unwrap_or_default().to_owned(),
                step: trailer("Veri-Step").and_then(|s| s.parse().ok()),
                phase: trailer("Veri-Phase").and_then(|p| phase_of(&p)),
                ours: trailer("Veri-Issue").is_some(),
            });
        }
        commits.reverse();
        Ok(commits)
    }

    /// Seconds in which a conductor was at work, all starts together.
    fn wall_seconds(&self) -> u64 {
        let time = |l: &Line| l.ts.parse::<jiff::Timestamp>().ok().map(|t| t.as_second());
        let mut runs: Vec<(&str, i64, i64)> = Vec::new();
        for line in &self.lines {
            let Some(at) = time(line) else { continue };
            match runs.last_mut() {
                Some((run, _, last)) if *run == line.run => *last = at,
                _ => runs.push((&line.run, at, at)),
            }
        }
        runs.iter()
            .map(|(_, first, last)| last.saturating_sub(*first).max(0) as u64)
            .sum()
    }
}

fn short(id: Oid) -> String {
    id.to_string().chars().take(9).collect()
}

fn phase_of(word: &str) -> Option<Phase> {
    match word {
        "plan" => Some(Phase::Plan),
        "red" => Some(Phase::Red),
        "green" => Some(Phase::Green),
        "refactor" => Some(Phase::Refactor),
        _ => None,
    }
}

fn refactor_of(commits: &[&BranchCommit], lines: &[&Line]) -> Refactor {
    if commits.iter().any(|c| c.phase == Some(Phase::Refactor)) {
        return Refactor::Done;
    }
    let of_refactor = |l: &&&Line| l.phase == Some(PhaseWord::Refactor);
    match lines
        .iter()
        .rev()
        .filter(of_refactor)
        .find(|l| l.fields.contains_key("what"))
    {
        Some(line) if line.text("what") == "refactor-dropped" => {
            Refactor::Dropped(line.text("why").to_owned())
        }
        Some(line) if line.text("result") == "unchanged" => Refactor::Nothing,
        _ => Refactor::Off,
    }
}

fn files_changed(repo: &Repository, commits: &[&BranchCommit]) -> Result<Vec<FileChange>> {
    let mut files: Vec<FileChange> = Vec::new();
    for commit in commits {
        let commit = repo.find_commit(commit.id)?;
        let new = repo.find_tree(tree::without_tdd(repo, commit.tree_id())?)?;
        let old = repo.find_tree(tree::without_tdd(repo, commit.parent(0)?.tree_id())?)?;
        let diff = repo.diff_tree_to_tree(Some(&old), Some(&new), None)?;
        for (index, delta) in diff.deltas().enumerate() {
            let path = delta
                .new_file()
                .path_bytes()
                .or(delta.old_file().path_bytes())
                .unwrap_or_default();
            let path = crate::check::show(path);
            let (mut added, mut removed) = (0, 0);
            if let Some(patch) = git2::Patch::from_diff(&diff, index)? {
                let (_, plus, minus) = patch.line_stats()?;
                (added, removed) = (plus as u32, minus as u32);
            }
            match files.iter_mut().find(|f| f.path == path) {
                Some(known) => {
                    known.added += added;
                    known.removed += removed;
                }
                None => files.push(FileChange {
                    path,
                    added,
                    removed,
                }),
            }
        }
    }
    Ok(files)
}

/// Whether each criterion is served by a ticked step; names those that are not.
pub(in crate::conductor) fn unserved(ledger: &Ledger) -> Vec<String> {
    ledger
        .criteria()
        .iter()
        .filter(|c| {
            !ledger
                .steps()
                .iter()
                .any(|s| s.ticked && s.criteria.contains(&c.id))
        })
        .map(|c| format!("{}: {}", c.id, c.text))
        .collect()
}
