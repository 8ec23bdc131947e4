//! What runs between the conductor and the leaf: a small single-threaded process, this program executed
//! again. It outlives the conductor, holds the leaf's lock, enforces the deadlines, sweeps the tree after
//! every end and records the truth.
//!
//! It gets what it needs through its three standard streams, so that the launcher has no descriptor to make
//! inheritable: standard input is the order (an unlinked file), standard output is the locked file, standard
//! error is the leaf's stderr file.

use super::end::KillWhy;
use super::order::Order;
use super::output::{self, Output};
use super::raw::Raw;
use super::records::{self, Bytes, Exit, Records, Started, VERSION};
use super::sandbox::{self, Confined};
use super::signals::Signals;
use super::sys;
use super::tree::cgroup::Group;
use super::tree::process::{self, Stat};
use super::tree::sweep::{LEFTOVER_GRACE, Swept, Tree, sweep_launch};
use super::watch::senses::Senses;
use crate::storage;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, dup2_stdin, dup2_stdout, setsid};
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The hidden first argument that makes this program a shim; the rest of its command line is for people.
pub const SHIM_COMMAND: &str = "__shim";

/// The shim's exit code when it could not record how its leaf ended (sysexits.h: EX_IOERR).
pub(super) const CANNOT_RECORD: i32 = 74;

/// The shim's exit code when it recorded how its leaf ended, and could not keep what that wrote (sysexits.h: EX_TEMPFAIL).
pub(super) const CANNOT_KEEP: i32 = 75;

/// The shim's exit code when it could not write down that it begins (sysexits.h: EX_CANTCREAT).
pub(super) const NO_ROOM: i32 = 73;

/// The shim's exit code when it could not begin (sysexits.h: EX_SOFTWARE).
pub(super) const CANNOT_BEGIN: i32 = 70;

/// The times between two looks at the output's size: short while it grows, long while it does not.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

/// The shim from its first to its last moment; gives the process's exit code. To be called at once by
/// `main`, before anything starts a thread or opens a file.
pub fn shim_main() -> u8 {
    match run() {
        Ok(()) => 0,
        Err(Failure::Begin(e)) => {
            let _ = writeln!(io::stderr(), "supervise: the shim cannot begin: {e}");
            match storage::failed(&e) {
                true => NO_ROOM as u8,
                false => CANNOT_BEGIN as u8,
            }
        }
        Err(Failure::Record(e)) => {
            let _ = writeln!(
                io::stderr(),
                "supervise: cannot record how the leaf ended: {e}"
            );
            CANNOT_RECORD as u8
        }
        Err(Failure::Keep(e)) => {
            let _ = writeln!(io::stderr(), "supervise: cannot keep the output: {e}");
            CANNOT_KEEP as u8
        }
    }
}

enum Failure {
    Begin(io::Error),
    Record(io::Error),
    Keep(io::Error),
}

fn run() -> Result<(), Failure> {
    let (shim, _lock) = Shim::begin().map_err(Failure::Begin)?;
    let exit = shim.supervise().map_err(Failure::Record)?;
    let (stdout, stderr) = (shim.order.stdout.path(), shim.order.stderr.path());
    let streams = output::streams(stdout, stderr);
    let (name, launch) = (&shim.order.name, &shim.order.launch);
    // Output that cannot be kept (a full disk) is lost; how the leaf ended must not be.
    shim.records.make_again().map_err(Failure::Record)?;
    let kept = output::keep(&shim.records, name, launch, &streams);
    let written = shim.records.write(name, launch, "exit", &exit);
    written.map_err(Failure::Record)?;
    kept.map_err(Failure::Keep)
    // The lock ends with the process: whoever sees it free sees the record too.
}

struct Shim {
    order: Order,
    records: Records,
    signals: Signals,
    /// Where the leaf is started, if that can be.
    group: Option<Group>,
    confined: OnceCell<Confined>,
}

/// What had the leaf ended before it ended by itself.
#[derive(Clone, Copy)]
enum Cause {
    Ours(KillWhy),
    External(Signal),
}

