//! The few system calls that nothing safe wraps.
#![allow(unsafe_code)] // this is the one module for it; each block says why it is sound

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
#[cfg(target_os = "linux")]
use std::ffi::CString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the program start with no signal blocked, and killed when the calling thread ends, however that
/// happens. The caller must be single-threaded, or the thread that lives to its end. The second is Linux only.
pub(crate) fn unblocked_and_dying_with_parent(command: &mut Command) {
    let parent = Pid::this();
    // SAFETY: the closure runs in the forked child. It makes four system calls without locks or memory
    // (sigmask, sigaction, prctl, getppid) and builds errors from plain numbers, so it is async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            SigSet::empty().thread_set_mask()?;
            // Ignored by this program alone (`a_write_too_long_fails`).
            nix::sys::signal::signal(Signal::SIGXFSZ, nix::sys::signal::SigHandler::SigDfl)?;
            #[cfg(target_os = "linux")]
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The parent may have died before the call above: then no signal will come any more.
            if Pid::parent() == parent {
                Ok(())
            } else {
                Err(io::Error::from(Errno::ESRCH))
            }
        });
    }
}

/// Starts a program in a control group, which is given as its open folder: it never was in another. None when the system
/// cannot (kernels before 5.7, some containers), or the group takes nobody: then nothing was started.
///
/// The caller must be single-threaded.
#[cfg(target_os = "linux")]
pub(super) fn spawn_into(command: &mut Command, group: &std::fs::File) -> Option<io::Result<Pid>> {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    let (mut said, mut say) = io::pipe().ok()?;
    // struct clone_args of clone(2), version 2: flags CLONE_INTO_CGROUP, exit_signal and cgroup are given.
    let mut args = [0u64; 11];
    args[0] = 0x2_0000_0000;
    args[4] = libc::SIGCHLD as u64;
    args[10] = u64::try_from(group.as_raw_fd()).ok()?;
    // SAFETY: without CLONE_VM and without a stack this is fork: the child goes on with a copy of the memory. The process
    // has one thread, so that no lock of its is held by another. `args` outlives the call and has the size that is said.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, args.as_ptr(), size_of_val(&args)) };
    match pid {
        0 => {
            let error = command.exec();
            let number = error.raw_os_error().unwrap_or(libc::EINVAL);
            let _ = say.write_all(&number.to_ne_bytes());
            // SAFETY: ends the process; nothing of the parent's is flushed or run.
            unsafe { libc::_exit(127) }
        }
        pid if pid > 0 => {
            drop(say);
            let pid = Pid::from_raw(i32::try_from(pid).ok()?);
            let mut number = [0; 4];
            // The pipe is closed by exec: nothing comes when that has worked.
            match said.read_exact(&mut number) {
                Err(_) => Some(Ok(pid)),
                Ok(()) => {
                    let _ = nix::sys::wait::waitpid(pid, None);
                    Some(Err(io::Error::from_raw_os_error(i32::from_ne_bytes(
                        number,
                    ))))
                }
            }
        }
        _ => None,
    }
}

/// Elsewhere there are no such groups.
#[cfg(not(target_os = "linux"))]
pub(super) fn spawn_into(_: &mut Command, _: &std::fs::File) -> Option<io::Result<Pid>> {
    None
}

/// Whether systemd has marked a control group as handed over to whoever runs in it.
#[cfg(target_os = "linux")]
pub(super) fn is_marked_delegated(path: &std::path::Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    [c"user.delegate", c"trusted.delegate"].iter().any(|name| {
        let mut value = [0u8; 1];
        // SAFETY: both strings end with a zero byte, and no more is written than the buffer that is given has.
        let len = unsafe {
            libc::getxattr(
                path.as_ptr(),
                name.as_ptr(),
                value.as_mut_ptr().cast(),
                value.len(),
            )
        };
        len == 1 && value == *b"1"
    })
}

/// Elsewhere there are no such groups.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_marked_delegated(_: &std::path::Path) -> bool {
    false
}

/// Has a write beyond a limit on the size of files fail like one to a full disk, here and in the tools that this program
/// starts, instead of ending the program without a word.
pub(crate) fn a_write_too_long_fails() {
    // SAFETY: no handler is installed; the signal is ignored from here on.
    let _ =
        unsafe { nix::sys::signal::signal(Signal::SIGXFSZ, nix::sys::signal::SigHandler::SigIgn) };
}

/// Gives the usual signals their default effect again: a caller under `nohup` or with SIGCHLD ignored hands
/// that on through exec.
pub(super) fn default_signals() {
    use Signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    for signal in [SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2] {
        // SAFETY: no handler is installed, and the one that might be replaced is never needed again.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
    }
}

