//! Starting a leaf and waiting for it.

use super::alive::living_shim;
use super::end::{End, KillWhy};
use super::ending::{Backstop, ask};
use super::files::remove;
use super::order::Order;
use super::outcome::conclude;
use super::output;
use super::records::{Exit, Records};
use super::shim::{CANNOT_BEGIN, CANNOT_KEEP, CANNOT_RECORD, NO_ROOM, SHIM_COMMAND};
use super::spec::{AlreadyRunning, LAUNCH_VAR, LaunchId, Spec, check_name};
use super::tree::below::Below;
use super::tree::process::Handle;
use super::tree::sweep::{children, sweep_recorded, sweep_strays, taken_in};
use crate::cause::{Bail, Cause};
use crate::storage;
use anyhow::{Context, bail};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long a launch waits for a lock that no living shim holds: a reader's look at it, or a fork on its way
/// to exec, is over in less.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);

/// The time between two questions to `tick`, and the longest that a stop request goes unnoticed.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// A leaf that this program has launched.
#[derive(Debug)]
pub struct Running {
    records: Records,
    name: String,
    launch: LaunchId,
    shim: Child,
    handle: Handle,
    backstop: Backstop,
    grace: Duration,
    stderr: PathBuf,
    asked: bool,
    ended: Option<End>,
    /// What its shim recorded of that.
    recorded: Option<Exit>,
    /// The children of this program before the shim, if it takes in orphans.
    before: Option<HashSet<(i32, u64)>>,
}

/// Launches a leaf. The intent must be in the journal already.
///
/// # Errors
/// `AlreadyRunning` when a launch of the same leaf is alive; `BadName`; plain I/O errors when files or the
/// shim cannot be made. A program that cannot be executed is no error here but an end (`SpawnFailed`).
pub fn start(records: &Records, spec: &Spec) -> anyhow::Result<Running> {
    check_name(&spec.name)?;
    if spec.argv.is_empty() {
        bail!("the leaf {} has no command", spec.name);
    }
    let spec = absolute(spec)?;
    let before = children();
    records.make()?;
    let lock = take_lock(records, &spec.name)?;
    clear(records, &spec.name)?;
    for (path, what) in output::streams(&spec.stdout, &spec.stderr) {
        output::create(path)?;
        if path.parent() == Some(records.dir()) {
            output::keep(records, &spec.name, &spec.launch, &[(path, what)])
                .with_context(|| format!("cannot keep {}", path.display()))?;
        }
    }
    let shim = spawn_shim(records, &spec, lock)?;
    let Some(handle) = Handle::open(Pid::from_raw(shim.id() as i32)) else {
        bail!("the shim of leaf {} cannot be found", spec.name); // an unreaped child always can
    };
    Ok(Running {
        records: records.clone(),
        name: spec.name,
        launch: spec.launch,
        shim,
        handle,
        backstop: Backstop::new(records, spec.wall.saturating_add(spec.grace)),
        grace: spec.grace,
        stderr: spec.stderr,
        asked: false,
        ended: None,
        recorded: None,
        before,
    })
}

/// The shim's working folder is not the launcher's.
fn absolute(spec: &Spec) -> anyhow::Result<Spec> {
    let mut spec = spec.clone();
    let paths = [&mut spec.cwd, &mut spec.stdout, &mut spec.stderr];
    for path in paths.into_iter().chain(&mut spec.stdin) {
        *path = std::path::absolute(&*path)
            .with_context(|| format!("cannot find {}", path.display()))?;
    }
    Ok(spec)
}

