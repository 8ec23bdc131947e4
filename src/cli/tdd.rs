//! `veri tdd`: the conductor in the foreground.

use super::console::{Console, Style};
use super::outlet::{self, LeftOut};
use crate::cause::Cause;
use crate::conductor::{self, Ask, IssueArg};
use crate::config::{Env, MAX_SECONDS};
use crate::event::Line;
use crate::exit;
use clap::Args;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// What stands below the options in `veri tdd --help`.
const AFTER: &str = "\
Example:
  veri tdd ./issue.md --forge dir:../forge --agent command:../agent --test-cmd 'make check'

What was given holds from when preflight has passed until the run is finished: `veri tdd <n>` is enough to go on. \
The same can be said in .veri.toml. How runs end: `veri help exit-codes` and `veri help causes`.";

/// Arguments of `veri tdd`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct TddCommand {
    /// The issue's number, or a Markdown file to file as an issue of a directory forge
    issue: String,
    /// Where issues live: dir:PATH
    #[arg(long)]
    forge: Option<String>,
    /// The agent of every role, a program that reads a prompt and writes an answer: command:./my-agent
    #[arg(long)]
    agent: Option<String>,
    /// The planner's agent
    #[arg(long)]
    planner: Option<String>,
    /// The developer's agent
    #[arg(long)]
    developer: Option<String>,
    /// The verifier's agent
    #[arg(long)]
    verifier: Option<String>,
    /// The test command, run by `sh -c` in the root of a clean checkout
    #[arg(long)]
    test_cmd: Option<String>,
    /// An extra command that must pass at baseline, green and refactor; may be repeated
    #[arg(long = "check")]
    checks: Vec<String>,
    /// The branch to work from; default: the one that is checked out
    #[arg(long)]
    base: Option<String>,
    /// The remote to fetch from and push to; default: origin
    #[arg(long)]
    remote: Option<String>,
    /// Work in this checkout, on its branch tdd/issue-<n>, instead of a worktree of its own
    #[arg(long)]
    here: bool,
    /// A plan from a person instead of a planner (JSON; `veri prompt schema plan`)
    #[arg(long)]
    plan: Option<PathBuf>,
    /// End after the plan is committed; the same command without it goes on, with the plan as edited by then
    #[arg(long)]
    plan_only: bool,
    /// Seconds that an agent may take for one answer
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
    timeout: Option<u64>,
    /// Whose text reaches prompts: run (the issue too, whoever wrote it), members (people with write access), anyone
    #[arg(long, value_parser = ["run", "members", "anyone"], hide_possible_values = true)]
    trust: Option<String>,
    /// Forget which attempts were used up: all budgets begin anew
    #[arg(long)]
    reset_budgets: bool,
    /// Take the newest templates and configuration instead of those the run was started with
    #[arg(long)]
    new_templates: bool,
    /// The journal's lines on standard output
    #[arg(long)]
    json: bool,
    /// Only the beginning and the end
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Also what is about to be done
    #[arg(short, long, conflicts_with_all = ["json", "quiet"])]
    verbose: bool,
}

impl TddCommand {
    pub(super) fn run(self, env: &Env, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
        let places = || Ok((std::env::current_dir()?, std::env::current_exe()?));
        let (folder, program) = match places() {
            Ok(places) => places,
            Err(error) => return not_found(err, &error),
        };
        let style = self.style();
        let ask = match self.ask(env, folder, program) {
            Ok(ask) => ask,
            Err(message) => {
                let _ = writeln!(err, "veri: {message}");
                return exit::USAGE;
            }
        };
        follow(&ask, style, out, err)
    }

    /// What stands in the place of lines that nobody read in time.
    pub(super) fn left_out(&self) -> LeftOut {
        match self.json {
            true => |lines| format!("{{\"left_out\":{lines}}}"),
            false => lines_left_out,
        }
    }

    fn style(&self) -> Style {
        match (self.json, self.quiet, self.verbose) {
            (true, _, _) => Style::Json,
            (_, true, _) => Style::Quiet,
            (_, _, true) => Style::Verbose,
            _ => Style::Plain,
        }
    }

    fn ask(self, env: &Env, folder: PathBuf, program: PathBuf) -> Result<Ask, String> {
        let issue = match self.issue.trim_start_matches('#').parse::<u64>() {
            Ok(0) => return Err("issues are numbered from 1".to_owned()),
            Ok(number) => IssueArg::Number(number),
            Err(_) if self.issue.ends_with(".md") || self.issue.contains('/') => {
                IssueArg::File(folder.join(&self.issue))
            }
            Err(_) => {
                return Err(format!(
                    "{:?} is neither an issue's number nor a Markdown file (./issue.md)",
                    self.issue
                ));
            }
        };
        let new_templates = self.new_templates || env.text("VERI_NEW_SKILL") == Some("1");
        let timeout = match (self.timeout, env.text("VERI_TIMEOUT")) {
            (Some(seconds), _) => Some(seconds),
            (None, Some(word)) => match word.parse() {
                Ok(seconds) if (1..=MAX_SECONDS).contains(&seconds) => Some(seconds),
                _ => {
                    return Err(format!(
                        "VERI_TIMEOUT is {word:?}, which is not a number of seconds from 1 to {MAX_SECONDS}"
                    ));
                }
            },
            (None, None) => None,
        };
        Ok(Ask {
            env: env.clone(),
            folder,
            program,
            issue,
            forge: self
                .forge
                .or_else(|| env.text("VERI_FORGE").map(str::to_owned)),
            agent: self.agent,
            planner: self.planner,
            developer: self.developer,
            verifier: self.verifier,
            test_command: self
                .test_cmd
                .or_else(|| env.text("VERI_TEST_CMD").map(str::to_owned)),
            checks: self.checks,
            base: self.base,
            remote: self.remote,
            here: self.here,
            plan: self.plan,
            plan_only: self.plan_only,
            timeout,
            trust: self.trust,
            reset_budgets: self.reset_budgets,
            new_templates,
        })
    }
}

/// The end of a start that does not know where it is: nobody wrote a wrong command line, and it is no bug of veri's.
fn not_found(err: &mut dyn Write, error: &std::io::Error) -> u8 {
    let cause = Cause::StorageFailed;
    let _ = writeln!(
        err,
        "The current folder, or the program's own path, cannot be found: {error}. See to it that both are there and that \
         /proc is mounted, then run again.\nbail: {cause} ({})",
        cause.class().as_str()
    );
    cause.class().exit_code()
}

/// Lines of a run that nobody read in time, for people.
pub(super) fn lines_left_out(lines: u64) -> String {
    format!("… {lines} lines are left out here, since nobody read them: `veri log` has them")
}

/// Runs a conductor, printing as it goes; its last line on standard error says how it ended.
pub(super) fn follow(ask: &Ask, style: Style, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let mut console = Console::live(style);
    let mut watch = |line: &Line| {
        if let Some(text) = console.render(line) {
            // Nobody reads any more: the run goes on all the same.
            let _ = writeln!(out, "{text}");
        }
    };
    let ended = conductor::run(ask, &mut watch, outlet::say_now);
    // Where both streams are one, the last words stand last.
    match out.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(
                err,
                "veri: standard output ends too early ({error}): `veri log` has all of it"
            );
        }
        _ => {}
    }
    for text in &ended.last_words {
        let _ = writeln!(err, "{text}");
    }
    ended.exit
}