impl Shim {
    fn begin() -> io::Result<(Shim, File)> {
        close_inherited();
        let signals = Signals::block()?;
        let mut text = Vec::new();
        io::stdin().read_to_end(&mut text)?;
        let order: Order = serde_json::from_slice(&text)?;
        let null = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        // The copy is close-on-exec: the shim alone keeps the lock.
        let lock = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;
        setsid()?;
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_child_subreaper(true)?;
        let records = Records::new(order.dir.path()).map_err(io::Error::other)?;
        let me = Pid::this();
        let group = Group::place(&order.launch);
        let started = Started {
            v: VERSION,
            launch: order.launch.clone(),
            leaf: order.name.clone(),
            pid: me.as_raw(),
            start: Stat::of(me).map(|s| s.start),
            boot: process::boot_id(),
            started: records::now(),
            wall_ms: order.wall_ms,
            grace_ms: order.grace_ms,
            // Before it is made: whoever finds this shim killed knows of it.
            cgroup: group.as_ref().map(|group| Raw::new(group.path())),
            stdout: order.stdout.clone(),
            stderr: order.stderr.clone(),
        };
        records.write(&order.name, &order.launch, "pid", &started)?;
        let shim = Shim {
            order,
            records,
            signals,
            group,
            confined: OnceCell::new(),
        };
        Ok((shim, lock))
    }

    fn supervise(&self) -> io::Result<Exit> {
        let began = Instant::now();
        let (leaf, group, mut outputs) = match self.spawn() {
            Ok(spawned) => spawned,
            Err(e) => return Ok(self.spawn_failed(&e)),
        };
        let mut tree = Tree::new(leaf, group);
        let cause = self.watch(&mut tree, &mut outputs, began)?;
        let mut wall = began.elapsed();
        let grace = match cause {
            Some(_) => Duration::from_millis(self.order.grace_ms),
            None => LEFTOVER_GRACE,
        };
        let mut bound = || {
            for output in &mut outputs {
                output.bound();
            }
        };
        let swept = tree.end(&self.signals, grace, &mut bound)?;
        bound();
        if cause.is_some() {
            wall = began.elapsed();
        }
        tree.remove_group();
        let strays = sweep_launch(&self.order.launch);
        Ok(self.record(&tree, cause, wall, swept, strays, &outputs))
    }

    /// Waits for the leaf's end or a reason to end it.
    fn watch(
        &self,
        tree: &mut Tree<'_>,
        outputs: &mut [Output],
        began: Instant,
    ) -> io::Result<Option<Cause>> {
        let order = &self.order;
        let wall = Duration::from_millis(order.wall_ms);
        let orders = order.watch.as_ref();
        let mut senses = Senses::new(tree.leaf(), began, wall, orders, outputs.first());
        let mut look = LOOKS.0;
        loop {
            let wait = match senses.look(outputs, look) {
                ControlFlow::Continue(wait) => wait,
                ControlFlow::Break(why) => {
                    // Whoever finds the leaf dead and no record must know whose signal it was. When it cannot be
                    // written the record at the end still says so.
                    let _ = self.records.intend_kill(&order.launch, why);
                    tree.reap()?;
                    return Ok(tree.status().is_none().then_some(Cause::Ours(why)));
                }
            };
            let signal = self.signals.wait(wait)?;
            // First of all: a leaf that has ended by itself was ended by nobody.
            tree.reap()?;
            if tree.status().is_some() {
                return Ok(None);
            }
            match signal {
                Some(Signal::SIGCHLD) | None => {}
                Some(signal) => {
                    return Ok(Some(match self.records.kill_intent(&order.launch) {
                        Ok(Some(why)) => Cause::Ours(why),
                        Ok(None) => Cause::External(signal),
                        // It is there, and only veri writes it.
                        Err(_) => Cause::Ours(KillWhy::Stuck),
                    }));
                }
            }
            let mut grown = false;
            for output in &mut *outputs {
                grown |= output.bound();
            }
            look = if grown {
                LOOKS.0
            } else {
                (look * 2).min(LOOKS.1)
            };
        }
    }