fn take_lock(records: &Records, name: &str) -> anyhow::Result<File> {
    let path = records.lock(name);
    let context = || format!("cannot take the lock {}", path.display());
    let file = crate::lock::open(&path).with_context(context)?;
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        let locked = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::Error(e)) => return Err(e).with_context(context),
            Err(TryLockError::WouldBlock) => false,
        };
        let alive = living_shim(records, name)?.is_some();
        if locked && !alive {
            return Ok(file);
        }
        // A leaf can have removed the file that its shim has locked; one that is just going lets go of it first.
        if (alive && !locked) || Instant::now() >= until {
            bail!(AlreadyRunning {
                name: name.to_owned()
            });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Removes the plain names of the last launch: a stale `.exit` would end the next wait at once. Under the
/// lock, so that nobody's are removed who is alive. What its shim left behind when it was killed is ended.
fn clear(records: &Records, name: &str) -> anyhow::Result<()> {
    if let Some(last) = records.newest(name)?
        && records.ended(&last.launch)?.is_none()
    {
        sweep_recorded(&last.launch, Some(&last));
    }
    for what in ["exit", "pid", "out", "err"] {
        let path = records.plain(name, what);
        remove(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

fn spawn_shim(records: &Records, spec: &Spec, lock: File) -> anyhow::Result<Child> {
    let context = || format!("cannot launch the leaf {}", spec.name);
    // Without a name: it holds the whole environment, and nothing is to be cleaned up after a crash.
    let mut order = tempfile::tempfile_in(records.runs()).with_context(context)?;
    let text = serde_json::to_vec(&Order::new(records, spec)).with_context(context)?;
    order
        .write_all(&text)
        .and_then(|()| order.rewind())
        .with_context(context)?;
    let stderr = output::open(&spec.stderr).with_context(context)?;
    #[allow(clippy::disallowed_methods)] // the one place where shims are spawned
    let mut command = Command::new(records.shim());
    command
        .arg0("veri")
        .args([SHIM_COMMAND, &spec.name, spec.launch.as_str()])
        .current_dir("/")
        .env_clear()
        .stdin(order)
        .stdout(lock)
        .stderr(stderr);
    #[allow(clippy::disallowed_methods)]
    // so that the sweep of an outer launch finds the shims of an inner veri
    if let Some(outer) = std::env::var_os(LAUNCH_VAR) {
        command.env(LAUNCH_VAR, outer);
    }
    // `command` goes away here, and with it this program's copy of the lock: from now on the shim alone
    // holds it.
    command.spawn().map_err(|e| {
        if let Some(advice) = storage::has_no_more(&e) {
            let said = format!("the leaf {} cannot be launched: {e}. {advice}", spec.name);
            return Bail::new(Cause::AgentUnavailable, said).into();
        }
        let why = format!("{}: {e}", records.shim().display());
        anyhow::Error::new(e).context(own_program(&spec.name, &why))
    })
}

/// A leaf cannot be launched because veri's own program does not run.
fn own_program(name: &str, why: &str) -> Bail {
    let todo = match cfg!(target_os = "linux") && !Path::new("/proc/self").exists() {
        true => "There is no /proc here, by which it finds itself: mount it",
        false => "See to it that veri is installed and can be run",
    };
    Bail::new(
        Cause::AgentUnavailable,
        format!(
            "the leaf {name} cannot be launched, since veri's own program, which supervises it, cannot be run ({why}). \
             {todo}, then run again."
        ),
    )
}

impl Running {
    /// The leaf's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The launch.
    pub fn launch(&self) -> &LaunchId {
        &self.launch
    }

    /// What runs below its shim, for as long as this is not waited for to its end.
    pub fn below(&self) -> Below {
        Below::of(Pid::from_raw(self.shim.id() as i32))
    }

    /// What its shim recorded of its end; None as long as it runs, or when the shim was killed. Once it was waited for, a
    /// record that is not its shim's counts for nothing here either.
    ///
    /// # Errors
    /// When the record is there and cannot be read.
    pub fn record(&self) -> anyhow::Result<Option<Exit>> {
        match self.ended {
            Some(_) => Ok(self.recorded.clone()),
            None => self.records.ended(&self.launch),
        }
    }

    /// Waits until the leaf has ended, at most so long. `tick` is asked about every 50 ms, and ends the leaf
    /// when it gives a reason. After `StillRunning` it can be waited for again.
    ///
    /// # Errors
    /// When records cannot be read or written; a `Bail` storage-failed when the shim could not record the end.
    pub fn wait(
        &mut self,
        limit: Option<Duration>,
        tick: &mut dyn FnMut() -> Option<KillWhy>,
    ) -> anyhow::Result<End> {
        if let Some(end) = &self.ended {
            return Ok(end.clone());
        }
        let until = limit.and_then(|l| Instant::now().checked_add(l));
        loop {
            let left = until.map(|u| u.saturating_duration_since(Instant::now()));
            if self.shim_ended(left.unwrap_or(TICK).min(TICK))? {
                return self.finish();
            }
            if !self.asked
                && let Some(why) = tick()
            {
                self.kill(why)?;
            }
            self.backstop
                .look(&self.records, &self.launch, &self.handle)?;
            if left.is_some_and(|l| l.is_zero()) {
                return Ok(End::StillRunning);
            }
        }
    }

    /// Asks the shim to end the leaf; `wait` then tells how that went.
    ///
    /// # Errors
    /// When the reason cannot be written down: then nothing is signalled.
    pub fn kill(&mut self, why: KillWhy) -> anyhow::Result<()> {
        self.asked = true;
        self.backstop.ending(self.grace);
        ask(&self.records, &self.launch, &self.handle, why)
    }

    #[cfg(target_os = "linux")]
    fn shim_ended(&mut self, limit: Duration) -> anyhow::Result<bool> {
        // Not reaped here: until it is, its pid and session id cannot be another's.
        Ok(self.handle.wait_ended(limit))
    }

    #[cfg(not(target_os = "linux"))]
    fn shim_ended(&mut self, limit: Duration) -> anyhow::Result<bool> {
        let until = Instant::now() + limit;
        while self.shim.try_wait()?.is_none() {
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5).min(limit));
        }
        Ok(true)
    }

    fn finish(&mut self) -> anyhow::Result<End> {
        // What cannot be read, since a leaf saw to that, is told when all is ended.
        let exit = self.records.ended(&self.launch);
        let started = self.records.started(&self.launch);
        let known = started.as_ref().ok().and_then(Option::as_ref);
        let session = cfg!(target_os = "linux").then(|| Pid::from_raw(self.shim.id() as i32));
        // A leaf can write a record, too, and kill its shim.
        let before = self.before.as_ref();
        let recorded = matches!(exit, Ok(Some(_)));
        if !recorded || before.is_some_and(|b| !taken_in(b, session).is_empty()) {
            sweep_strays(&self.launch, known, session, before);
        }
        let status = self.shim.wait().context("cannot reap the shim")?;
        if recorded && !status.success() {
            // What is recorded need not be its own, and it may have swept nothing.
            sweep_recorded(&self.launch, known);
        }
        let (exit, started) = (exit?, started?);
        // Only of a shim that says that it has recorded the end: a suite could pass by its own word.
        let exit = exit.filter(|_| matches!(status.code(), Some(0 | CANNOT_KEEP)));
        if exit.is_none() {
            self.failed_shim(status, started.is_some())?;
        }
        self.recorded = exit.clone();
        let end = conclude(&self.records, &self.launch, started.as_ref(), exit, true)?;
        // Once: after the reaping, the shim's pid may be another's.
        self.ended = Some(end.clone());
        Ok(end)
    }

    /// A shim that gave up by itself says why in the leaf's stderr.
    fn failed_shim(&self, status: ExitStatus, started: bool) -> anyhow::Result<()> {
        match status.code() {
            None => Ok(()),
            Some(CANNOT_RECORD) => bail!(Bail::new(
                Cause::StorageFailed,
                format!(
                    "the end of leaf {} could not be recorded in {}: see {}. {}",
                    self.name,
                    self.records.runs().display(),
                    self.records.err(&self.name).display(),
                    storage::ADVICE
                ),
            )),
            Some(NO_ROOM) if !started => bail!(Bail::new(
                Cause::StorageFailed,
                format!(
                    "the start of leaf {} could not be recorded in {}. {}",
                    self.name,
                    self.records.runs().display(),
                    storage::ADVICE
                ),
            )),
            Some(CANNOT_BEGIN) if !started => {
                let (said, _) = crate::untrusted::tail(&self.stderr, 1024).unwrap_or_default();
                let said = String::from_utf8_lossy(&said);
                let why = said.lines().last().unwrap_or("it does not say why");
                bail!(Bail::new(
                    Cause::AgentUnavailable,
                    format!(
                        "the leaf {} cannot be launched, since the process that supervises it cannot begin on this \
                         system ({why}). See to it that it can (limits, a container that forbids system calls), then \
                         run again.",
                        self.name
                    ),
                ))
            }
            Some(code) if !started => {
                let why = format!(
                    "{} ended with exit code {code} and supervised nothing",
                    self.records.shim().display()
                );
                bail!(own_program(&self.name, &why))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The leaf goes on; only no zombie is to be left of a shim that has ended already.
        let _ = self.shim.try_wait();
    }
}
