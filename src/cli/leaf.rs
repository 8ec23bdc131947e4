//! `veri leaf`: running commands under the supervisor by hand, and watching leaves of a run.

use super::leaf_journal::Telling;
use crate::answer::clip;
use crate::conductor::stop;
use crate::config::{Env, MAX_SECONDS};
use crate::exit;
use crate::leaf::{
    self, AlreadyRunning, BadName, End, KillWhy, LaunchId, Means, Records, Sign, Spec, Stands,
    Watch,
};
use crate::role::StopMode;
use crate::untrusted::plain;
use anyhow::Context;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The wall time of a leaf when neither the command line nor `VERI_TIMEOUT` says, in seconds.
const DEFAULT_TIMEOUT: u64 = 900;

/// Seconds that somebody may be given, or may have to wait.
fn seconds(least: u64) -> RangedU64ValueParser {
    clap::value_parser!(u64).range(least..=MAX_SECONDS)
}

/// What `run` and `wait` exit with.
const EXIT_CODES: &str = "Exit code: 0 it exited with 0, or gave its result and lingered; 1 it exited otherwise or could \
    not be executed; 2 it was killed, lost or refused, or no such launch is recorded; 3 it still runs.";

/// Run, watch and end supervised commands
#[derive(Debug, Args)]
pub struct LeafCommand {
    /// The folder of the records
    #[arg(long, value_name = "DIR", default_value = ".tdd", global = true)]
    dir: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Launch a command and wait for its end
    #[command(after_help = EXIT_CODES)]
    Run(Launch),
    /// Launch a command and return at once; prints the launch id
    Start(Launch),
    /// Wait for the end of a leaf's newest launch
    #[command(after_help = EXIT_CODES)]
    Wait {
        /// The leaf's name
        name: String,
        /// Give up waiting (exit code 3) after so many seconds; the leaf goes on
        #[arg(long, value_name = "S", value_parser = seconds(0))]
        max_seconds: Option<u64>,
    },
    /// List the newest launch of every leaf
    List,
    /// End a leaf with everything it started, and wait until it is gone
    Kill {
        /// The leaf's name
        name: String,
    },
}

#[derive(Debug, Args)]
struct Launch {
    /// The leaf's name: its files are NAME.out, NAME.err, NAME.exit
    name: String,
    /// Wall time in seconds [default: VERI_TIMEOUT, else 900]
    #[arg(long, value_name = "S", value_parser = seconds(1))]
    timeout: Option<u64>,
    /// Seconds between asking it to end and making it end, with all that it started
    #[arg(long, value_name = "S", default_value_t = leaf::DEFAULT_GRACE.as_secs(), value_parser = seconds(0))]
    grace: u64,
    /// Seconds until it must have written something
    #[arg(long, value_name = "S", value_parser = seconds(1))]
    first_sign: Option<u64>,
    /// Seconds that it may be silent
    #[arg(long, value_name = "S", value_parser = seconds(1))]
    idle: Option<u64>,
    /// Seconds that it may go on after its result; it has then answered, and is ended
    #[arg(long, value_name = "S", requires = "result", value_parser = seconds(0))]
    lingering: Option<u64>,
    /// A line of its output with this value at this place is its result: '/type=result'
    #[arg(long, value_name = "POINTER=VALUE", value_parser = Stands::parse)]
    result: Vec<Stands>,
    /// A file for standard input [default: empty]
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Disk that each output file may take, in MiB; beyond it the middle is removed
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    output_mib: u64,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl LeafCommand {
    /// Runs the command and gives the exit code.
    pub fn run(self, env: &Env) -> u8 {
        match self.act(env) {
            Ok(code) => code,
            Err(e) => {
                say(&format!("veri leaf: {e:#}"));
                match () {
                    () if e.is::<AlreadyRunning>() => exit::PLUMBING_UNREADABLE,
                    () if e.is::<BadName>() => exit::USAGE,
                    // Not 1, which is the leaf's own failure.
                    () => exit::BAIL_SYSTEM,
                }
            }
        }
    }

    fn act(self, env: &Env) -> anyhow::Result<u8> {
        let telling = Telling::of(env);
        let records = Records::new(&self.dir)?;
        match self.action {
            Action::Run(launch) => {
                leaf::take_in_orphans();
                let mut signals = as_first_process(|| Ok(Signals::new([SIGINT, SIGTERM])?))?;
                let Some(mut running) = launch.start(&records, env, telling.as_ref())? else {
                    return Ok(exit::PLUMBING_UNREADABLE);
                };
                let name = running.name().to_owned();
                let end = running.wait(None, &mut || {
                    let told = signals.as_mut().is_some_and(|s| s.pending().count() > 0);
                    told.then_some(KillWhy::Stop)
                        .or_else(|| asked_to_end(&records))
                })?;
                if let Some(telling) = &telling {
                    telling.exit(&records, &name, running.launch(), &end)?;
                }
                for left in running.record()?.map_or(Vec::new(), |record| record.left) {
                    let left = clip(&plain(&left), 100);
                    say(&format!("supervise[{name}]: {left} could not be ended"));
                }
                Ok(tell(&name, &end))
            }
            Action::Start(launch) => {
                let Some(running) = launch.start(&records, env, telling.as_ref())? else {
                    return Ok(exit::PLUMBING_UNREADABLE);
                };
                print(&format!("{}\n", running.launch()));
                Ok(exit::DONE)
            }
            Action::Wait { name, max_seconds } => {
                as_first_process(ended_by_signals)?;
                let limit = max_seconds.map(Duration::from_secs);
                let tick = &mut || asked_to_end(&records);
                match leaf::settle_newest(&records, &name, limit, tick)? {
                    Some(end) => {
                        if let (Some(telling), Some(newest)) = (&telling, records.newest(&name)?) {
                            telling.exit(&records, &name, &newest.launch, &end)?;
                        }
                        Ok(tell(&name, &end))
                    }
                    None => {
                        let dir = records.dir().display();
                        say(&format!(
                            "veri leaf: no launch of {name} is recorded in {dir} (`veri leaf list` shows those that are; --dir names another folder)"
                        ));
                        Ok(exit::PLUMBING_UNREADABLE)
                    }
                }
            }
            Action::List => {
                for listed in leaf::list(&records)? {
                    let (started, end) = (&listed.started, &listed.end);
                    print(&format!("{}\t{}\t{end}\n", started.leaf, started.launch));
                }
                Ok(exit::DONE)
            }
            Action::Kill { name } => match leaf::end(&records, &name, KillWhy::Stop, None)? {
                None => {
                    let dir = records.dir().display();
                    say(&format!("veri leaf: no launch of {name} is alive in {dir}"));
                    Ok(exit::PLUMBING_NOTHING)
                }
                Some(end) => {
                    tell(&name, &end);
                    Ok(exit::DONE)
                }
            },
        }
    }
}

impl Launch {
    /// Launches, unless a stop request forbids it: then says so and gives None.
    fn start(
        self,
        records: &Records,
        env: &Env,
        telling: Option<&Telling>,
    ) -> anyhow::Result<Option<leaf::Running>> {
        leaf::check_name(&self.name)?;
        if let Some(mode @ (StopMode::AtLeaf | StopMode::Now)) = stop_mode(records) {
            say(&format!(
                "supervise[{}]: refused: a stop is asked for ({mode})",
                self.name
            ));
            return Ok(None);
        }
        let seconds = match self.timeout {
            Some(seconds) => seconds,
            None => default_timeout(env)?,
        };
        let watch = self.watch();
        let spec = Spec {
            launch: LaunchId::random()?,
            argv: self.command,
            cwd: std::env::current_dir().context("the working folder is gone")?,
            env: environment(env, seconds),
            stdin: self.stdin,
            stdout: records.out(&self.name),
            stderr: records.err(&self.name),
            wall: Duration::from_secs(seconds),
            grace: Duration::from_secs(self.grace),
            watch,
            output_cap: self.output_mib.checked_mul(1024 * 1024),
            sandbox: None,
            name: self.name,
        };
        if let Some(telling) = telling {
            telling.launch(records, &spec.name, &spec.launch)?;
        }
        leaf::start(records, &spec).map(Some)
    }

