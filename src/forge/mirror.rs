//! The issue thread's copy of a run: one comment, edited in place, and one more for a question or a
//! stop. Pure rendering; [`super::Forge::put_comment`] sends it.

use super::facts::{Answer, Attempt, LedgerLine, PhaseStory, StepStory};
use super::sanitize::{command, cut, fence, html, inline, quote};
use crate::cause::{Cause, Class};
use crate::role::{Claim, Phase, StopMode};
use serde::{Deserialize, Serialize};

/// The size of one comment in bytes: well under GitHub's 65,536 characters.
pub const COMMENT_MAX_BYTES: usize = 60_000;

/// The least room for a step, in bytes: one attempt at its tightest. Steps are shown while each has
/// this much (some 28), earlier ones are pointed to.
const STEP_MIN_BYTES: usize = 4_000;

/// A comment to be put: its marker, and its whole text, which begins with the marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// What makes it findable, for [`super::Forge::put_comment`].
    pub marker: String,
    /// The text.
    pub body: String,
}

/// What the comment about a run tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorFacts {
    /// The issue's number.
    pub issue: u64,
    /// How the run stands, in one sentence: `working on step 2 of 3`.
    pub state: String,
    /// The ledger; empty before the plan.
    pub ledger: Vec<LedgerLine>,
    /// The steps that have begun, in the ledger's order.
    pub steps: Vec<StepStory>,
    /// The command that goes on with the run; empty when it is done.
    pub resume: String,
    /// Where the full text can be read when it does not fit: `veri log --issue 42`.
    pub full_text: String,
    /// How many comments this run has already put: a surplus one is emptied.
    pub posted: usize,
    /// Where the journal began on steps that were finished before it: what tells its comment from the earlier one,
    /// which holds their proof and is left as it is.
    #[serde(default)]
    pub later: Option<String>,
}

/// What the comment about a bail tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BailFacts {
    /// The issue's number.
    pub issue: u64,
    /// Why the run ended.
    pub cause: Cause,
    /// Whether it was in preflight: then nothing was done yet, and what is mended there one after the other shares one
    /// comment.
    #[serde(default)]
    pub in_preflight: bool,
    /// The whole question or explanation.
    pub detail: String,
    /// Evidence such as the tail of a log.
    pub evidence: Option<String>,
    /// The ledger; empty before the plan.
    pub ledger: Vec<LedgerLine>,
    /// Where unfinished work was put aside: a command or ref.
    pub discarded: Option<String>,
    /// The command that goes on.
    pub resume: String,
    /// Where the full text can be read.
    pub full_text: String,
}

/// What the comment about a stop tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopFacts {
    /// The issue's number.
    pub issue: u64,
    /// How it was asked to stop.
    pub mode: StopMode,
    /// The ledger; empty before the plan.
    pub ledger: Vec<LedgerLine>,
    /// The command that goes on.
    pub resume: String,
}

/// The marker of a comment of an issue: `<!-- veri:issue-42:run -->`.
pub fn marker(issue: u64, kind: &str) -> String {
    format!("<!-- veri:issue-{issue}:{kind} -->")
}

/// The comment about a run, or two: what does not fit the first goes on in the second.
pub fn run(facts: &MirrorFacts) -> Vec<Post> {
    let kind = match &facts.later {
        None => "run".to_owned(),
        Some(later) => format!("run-{later}"),
    };
    let first_marker = marker(facts.issue, &kind);
    let second_marker = marker(facts.issue, &format!("{kind}-2"));
    let mut first = format!(
        "{first_marker}\n**veri** is on this issue: {}\n",
        inline(&facts.state, 600)
    );
    if facts.later.is_some() {
        first
            .push_str("\nSteps that were finished before: their story is in an earlier comment.\n");
    }
    push_ledger(&mut first, &facts.ledger);
    if !facts.steps.is_empty() {
        first.push_str(HOW_TO_READ);
    }
    let foot = match facts.resume.as_str() {
        "" => String::new(),
        resume => format!(
            "\nTo go on after an interruption: {}\n",
            command(resume, 500)
        ),
    };
    let mut second = format!("{second_marker}\nThe comment above, continued.\n");

    // Each step gets its share, so that all of them fit both comments even where one is cut short at
    // the end of the first.
    let room =
        (2 * COMMENT_MAX_BYTES).saturating_sub(first.len() + foot.len() + second.len() + 400);
    let shown = facts
        .steps
        .len()
        .min((room / STEP_MIN_BYTES).saturating_sub(1));
    let (early, steps) = facts.steps.split_at(facts.steps.len() - shown);
    if !early.is_empty() {
        first.push_str(&format!(
            "\nSteps before step {} are not repeated here; their story: {}\n",
            steps.first().map_or(0, |step| step.number),
            command(&facts.full_text, 300)
        ));
    }
    let share = room / (shown + 1);
    let mut used_second = false;
    for story in steps {
        let block = step_block(story, share, &facts.full_text);
        used_second |= first.len() + block.len() + foot.len() + 200 > COMMENT_MAX_BYTES;
        let place = if used_second { &mut second } else { &mut first };
        place.push_str(&block);
    }
    if used_second {
        first.push_str("\nThe story goes on in the next comment.\n");
    }
    first.push_str(&foot);
    let mut posts = vec![Post {
        marker: first_marker,
        body: first,
    }];
    if used_second {
        posts.push(Post {
            marker: second_marker,
            body: second,
        });
    } else if facts.posted > 1 {
        let body =
            format!("{second_marker}\nNothing more to tell: the comment above is complete.\n");
        posts.push(Post {
            marker: second_marker,
            body,
        });
    }
    posts
}

