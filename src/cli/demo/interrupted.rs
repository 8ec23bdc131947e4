//! A conductor that is killed in the middle of a step, so that a resume can be watched.

use super::super::console::{Console, Style};
use super::place::Place;
use crate::event::{Kind, Line, PhaseWord};
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// What came of it.
pub(super) enum Interrupted {
    /// It was killed.
    Killed {
        /// The conductor's process id.
        pid: u32,
    },
    /// The moment did not come: the run ended first.
    Over,
}

/// Runs `veri tdd` as a process of its own, and kills it once the code of a step is being written.
///
/// # Errors
/// When the process cannot be started or watched.
pub(super) fn run(place: &Place, step: u32, out: &mut dyn Write) -> Result<Interrupted> {
    let ask = place.ask();
    // The conductor itself, started as a person would start it, to be killed: neither a leaf nor a short tool call.
    #[allow(clippy::disallowed_methods)]
    let mut command = Command::new(&ask.program);
    command
        .args(place.arguments())
        .arg("--json")
        .current_dir(&ask.folder)
        .env_clear()
        .envs(ask.env.all())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut conductor = command
        .spawn()
        .with_context(|| format!("cannot start {}", ask.program.display()))?;
    let pid = conductor.id();
    let mut console = Console::new(Style::Plain);
    let lines = conductor.stdout.take().into_iter();
    for text in lines.flat_map(|stdout| BufReader::new(stdout).lines()) {
        let line: Line = serde_json::from_str(&text?)
            .context("a line of `veri tdd --json` is not one of the journal")?;
        if let Some(text) = console.render(&line) {
            let _ = writeln!(out, "{text}");
        }
        if line.event == Kind::Launch
            && line.step == Some(step)
            && line.phase == Some(PhaseWord::Green)
        {
            conductor.kill()?;
            conductor.wait()?;
            return Ok(Interrupted::Killed { pid });
        }
    }
    conductor.wait()?;
    Ok(Interrupted::Over)
}