/// A handle on a process that no reuse of its pid can redirect. Readable (poll) once it has ended.
#[cfg(target_os = "linux")]
pub(super) fn pidfd_open(pid: Pid) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: takes two integers, touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor (close-on-exec) and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Elsewhere there is no such handle.
#[cfg(not(target_os = "linux"))]
pub(super) fn pidfd_open(_pid: Pid) -> io::Result<OwnedFd> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Signals the process behind a handle.
#[cfg(target_os = "linux")]
pub(super) fn pidfd_signal(fd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is borrowed for the call; a null siginfo is allowed and means "as kill does".
    let done = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            fd.as_raw_fd(),
            signal as libc::c_int,
            info,
            0,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Elsewhere there is no such handle.
#[cfg(not(target_os = "linux"))]
pub(super) fn pidfd_signal(_fd: BorrowedFd<'_>, _signal: Signal) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Which of the blocked signals wait to be taken, where there is no signalfd.
#[cfg(not(target_os = "linux"))]
pub(super) fn pending_signals() -> SigSet {
    let mut set = SigSet::empty();
    let mut raw = *set.as_ref();
    // SAFETY: `raw` is a valid, initialised set that the call overwrites.
    if unsafe { libc::sigpending(&mut raw) } == 0 {
        // SAFETY: the call succeeded, so `raw` is a set made by the system.
        set = unsafe { SigSet::from_sigset_t_unchecked(raw) };
    }
    set
}

/// The version of Landlock that the kernel offers.
#[cfg(target_os = "linux")]
pub(super) fn landlock_abi() -> io::Result<u32> {
    /// linux/landlock.h: only the version is asked for.
    const LANDLOCK_CREATE_RULESET_VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel takes no attributes (null, of size 0) and makes nothing.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            nothing,
            0usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(abi).map_err(|_| io::Error::last_os_error())
}

/// Elsewhere there is none.
#[cfg(not(target_os = "linux"))]
pub(super) fn landlock_abi() -> io::Result<u32> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Paths that become read-only for a process and all that it starts, by mounts of their own.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct Seals {
    paths: Vec<CString>,
    /// This user and group as themselves, for a user namespace.
    uid: String,
    gid: String,
}

#[cfg(target_os = "linux")]
impl Seals {
    /// Of these paths, which must be there when the process starts.
    pub(super) fn new(paths: &[std::path::PathBuf]) -> io::Result<Seals> {
        use std::os::unix::ffi::OsStrExt;
        let paths = paths.iter().map(|p| CString::new(p.as_os_str().as_bytes()));
        let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
        Ok(Seals {
            paths: paths.collect::<Result<_, _>>()?,
            uid: format!("{uid} {uid} 1"),
            gid: format!("{gid} {gid} 1"),
        })
    }

    /// For the child between fork and exec: system calls alone, nothing is allocated.
    fn enter(&self) -> io::Result<()> {
        // SAFETY: both take a number and change this process alone, which has one thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            // Without the privilege: in a user namespace, in which this user is still itself.
            // SAFETY: as above.
            Errno::result(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) })?;
            write_proc(c"/proc/self/setgroups", b"deny")?;
            write_proc(c"/proc/self/uid_map", self.uid.as_bytes())?;
            write_proc(c"/proc/self/gid_map", self.gid.as_bytes())?;
        }
        let null = std::ptr::null();
        // Before anything is mounted: nothing of it is to reach the machine's own mounts.
        let flags = libc::MS_REC | libc::MS_SLAVE;
        // SAFETY: the path is a C string that outlives the call; the others may be null for a change of propagation.
        Errno::result(unsafe { libc::mount(null, c"/".as_ptr(), null, flags, null.cast()) })?;
        for path in &self.paths {
            let at = path.as_ptr();
            let flags = libc::MS_BIND | libc::MS_REC;
            // SAFETY: both paths are C strings that outlive the call; a bind mount has neither type nor data.
            Errno::result(unsafe { libc::mount(at, at, null, flags, null.cast()) })?;
            let only_read = libc::mount_attr {
                attr_set: libc::MOUNT_ATTR_RDONLY,
                attr_clr: 0,
                propagation: 0,
                userns_fd: 0,
            };
            // SAFETY: path and attributes outlive the call, and the size is that of the attributes.
            Errno::result(unsafe {
                libc::syscall(
                    libc::SYS_mount_setattr,
                    libc::AT_FDCWD,
                    at,
                    libc::AT_RECURSIVE,
                    std::ptr::from_ref(&only_read),
                    size_of::<libc::mount_attr>(),
                )
            })?;
        }
        Ok(())
    }
}

/// Writes a file of /proc in one write, without allocating.
#[cfg(target_os = "linux")]
fn write_proc(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    use nix::fcntl::{OFlag, open};
    let file = open(
        path,
        OFlag::O_WRONLY | OFlag::O_CLOEXEC,
        nix::sys::stat::Mode::empty(),
    )?;
    nix::unistd::write(&file, text)?;
    Ok(())
}

