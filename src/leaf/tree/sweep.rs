//! Ending whole trees: the shim's own descendants, and what carries a launch id elsewhere.
//!
//! Killing a process group is not enough: agents start shells in sessions of their own, and daemons leave
//! the group even when the agent ends normally.

use super::cgroup::Group;
use super::process::{self, Handle};
use crate::leaf::records::Started;
use crate::leaf::signals::Signals;
use crate::leaf::spec::LaunchId;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

/// How long what outlived an ended leaf has between TERM and KILL.
pub(in crate::leaf) const LEFTOVER_GRACE: Duration = Duration::from_millis(300);

/// How long processes that only the environment betrays have between TERM and KILL. Longer than for
/// leftovers: a shim of an inner `veri` among them has a tree of its own to end.
const STRAY_GRACE: Duration = Duration::from_secs(2);

/// How long KILL is repeated before a process is given up as unkillable (stuck in the kernel, another user's).
const HARD_LIMIT: Duration = Duration::from_secs(10);

/// How many of the processes that could not be ended are named.
const NAMED: usize = 8;

/// The pause between two looks while killing.
const PAUSE: Duration = Duration::from_millis(10);

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many processes were ended.
    pub ended: u32,
    /// How many could not be ended.
    pub left: u32,
}

impl Swept {
    fn and(self, other: Swept) -> Swept {
        Swept {
            ended: self.ended + other.ended,
            left: self.left + other.left,
        }
    }
}

/// The descendants of the shim, which is their subreaper: a process that loses its parent becomes the shim's
/// child, so that no descendant can get away while the shim lives, and none is left when it has no child.
pub(in crate::leaf) struct Tree<'g> {
    leaf: Pid,
    /// The leaf's own control group, if it has one.
    group: Option<&'g Group>,
    status: Option<WaitStatus>,
    /// Every process that was signalled, by pid and start time, the leaf aside.
    signalled: HashSet<(i32, u64)>,
}

impl<'g> Tree<'g> {
    pub(in crate::leaf) fn new(leaf: Pid, group: Option<&'g Group>) -> Tree<'g> {
        Tree {
            leaf,
            group,
            status: None,
            signalled: HashSet::new(),
        }
    }

    pub(in crate::leaf) fn leaf(&self) -> Pid {
        self.leaf
    }

    /// How the leaf ended; None while it has not been reaped.
    pub(in crate::leaf) fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// Whether the leaf had a control group of its own.
    pub(in crate::leaf) fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// Removes the leaf's control group, once the tree has been ended.
    pub(in crate::leaf) fn remove_group(&self) {
        if let Some(group) = self.group {
            group.kill();
            group.remove();
        }
    }

    /// Reaps every child that has ended; says whether any child is left.
    pub(in crate::leaf) fn reap(&mut self) -> io::Result<bool> {
        loop {
            match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Ok(true),
                Ok(status) if status.pid() == Some(self.leaf) => self.status = Some(status),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::ECHILD) => return Ok(false),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Ends every descendant: TERM, the grace, then KILL until none is left or the limit is over. What is dying
    /// can still write: `meanwhile` is called every now and then.
    pub(in crate::leaf) fn end(
        &mut self,
        signals: &Signals,
        grace: Duration,
        meanwhile: &mut dyn FnMut(),
    ) -> io::Result<Swept> {
        if self.reap()? {
            self.signal(Signal::SIGTERM);
            let until = Instant::now() + grace;
            while self.reap()? {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                // Whoever signals the shim now wants what is under way already.
                signals.wait(left.min(PAUSE))?;
                meanwhile();
            }
        }
        let until = Instant::now() + HARD_LIMIT;
        while self.reap()? {
            if Instant::now() >= until {
                return Ok(self.swept(self.living()));
            }
            let new = self.signal(Signal::SIGKILL);
            // What multiplies is only overtaken by who does not pause.
            if self.reap()? && !new {
                signals.wait(PAUSE)?;
            }
            meanwhile();
        }
        Ok(self.swept(0))
    }

    fn swept(&self, left: u32) -> Swept {
        Swept {
            ended: (self.signalled.len() as u32).saturating_sub(left),
            left,
        }
    }

    /// Names what could not be ended, for people.
    pub(in crate::leaf) fn left(&self, swept: Swept) -> Vec<String> {
        if swept.left == 0 {
            return Vec::new();
        }
        let below = process::descendants(Pid::this(), &process::all());
        let living = below.iter().filter(|s| !s.is_zombie());
        living.take(NAMED).map(|s| process::named(s.pid)).collect()
    }

    fn living(&self) -> u32 {
        let all = process::all();
        let below = process::descendants(Pid::this(), &all);
        let shown = below.iter().filter(|s| !s.is_zombie()).count();
        (shown + process::hidden_children().len()) as u32
    }

    /// Signals every descendant; says whether one of them was seen for the first time.
    fn signal(&mut self, signal: Signal) -> bool {
        // In one stroke, so that no member forks away meanwhile. While the leaf is not reaped, its pid and so
        // its group's id cannot be another's; without a /proc the group is all there is to go by.
        let group_is_ours = self.status.is_none() || cfg!(not(target_os = "linux"));
        if group_is_ours && (signal == Signal::SIGKILL || cfg!(not(target_os = "linux"))) {
            let _ = killpg(self.leaf, signal);
        }
        if let (Signal::SIGKILL, Some(group)) = (signal, self.group) {
            group.kill();
        }
        // TERM is sent once, and is to miss nobody; KILL again and again.
        let quick = match signal {
            Signal::SIGKILL => process::quick_descendants(Pid::this()),
            _ => None,
        };
        let below = quick.unwrap_or_else(|| process::descendants(Pid::this(), &process::all()));
        let mut new = false;
        for seen in below {
            if seen.is_zombie() {
                continue;
            }
            if seen.pid != self.leaf {
                new |= self.signalled.insert(seen.id());
            }
            if let Some(handle) = Handle::of(&seen) {
                // It may have ended this instant, or belong to root: the next look tells.
                let _ = handle.signal(signal);
            }
        }
        // What one of them leaves behind comes to this process, and is seen at the next look.
        for pid in process::hidden_children() {
            new |= pid != self.leaf && self.signalled.insert((pid.as_raw(), 0));
            let _ = kill(pid, signal);
        }
        new
    }
}

/// Ends every process of this user whose environment carries the launch id: TERM, a grace, KILL; bounded.
///
/// For a launch whose shim is gone, or for what a foreign server (a terminal multiplexer, a build daemon)
/// started on the leaf's behalf. Without `/proc` nothing is found.
pub fn sweep_launch(launch: &LaunchId) -> Swept {
    sweep_strays(launch, None, None, None)
}

/// As `sweep_launch`, with what is in the control group that the launch's record names.
pub(in crate::leaf) fn sweep_recorded(launch: &LaunchId, started: Option<&Started>) -> Swept {
    sweep_strays(launch, started, None, None)
}

/// Takes in, from now on, what loses its parent below this program: of a leaf whose shim was killed, nothing gets
/// away. Only for a program that starts one leaf at a time. Without such a service of the system nothing happens.
pub fn take_in_orphans() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// The children of this program, by pid and start time, when it takes in orphans. Those that have ended meanwhile are
/// let go: before a launch no child is waited for by anybody, and each would keep its pid until this program ends.
pub(in crate::leaf) fn children() -> Option<HashSet<(i32, u64)>> {
    #[cfg(target_os = "linux")]
    if nix::sys::prctl::get_child_subreaper().unwrap_or(false) {
        while waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG))
            .is_ok_and(|status| status != WaitStatus::StillAlive)
        {}
        let children = process::all()
            .into_iter()
            .filter(|s| s.parent == Pid::this());
        let shown = children.map(|s| (s.pid.as_raw(), s.start));
        let hidden = process::hidden_children();
        let hidden = hidden.iter().map(|pid| (pid.as_raw(), 0));
        return Some(shown.chain(hidden).collect());
    }
    None
}

