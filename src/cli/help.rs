//! `veri help`: the contracts, printed from the same tables that the program runs on.

use crate::cause::Cause;
use crate::exit;
use clap::{Args, CommandFactory, ValueEnum};
use std::io::Write;

/// Arguments of `veri help`.
#[derive(Debug, Args)]
pub struct HelpCommand {
    /// What to explain
    topic: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Topic {
    ExitCodes,
    Causes,
    Environment,
    Files,
}

/// Exit codes of `veri tdd`, and of everything.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (exit::DONE, "done"),
    (
        exit::INTERNAL,
        "internal error: a bug in veri; please report it with what it printed",
    ),
    (
        exit::PLUMBING_UNREADABLE,
        "plumbing only: unreadable, or a leaf that was killed",
    ),
    (
        exit::PLUMBING_NOTHING,
        "plumbing only: nothing there yet, still running, or undecided",
    ),
    (
        exit::BAIL_PROCESS,
        "bailed: the work or its description (`veri help causes`)",
    ),
    (
        exit::BAIL_SYSTEM,
        "bailed: the machine or a service (`veri help causes`)",
    ),
    (
        exit::STOPPED,
        "stopped on request; the same command goes on",
    ),
    (
        exit::ALREADY_RUNNING,
        "another conductor is already running for this working tree",
    ),
    (exit::USAGE, "the command line was not understood"),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "VERI_HOME",
        "where worktrees, grounds and results live (default ${XDG_STATE_HOME:-~/.local/state}/veri)",
    ),
    (
        "XDG_CONFIG_HOME",
        "the user's configuration is veri/config.toml below it (default ~/.config)",
    ),
    ("VERI_FORGE", "as --forge"),
    ("VERI_TEST_CMD", "as --test-cmd"),
    (
        "VERI_TIMEOUT",
        "as --timeout: seconds that a leaf may take (`veri tdd`, `veri leaf`)",
    ),
    ("VERI_NEW_SKILL", "1: as --new-templates"),
    (
        "VERI_CRASH_AT",
        "n[:point]: kill the conductor at its n-th effect (a testing aid); points: before, intended, launching, started, committed, after, journalled, posted, told",
    ),
    (
        "CI",
        "set, and neither 0 nor false: nobody is at the terminal, so the issue's text must be trusted by itself",
    ),
    (
        "VERI_ISSUE, VERI_STEP, VERI_ROLE, VERI_PHASE, VERI_TEST_CMD, VERI_SKILL_COMMIT, VERI_LAUNCH",
        "given to every leaf: number, step's title, planner|developer|verifier, plan|red|green|refactor, \
         test command, snapshot, launch id",
    ),
    (
        "VERI_NONCE",
        "given to planners and verifiers: their answer carries it",
    ),
    ("VERI_ATTEMPT", "given to developers: 1 + revisions"),
    (
        "BASH_DEFAULT_TIMEOUT_MS, BASH_MAX_TIMEOUT_MS",
        "given to every leaf: its timeout, unless the caller has set them",
    ),
    (
        "VERI_SLOT",
        "given to suites, checks, setup, services, developers and verifiers: a small number for ports and database names",
    ),
];

const FILES: &[(&str, &str)] = &[
    (".tdd/issue-<n>.md", "the ledger, committed"),
    (".tdd/events.jsonl", "the journal (`veri log`)"),
    (
        ".tdd/<leaf>.pid .exit .out .err",
        "the newest launch of a leaf; .tdd/runs/<launch>.* keeps every launch, its prompt and output, and in .kill why \
         veri ended it",
    ),
    (
        ".tdd/issue-<n>-skill-commit",
        "the snapshot in force: templates and configuration, as a git tree",
    ),
    (
        ".tdd/issue-<n>-timeout",
        "seconds that a leaf may take, as flag or variable last said; it counts where neither they nor \
         limits.timeout say",
    ),
    (".tdd/stop", "a stop request (`veri stop`)"),
    (".tdd/lock", "with --here: held by the running conductor"),
    (
        ".veri.toml",
        "the repository's configuration, above that of the user",
    ),
    (
        ".veri/templates/",
        "the repository's own prompts in its base branch, file by file over the bundled ones",
    ),
    (
        "refs/veri/issue-<n>/",
        "snapshot, configuration in force, candidate, approved red, work that was put aside",
    ),
    (
        "$VERI_HOME/<repo-id>/work/issue-<n>",
        "the run's own worktree, which holds its .tdd/; beside it issue-<n>.lock, and issue-<n>.journal, the \
         journal's copy",
    ),
    (
        "$VERI_HOME/<repo-id>/journals/",
        "journals of runs whose worktree `veri clean` has removed",
    ),
    (
        "$VERI_HOME/<repo-id>/ground/",
        "proving grounds, with the logs of their suites in <ground>.d/, of services in its services/",
    ),
    (
        "$VERI_HOME/<repo-id>/verify/, develop/",
        "temporary folders of verifiers and of confined developers, for as long as they work",
    ),
    (
        "$VERI_HOME/<repo-id>/results/",
        "what suites gave, by tree and command: nothing is run twice",
    ),
    (
        "$VERI_HOME/<repo-id>/agents/",
        "copies of agents that lie in the repository",
    ),
];

impl HelpCommand {
    pub(super) fn run(self, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
        let Some(word) = self.topic else {
            let _ = write!(out, "{}", super::Cli::command().render_long_help());
            return exit::DONE;
        };
        if let Ok(topic) = Topic::from_str(&word, false) {
            let _ = topic.print(out);
            return exit::DONE;
        }
        let mut whole = super::Cli::command();
        // Built, a subcommand knows what it is called with: the same text as `veri <command> --help`.
        whole.build();
        match whole.find_subcommand_mut(&word) {
            Some(command) => {
                let _ = write!(out, "{}", command.render_help());
                exit::DONE
            }
            None => {
                let _ = writeln!(
                    err,
                    "veri: there is no help on {word:?}; topics are exit-codes, causes, environment, \
                     files, and every command"
                );
                exit::USAGE
            }
        }
    }
}

impl Topic {
    fn print(self, out: &mut dyn Write) -> std::io::Result<()> {
        match self {
            Topic::ExitCodes => {
                for (code, meaning) in EXIT_CODES {
                    writeln!(out, "{code:>3}  {meaning}")?;
                }
            }
            Topic::Causes => {
                for cause in Cause::ALL {
                    let class = cause.class();
                    let code = class.exit_code();
                    writeln!(
                        out,
                        "{code}  {:<18} {:<8} {}",
                        cause.as_str(),
                        class.as_str(),
                        cause.meaning()
                    )?;
                }
            }
            Topic::Environment => {
                for (name, meaning) in ENVIRONMENT {
                    writeln!(out, "{name}\n      {meaning}")?;
                }
            }
            Topic::Files => {
                for (path, meaning) in FILES {
                    writeln!(out, "{path}\n      {meaning}")?;
                }
            }
        }
        Ok(())
    }
}
