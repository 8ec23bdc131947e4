//! What the demo says at its end: what happened, counted from the journal, and where everything lies.

use super::super::whereabouts::{home_of, one, places};
use super::place::{ISSUE, Place, shell_word};
use crate::check::Evidence;
use crate::event::{Kind, Line};
use crate::exit;
use crate::git::Repo;
use anyhow::Result;
use std::collections::BTreeSet;
use std::fmt::Write;
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
    let mut said = format!(
        "\nIssue {ISSUE} is a draft pull request now; it took {} s. What happened:\n\n",
        took.as_secs()
    );
    for point in happened(lines) {
        let _ = writeln!(said, "  - {point}");
    }
    let forge = place.forge();
    let repository = shell_word(&place.repository());
    let home = shell_word(&place.home());
    let program = place.program_word();
    let pull = lines.iter().rev().find(|line| line.event == Kind::Pr);
    let _ = write!(
        said,
        "\nRead on, nothing of this goes away:\n\n\
         \x20 the pull request    {}\n\
         \x20 the issue's thread  {}\n\
         \x20 the repository      {}, branch tdd/issue-{ISSUE}\n\n\
         \x20 cd {repository}; export VERI_HOME={home}\n\
         \x20 git log -p main..tdd/issue-{ISSUE}    # the test, the code and the tick of each step in one commit\n\
         \x20 {program} log                       # everything that was done, and when\n\
         \x20 {program} discarded {ISSUE}              # what the stuck agent left half done\n\n\
         The pull request, for a review in ten minutes: {}\n",
        forge.join("pulls/1.md").display(),
        forge
            .join(format!("issues/{ISSUE}/comments/1.md"))
            .display(),
        place.repository().display(),
        pull.map_or("", |line| line.text("url")),
    );
    said
}

/// The run in numbers.
fn happened(lines: &[Line]) -> Vec<String> {
    let of = |kind: Kind| lines.iter().filter(move |line| line.event == kind);
    let commits = of(Kind::Commit).filter(|line| matches!(line.text("what"), "plan" | "step"));
    let suites = lines
        .iter()
        .filter_map(|line| {
            serde_json::from_value::<Evidence>(line.fields.get("evidence")?.clone()).ok()
        })
        .flat_map(|evidence| evidence.runs)
        .filter(|run| !run.remembered);
    let starts: BTreeSet<&str> = lines.iter().map(|line| line.run.as_str()).collect();
    let verdicts =
        |word: &'static str| of(Kind::Verdict).filter(move |line| line.text("verdict") == word);
    let mut points = vec![
        format!(
            "{} in {}, each of which passes the tests",
            count(of(Kind::StepDone).count(), "step"),
            count(commits.count(), "commit"),
        ),
        format!(
            "{}, a process each, and {} in a clean checkout, by veri itself",
            count(of(Kind::Launch).count(), "agent"),
            count(suites.count(), "test run"),
        ),
        format!(
            "{}: {} approve, {} reject",
            count(of(Kind::Verdict).count(), "verdict"),
            verdicts("approve").count(),
            verdicts("reject").count(),
        ),
    ];
    points.extend(verdicts("reject").map(|line| {
        format!(
            "the reject: in step {} the first test was too weak, as a wrong implementation showed; the developer revised it",
            line.step.unwrap_or(0)
        )
    }));
    points.extend(
        of(Kind::Exit)
            .filter(|line| line.text("end") == "killed-stuck")
            .map(|line| {
                let wall = line.fields.get("record").and_then(|record| record.get("wall_ms")?.as_u64());
                format!(
                    "in step {} an agent got stuck: it was ended after {} s with all that it had started, and launched afresh",
                    line.step.unwrap_or(0),
                    wall.unwrap_or(0) / 1000
                )
            }),
    );
    if starts.len() > 1 {
        points.push(format!(
            "the conductor was started {} times: what was finished was not done again",
            starts.len()
        ));
    }
    points
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
