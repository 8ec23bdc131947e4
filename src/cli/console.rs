//! What a person sees of a run: one plain line an event.

use super::clock::{clock, day};
use crate::event::{Kind, Line};
use serde_json::Value;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The journal's lines as they are.
    Json,
    /// What moves a run on.
    Plain,
    /// That, and what is about to be done.
    Verbose,
    /// Only the beginning and the end.
    Quiet,
}

/// Turns journal lines into lines for people.
#[derive(Debug)]
pub struct Console {
    style: Style,
    steps: u64,
    /// Whether the run itself says last, on standard error, how it ended.
    live: bool,
}

/// How many characters of a leaf's or test's words are shown in a line.
const SHOWN: usize = 300;

impl Console {
    /// A console of this style.
    pub fn new(style: Style) -> Console {
        Console {
            style,
            steps: 0,
            live: false,
        }
    }

    /// The same for a run that is going on: how it ends is its last words, and is not said here, too.
    pub fn live(style: Style) -> Console {
        Console {
            live: true,
            ..Console::new(style)
        }
    }

    /// The text to print for a line, if any.
    pub fn render(&mut self, line: &Line) -> Option<String> {
        if self.style == Style::Json {
            return serde_json::to_string(line).ok();
        }
        if let Some(steps) = line.fields.get("steps").and_then(Value::as_u64) {
            self.steps = steps;
        }
        let text = self.text(line)?;
        Some(format!("{}  {text}", clock(&line.ts)))
    }

    /// What a line says, without its time and the step that it is about; None for what only moves the machine.
    pub fn words(&mut self, line: &Line) -> Option<String> {
        let place = self.place(line);
        let text = self.text(line)?;
        Some(text.strip_prefix(&place).unwrap_or(&text).to_owned())
    }

    /// The whole question or evidence of a bail, line by line, for whoever looks at the journal afterwards. (A run
    /// itself ends with it, on standard error.)
    pub fn why(&self, line: &Line) -> Vec<String> {
        if self.style == Style::Json || line.event != Kind::Bail {
            return Vec::new();
        }
        let clean = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).collect() };
        line.text("detail")
            .lines()
            .map(|text| format!("          {}", clean(text)))
            .collect()
    }

    fn text(&self, line: &Line) -> Option<String> {
        let verbose = self.style == Style::Verbose;
        if self.style == Style::Quiet
            && !matches!(
                line.event,
                Kind::RunStart | Kind::Resume | Kind::Stop | Kind::Bail | Kind::Pr | Kind::RunEnd
            )
        {
            return None;
        }
        if line.fields.contains_key("intent") && line.event != Kind::Launch {
            return verbose.then(|| format!("{}{} …", self.place(line), line.text("intent")));
        }
        if self.live && (is_end(line) || line.fields.contains_key("told")) {
            return None;
        }
        let said = line.text("said");
        let place = self.place(line);
        Some(match line.event {
            Kind::RunStart => format!("issue {}: starting ({})", line.issue, on_day(line)),
            Kind::Resume if said.is_empty() => {
                format!("issue {}: going on ({})", line.issue, on_day(line))
            }
            Kind::Resume => format!("issue {}: going on{}", line.issue, after(said)),
            Kind::StepStart => {
                format!(
                    "step {} of {}: {}",
                    line.step.unwrap_or(0),
                    self.steps,
                    safe(&line.title)
                )
            }
            Kind::Launch => {
                let again = match line.fields.get("relaunch").and_then(Value::as_u64) {
                    Some(n) if n > 0 => format!(" from the start again (launch {})", n + 1),
                    _ => String::new(),
                };
                format!("{place}{} works{again}", line.actor)
            }
            Kind::Exit => format!("{place}{} {}", line.actor, safe(said)),
            Kind::Verdict => {
                let verdict = match line.text("verdict") {
                    "approve" => "approves",
                    "reject" => "rejects",
                    _ => "gives no verdict",
                };
                format!("{place}verifier {verdict}{}", after(&reasons(line)))
            }
            // Why stands in the line before it.
            Kind::Revise => format!("{place}attempt {}", line.attempt.unwrap_or(0)),
            Kind::StepDone => format!("step {} is done", line.step.unwrap_or(0)),
            Kind::Bail if line.text("cause").is_empty() => safe(said),
            Kind::Bail => format!("bail: {} ({})", line.text("cause"), line.text("class")),
            Kind::Preflight
            | Kind::Plan
            | Kind::Check
            | Kind::Commit
            | Kind::Mirror
            | Kind::Stop
            | Kind::Evaluate
            | Kind::Pr
            | Kind::RunEnd => {
                if said.is_empty() {
                    return None;
                }
                format!("{place}{}", safe(said))
            }
        })
    }

    fn place(&self, line: &Line) -> String {
        match (line.step, line.phase) {
            (Some(step), Some(phase)) => format!("  {step} {:<9}", phase.as_str()),
            (Some(step), None) => format!("  {step}          "),
            _ => String::new(),
        }
    }
}

/// What the clocks of a start do not say.
fn on_day(line: &Line) -> String {
    format!("{}, times are UTC", day(&line.ts))
}

/// Whether a line says how the run ends: by a bail, with a pull request, or at all.
fn is_end(line: &Line) -> bool {
    match line.event {
        Kind::Bail => !line.text("cause").is_empty(),
        Kind::Pr => line.fields.contains_key("url"),
        _ => line.fields.contains_key("ending"),
    }
}

fn after(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {}", safe(text))
    }
}

fn reasons(line: &Line) -> String {
    let list = line.fields.get("reasons").and_then(Value::as_array);
    let words: Vec<&str> = list
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    words.join("; ")
}

/// One line of at most [`SHOWN`] characters, without control characters: it may be anybody's words.
fn safe(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == SHOWN {
            shown.push('…');
            break;
        }
        shown.push(if c.is_control() { ' ' } else { c });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_cannot_move_the_cursor_or_flood_the_terminal() {
        assert_eq!(safe("a\x1b[2Jb\nc"), "a [2Jb c");
        assert_eq!(safe(&"é".repeat(1000)).chars().count(), 301);
    }
}