/// Tries in a process of its own, which then runs nothing, whether these seals can be put on.
#[cfg(target_os = "linux")]
pub(super) fn try_seals(seals: Seals) -> io::Result<()> {
    tried(move || seals.enter())
}

/// The same for a sandbox of these rules.
#[cfg(target_os = "linux")]
pub(super) fn try_rules(rules: OwnedFd) -> io::Result<()> {
    tried(move || restrict(&rules))
}

/// What these system calls give in a process of its own: nothing is allocated there.
#[cfg(target_os = "linux")]
fn tried(calls: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> io::Result<()> {
    /// What says that it went well: none of the calls gives it.
    const DONE: Errno = Errno::EOWNERDEAD;
    #[allow(clippy::disallowed_methods)] // it never comes to run anything
    let mut command = Command::new("/");
    // SAFETY: the closure runs in the forked child and makes system calls alone (see `enter`, `restrict`).
    unsafe {
        command.pre_exec(move || {
            calls()?;
            Err(io::Error::from(DONE))
        });
    }
    match command.spawn() {
        Err(e) if e.raw_os_error() == Some(DONE as i32) => Ok(()),
        Err(e) => Err(e),
        Ok(_) => Err(io::Error::other("a folder was run")),
    }
}

/// The privileges of root that a confined leaf keeps: those that container engines leave by default, without device files.
/// All others reach around its rules (mounts, raw devices, files by number, other processes' memory) or do what no file
/// rule speaks of (the clock, a restart, the network's set-up). (linux/capability.h)
#[cfg(target_os = "linux")]
const KEPT: [libc::c_ulong; 13] = [
    0,  // CAP_CHOWN
    1,  // CAP_DAC_OVERRIDE
    3,  // CAP_FOWNER
    4,  // CAP_FSETID
    5,  // CAP_KILL
    6,  // CAP_SETGID
    7,  // CAP_SETUID
    8,  // CAP_SETPCAP
    10, // CAP_NET_BIND_SERVICE
    13, // CAP_NET_RAW
    18, // CAP_SYS_CHROOT
    29, // CAP_AUDIT_WRITE
    31, // CAP_SETFCAP
];

/// Drops what is not `KEPT` from this process and all that it starts; allocates nothing.
#[cfg(target_os = "linux")]
fn drop_privileges() -> io::Result<()> {
    for capability in (0..64).filter(|c| !KEPT.contains(c)) {
        // Fails without CAP_SETPCAP, and for those that this kernel lacks. What is then left to root, it does not get back
        // beyond what it has here: what is put on with the rules (PR_SET_NO_NEW_PRIVS) sees to that.
        // SAFETY: takes numbers, touches no memory of ours.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // What is inheritable comes back to root when it runs a program, bounds or not; what is ambient goes with it
    // (capabilities(7)).
    // struct __user_cap_header_struct: version 3, this process. Then twice effective, permitted, inheritable.
    let mut header = [0x2008_0522_u32, 0];
    let mut sets = [0u32; 6];
    // SAFETY: both have the size that this version has, and outlive the call.
    Errno::result(unsafe {
        libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr())
    })?;
    for (half, set) in [(0, 0), (1, 3)] {
        let kept = kept_in(half);
        sets[set] &= kept;
        sets[set + 1] &= kept;
        sets[set + 2] = 0;
    }
    // SAFETY: as above.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) })?;
    Ok(())
}

/// The capabilities of `KEPT` from 32 times `half` on, as bits.
#[cfg(target_os = "linux")]
fn kept_in(half: libc::c_ulong) -> u32 {
    let of_half = KEPT.iter().filter(|c| **c / 32 == half);
    of_half.fold(0, |bits, c| bits | 1 << (c % 32))
}

/// Puts these Landlock rules on this process and all that it starts, for good, without the privileges that reach around
/// them. Allocates nothing.
#[cfg(target_os = "linux")]
fn restrict(rules: &OwnedFd) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    drop_privileges()?;
    // SAFETY: takes numbers, touches no memory of ours.
    Errno::result(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // SAFETY: a descriptor that is open for the whole call, and no flags.
    Errno::result(unsafe {
        libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0)
    })?;
    Ok(())
}

/// Has the program start in a sandbox of these rules, with these paths sealed.
#[cfg(target_os = "linux")]
pub(super) fn confined(command: &mut Command, rules: OwnedFd, seals: Option<Seals>) {
    // SAFETY: the closure runs in the forked child and makes system calls alone (see `enter`, `restrict`).
    unsafe {
        command.pre_exec(move || {
            if let Some(seals) = &seals {
                seals.enter()?;
            }
            restrict(&rules)
        });
    }
}
