//! `veri prompt`: the forms of what leaves answer and of what the journal holds.

use crate::exit;
use serde_json::Value;
use std::io::{ErrorKind, Write};

/// Print the JSON schemas of plans, verdicts and journal events.
#[derive(Debug, clap::Args)]
pub struct PromptCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the JSON schema of FORMAT
    Schema {
        /// Which format
        #[arg(value_name = "FORMAT")]
        format: Format,
    },
}

/// A format that is a promise to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A planner's answer, also for `--plan FILE`
    Plan,
    /// A verifier's answer
    Verdict,
    /// A line of the journal, `.tdd/events.jsonl`
    Events,
}

impl Format {
    fn schema(self) -> Value {
        match self {
            Format::Plan => crate::plan::schema(),
            Format::Verdict => crate::verdict::schema(),
            Format::Events => crate::event::schema(),
        }
    }
}

impl PromptCommand {
    /// Prints the schema and gives the exit code. A reader that has gone away is no error.
    pub fn run(self, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
        let Action::Schema { format } = self.action;
        match writeln!(out, "{:#}", format.schema()).and_then(|()| out.flush()) {
            Ok(()) => exit::DONE,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => exit::DONE,
            Err(error) => {
                // Nowhere is left to say that standard error is closed.
                let _ = writeln!(
                    err,
                    "veri prompt: writing the schema to standard output: {error}"
                );
                exit::INTERNAL
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_printed_as_json_that_names_the_nonce() {
        for format in [Format::Plan, Format::Verdict] {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let command = PromptCommand {
                action: Action::Schema { format },
            };
            assert_eq!(command.run(&mut out, &mut err), exit::DONE);
            let schema: Value = serde_json::from_slice(&out).unwrap();
            assert!(schema.to_string().contains("nonce"), "{schema}");
            assert!(out.ends_with(b"}\n") && err.is_empty());
        }
    }
}
