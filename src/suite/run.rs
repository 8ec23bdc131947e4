//! Running a suite, or an extra check, on the tree in a ground.

use super::{SuiteEnd, SuiteRun};
use crate::cause::{Bail, Cause};
use crate::ground::command::{Launcher, shell};
use crate::ground::{Ended, Ground, Launch, TreePath, Trial};
use crate::untrusted;
use anyhow::{Context, Result};
use git2::Oid;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// How much of a log a message quotes, in bytes.
const QUOTE: usize = 2048;

/// How many logs of one name are kept in a ground's records.
const LOGS: usize = 20;

/// What is run, and where.
#[derive(Debug)]
pub struct SuiteAsk<'a> {
    /// The ground, brought to `tree` and set up.
    pub ground: &'a mut Ground,
    /// The tree under test.
    pub tree: Oid,
    /// Names the leaf and its log: `suite`, or the name of an extra check.
    pub name: &'a str,
    /// The command, given to `sh -c`.
    pub command: &'a str,
    /// A command that is run first (`ground.before_suite`).
    pub before: Option<&'a str>,
    /// The declared environment: the caller's, without what is removed from all suites.
    pub env: &'a [(OsString, OsString)],
    /// The deadline.
    pub timeout: Duration,
}

/// A run, and what it did to the ground.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The run itself. Its log stays where it is until twenty later ones of its name were written.
    pub run: SuiteRun,
    /// Tracked files that the suite changed: to be said; put right by the next [`Ground::bring_to`].
    pub altered: Vec<TreePath>,
    /// Files that it left behind and that git does not ignore.
    pub debris: Vec<TreePath>,
    /// Whether it found the ground as a fresh clone is, set up: nothing that another tree's run left can have
    /// helped it.
    pub fresh: bool,
}

/// Runs a command on the tree that the ground holds.
///
/// # Errors
/// When the ground does not hold `tree` exactly, needs-user when the command before the suite fails, and what
/// the launcher gives.
pub fn run(ask: &mut SuiteAsk<'_>, launch: &mut Launcher<'_>) -> Result<Ran> {
    let wrong = ask.ground.verify_exact(ask.tree)?;
    if let Some(path) = wrong.first() {
        anyhow::bail!(
            "the ground {} does not hold tree {}: {} differs",
            ask.ground.path().display(),
            ask.tree,
            String::from_utf8_lossy(path)
        );
    }
    let fresh = ask.ground.note_run(ask.tree, ask.command);
    if let Some(before) = ask.before {
        let (end, run) = one(ask, "before", before, launch)?;
        match end {
            SuiteEnd::Passed => {}
            SuiteEnd::Stopped | SuiteEnd::KilledExternal { .. } => {
                return Ok(Ran {
                    run,
                    altered: Vec::new(),
                    debris: Vec::new(),
                    fresh: false,
                });
            }
            end => {
                return Err(Bail::new(
                    Cause::NeedsUser,
                    format!(
                        "ground.before_suite, `{before}`, must succeed before a suite can run, but {end}.\n{}",
                        untrusted::of_log(&run.log, QUOTE)
                    ),
                )
                .into());
            }
        }
    }
    let (_, run) = one(ask, ask.name, ask.command, launch)?;
    Ok(Ran {
        run,
        altered: ask.ground.verify_exact(ask.tree)?,
        debris: ask.ground.debris()?,
        fresh,
    })
}

fn one(
    ask: &SuiteAsk<'_>,
    name: &str,
    command: &str,
    launch: &mut Launcher<'_>,
) -> Result<(SuiteEnd, SuiteRun)> {
    let log = next_log(ask.ground, name)?;
    let request = Launch {
        name: name.to_owned(),
        argv: shell(command),
        cwd: ask.ground.path().to_owned(),
        env: ask.ground.environment(ask.env),
        output: log.clone(),
        wall: ask.timeout,
        records: ask.ground.records().to_owned(),
    };
    ask.ground.settle_clock();
    let started = Instant::now();
    let ended = launch(&request).with_context(|| format!("running `{command}`"))?;
    let end = SuiteEnd::of(&ended, ask.timeout);
    let run = SuiteRun {
        tree: ask.tree.to_string(),
        command: command.to_owned(),
        end: end.clone(),
        wall_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        log,
        remembered: false,
    };
    Ok((end, run))
}

/// The next of a ring of logs, so that an earlier run's log is not overwritten while somebody reads it.
fn next_log(ground: &Ground, name: &str) -> Result<std::path::PathBuf> {
    let safe: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    let folder = ground.records().join("logs");
    let modified = |number: usize| {
        let stat = folder
            .join(format!("{safe}.{number}.log"))
            .metadata()
            .ok()?;
        stat.modified().ok()
    };
    let number = (0..LOGS)
        .find(|number| modified(*number).is_none())
        .or_else(|| (0..LOGS).min_by_key(|number| modified(*number)))
        .unwrap_or(0);
    ground.log(&format!("{safe}.{number}"))
}

