//! `veri status`: where every issue known here stands.

use super::clock::{clock, day};
use super::console::{Console, Style};
use super::whereabouts::{Place, here, places};
use crate::config::Env;
use crate::event::{Kind, Line};
use crate::ledger::{self, Ledger};
use crate::lock::Lock;
use crate::untrusted::whole;
use crate::{exit, journal};
use anyhow::Result;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use std::io::Write;

/// Arguments of `veri status`.
#[derive(Debug, Args)]
pub struct StatusCommand {
    /// The issue's number; without it, all
    issue: Option<u64>,
    /// One JSON array
    #[arg(long)]
    json: bool,
}

/// Where one issue stands.
#[derive(Debug, Serialize)]
struct Standing {
    issue: u64,
    /// running, interrupted, stopped, bailed, planned or done.
    state: &'static str,
    /// The bail's cause.
    cause: Option<String>,
    /// Ticked steps, and all of them.
    done: usize,
    steps: usize,
    /// The step and phase that the last event was about.
    step: Option<u32>,
    title: String,
    phase: Option<String>,
    /// When the last event was, and what.
    last: Option<String>,
    event: Option<String>,
    /// The leaf that a run which is going on waits for, since when, and when it is killed if it has not ended by then.
    leaf: Option<String>,
    since: Option<String>,
    until: Option<String>,
    /// The newest that a person would be told, and when.
    #[serde(skip)]
    told: Option<String>,
    tree: String,
    /// The pull request.
    url: Option<String>,
    /// What to do to go on.
    next: String,
}

impl StatusCommand {
    pub(super) fn run(self, env: &Env, out: &mut dyn Write) -> Result<u8> {
        let (repo, home) = here(env)?;
        // One that cannot be read keeps nobody from hearing of the others; it is said after them.
        let (mut standings, mut unreadable) = (Vec::new(), None);
        for place in places(&repo, &home) {
            if self.issue.is_none_or(|issue| issue == place.issue) {
                match standing(&place) {
                    Ok(standing) => standings.push(standing),
                    Err(error) => unreadable = unreadable.or(Some(error)),
                }
            }
        }
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&standings)?)?;
        } else {
            if standings.is_empty() && unreadable.is_none() {
                match self.issue {
                    Some(issue) => writeln!(
                        out,
                        "no run of issue {issue} is known here; `veri status` lists those that are"
                    )?,
                    None => writeln!(out, "no run is known here; `veri tdd <issue>` starts one")?,
                }
            }
            tell(&standings, out)?;
        }
        unreadable.map_or(Ok(exit::DONE), Err)
    }
}

/// Standings, for people.
fn tell(standings: &[Standing], out: &mut dyn Write) -> Result<()> {
    for s in standings {
        let cause = s
            .cause
            .as_deref()
            .map_or(String::new(), |c| format!(" ({c})"));
        writeln!(
            out,
            "issue {}: {}{cause}, {}",
            s.issue,
            s.state,
            match s.steps {
                0 => "not planned yet".to_owned(),
                steps => format!("{} of {steps} steps done", s.done),
            }
        )?;
        if let (Some(step), Some(phase)) = (s.step, &s.phase)
            && s.state != "done"
        {
            writeln!(out, "  at      step {step}, {phase}: {}", s.title)?;
        }
        if let (Some(leaf), Some(since), Some(until)) = (&s.leaf, &s.since, &s.until) {
            let (since, until) = (clock(since), clock(until));
            writeln!(
                out,
                "  works   {leaf} since {since} UTC; ended at {until} if it still works then"
            )?;
        }
        if let Some(told) = &s.told {
            writeln!(out, "  last    {told}")?;
        }
        if let Some(url) = &s.url {
            writeln!(out, "  pull    {url}")?;
        }
        writeln!(out, "  tree    {}", s.tree)?;
        writeln!(out, "  next    {}", s.next)?;
    }
    Ok(())
}

