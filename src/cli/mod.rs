//! The door: one file per command. Parses, prints, exits; decides nothing.

pub mod leaf;

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "veri", version, about)]
enum Veri {
    Leaf(leaf::LeafCommand),
}

/// Runs the command line and gives the exit code.
pub fn main() -> ExitCode {
    // Before anything else: the shim must stay a small process of one thread.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|a| a == crate::leaf::SHIM_COMMAND)
    {
        return ExitCode::from(crate::leaf::shim_main());
    }
    match Veri::try_parse() {
        Ok(Veri::Leaf(command)) => ExitCode::from(command.run()),
        Err(e) => {
            let _ = e.print();
            ExitCode::from(if e.use_stderr() {
                crate::exit::USAGE
            } else {
                0
            })
        }
    }
}