    fn spawn(&self) -> io::Result<(Pid, Option<&Group>, Vec<Output>)> {
        let order = &self.order;
        let Some((program, args)) = order.argv.split_first() else {
            return Err(io::Error::from(ErrorKind::InvalidInput));
        };
        let of = |what: &str, path: &Path, e: io::Error| {
            // Not `NotFound`, which would say that the program is missing.
            io::Error::other(format!("{what} {}: {e}", path.display()))
        };
        let stdin = match &order.stdin {
            Some(path) => {
                File::open(path.path()).map_err(|e| of("standard input", path.path(), e))?
            }
            None => File::open("/dev/null")?,
        };
        let open = |path: &Path| output::open(path).map_err(|e| of("output file", path, e));
        let mut outputs = Vec::new();
        let mut stream = |path: &Path| -> io::Result<Stdio> {
            let file = open(path)?;
            let stdio = Stdio::from(file.try_clone()?);
            outputs.push(Output::new(path.to_owned(), file, order.output_cap));
            Ok(stdio)
        };
        let stdout = stream(order.stdout.path())?;
        let stderr = if order.stderr == order.stdout {
            Stdio::from(open(order.stdout.path())?)
        } else {
            stream(order.stderr.path())?
        };
        if !order.cwd.path().is_dir() {
            let e = io::Error::other("not a folder");
            return Err(of("working folder", order.cwd.path(), e));
        }
        #[allow(clippy::disallowed_methods)] // the one place where leaves are spawned
        let mut command = Command::new(&program.0);
        command
            .args(args.iter().map(|a| &a.0))
            .current_dir(order.cwd.path())
            .env_clear()
            .envs(order.env.iter().map(|(k, v)| (&k.0, &v.0)))
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0);
        if let Some(sandbox) = &order.sandbox {
            let confined = sandbox::put_on(&mut command, sandbox)?;
            self.confined.get_or_init(|| confined);
        }
        // Last: a change of privileges before it would undo it.
        sys::unblocked_and_dying_with_parent(&mut command);
        let group = self.group.as_ref();
        if let Some((group, spawned)) = group.and_then(|g| Some((g, g.spawn(&mut command)?))) {
            return Ok((spawned?, Some(group), outputs));
        }
        let child = command.spawn()?;
        // Dropping `Child` neither waits nor kills: `Tree` reaps.
        Ok((Pid::from_raw(child.id() as i32), None, outputs))
    }

    fn spawn_failed(&self, error: &io::Error) -> Exit {
        let program = self.order.argv.first().map(|p| p.0.clone());
        let program = program.unwrap_or_default();
        let missing = match error.kind() {
            ErrorKind::NotFound => true,
            // The search of a PATH with a folder that may not be entered ends so, whatever was searched for.
            ErrorKind::PermissionDenied => !self.can_be_seen(&program),
            _ => false,
        };
        let program = program.to_string_lossy();
        Exit {
            code: Some(if missing { 127 } else { 126 }),
            spawn_error: Some(format!("cannot run {program:?}: {error}")),
            ..self.blank()
        }
    }

    fn can_be_seen(&self, program: &OsStr) -> bool {
        if program.as_bytes().contains(&b'/') {
            return true;
        }
        let path = self.order.env.iter().rev().find(|(key, _)| key.0 == "PATH");
        path.is_some_and(|(_, path)| {
            std::env::split_paths(&path.0).any(|dir| dir.join(program).is_file())
        })
    }

    fn record(
        &self,
        tree: &Tree<'_>,
        cause: Option<Cause>,
        wall: Duration,
        swept: Swept,
        strays: Swept,
        outputs: &[Output],
    ) -> Exit {
        let (code, signal) = match tree.status() {
            Some(WaitStatus::Exited(_, code)) => (Some(code), None),
            Some(WaitStatus::Signaled(_, signal, _)) => (None, Some(signal as i32)),
            _ => (None, None),
        };
        let mut exit = Exit {
            code,
            signal,
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            bytes: Bytes {
                stdout: outputs.first().map_or(0, Output::bytes),
                stderr: outputs.get(1).map_or(0, Output::bytes),
            },
            truncated: outputs.iter().any(Output::truncated),
            swept: swept.ended + strays.ended,
            // The same ones, found in two ways.
            unswept: swept.left.max(strays.left),
            left: tree.left(swept),
            cgroup: tree.has_group(),
            ..self.blank()
        };
        match cause {
            Some(Cause::Ours(why)) => {
                exit.signalled_by_us = true;
                exit.why = Some(why);
                exit.lingered = why == KillWhy::Lingering;
            }
            Some(Cause::External(signal)) => {
                exit.signalled_by_others = true;
                exit.signal = Some(signal as i32);
            }
            None => {}
        }
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) {
            let micros =
                |t: nix::sys::time::TimeVal| t.tv_sec() as u64 * 1_000_000 + t.tv_usec() as u64;
            exit.cpu_ms = (micros(usage.user_time()) + micros(usage.system_time())) / 1000;
            // Linux counts in KiB, macOS in bytes (getrusage(2)).
            let unit = if cfg!(target_os = "macos") { 1024 } else { 1 };
            exit.max_rss_kib = usage.max_rss() as u64 / unit;
        }
        exit
    }

    fn blank(&self) -> Exit {
        Exit {
            sandbox: self.confined.get().cloned(),
            ..Exit::of(&self.order.launch, &self.order.name)
        }
    }
}

/// Closes what the launcher's own caller left open: the leaf must not inherit it, nor may the shim keep a
/// pipe of somebody's open for as long as the leaf runs.
fn close_inherited() {
    let listed = fs::read_dir("/dev/fd").into_iter().flatten();
    let numbers: Vec<RawFd> = listed
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in numbers {
        // The listing's own descriptor is closed already: EBADF, which is fine.
        let _ = nix::unistd::close(fd);
    }
}
