//! A control group (cgroup v2) of a leaf's own, where the system lets this user make one.
//!
//! The kernel starts the leaf in it and keeps everything that it starts there, daemons without a name included; one
//! write ends all of them at once, however fast they multiply. It bears the launch id, so that whoever comes after a
//! killed shim finds it, and takes no other for it. Where there is none, everything else that ends a tree still does.
//!
//! A process can leave the group only for another that its user may write to: then it is still a descendant.

use super::process::Handle;
use crate::leaf::mountinfo::{self, Mount};
use crate::leaf::spec::LaunchId;
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What the names of groups begin with; the launch id follows.
const PREFIX: &str = "veri-";

/// How long the removal of a group waits for those that were killed in it to be gone from it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How old an empty group must be before whoever finds it takes it for one that a crash has left, in seconds: a shim
/// has its own empty for milliseconds.
const STALE: i64 = 60;

/// The group of one launch, whether it is there or not.
#[derive(Debug)]
pub(in crate::leaf) struct Group {
    path: PathBuf,
}

impl Group {
    /// Where a group of the launch could be made; None where the system has none, or it is not this user's to divide.
    pub(in crate::leaf) fn place(launch: &LaunchId) -> Option<Group> {
        let mounts = mountinfo::list().ok()?;
        let own = own_group(&mounts, &fs::read_to_string("/proc/self/cgroup").ok()?)?;
        (is_cgroup2(&own) && is_delegated(&own)).then(|| Group {
            path: own.join(format!("{PREFIX}{launch}")),
        })
    }

    /// The group that a launch's record names, if it is there and bears the launch's name.
    pub(in crate::leaf) fn recorded(path: &Path, launch: &LaunchId) -> Option<Group> {
        let named = path.file_name()? == format!("{PREFIX}{launch}").as_str();
        (named && path.is_absolute() && is_cgroup2(path)).then(|| Group {
            path: path.to_owned(),
        })
    }

    pub(in crate::leaf) fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a program in the group, which is made for it. None when that cannot be done here: then nothing was started
    /// and no group is left.
    pub(in crate::leaf) fn spawn(&self, command: &mut Command) -> Option<std::io::Result<Pid>> {
        self.remove_stale();
        fs::create_dir(&self.path).ok()?;
        // Older kernels (before 5.14) cannot kill a group.
        let can_kill = self.path.join("cgroup.kill").exists();
        let spawned = can_kill
            .then(|| fs::File::open(&self.path).ok())
            .flatten()
            .and_then(|group| crate::leaf::sys::spawn_into(command, &group));
        if !matches!(spawned, Some(Ok(_))) {
            self.remove();
        }
        spawned
    }

    /// Whether it can be made and ended by; nothing of it is left.
    pub(in crate::leaf) fn can_be(&self) -> bool {
        let made = fs::create_dir(&self.path).is_ok();
        let can = made && self.path.join("cgroup.kill").exists();
        if made {
            self.remove();
        }
        can
    }