fn standing(place: &Place) -> Result<Standing> {
    let journal = place.journal();
    let all = if journal.exists() {
        journal::read(&journal)?
    } else {
        Vec::new()
    };
    let lines: Vec<&Line> = all.iter().filter(|l| l.issue == place.issue).collect();
    let ledger = place.tdd().join(format!("issue-{}.md", place.issue));
    let ledger = whole(&ledger, ledger::LARGEST)
        .ok()
        .flatten()
        .and_then(|bytes| Ledger::parse(&bytes).ok());
    // Of a run in the checkout, the ledger is gone when another branch is checked out: then what it was read as last.
    let read_last = || {
        let count = |line: &Line, key: &str| Some(line.fields.get(key)?.as_u64()? as usize);
        let mut read = lines.iter().rev().filter(|l| l.event == Kind::Plan);
        read.find_map(|l| Some((count(l, "done")?, count(l, "steps")?)))
    };
    let (done, steps) = match &ledger {
        Some(l) => (
            l.steps().iter().filter(|s| s.ticked).count(),
            l.steps().len(),
        ),
        None => read_last().unwrap_or((0, 0)),
    };
    let last = lines.last();
    let ended = last.filter(|l| l.event == Kind::RunEnd);
    let (state, next) = match ended.map(|l| l.text("ending")) {
        _ if Lock::is_held(&place.lock) => (
            "running",
            format!("veri log --issue {} --follow", place.issue),
        ),
        Some("done") if place.here => ("done", "review the pull request".to_owned()),
        Some("done") => (
            "done",
            format!("review the pull request; then veri clean {}", place.issue),
        ),
        Some("planned") => ("planned", place.resume()),
        Some("stopped") => ("stopped", place.resume()),
        Some("bailed") => (
            "bailed",
            format!(
                "see why with veri log --issue {}; then {}",
                place.issue,
                place.resume()
            ),
        ),
        _ => ("interrupted", place.resume()),
    };
    let working = if state == "running" {
        at_work(&lines)
    } else {
        None
    };
    let about = lines.iter().rev().find(|l| l.step.is_some());
    let find = |kind: Kind, key: &str| {
        let line = lines
            .iter()
            .rev()
            .find(|l| l.event == kind && l.fields.contains_key(key));
        line.map(|l| l.text(key).to_owned())
    };
    Ok(Standing {
        issue: place.issue,
        state,
        cause: if state == "bailed" {
            find(Kind::Bail, "cause")
        } else {
            None
        },
        done,
        steps,
        step: about.and_then(|l| l.step),
        title: about.map_or(String::new(), |l| clean(&l.title)),
        phase: about.and_then(|l| l.phase).map(|p| p.as_str().to_owned()),
        leaf: working
            .as_ref()
            .map(|(launch, _)| clean(launch.text("leaf"))),
        since: working.as_ref().map(|(launch, _)| launch.ts.clone()),
        until: working.map(|(_, until)| until.to_string()),
        last: last.map(|l| l.ts.clone()),
        told: lines.iter().rev().find_map(|l| {
            let words = Console::new(Style::Plain).words(l)?;
            Some(format!("{} {} UTC  {words}", day(&l.ts), clock(&l.ts)))
        }),
        event: last.map(|l| l.event.as_str().to_owned()),
        tree: place.tree.display().to_string(),
        url: if state == "done" {
            find(Kind::Pr, "url")
        } else {
            None
        },
        next,
    })
}

/// The launch of the leaf that is at work, and when its wall time is over.
fn at_work<'a>(lines: &[&'a Line]) -> Option<(&'a Line, Timestamp)> {
    let ended = |l: &Line| {
        l.fields
            .get("input")
            .is_some_and(|i| i.get("leaf-ended").is_some())
    };
    let mut since = lines.iter().rev().take_while(|l| !ended(l));
    let launch = since.find(|l| l.fields.contains_key("deadlines"))?;
    let timeout = launch.fields["deadlines"].get("timeout")?.as_i64()?;
    let since: Timestamp = launch.ts.parse().ok()?;
    let until = since.checked_add(SignedDuration::from_secs(timeout)).ok()?;
    Some((launch, until))
}

fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
