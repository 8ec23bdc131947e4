//! The draft pull request, for a review in ten minutes by somebody who has never heard of veri. Pure
//! rendering of plain facts; [`super::Forge::open_pull`] sends it.

use super::eye::{NOTHING_FOR_THE_EYE, eye, eye_line};
use super::facts::{Answer, Criterion, Merge, PullFacts, Refactor, Step, StepKind, Verdict};
use super::sanitize::{code, command, cut, fence, inline, line};
use super::see::see_for_yourself;
use crate::role::{Claim, Phase};

/// The pull request's title: the issue's, and its reference.
pub fn title(facts: &PullFacts) -> String {
    format!("{} ({})", line(&facts.issue_title, 200), reference(facts))
}

/// The pull request's body: at most 60,000 bytes.
pub fn render(facts: &PullFacts) -> String {
    let mut out = format!(
        "<!-- veri:issue-{}:pull -->\nCloses {}\n\n## What changed\n\n{}",
        facts.issue_number,
        reference(facts),
        summary(facts)
    );
    push_bounded(&mut out, facts.steps.iter().map(step_line), 15_000, "steps");
    out.push_str(&format!("\n{}\n", how_proven(facts)));
    out.push_str("\n## What the issue asks for, and what shows it\n\n");
    push_bounded(
        &mut out,
        facts.criteria.iter().map(|c| criterion(facts, c)),
        13_000,
        "criteria",
    );
    out.push_str("## Needs your eye\n\n");
    match eye(facts).as_slice() {
        [] => out.push_str(NOTHING_FOR_THE_EYE),
        points => push_bounded(&mut out, points.iter().map(eye_line), 10_000, "points"),
    }
    out.push_str(&see_for_yourself(facts));
    fold(
        &mut out,
        "The plan, with every step ticked (the ledger)",
        &ledger(facts),
    );
    fold(
        &mut out,
        "What the second agents said, and how many attempts it took",
        &verdicts(facts),
    );
    fold(&mut out, "Cost and time", &cost(facts));
    out
}

/// The reference that closes the issue: checked, because it is the one thing written raw.
fn reference(facts: &PullFacts) -> String {
    let number = format!("#{}", facts.issue_number);
    let repository = facts.issue_ref.strip_suffix(&number).unwrap_or_default();
    let fine = repository.len() <= 200
        && repository.split('/').count() == 2
        && repository
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
    if fine {
        format!("{repository}{number}")
    } else {
        number
    }
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn summary(facts: &PullFacts) -> String {
    let commits = facts.steps.iter().map(|step| step.commits.len()).sum();
    let mut files: Vec<&str> = facts
        .steps
        .iter()
        .flat_map(|s| s.files_changed.iter().map(|f| f.path.as_str()))
        .collect();
    files.sort_unstable();
    files.dedup();
    let merged = match &facts.merge {
        Merge::Clean { suite_passed: true } => {
            " It merges into the newest base, and the suite passes on the result.".to_owned()
        }
        Merge::Clean {
            suite_passed: false,
        }
        | Merge::Conflict(_) => String::new(),
        Merge::NotTried(why) => {
            format!(
                " Merging it into the newest base was not tried: {}.",
                inline(why, 300)
            )
        }
    };
    format!(
        "{}, done in {} ({}, {}) on {}, started from {}.{merged}\n\n",
        inline(&facts.issue_title, 240),
        count(facts.steps.len(), "step", "steps"),
        count(commits, "commit", "commits"),
        count(files.len(), "file", "files"),
        code(&facts.branch, 200),
        code(&facts.base, 200),
    )
}

/// How many files, tests or attempts are named in one place.
const NAMED_MAX: usize = 8;

fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let total = items.len();
    let mut items: Vec<String> = items.take(NAMED_MAX).collect();
    if total > items.len() {
        items.push(format!("{} more", total - items.len()));
    }
    match items.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}