    /// None where nothing but the wall time is asked for.
    fn watch(&self) -> Option<Watch> {
        let sign = |result: &Stands| Sign {
            means: Means::Result,
            when: vec![result.clone()],
        };
        let watch = Watch {
            first_sign: self.first_sign.map(Duration::from_secs),
            idle: self.idle.map(Duration::from_secs),
            lingering: self.lingering.map(Duration::from_secs),
            transcript: None,
            signs: self.result.iter().map(sign).collect(),
        };
        (watch != Watch::default()).then_some(watch)
    }
}

/// The first process of a container hears no signal that it has no handler for, and nothing outlives it: what a signal does
/// anywhere else by itself has to be done.
fn as_first_process<T>(act: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    let first = std::process::id() == 1;
    first.then(act).transpose().context("cannot hear signals")
}

/// Has the usual signals end this program at once.
fn ended_by_signals() -> anyhow::Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&always))?;
    }
    Ok(())
}

fn default_timeout(env: &Env) -> anyhow::Result<u64> {
    let Some(text) = env.text("VERI_TIMEOUT") else {
        return Ok(DEFAULT_TIMEOUT);
    };
    let seconds = text.trim().parse().ok();
    seconds
        .filter(|seconds| (1..=MAX_SECONDS).contains(seconds))
        .with_context(|| {
            format!(
                "VERI_TIMEOUT is {text:?}, which is not a number of seconds from 1 to {MAX_SECONDS}"
            )
        })
}

/// The caller's environment; agents' own shells get no shorter time than the leaf unless the caller says so.
fn environment(env: &Env, seconds: u64) -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> = env
        .all()
        .iter()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    for key in ["BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS"] {
        if !env.iter().any(|(k, _)| k == key) {
            let millis = seconds.saturating_mul(1000).to_string();
            env.push((key.into(), millis.into()));
        }
    }
    env
}

/// The stop request in force. One that cannot be read or is unknown counts as the mode that loses nothing.
fn stop_mode(records: &Records) -> Option<StopMode> {
    stop::look(records.dir()).mode()
}

fn asked_to_end(records: &Records) -> Option<KillWhy> {
    (stop_mode(records) == Some(StopMode::Now)).then_some(KillWhy::Stop)
}

/// Says how a leaf ended; gives the exit code for it.
fn tell(name: &str, end: &End) -> u8 {
    say(&format!("supervise[{name}]: {end}"));
    end.exit_code()
}

fn say(line: &str) {
    // A terminal that is gone changes nothing about how the leaf ended.
    let _ = writeln!(io::stderr(), "{line}");
}

fn print(text: &str) {
    // Who does not read it has no use for it.
    let _ = io::stdout().write_all(text.as_bytes());
}