    /// Kills everything in the group, and whatever is just being started in it.
    pub(in crate::leaf) fn kill(&self) {
        // It may be gone, which is what is wanted.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// Holds on every process in the group.
    pub(in crate::leaf) fn members(&self) -> Vec<Handle> {
        let seen = pids(&self.path);
        let held: Vec<(Pid, Handle)> = seen
            .into_iter()
            .filter_map(|pid| Some((pid, Handle::open(pid)?)))
            .collect();
        if held.is_empty() {
            return Vec::new();
        }
        // Who is still in it now that there is a hold on it is the one that was seen, and no reuse of its pid.
        let still = pids(&self.path);
        let held = held.into_iter().filter(|(pid, _)| still.contains(pid));
        held.map(|(_, handle)| handle)
            .filter(|h| !h.ended())
            .collect()
    }

    /// Removes the group with those that were made in it; says whether it is gone. Nothing may live in it any more.
    pub(in crate::leaf) fn remove(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            if remove_all(&self.path) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            // The killed are not reaped yet.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Removes what crashes have left beside it: empty groups of launches that nobody has come back for.
    fn remove_stale(&self) {
        use std::os::unix::fs::MetadataExt;
        let beside = self.path.parent().map(fs::read_dir);
        let now = jiff::Timestamp::now().as_second();
        for entry in beside.into_iter().flatten().flatten().flatten() {
            let name = entry.file_name();
            let launch = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            if launch.and_then(LaunchId::parse).is_some()
                && entry.metadata().is_ok_and(|m| now - m.mtime() > STALE)
            {
                // One that something lives in cannot be removed.
                remove_all(&entry.path());
            }
        }
    }
}

/// Removes a group and those below it; says whether it is gone.
fn remove_all(path: &Path) -> bool {
    for below in groups_in(path) {
        remove_all(&below);
    }
    match fs::remove_dir(path) {
        Ok(()) => true,
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
    }
}

fn groups_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    folders.map(|e| e.path()).collect()
}

/// The processes of a group and of all below it.
fn pids(path: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let own = text
        .lines()
        .filter_map(|l| l.parse().ok())
        .map(Pid::from_raw);
    let mut all: Vec<Pid> = own.collect();
    all.extend(groups_in(path).iter().flat_map(|below| pids(below)));
    all
}

/// The folder of the group that a process is in, by its `mountinfo` and `cgroup` (proc_pid_mountinfo(5), cgroups(7)).
fn own_group(mounts: &[Mount], cgroup: &str) -> Option<PathBuf> {
    let own = cgroup.lines().find_map(|l| l.strip_prefix("0::"))?;
    if own.split('/').any(|part| part == "..") {
        return None; // outside of what this cgroup namespace shows
    }
    let mut groups = mounts.iter().filter(|m| m.kind == "cgroup2");
    groups.find_map(|m| Some(m.at.join(Path::new(own).strip_prefix(&m.root).ok()?)))
}

/// On a machine with both versions a folder can be made beside version 1's as well: it is no group.
#[cfg(target_os = "linux")]
fn is_cgroup2(path: &Path) -> bool {
    use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
    statfs(path).is_ok_and(|fs| fs.filesystem_type() == CGROUP2_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_cgroup2(_path: &Path) -> bool {
    false
}

/// Whether the group is ours to divide. An ordinary user can do so only in what was given to it. Root can anywhere, and
/// where systemd rules it may only below what systemd has marked as handed over ("Control Group APIs and Delegation").
fn is_delegated(own: &Path) -> bool {
    if !nix::unistd::Uid::effective().is_root() || !Path::new("/run/systemd/system").exists() {
        return true;
    }
    own.ancestors()
        .take_while(|path| is_cgroup2(path))
        .any(crate::leaf::sys::is_marked_delegated)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw,relatime shared:7 - cgroup2 cgroup2 rw
";

    #[test]
    fn the_own_group_is_found_on_a_machine_with_both_versions() {
        let of = |mounts: &str, cgroup| own_group(&mountinfo::parse(mounts.as_bytes()), cgroup);
        let found = of(HYBRID, "4:memory:/elsewhere\n0::/user.slice/a b\n");
        assert_eq!(
            found.unwrap(),
            Path::new("/sys/fs/cgroup/uni fied/user.slice/a b")
        );
        assert_eq!(
            of(HYBRID, "0::/\n").unwrap(),
            Path::new("/sys/fs/cgroup/uni fied")
        );
        let below = "9 1 0:5 /pod /cg ro - cgroup2 none rw\n";
        assert_eq!(of(below, "0::/pod/x\n").unwrap(), Path::new("/cg/x"));
        for (mounts, cgroup) in [
            (below, "0::/other\n"),
            (HYBRID, "0::/../x\n"),
            (HYBRID, "4:memory:/\n"),
            (
                "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n",
                "0::/\n",
            ),
            ("\n - \ncgroup2", "0::/\n"),
        ] {
            assert_eq!(of(mounts, cgroup), None, "{mounts} {cgroup}");
        }
    }

    /// Of all that ends a tree this alone asks nobody's pid: whoever is just being started is ended, too.
    #[cfg(target_os = "linux")]
    #[test]
    // A test runs processes of its own, and says what it is skipped for.
    #[allow(clippy::disallowed_methods, clippy::print_stderr)]
    fn one_write_ends_all_of_a_group_and_of_the_groups_made_in_it() {
        let launch = LaunchId::random().unwrap();
        let Some(group) = Group::place(&launch).filter(Group::can_be) else {
            eprintln!("skipped: no control group can be made here");
            return;
        };
        let inner = group.path().join("inner");
        fs::create_dir_all(&inner).unwrap();
        let mut members: Vec<_> = [group.path(), &inner]
            .map(|at| {
                let child = Command::new("sleep").arg("1000").spawn().unwrap();
                fs::write(at.join("cgroup.procs"), child.id().to_string()).unwrap();
                child
            })
            .into();
        assert_eq!(group.members().len(), 2);
        group.kill();
        for member in &mut members {
            use std::os::unix::process::ExitStatusExt;
            let handle = Handle::open(Pid::from_raw(member.id() as i32)).unwrap();
            let killed = handle.wait_ended(Duration::from_secs(60));
            let _ = member.kill();
            assert!(killed, "it went on");
            assert_eq!(member.wait().unwrap().signal(), Some(9));
        }
        assert!(group.remove() && !group.path().exists());
    }

    #[test]
    fn a_recorded_group_is_only_one_of_the_kernels_with_the_launchs_own_name() {
        let launch = LaunchId::random().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join(format!("{PREFIX}{launch}"));
        fs::create_dir(&plain).unwrap();
        assert!(Group::recorded(&plain, &launch).is_none(), "a plain folder");
        let root = Path::new("/sys/fs/cgroup");
        for other in [
            root.to_owned(),
            root.join("unified"),
            root.join(format!("{PREFIX}{launch}")),
        ] {
            assert!(Group::recorded(&other, &launch).is_none(), "{other:?}");
        }
    }
}