fn step_line(step: &Step) -> String {
    let commits = step.commits.iter().map(|commit| {
        let what = match (commit.phase, &step.kind) {
            (Phase::Refactor, _) => "tidied up in",
            (_, StepKind::Tested) => "test and code in",
            (_, StepKind::AlreadyThere) => "test in",
            (_, StepKind::NoTest(_) | StepKind::ByHand) => "changed in",
            (_, StepKind::NotOnRecord) => "committed in",
        };
        format!("{what} {}", code(&commit.short, 60))
    });
    let mut out = format!("{}. **{}**", step.number, inline(&step.title, 240));
    if !step.commits.is_empty() {
        let commits: Vec<String> = commits.collect();
        let commits = match commits.as_slice() {
            [code, tidied] => format!("{code}, {tidied}"),
            _ => listed(commits.into_iter()),
        };
        out.push_str(&format!(" — {commits}"));
    }
    if !step.files_changed.is_empty() {
        let files = step.files_changed.iter().map(|file| {
            format!(
                "{} (+{} −{})",
                code(&file.path, 200),
                file.added,
                file.removed
            )
        });
        out.push_str(&format!("  \n   {}", listed(files)));
    }
    out.push('\n');
    out
}

fn how_proven(facts: &PullFacts) -> String {
    let mut suite = command(&facts.test_command, 500);
    if !facts.checks.is_empty() {
        let checks = listed(facts.checks.iter().map(|check| command(check, 300)));
        suite.push_str(&format!(", and with it {checks}"));
    }
    let exceptions = if facts.steps.iter().all(|step| step.kind == StepKind::Tested) {
        ""
    } else {
        " Steps for which it was otherwise are named under *Needs your eye*."
    };
    format!(
        "How each step was proven: the work was done by coding agents under veri, a program that writes \
         no code and takes nobody's word. A step is one small piece of behaviour. Its test was written \
         first, and veri saw the suite fail because of it, in a clean checkout, twice. Then the code was \
         written, and veri saw that same test, unchanged, pass with the whole suite ({suite}). Each time \
         a second agent, which saw the test and the code but none of the first one's reasoning, judged \
         the claim before it was committed.{exceptions} Nothing is merged by itself: that is for you to \
         decide."
    )
}

fn criterion(facts: &PullFacts, criterion: &Criterion) -> String {
    let mut out = format!(
        "**{}: {}**",
        inline(&criterion.id, 40),
        inline(&criterion.text, 600)
    );
    if criterion.inferred.is_some() {
        out.push_str(" (an assumption)");
    }
    out.push_str("  \n");
    let mut sentences = vec![];
    for step in facts
        .steps
        .iter()
        .filter(|step| criterion.steps.contains(&step.number))
    {
        let tests = listed(step.tests.iter().map(|tests| {
            let path = code(&tests.path, 200);
            match tests.names.is_empty() {
                true => path,
                false => format!(
                    "{} in {path}",
                    listed(tests.names.iter().map(|name| code(name, 200)))
                ),
            }
        }));
        let tests = if tests.is_empty() {
            "its test".to_owned()
        } else {
            tests
        };
        let n = step.number;
        sentences.push(match &step.kind {
            StepKind::Tested => {
                format!(
                    "Step {}: {tests}, failing before the code was written and passing now.",
                    step.number
                )
            }
            StepKind::AlreadyThere => format!(
                "Step {}: {tests}, passing at once because the behaviour was already there.",
                step.number
            ),
            StepKind::NoTest(why) => format!(
                "Step {}, without a test: {}.",
                step.number,
                inline(why, 300)
            ),
            StepKind::ByHand => format!("Step {n}, ticked by hand: veri has seen no proof of it."),
            StepKind::NotOnRecord => {
                format!("Step {n}, committed by veri: proof in the issue's thread.")
            }
        });
    }
    if sentences.is_empty() {
        sentences.push("No finished step serves it.".to_owned());
    }
    out.push_str(&sentences.join(" "));
    out.push_str("\n\n");
    out
}

fn ledger(facts: &PullFacts) -> String {
    const MAX: usize = 7_000;
    let mut out = fence(&facts.ledger_text, "markdown", MAX);
    if cut(&facts.ledger_text, MAX).1 {
        let path = format!(".tdd/issue-{}.md", facts.issue_number);
        out.push_str(&format!(
            "\nThe whole of it is {} on the branch.\n",
            code(&path, 99)
        ));
    }
    out
}