/// The comment about a bail. The same question is the same comment; another question another, once work has begun.
pub fn bail(facts: &BailFacts) -> Post {
    let kind = if facts.in_preflight {
        "bail-preflight".to_owned()
    } else {
        let asked = format!("{}\n{}", facts.cause, facts.detail);
        format!("bail-{:.12}", crate::hash::of(asked.as_bytes()))
    };
    let marker = marker(facts.issue, &kind);
    let head = match (facts.cause, facts.cause.class()) {
        (Cause::NeedsUser, _) => "**veri** needs an answer before it can go on.",
        (_, Class::Process) => "**veri** cannot go on with this work as it stands.",
        (_, Class::System) => {
            "**veri** had to end: the machine or a service failed it, not the work."
        }
    };
    let mut body = format!("{marker}\n{head}\n\n{}", quote(&facts.detail, 20_000));
    if facts.detail.len() > 20_000 {
        body.push_str(&format!(
            "\nThe full text: {}\n",
            command(&facts.full_text, 300)
        ));
    }
    if let Some(evidence) = &facts.evidence {
        let (_, short) = cut(evidence, 12_000);
        body.push_str(&format!(
            "\n<details><summary>Evidence</summary>\n\n{}\n</details>\n",
            fence(evidence, "text", 12_000)
        ));
        if short {
            body.push_str(&format!(
                "\nAll of it: {}\n",
                command(&facts.full_text, 300)
            ));
        }
    }
    body.push_str(&format!(
        "\nCause: `{}` ({}).{}\n",
        facts.cause,
        facts.cause.class().as_str(),
        match facts.cause {
            Cause::NeedsUser =>
                " Do what it says, or answer in a comment here, or change the issue; then run the command.",
            _ => "",
        }
    ));
    push_what_stands(&mut body, &facts.ledger);
    if let Some(discarded) = &facts.discarded {
        body.push_str(&format!(
            "Unfinished work was put aside: {}\n",
            command(discarded, 300)
        ));
    }
    body.push_str(&format!("\nTo go on: {}\n", command(&facts.resume, 500)));
    Post { marker, body }
}

/// The comment about a stop.
pub fn stop(facts: &StopFacts) -> Post {
    let marker = marker(facts.issue, "stop");
    let how = match facts.mode {
        StopMode::AtLedger => "after the step under way was finished",
        StopMode::AtLeaf => "after the agent at work had ended",
        StopMode::Now => "at once; the agent at work was ended",
    };
    let mut body = format!("{marker}\n**veri** stopped because somebody asked it to, {how}.\n");
    push_what_stands(&mut body, &facts.ledger);
    body.push_str(&format!(
        "Nothing that was finished is lost.\n\nTo go on: {}\n",
        command(&facts.resume, 500)
    ));
    Post { marker, body }
}

const HOW_TO_READ: &str = "\nEach step is one small piece of behaviour. An agent first writes a test; \
    veri runs it in a clean checkout and sees it fail, because the behaviour is missing. An agent then \
    writes the code that makes that same test pass, and may tidy up. After each of these a second \
    agent, which sees the test and the code but none of the first one's reasoning, has to agree.\n";

/// The most of the ledger that is shown, in bytes: room for some 150 steps.
const LEDGER_MAX_BYTES: usize = 24_000;

fn push_ledger(out: &mut String, ledger: &[LedgerLine]) {
    let start = out.len();
    for (at, line) in ledger.iter().enumerate() {
        if at == 0 {
            out.push('\n');
        }
        if out.len() - start > LEDGER_MAX_BYTES {
            out.push_str(&format!("- … and {} more steps\n", ledger.len() - at));
            break;
        }
        let tick = if line.ticked { 'x' } else { ' ' };
        let criteria = inline(&line.criteria.join(", "), 120);
        out.push_str(&format!(
            "- [{tick}] {}. {}",
            line.number,
            inline(&line.title, 240)
        ));
        if !criteria.is_empty() {
            out.push_str(&format!(" ({criteria})"));
        }
        if let Some(why) = &line.no_test {
            out.push_str(&format!(" — no test: {}", inline(why, 240)));
        }
        out.push('\n');
    }
}