/// What came to this program since its children were `before`, and everything below; `shim` was started by it.
pub(in crate::leaf) fn taken_in(
    before: &HashSet<(i32, u64)>,
    shim: Option<Pid>,
) -> Vec<process::Stat> {
    let all = process::all();
    let new = |s: &&process::Stat| {
        s.parent == Pid::this() && Some(s.pid) != shim && !before.contains(&s.id())
    };
    let mut found = Vec::new();
    for root in all.iter().filter(new) {
        found.extend(process::descendants(root.pid, &all));
        found.push(*root);
    }
    found.retain(|s| !s.is_zombie());
    found
}

/// As `sweep_recorded`, with what this program took in since its children were `before`, and every member of a
/// session whose leader is our own unreaped child: so long its id cannot be another session's.
pub(in crate::leaf) fn sweep_strays(
    launch: &LaunchId,
    started: Option<&Started>,
    session: Option<Pid>,
    before: Option<&HashSet<(i32, u64)>>,
) -> Swept {
    let group = started.and_then(|s| Group::recorded(s.cgroup.as_ref()?.path(), launch));
    let find = || {
        let mut found = process::of_launch(launch, &[Pid::this()]);
        found.extend(group.iter().flat_map(Group::members));
        if let Some(before) = before {
            let taken = taken_in(before, session);
            found.extend(taken.iter().filter_map(Handle::of));
            let mut hidden = process::hidden_children();
            hidden.retain(|pid| !before.contains(&(pid.as_raw(), 0)) && Some(*pid) != session);
            found.extend(hidden.into_iter().filter_map(Handle::open));
        }
        if let Some(session) = session {
            let members = process::all()
                .into_iter()
                .filter(|s| s.session == session && s.pid != session && !s.is_zombie());
            found.extend(members.filter_map(|s| Handle::of(&s)));
        }
        found.sort_by_key(Handle::pid);
        found.dedup_by_key(|handle| handle.pid());
        found
    };
    let swept = end_found(&find, group.as_ref());
    if let Some(group) = &group {
        group.remove();
    }
    swept
}

/// Ends what is found, again and again until nothing is or the limit is over.
fn end_found(find: &dyn Fn() -> Vec<Handle>, group: Option<&Group>) -> Swept {
    let mut swept = Swept::default();
    let mut found = find();
    if found.is_empty() {
        return swept;
    }
    signal_all(&found, Signal::SIGTERM);
    let ended = wait_all(&found, STRAY_GRACE);
    swept = swept.and(Swept { ended, left: 0 });
    let until = Instant::now() + HARD_LIMIT;
    loop {
        found = find();
        if found.is_empty() {
            return swept;
        }
        if Instant::now() >= until {
            swept.left = found.len() as u32;
            return swept;
        }
        if let Some(group) = group {
            group.kill();
        }
        signal_all(&found, Signal::SIGKILL);
        swept.ended += wait_all(&found, PAUSE * 10);
    }
}

fn signal_all(found: &[Handle], signal: Signal) {
    for handle in found {
        // It may have ended this instant: the next look tells.
        let _ = handle.signal(signal);
    }
}

/// Waits for all of them, together at most so long; says how many have ended.
fn wait_all(found: &[Handle], limit: Duration) -> u32 {
    let until = Instant::now() + limit;
    let left = || until.saturating_duration_since(Instant::now());
    found.iter().filter(|h| h.wait_ended(left())).count() as u32
}
