//! Launches that somebody else started: taking them up, reading how they ended, ending them, listing them.

use super::alive::{is_alive, lock_is_held, shim_of};
use super::end::{End, KillWhy};
use super::ending::{Backstop, ask};
use super::launch::TICK;
use super::outcome::{classify, conclude};
use super::records::{Records, Started};
use super::spec::{LaunchId, check_name};
use super::tree::sweep::sweep_recorded;
use anyhow::Context;
use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// The pause between two looks at a launch that is about to begin or end.
const PAUSE: Duration = Duration::from_millis(2);

/// How long a launch that is just beginning is waited for until it says who it is.
const BEGINNING: Duration = Duration::from_secs(10);

/// Takes up an open launch, or reads how it ended: the same answer as its own launcher would have got, save
/// that what was killed while nobody watched is `Lost`. `tick` as in `Running::wait`.
///
/// # Errors
/// When records cannot be read or written.
pub fn settle(
    records: &Records,
    name: &str,
    launch: &LaunchId,
    limit: Option<Duration>,
    tick: &mut dyn FnMut() -> Option<KillWhy>,
) -> anyhow::Result<End> {
    check_name(name)?;
    let until = limit.and_then(|l| Instant::now().checked_add(l));
    let began = Instant::now();
    let (mut held, mut asked, mut ending) = (false, false, false);
    let mut backstop = None;
    loop {
        let started = records.started(launch)?;
        let shim = started.as_ref().and_then(shim_of).filter(|s| !s.ended());
        // A lock without a shim: it is let go of in an instant, or is somebody else's by now.
        let over = match (&started, &shim) {
            (Some(_), None) => true,
            // A leaf can have removed the file that its shim has locked.
            (Some(started), Some(_)) if started.start.is_some() => false,
            (None, _) if began.elapsed() >= BEGINNING => true,
            _ => !lock_is_held(records, name)?,
        };
        let other = records.newest(name)?.is_some_and(|s| s.launch != *launch);
        if over || other {
            // In this order: a shim records the end before it goes, and a record from before that is not its.
            let exit = records.ended(launch);
            sweep_recorded(launch, started.as_ref());
            let started = records.started(launch)?;
            return conclude(records, launch, started.as_ref(), exit?, held);
        }
        held = true;
        let left = until.map(|u| u.saturating_duration_since(Instant::now()));
        let pause = left.unwrap_or(TICK).min(TICK);
        match started.as_ref().zip(shim) {
            Some((started, shim)) => {
                let grace = Duration::from_millis(started.grace_ms);
                let backstop = backstop.get_or_insert_with(|| {
                    let wall = Duration::from_millis(started.wall_ms);
                    Backstop::new(records, wall.saturating_add(grace))
                });
                backstop.look(records, launch, &shim)?;
                if shim.wait_ended(pause) {
                    // The kernel gives up a dead process's files before it says that it is dead.
                    std::thread::yield_now();
                    continue;
                }
                if !asked && let Some(why) = tick() {
                    asked = true;
                    ask(records, launch, &shim, why)?;
                }
                // Whoever meant to end it: it has its grace, and no more.
                if !ending && records.kill_intent(launch)?.is_some() {
                    ending = true;
                    backstop.ending(grace);
                }
            }
            // It is just beginning.
            None => std::thread::sleep(PAUSE.min(pause)),
        }
        if left.is_some_and(|l| l.is_zero()) {
            return Ok(End::StillRunning);
        }
    }
}

/// As `settle`, for the newest launch of a leaf, whichever that is; None when none is recorded.
///
/// # Errors
/// As `settle`.
pub fn settle_newest(
    records: &Records,
    name: &str,
    limit: Option<Duration>,
    tick: &mut dyn FnMut() -> Option<KillWhy>,
) -> anyhow::Result<Option<End>> {
    check_name(name)?;
    let began = Instant::now();
    loop {
        let alive = is_alive(records, name)?;
        let left = limit.map(|l| l.saturating_sub(began.elapsed()));
        if let Some(newest) = records.newest(name)? {
            return settle(records, name, &newest.launch, left, tick).map(Some);
        }
        if !alive {
            return Ok(None);
        }
        if left.is_some_and(|l| l.is_zero()) {
            return Ok(Some(End::StillRunning));
        }
        std::thread::sleep(PAUSE);
    }
}

/// What `kill` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Killed {
    /// The launch was asked to end: its record will tell how it did.
    Asked(LaunchId),
    /// No launch of that leaf is alive.
    NotRunning,
}

/// Ends the living launch of a leaf, if there is one: writes the reason down and asks its shim. Does not wait.
///
/// # Errors
/// When records cannot be read or written; when a launch is alive and does not say which.
pub fn kill(records: &Records, name: &str, why: KillWhy) -> anyhow::Result<Killed> {
    check_name(name)?;
    let until = Instant::now() + BEGINNING;
    while is_alive(records, name)? {
        if let Some(started) = records.newest(name)?
            && let Some(shim) = shim_of(&started)
        {
            if shim.ended() {
                return Ok(Killed::NotRunning);
            }
            ask(records, &started.launch, &shim, why)?;
            return Ok(Killed::Asked(started.launch));
        }
        if Instant::now() >= until {
            anyhow::bail!(
                "the leaf {name} is alive and {} does not say as what process: nothing was signalled",
                records.pid(name).display()
            );
        }
        std::thread::sleep(PAUSE);
    }
    Ok(Killed::NotRunning)
}

/// As `kill`, and waits until the launch has ended, at most so long; None when none is alive.
///
/// # Errors
/// As `kill` and `settle`.
pub fn end(
    records: &Records,
    name: &str,
    why: KillWhy,
    limit: Option<Duration>,
) -> anyhow::Result<Option<End>> {
    match kill(records, name, why)? {
        Killed::NotRunning => Ok(None),
        Killed::Asked(launch) => settle(records, name, &launch, limit, &mut || None).map(Some),
    }
}

/// A leaf's newest launch.
#[derive(Debug, Clone)]
pub struct Listed {
    /// What its shim wrote when it began.
    pub started: Started,
    /// How it ended, as far as a look at the records tells; `StillRunning` while it is alive.
    pub end: End,
}

/// The newest launch of every leaf, by name. Changes nothing.
///
/// # Errors
/// When the folder or a record cannot be read; a missing folder holds no leaf.
pub fn list(records: &Records) -> anyhow::Result<Vec<Listed>> {
    let context = || format!("cannot list {}", records.dir().display());
    let entries = match fs::read_dir(records.dir()) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(context)?,
    };
    let mut listed = Vec::new();
    for entry in entries {
        let file = entry.with_context(context)?.file_name();
        let Some(name) = file.to_str().and_then(|f| f.strip_suffix(".pid")) else {
            continue;
        };
        let Some(started) = records.newest(name)?.filter(|s| s.leaf == name) else {
            continue;
        };
        let end = if is_alive(records, name)? {
            End::StillRunning
        } else {
            let exit = records.ended(&started.launch)?;
            let intent = records.kill_intent(&started.launch)?;
            classify(exit.as_ref(), intent, true, false)
        };
        listed.push(Listed { started, end });
    }
    listed.sort_by(|a, b| a.started.leaf.cmp(&b.started.leaf));
    Ok(listed)
}
