//! The door: one file per command. Parses, prints, exits; decides nothing.

mod clean;
mod clock;
mod console;
mod demo;
mod demo_agent;
mod discarded;
mod doctor;
mod help;
mod leaf;
mod leaf_journal;
mod ledger;
mod log;
mod outlet;
mod prompt;
mod status;
mod stop;
mod tdd;
mod whereabouts;

use crate::config::Env;
use crate::exit;
use clap::{Parser, Subcommand};
use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

/// Takes one issue to a draft pull request by test-driven development, and proves every step.
///
/// veri is a conductor: it writes no code itself. It has agents write a failing test, then the code,
/// then a refactor, runs the suite itself on a clean checkout after each, and asks a separate verifier
/// that never sees the developer's reasoning.
#[derive(Debug, Parser)]
#[command(
    name = "veri",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take an issue from start to a draft pull request; run again to resume
    Tdd(tdd::TddCommand),
    /// The whole thing on a small bundled project: no account, no network
    Demo(demo::DemoCommand),
    /// Where every issue known here stands, and how to go on
    Status(status::StatusCommand),
    /// Read the journal of a run
    Log(log::LogCommand),
    /// Ask a run to stop
    Stop(stop::StopCommand),
    /// Remove worktrees and grounds that are done
    Clean(clean::CleanCommand),
    /// Unfinished work that was put aside
    Discarded(discarded::DiscardedCommand),
    /// What this machine gives a run, and what veri makes of this repository (--test-cmd)
    Doctor(doctor::DoctorCommand),
    /// Plumbing: supervise one leaf
    Leaf(leaf::LeafCommand),
    /// Plumbing: read, check and tick a ledger
    Ledger(ledger::LedgerCommand),
    /// Plumbing: schemas of what agents answer and of the journal
    Prompt(prompt::PromptCommand),
    /// The contracts: exit-codes, causes, environment, files
    Help(help::HelpCommand),
}

/// Runs the command line and gives the exit code.
pub fn main() -> ExitCode {
    crate::leaf::a_write_too_long_fails();
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        // Not commands for people: the program under another role.
        Some(crate::leaf::SHIM_COMMAND) => {
            return ExitCode::from(crate::leaf::shim_main());
        }
        Some(demo_agent::COMMAND) => return ExitCode::from(demo_agent::main()),
        _ => {}
    }
    ExitCode::from(run())
}

fn run() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors; they go to standard output.
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::DONE
            };
            let _ = error.print();
            return code;
        }
    };
    let env = Env::of_process();
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let (out, err): (&mut dyn Write, &mut dyn Write) = (&mut out, &mut err);
    match cli.command {
        Command::Tdd(command) => {
            let left_out = command.left_out();
            outlet::never_held(left_out, |out, err| command.run(&env, out, err))
        }
        Command::Demo(command) => {
            outlet::never_held(tdd::lines_left_out, |out, err| command.run(&env, out, err))
        }
        Command::Status(command) => report(command.run(&env, out), err),
        Command::Log(command) => report(command.run(&env, out), err),
        Command::Stop(command) => report(command.run(&env, out, err), err),
        Command::Clean(command) => report(command.run(&env, out), err),
        Command::Discarded(command) => report(command.run(&env, out), err),
        Command::Doctor(command) => command.run(out, err),
        Command::Leaf(command) => command.run(&env),
        Command::Ledger(command) => command.run(out, err),
        Command::Prompt(command) => command.run(out, err),
        Command::Help(command) => command.run(out, err),
    }
}

/// What was asked for is not there: the person's to put right, not a bug.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotThere(String);

/// Prints an error as its chain and gives the exit code of its kind.
fn report(result: anyhow::Result<u8>, err: &mut dyn Write) -> u8 {
    match result {
        Ok(code) => code,
        // Whoever read has seen enough (`| head`).
        Err(error) if is_closed_pipe(&error) => exit::DONE,
        Err(error) => {
            let _ = writeln!(err, "veri: {error:#}");
            match error.downcast_ref::<crate::cause::Bail>() {
                Some(bail) => bail.cause.class().exit_code(),
                None if error.is::<NotThere>() => exit::USAGE,
                None => exit::INTERNAL,
            }
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