fn push_what_stands(out: &mut String, ledger: &[LedgerLine]) {
    if ledger.is_empty() {
        out.push_str("\nNo step was begun.\n");
        return;
    }
    let done = ledger.iter().filter(|line| line.ticked).count();
    out.push_str(&format!(
        "\nFinished and kept: {done} of {} steps.\n",
        ledger.len()
    ));
    push_ledger(out, ledger);
    out.push('\n');
}

/// How long one text of an attempt may be, in bytes, from the roomiest to the tightest rendering.
const TEXT_MAX_BYTES: [usize; 3] = [2_000, 600, 160];

/// A step, folded, in at most `max` bytes: texts are shortened first, then the oldest attempts go.
fn step_block(story: &StepStory, max: usize, full_text: &str) -> String {
    let head = format!(
        "\n<details><summary>Step {}: {} ({})</summary>\n\n",
        story.number,
        html(&story.title, 240),
        html(&story.outcome, 120)
    );
    let foot = "\n\n</details>\n";
    let pointer = format!(
        "*Shortened here; all of it: {}*\n\n",
        command(full_text, 300)
    );
    let room = max.saturating_sub(head.len() + foot.len() + pointer.len());
    let attempts: Vec<(&PhaseStory, &Attempt)> = story
        .phases
        .iter()
        .flat_map(|phase| phase.attempts.iter().map(move |attempt| (phase, attempt)))
        .collect();
    let mut shown = vec![];
    for text_max in TEXT_MAX_BYTES {
        shown = newest_that_fit(&attempts, room, text_max);
        if shown.len() == attempts.len() {
            break;
        }
    }
    let mut out = head;
    if shown.len() < attempts.len() || shown.iter().any(|block| block.contains('…')) {
        out.push_str(&pointer);
    }
    out.extend(shown);
    out.truncate(out.trim_end().len());
    out.push_str(foot);
    out
}

fn newest_that_fit(
    attempts: &[(&PhaseStory, &Attempt)],
    room: usize,
    text_max: usize,
) -> Vec<String> {
    let mut left = room;
    let mut shown = vec![];
    for (phase, attempt) in attempts.iter().rev() {
        let block = attempt_block(phase, attempt, text_max);
        if block.len() > left {
            break;
        }
        left -= block.len();
        shown.push(block);
    }
    shown.reverse();
    shown
}

/// How many checks, or reasons of a verdict, are shown.
const LINES_MAX: usize = 12;

fn attempt_block(phase: &PhaseStory, attempt: &Attempt, text_max: usize) -> String {
    let mut out = format!("**{}**", claim_words(attempt.claim));
    if attempt.number > 1 {
        out.push_str(&format!(", attempt {}", attempt.number));
    }
    out.push_str("\n\n");
    if let Some(ended) = &attempt.ended {
        out.push_str(&format!("- The agent: {}\n", inline(ended, text_max)));
    }
    for check in attempt.checks.iter().take(LINES_MAX) {
        let mark = if check.passed {
            "holds"
        } else {
            "does not hold"
        };
        out.push_str(&format!(
            "- Checked, {mark}: {}\n",
            inline(&check.what, 400.min(text_max))
        ));
    }
    for verdict in &attempt.verdicts {
        let answer = match verdict.answer {
            Answer::Approve => "The second agent agreed",
            Answer::Reject => "The second agent did not agree",
            Answer::Overruled => "A second agent did not agree, and was overruled",
        };
        out.push_str(&format!("- {answer}\n"));
        for reason in verdict.reasons.iter().take(LINES_MAX) {
            out.push_str(&format!("  - {}\n", inline(reason, text_max)));
        }
    }
    out.push('\n');
    for check in attempt.checks.iter().filter(|check| !check.passed).take(3) {
        if let Some(evidence) = &check.evidence {
            out.push_str(&fence(evidence, "text", text_max));
            out.push('\n');
        }
    }
    let is_last = phase
        .attempts
        .last()
        .is_some_and(|last| std::ptr::eq(last, attempt));
    if let Some(outcome) = phase.outcome.as_ref().filter(|_| is_last) {
        let name = match phase.phase {
            Phase::Plan => "Plan",
            Phase::Red => "Test",
            Phase::Green => "Code",
            Phase::Refactor => "Tidying up",
        };
        out.push_str(&format!(
            "{name}: {}\n\n",
            inline(outcome, 400.min(text_max))
        ));
    }
    out
}

fn claim_words(claim: Claim) -> &'static str {
    match claim {
        Claim::Red => "Claim: this test fails because the behaviour is missing",
        Claim::AlreadyThere => "Claim: the behaviour is already there, and this test shows it",
        Claim::Green => "Claim: this code makes the test pass",
        Claim::Refactor => "Claim: this tidies up and changes no behaviour",
        Claim::NoTest => "Claim: this does what the step says, and needs no test",
    }
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;
