//! The sandbox: what a leaf and everything that it starts can read, write and signal.
//!
//! Landlock, put on by the leaf itself right before its program is run; the shim that supervises it is not confined. What
//! Landlock cannot say (this folder, but not that part of it) is said by mounts of the leaf's own.
//!
//! - `siblings`: what must be allowed so that a folder is hidden
//! - `mounts`: by which other names it can be reached
//! - `rules`: the rules themselves, for what the kernel offers
//!
//! What Landlock leaves alone: the network, sockets that lie in the file system, and what needs no file to be opened
//! (looking at a file's size and dates, changing its mode or owner where the user may).

#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod siblings;

use super::{raw, sys};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// What one leaf is confined to. Reading is allowed everywhere else, writing nowhere else; the harmless devices
/// (/dev/null, zero, full, tty, ptmx, pts, shm) are always open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// What can neither be read nor run: folders or files, which need not exist. Where there are any, devices other than
    /// the harmless ones are closed, too: a disk's own would show everything.
    #[serde(with = "raw::paths")]
    pub hidden: Vec<PathBuf>,
    /// What can be read and run although it lies in a hidden folder.
    #[serde(with = "raw::paths")]
    pub read: Vec<PathBuf>,
    /// What can be written, read and run; what is hidden below one of them stays so.
    #[serde(with = "raw::paths")]
    pub write: Vec<PathBuf>,
    /// What lies below one of `write` and cannot be changed, where the kernel lets a leaf have mounts of its own.
    #[serde(with = "raw::paths")]
    pub sealed: Vec<PathBuf>,
}

/// How a leaf was confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// The version of Landlock (its ABI).
    pub landlock: u32,
    /// What it should have been kept from and was not, in words.
    pub without: Vec<String>,
}

/// The least version with which a suite can still work: before it, no file can be moved from one folder to another.
const LEAST_ABI: u32 = 2;

/// What this kernel offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// A sandbox.
    Landlock(Confined),
    /// None, and why.
    Nothing(String),
}

/// Looks what this kernel offers, and whether these paths can be sealed: none asks for Landlock alone.
pub fn probe(sealed: &[PathBuf]) -> Offer {
    match offer(sys::landlock_abi()) {
        #[cfg(target_os = "linux")]
        Offer::Landlock(mut confined) => match rules::try_on(confined.landlock) {
            Ok(()) => {
                confined.without.extend(rules::unsealed(sealed));
                Offer::Landlock(confined)
            }
            Err(e) => Offer::Nothing(not_put_on(&e)),
        },
        offer => offer,
    }
}

/// Has a command run in a sandbox; gives what that amounts to.
///
/// # Errors
/// When the kernel has no sandbox or does not take the rules: the command is not to be run then.
pub(super) fn put_on(command: &mut Command, sandbox: &Sandbox) -> io::Result<Confined> {
    #[cfg(target_os = "linux")]
    let put_on = rules::prepare(sandbox).map(|ready| {
        sys::confined(command, ready.rules, ready.seals);
        ready.confined
    });
    #[cfg(not(target_os = "linux"))]
    let put_on = {
        let _ = (command, sandbox);
        Err(io::Error::from(io::ErrorKind::Unsupported))
    };
    put_on.map_err(|e: io::Error| io::Error::other(format!("it cannot be put into a sandbox: {e}")))
}

fn offer(abi: io::Result<u32>) -> Offer {
    use nix::errno::Errno;
    match abi {
        Ok(abi) if abi < LEAST_ABI => Offer::Nothing(format!(
            "its Landlock (ABI {abi}) keeps files from being moved between folders, which suites need; that of Linux 5.19 \
             and later does not"
        )),
        Ok(abi) => Offer::Landlock(Confined {
            landlock: abi,
            without: weaker(abi).map(str::to_owned).collect(),
        }),
        Err(e) => Offer::Nothing(match e.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EOPNOTSUPP) => {
                "Landlock is built into this kernel and not switched on: add `landlock` to the list of `lsm=` on its \
                 command line"
                    .to_owned()
            }
            Some(Errno::ENOSYS) => {
                "this kernel has no Landlock, or a container's seccomp profile refuses it (Linux 5.13 and later have it)"
                    .to_owned()
            }
            _ if cfg!(not(target_os = "linux")) => "Landlock is Linux's alone".to_owned(),
            _ => format!("Landlock cannot be used here: {e}"),
        }),
    }
}

/// Why a Landlock that is there cannot be put on.
#[cfg(target_os = "linux")]
fn not_put_on(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(nix::libc::E2BIG) => {
            "veri runs in as many Landlock sandboxes already as can be in each other (16)"
                .to_owned()
        }
        _ => format!(
            "Landlock is there and cannot be put on, as in a container whose seccomp profile refuses a part of it: {error}"
        ),
    }
}

/// What a version of Landlock does not keep a leaf from (landlock(7)).
fn weaker(abi: u32) -> impl Iterator<Item = &'static str> {
    [
        (3, "emptying files that it cannot read or write (truncate)"),
        (5, "control commands to devices (ioctl)"),
        (
            6,
            "signals to other processes of its user, and abstract sockets",
        ),
    ]
    .into_iter()
    .filter(move |(since, _)| abi < *since)
    .map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    fn failing(errno: Errno) -> Offer {
        offer(Err(io::Error::from(errno)))
    }

    #[test]
    fn a_kernel_without_landlock_says_why() {
        for (errno, why) in [
            (Errno::ENOSYS, "no Landlock"),
            (Errno::EOPNOTSUPP, "not switched on"),
            (Errno::EPERM, "cannot be used"),
        ] {
            let Offer::Nothing(said) = failing(errno) else {
                panic!("{errno}: a sandbox");
            };
            assert!(said.contains(why), "{said}");
        }
        assert!(matches!(offer(Ok(1)), Offer::Nothing(_)));
    }

    #[test]
    fn what_an_older_landlock_lacks_is_named() {
        for (abi, lacks) in [(2, 3), (3, 2), (4, 2), (5, 1), (6, 0), (7, 0), (99, 0)] {
            let Offer::Landlock(confined) = offer(Ok(abi)) else {
                panic!("{abi}: nothing");
            };
            assert_eq!(
                (confined.landlock, confined.without.len()),
                (abi, lacks),
                "{confined:?}"
            );
        }
    }

    #[test]
    fn paths_of_any_bytes_survive_the_order() {
        use std::os::unix::ffi::OsStringExt;
        let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/\xff \n".to_vec()));
        let sandbox = Sandbox {
            hidden: vec![odd, "/plain".into()],
            ..Sandbox::default()
        };
        let text = serde_json::to_string(&sandbox).unwrap();
        assert_eq!(serde_json::from_str::<Sandbox>(&text).unwrap(), sandbox);
    }
}
