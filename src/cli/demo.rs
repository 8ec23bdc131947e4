//! `veri demo`: the main job on a small bundled project, with real git, real tests and real processes.
//!
//! What is played is only the agent (`demo_agent`): everything else is `veri tdd 42` as it always is.

mod ending;
mod interrupted;
mod place;

use super::console::Style;
use super::{report, tdd};
use crate::config::Env;
use anyhow::Result;
use clap::Args;
use interrupted::Interrupted;
use place::Place;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `veri demo`.
#[derive(Debug, Args)]
pub struct DemoCommand {
    /// The folder to play in: a new or empty one, or that of an earlier demo, which then goes on
    /// [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Kill the conductor in the middle of this step (1 to 3), then run the same command again
    #[arg(long, value_name = "STEP", value_parser = clap::value_parser!(u32).range(1..=3))]
    kill_at: Option<u32>,
}

impl DemoCommand {
    pub(super) fn run(self, env: &Env, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
        match self.play(env, out, err) {
            Ok(code) => code,
            Err(error) => report(Err(error), err),
        }
    }

    fn play(self, env: &Env, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
        let started = Instant::now();
        let place = match &self.keep {
            Some(folder) => Place::at(folder, env)?,
            None => Place::fresh(env)?,
        };
        // Nobody reads any more: the demo goes on all the same.
        let _ = write!(out, "{}", place.opening());
        if let Some(step) = self.kill_at {
            let said = match interrupted::run(&place, step, out)? {
                Interrupted::Killed { pid } => format!(
                    "The conductor (process {pid}) has just been killed with SIGKILL, in the middle of step {step}"
                ),
                Interrupted::Over => format!("Step {step} was over before, and nobody was killed"),
            };
            let _ = write!(
                out,
                "\n{said}.\nThe same command again:\n\n{}",
                place.command_line()
            );
        }
        let code = tdd::follow(&place.ask(), Style::Plain, out, err);
        let _ = write!(out, "{}", ending::words(&place, code, started.elapsed()));
        Ok(code)
    }
}