fn verdicts(facts: &PullFacts) -> String {
    let mut out = String::new();
    let blocks = facts.steps.iter().map(|step| {
        let mut block = format!("**Step {}: {}**", step.number, inline(&step.title, 240));
        block.push_str(&match step.revisions {
            0 => " — at the first attempt".to_owned(),
            n => format!(" — after {}", count(n as usize, "revision", "revisions")),
        });
        if step.stuck_retries > 0 {
            let stuck = count(step.stuck_retries as usize, "agent", "agents");
            block.push_str(&format!(", {stuck} ended as stuck and started afresh"));
        }
        block.push_str(match &step.refactor {
            Refactor::Done | Refactor::Off => "",
            Refactor::Nothing => ", nothing to tidy up",
            Refactor::Dropped(_) => ", tidying up was dropped",
        });
        if let Refactor::Dropped(why) = &step.refactor {
            block.push_str(&format!(": {}", inline(why, 200)));
        }
        block.push_str("\n\n");
        let hidden = step.verdicts.len().saturating_sub(NAMED_MAX);
        if hidden > 0 {
            block.push_str(&format!(
                "- {} before these\n",
                count(hidden, "verdict", "verdicts")
            ));
        }
        for verdict in &step.verdicts[hidden..] {
            block.push_str(&verdict_line(verdict));
        }
        block.push('\n');
        block
    });
    push_bounded(&mut out, blocks, 9_000, "steps");
    out
}

fn verdict_line(verdict: &Verdict) -> String {
    let what = match verdict.claim {
        Claim::Red => "The test",
        Claim::AlreadyThere => "The behaviour is already there",
        Claim::Green => "The code",
        Claim::Refactor => "The tidying up",
        Claim::NoTest => "The change without a test",
    };
    let attempt = match verdict.attempt {
        0 | 1 => String::new(),
        n => format!(", attempt {n}"),
    };
    let answer = match verdict.answer {
        Answer::Approve => "agreed",
        Answer::Reject => "not agreed",
        Answer::Overruled => "not agreed, overruled",
    };
    let mut reasons: Vec<String> = verdict
        .reasons
        .iter()
        .take(4)
        .map(|reason| inline(reason, 400))
        .collect();
    if verdict.reasons.len() > reasons.len() {
        reasons.push(format!(
            "and {} more",
            verdict.reasons.len() - reasons.len()
        ));
    }
    let colon = if reasons.is_empty() { "" } else { ": " };
    format!(
        "- {what}{attempt}: **{answer}**{colon}{}\n",
        reasons.join("; ")
    )
}

fn cost(facts: &PullFacts) -> String {
    let cost = match facts.cost_usd {
        Some(usd) => format!("{usd:.2} USD"),
        None => "cost not known (the agents do not say)".to_owned(),
    };
    let (hours, minutes, seconds) = (
        facts.wall_seconds / 3600,
        facts.wall_seconds / 60 % 60,
        facts.wall_seconds % 60,
    );
    let wall = match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ => format!("{hours} h {minutes} min"),
    };
    format!(
        "{wall}, {}, {} of the suite since the plan, {cost}.\n",
        count(facts.leaves as usize, "agent started", "agents started"),
        count(facts.suite_runs as usize, "run", "runs"),
    )
}

fn fold(out: &mut String, summary: &str, inside: &str) {
    let inside = inside.trim_end();
    out.push_str(&format!(
        "<details><summary>{summary}</summary>\n\n{inside}\n\n</details>\n\n"
    ));
}

/// Pushes items up to `max` bytes; says how many were left out.
fn push_bounded(
    out: &mut String,
    items: impl ExactSizeIterator<Item = String>,
    max: usize,
    many: &str,
) {
    let (total, end) = (items.len(), out.len() + max);
    for (at, item) in items.enumerate() {
        if out.len() + item.len() > end {
            out.push_str(&format!(
                "\n… and {} more {many}, not shown here.\n\n",
                total - at
            ));
            return;
        }
        out.push_str(&item);
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
