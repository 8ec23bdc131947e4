//! The door: hands the command line to the library and exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    veri::cli::main()
}
