//! The conductor: observe, ask the machine, store the intent, perform; until the run has ended.
//!
//! `run` opens what a run needs (`start`), replays the journal, and loops over the effects that the
//! machine awaits. Each room beside this one performs one kind of effect.

mod again;
mod branch;
mod candidate;
mod commits;
mod dead_locks;
mod edited;
mod failures;
mod leaves;
mod making;
mod nothing;
mod offered;
mod perform;
mod pick_up;
mod preflight;
mod proving;
mod publish;
mod record;
mod run;
mod settings;
mod snapshot;
mod standing;
mod start;
mod stopping;
mod telling;
mod unwind;
mod whose;

#[cfg(test)]
mod tests;

pub use again::{quoted, resume_command};
pub use proving::debris_file;
pub use proving::services::end_left as end_left_services;
pub use start::kept_stem;
pub use stopping::stop;
pub use telling::evidence::suite_runs;

use crate::config::Env;
use crate::event::Line;
use std::path::PathBuf;

/// Which issue is asked for.
#[derive(Debug, Clone)]
pub enum IssueArg {
    /// Its number.
    Number(u64),
    /// A Markdown file, to be filed in a directory forge.
    File(PathBuf),
}

/// What `veri tdd` was asked: flags over variables, nothing read yet.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The environment that the program was started with.
    pub env: Env,
    /// The folder that it was started in.
    pub folder: PathBuf,
    /// The program itself, for the shims of leaves.
    pub program: PathBuf,
    /// Which issue.
    pub issue: IssueArg,
    /// Where issues live.
    pub forge: Option<String>,
    /// The agent of every role.
    pub agent: Option<String>,
    /// The planner's agent.
    pub planner: Option<String>,
    /// The developer's agent.
    pub developer: Option<String>,
    /// The verifier's agent.
    pub verifier: Option<String>,
    /// The test command.
    pub test_command: Option<String>,
    /// Extra commands that must pass.
    pub checks: Vec<String>,
    /// The branch to work from.
    pub base: Option<String>,
    /// The remote.
    pub remote: Option<String>,
    /// Work in the checkout itself.
    pub here: bool,
    /// A person's plan.
    pub plan: Option<PathBuf>,
    /// End after the plan commit.
    pub plan_only: bool,
    /// Seconds that a leaf may take.
    pub timeout: Option<u64>,
    /// Whose text reaches prompts.
    pub trust: Option<String>,
    /// Renew all budgets.
    pub reset_budgets: bool,
    /// Take the newest templates and configuration.
    pub new_templates: bool,
}

/// How a start of the conductor ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The exit code.
    pub exit: u8,
    /// What standard error says last; the very last line names how it ended.
    pub last_words: Vec<String>,
}

/// Runs the conductor to its end, telling of every journal line as it is written. `answer` says something to the person
/// at once, while the conductor itself waits for a short tool call.
pub fn run(ask: &Ask, watch: &mut dyn FnMut(&Line), answer: fn(&str)) -> Ended {
    crate::leaf::take_in_orphans();
    match start::open(ask, watch, &|| stopping::signals::Asked::listen(answer)) {
        Ok(run) => run.drive(),
        Err(refused) => refused,
    }
}
