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