impl SuiteEnd {
    /// What an end of the supervised process means for a suite.
    pub fn of(ended: &Ended, timeout: Duration) -> SuiteEnd {
        match ended {
            Ended::Code(code) => SuiteEnd::of_code(*code),
            &Ended::Signal(signal) if is_asked_for(signal) => SuiteEnd::KilledExternal { signal },
            &Ended::Signal(signal) => SuiteEnd::Crashed { signal },
            Ended::Waits { tool, instead } => SuiteEnd::WaitsForChanges {
                tool: tool.clone(),
                instead: instead.clone(),
            },
            Ended::TimedOut => SuiteEnd::TimedOut {
                seconds: timeout.as_secs(),
            },
            Ended::Stopped => SuiteEnd::Stopped,
            &Ended::Unstartable(code) => SuiteEnd::Unrunnable { code },
        }
    }

    /// What an exit code means. Shells report a child that signal n ended as 128+n; n is at most 64.
    fn of_code(code: i32) -> SuiteEnd {
        match code {
            0 => SuiteEnd::Passed,
            126 | 127 => SuiteEnd::Unrunnable { code },
            129..=192 => SuiteEnd::Crashed { signal: code - 128 },
            code => SuiteEnd::Failed { code },
        }
    }

    /// What this end says in an isolation trial.
    pub fn trial(&self) -> Trial {
        match self {
            SuiteEnd::Passed => Trial::Passed,
            SuiteEnd::Stopped | SuiteEnd::KilledExternal { .. } => Trial::Interrupted,
            SuiteEnd::Failed { .. }
            | SuiteEnd::TimedOut { .. }
            | SuiteEnd::WaitsForChanges { .. }
            | SuiteEnd::Crashed { .. }
            | SuiteEnd::Unrunnable { .. } => Trial::Failed,
        }
    }
}

/// Signals by which somebody ends a process on purpose: HUP, INT, KILL and TERM (POSIX numbers).
fn is_asked_for(signal: i32) -> bool {
    use nix::sys::signal::Signal;
    [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGKILL,
        Signal::SIGTERM,
    ]
    .iter()
    .any(|known| *known as i32 == signal)
}

impl std::fmt::Display for SuiteEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SuiteEnd::Passed => f.write_str("passed"),
            SuiteEnd::Failed { code } => write!(f, "failed with exit code {code}"),
            SuiteEnd::TimedOut { seconds } => {
                write!(f, "did not end within {seconds} s and was ended")
            }
            SuiteEnd::WaitsForChanges { tool, instead } => write!(
                f,
                "had run and waited for changes of files ({tool}), which never ends, and was ended; what ends by itself \
                 is: {instead}"
            ),
            SuiteEnd::Crashed { signal } => write!(f, "crashed with signal {signal}"),
            SuiteEnd::Unrunnable { code } => {
                write!(f, "could not be run: the shell gave exit code {code}")
            }
            SuiteEnd::KilledExternal { signal } => {
                write!(f, "was killed by somebody else with signal {signal}")
            }
            SuiteEnd::Stopped => f.write_str("was stopped on request"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_process_means_what_the_contract_says() {
        let minute = Duration::from_secs(60);
        let crashed = |signal| SuiteEnd::Crashed { signal };
        let killed = |signal| SuiteEnd::KilledExternal { signal };
        for (ended, expected) in [
            (Ended::Code(0), SuiteEnd::Passed),
            (Ended::Code(1), SuiteEnd::Failed { code: 1 }),
            (Ended::Code(101), SuiteEnd::Failed { code: 101 }),
            (Ended::Code(126), SuiteEnd::Unrunnable { code: 126 }),
            (Ended::Code(127), SuiteEnd::Unrunnable { code: 127 }),
            (Ended::Code(128), SuiteEnd::Failed { code: 128 }),
            (Ended::Code(137), crashed(9)),
            (Ended::Code(139), crashed(11)),
            (Ended::Code(255), SuiteEnd::Failed { code: 255 }),
            (Ended::Signal(9), killed(9)),
            (Ended::Signal(15), killed(15)),
            (Ended::Signal(2), killed(2)),
            (Ended::Signal(1), killed(1)),
            (Ended::Signal(11), crashed(11)),
            (Ended::Signal(6), crashed(6)),
            (Ended::Signal(8), crashed(8)),
            (Ended::TimedOut, SuiteEnd::TimedOut { seconds: 60 }),
            (Ended::Stopped, SuiteEnd::Stopped),
            (Ended::Unstartable(127), SuiteEnd::Unrunnable { code: 127 }),
        ] {
            assert_eq!(SuiteEnd::of(&ended, minute), expected, "{ended:?}");
        }
    }
}
