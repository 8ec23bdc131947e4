//! What the demo says at its end: what happened, counted from the journal, and where everything lies.

use super::super::whereabouts::{home_of, one, places};
use super::place::{ISSUE, Place, shell_word};
use crate::conductor::suite_runs;
use crate::event::{Kind, Line, started_leaves};
use crate::exit;
use crate::git::Repo;
use anyhow::Result;
use std::collections::BTreeSet;
use std::time::Duration;

/// The words of the end of a demo that ran this long and ended with this exit code.
pub(super) fn words(place: &Place, code: u8, took: Duration) -> String {
    if code != exit::DONE {
        return unfinished(place, code);
    }
    match journal(place) {
        Ok(lines) => finished(place, &lines, took),
        Err(error) => format!("\nThe demo's journal cannot be read: {error:#}\n"),
    }
}

fn unfinished(place: &Place, code: u8) -> String {
    let folder = shell_word(&place.folder);
    let program = place.program_word();
    format!(
        "\nThe demo has not come to its end (exit code {code}; `{program} help exit-codes`). Everything is still in\n\
         {}, and this goes on:\n\n  {program} demo --keep {folder}\n",
        place.folder.display()
    )
}

fn journal(place: &Place) -> Result<Vec<Line>> {
    let env: Vec<_> = place.env().all().clone().into_iter().collect();
    let repo = Repo::discover_with(&place.repository(), &env)?;
    let home = home_of(place.env(), &repo)?;
    let place = one(&places(&repo, &home), Some(ISSUE))?;
    crate::journal::read(&place.journal())
}

fn finished(place: &Place, lines: &[Line], took: Duration) -> String {
    let points: String = happened(lines)
        .iter()
        .map(|point| format!("  - {point}\n"))
        .collect();
    // Of a demo that was taken up, only the last part is known.
    let duration = match place.taken_up {
        true => String::new(),
        false => format!("; it took {} s", took.as_secs()),
    };
    let pull = lines
        .iter()
        .rev()
        .map(|line| line.text("url"))
        .find(|url| !url.is_empty())
        .unwrap_or_default();
    let thread = place
        .forge()
        .join(format!("issues/{ISSUE}/comments/1.md"))
        .display()
        .to_string();
    let repository = place.repository();
    let (cd, home) = (shell_word(&repository), shell_word(&place.home()));
    let (repository, program) = (repository.display(), place.program_word());
    format!(
        "
Issue {ISSUE} is a draft pull request now{duration}. What happened:

{points}
What there is to read; it stays until you remove it:

  the pull request    {pull}
  the issue's thread  {thread}
  the repository      {repository}, branch tdd/issue-{ISSUE}

  cd {cd}; export VERI_HOME={home}

  # of each step the test, the code and the tick, in one commit
  git log -p main..tdd/issue-{ISSUE}
  # everything that was done, and when
  {program} log
  # what the stuck agent left half done
  {program} discarded {ISSUE}

The pull request, for a review in ten minutes: {pull}
"
    )
}

/// The run in numbers.
fn happened(lines: &[Line]) -> Vec<String> {
    let of = |kind: Kind| lines.iter().filter(move |line| line.event == kind);
    let steps = of(Kind::StepDone).count();
    let commits = of(Kind::Commit)
        .filter(|line| line.text("what") == "step")
        .count();
    let verdicts = |word: &'static str| {
        of(Kind::Verdict)
            .filter(move |line| line.text("verdict") == word)
            .count()
    };
    let (approvals, rejects) = (verdicts("approve"), verdicts("reject"));
    let ended = |how: &'static str| of(Kind::Exit).filter(move |line| line.text("end") == how);
    let agents = started_leaves(lines);
    // One more: preflight's, on the base.
    let suites = 1 + suite_runs(lines);
    let mut points = vec![
        format!("{steps} steps in {commits} commits, each of which passes the tests"),
        format!(
            "{agents} agents, a process each; veri ran the tests {suites} times itself, in a clean checkout"
        ),
        format!("{approvals} verdicts that approve, {rejects} that reject"),
    ];
    points.extend(
        of(Kind::Verdict)
            .filter(|line| line.text("verdict") == "reject")
            .map(|line| {
                format!(
                    "step {}: the first test was too weak, as the verifier showed by wrong code that passes it; \
                     it was revised",
                    line.step.unwrap_or(0)
                )
            }),
    );
    points.extend(ended("killed-stuck").map(|line| {
        format!(
            "step {}: an agent got stuck; after {} s it was killed with all that it had started, and another began afresh",
            line.step.unwrap_or(0),
            wall_seconds(line)
        )
    }));
    let starts: BTreeSet<&str> = lines.iter().map(|line| line.run.as_str()).collect();
    if starts.len() > 1 {
        points.push(format!(
            "the conductor was started {} times; what was finished was not done again",
            starts.len()
        ));
    }
    points
}

fn wall_seconds(line: &Line) -> u64 {
    let record = line.fields.get("record");
    let wall = record.and_then(|record| record.get("wall_ms")?.as_u64());
    wall.unwrap_or(0) / 1000
}
