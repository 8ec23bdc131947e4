//! The few system calls that nothing safe wraps.
#![allow(unsafe_code)] // this is the one module for it; each block says why it is sound

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
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
