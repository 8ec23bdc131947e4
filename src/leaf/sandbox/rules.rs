//! The rules of one sandbox, in the words of the kernel that is there.

use super::mounts;
use super::siblings::visible;
use super::{Confined, Offer, Sandbox, offer};
use crate::leaf::mountinfo;
use crate::leaf::sys::{self, Seals};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Devices that anybody may write to. The folders among them hold what a program makes itself: terminals, shared memory.
const HARMLESS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Devices that anybody may read.
const READABLE: &[&str] = &["/dev/random", "/dev/urandom"];

/// Where devices are.
const DEVICES: &str = "/dev";

/// The newest version of Landlock whose rights are used: what is added later is not known here to be harmless to a suite.
const NEWEST: u32 = 8;

/// A sandbox that is ready to be put on.
pub(in crate::leaf) struct Confinement {
    /// The rules, as the kernel has them.
    pub(in crate::leaf) rules: OwnedFd,
    /// What is mounted before.
    pub(in crate::leaf) seals: Option<Seals>,
    /// What it amounts to.
    pub(in crate::leaf) confined: Confined,
}

/// Makes a sandbox for the next process. Nothing is weakened that was not said.
///
/// # Errors
/// When the kernel has none, or does not take the rules.
pub(in crate::leaf) fn prepare(sandbox: &Sandbox) -> io::Result<Confinement> {
    match offer(sys::landlock_abi()) {
        Offer::Landlock(confined) => prepare_for(confined, sandbox),
        Offer::Nothing(why) => Err(io::Error::other(why)),
    }
}

/// The same with what a version of Landlock has; the kernel's own may be newer.
fn prepare_for(mut confined: Confined, sandbox: &Sandbox) -> io::Result<Confinement> {
    let rights = Rights::of(confined.landlock);
    let rules = made(&rights, allowed(sandbox, &rights)?)?;
    let sealed = there(&sandbox.sealed);
    let unsealed = unsealed(&sealed);
    let seals = match sealed.is_empty() || unsealed.is_some() {
        true => None,
        false => Some(Seals::new(&sealed)?),
    };
    confined.without.extend(unsealed);
    Ok(Confinement {
        rules,
        seals,
        confined,
    })
}

/// Tries whether a version of Landlock can be had whole: that a kernel tells its version promises nothing (a container may
/// refuse one call and not another; sixteen sandboxes in each other are all there can be).
///
/// # Errors
/// What the kernel said.
pub(super) fn try_on(abi: u32) -> io::Result<()> {
    let rights = Rights::of(abi);
    sys::try_rules(made(&rights, allowed(&Sandbox::default(), &rights)?)?)
}

/// The rules, in the kernel.
fn made(rights: &Rights, allowed: Vec<(PathBuf, Allow)>) -> io::Result<OwnedFd> {
    let mut rules = rights.ruleset().map_err(io::Error::other)?;
    for (path, access) in allowed {
        // What cannot be opened, or is gone by now, is not allowed.
        if let Some((file, is_folder)) = opened(&path) {
            let access = access.of(is_folder);
            rules = rules
                .add_rule(PathBeneath::new(file, access))
                .map_err(io::Error::other)?;
        }
    }
    Option::from(rules).ok_or_else(|| io::Error::other("the kernel took no rules"))
}

/// What is said of paths that cannot be sealed here; None when they can.
pub(super) fn unsealed(paths: &[PathBuf]) -> Option<String> {
    let paths = there(paths);
    if paths.is_empty() {
        return None;
    }
    let error = Seals::new(&paths).and_then(sys::try_seals).err()?;
    let names: Vec<_> = paths
        .iter()
        .filter_map(|p| Some(p.file_name()?.to_string_lossy().into_owned()))
        .collect();
    Some(format!(
        "changes of {} in its working folder (no mounts of its own: {})",
        names.join(" and "),
        no_mounts(&error)
    ))
}

/// What keeps a leaf from mounts of its own, in words that can be looked for.
fn no_mounts(error: &io::Error) -> String {
    use nix::errno::Errno;
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOSPC) => {
            "no more user namespaces are allowed, see sysctl user.max_user_namespaces".to_owned()
        }
        Some(Errno::EPERM | Errno::EACCES) => format!(
            "the system refuses user namespaces or mounts in them, as containers do, and sysctl \
             kernel.apparmor_restrict_unprivileged_userns or kernel.unprivileged_userns_clone: {error}"
        ),
        Some(Errno::ENOSYS | Errno::EINVAL) => format!(
            "this kernel lacks user namespaces or mount_setattr (Linux 5.12), or a container refuses them: {error}"
        ),
        _ => error.to_string(),
    }
}

fn there(paths: &[PathBuf]) -> Vec<PathBuf> {
    let there = paths.iter().filter(|p| p.symlink_metadata().is_ok());
    there.cloned().collect()
}

/// What is allowed for a path, if it is a folder, and if it is anything else.
#[derive(Clone, Copy)]
struct Allow {
    folder: BitFlags<AccessFs>,
    file: BitFlags<AccessFs>,
}

impl Allow {
    fn of(self, is_folder: bool) -> BitFlags<AccessFs> {
        match is_folder {
            true => self.folder,
            false => self.file,
        }
    }
}

/// The rights that one version of Landlock knows.
struct Rights {
    abi: ABI,
    read: Allow,
    list: Allow,
    write: Allow,
    device: Allow,
}

impl Rights {
    fn of(abi: u32) -> Rights {
        let abi = ABI::from(i32::try_from(abi.min(NEWEST)).unwrap_or_default());
        let known = AccessFs::from_all(abi);
        let file = AccessFs::from_file(abi);
        let read = AccessFs::from_read(abi);
        // A device file that a leaf makes could be the disk itself.
        let make = known & !(AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev);
        Rights {
            abi,
            read: Allow {
                folder: read,
                file: read & file,
            },
            list: Allow {
                folder: AccessFs::ReadDir.into(),
                file: BitFlags::EMPTY,
            },
            write: Allow { folder: make, file },
            device: Allow {
                folder: known
                    & (AccessFs::ReadDir
                        | AccessFs::ReadFile
                        | AccessFs::WriteFile
                        | AccessFs::IoctlDev),
                file: file & !BitFlags::from(AccessFs::Execute),
            },
        }
    }

    /// No rule yet: nothing is allowed.
    fn ruleset(&self) -> Result<RulesetCreated, RulesetError> {
        // What is asked for is what this kernel has; should it say otherwise, nothing is run.
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(self.abi))?;
        let scopes = Scope::from_all(self.abi);
        let rules = match scopes.is_empty() {
            true => rules,
            false => rules.scope(scopes)?,
        };
        rules.create()
    }
}

/// Every path that gets a rule, with what is allowed for it.
fn allowed(sandbox: &Sandbox, rights: &Rights) -> io::Result<Vec<(PathBuf, Allow)>> {
    let hidden: BTreeSet<PathBuf> = sandbox
        .hidden
        .iter()
        .map(|p| real(p))
        .collect::<Result<_, _>>()?;
    let hidden = mounts::with_aliases(&hidden, &mountinfo::list()?);
    let mut all = Vec::new();
    let mut closed = hidden.clone();
    if !hidden.is_empty() {
        closed.insert(PathBuf::from(DEVICES));
        all.push((PathBuf::from(DEVICES), rights.list));
        all.extend(READABLE.iter().map(|d| (PathBuf::from(d), rights.read)));
    }
    let root = visible(Path::new("/"), &closed, &mut names);
    all.extend(root.into_iter().map(|p| (p, rights.read)));
    for path in &sandbox.read {
        let below = visible(&real(path)?, &beneath(&hidden, path)?, &mut names);
        all.extend(below.into_iter().map(|p| (p, rights.read)));
    }
    for path in &sandbox.write {
        let below = visible(&real(path)?, &beneath(&hidden, path)?, &mut names);
        all.extend(below.into_iter().map(|p| (p, rights.write)));
    }
    for device in HARMLESS.iter().map(Path::new) {
        let allow = match device.ends_with("shm") {
            true => rights.write,
            false => rights.device,
        };
        all.push((real(device)?, allow));
    }
    Ok(all)
}

/// The hidden paths that a path which is allowed by name still hides: itself, and what lies below it.
fn beneath(hidden: &BTreeSet<PathBuf>, path: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let path = real(path)?;
    let beneath = hidden.iter().filter(|h| h.starts_with(&path));
    Ok(beneath.cloned().collect())
}

/// What lies in a folder, links left out.
fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|e| e.file_type().is_ok_and(|t| !t.is_symlink()))
        .map(|e| e.file_name())
        .collect()
}

/// A handle on the very thing at a path, and whether it is a folder; None for a link, or when there is nothing.
fn opened(path: &Path) -> Option<(OwnedFd, bool)> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = open(path, flags, Mode::empty()).ok()?;
    let kind = SFlag::from_bits_truncate(fstat(&file).ok()?.st_mode) & SFlag::S_IFMT;
    (kind != SFlag::S_IFLNK).then_some((file, kind == SFlag::S_IFDIR))
}

/// The path without links and detours as far as it exists, then as it is.
fn real(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize() {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return Ok(found.iter().chain(rest.iter()).collect());
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_on_the_way_are_resolved_as_far_as_the_path_exists() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        std::fs::create_dir(home.join("real")).unwrap();
        std::os::unix::fs::symlink("real", home.join("link")).unwrap();
        assert_eq!(
            real(&home.join("link/not/there")).unwrap(),
            home.join("real/not/there")
        );
        assert_eq!(real(&home.join("link")).unwrap(), home.join("real"));
    }

    /// What shell scripts can do in a sandbox of a version of Landlock, of what they try.
    fn succeeding(abi: u32, sandbox: &Sandbox, tries: &[(&str, String)]) -> Vec<String> {
        let Offer::Landlock(confined) = offer(Ok(abi)) else {
            panic!("{abi}: nothing");
        };
        let script: String = tries
            .iter()
            .map(|(name, shell)| format!("if ( {shell} ) 2> /dev/null; then echo {name}; fi\n"))
            .collect();
        #[allow(clippy::disallowed_methods)] // what is tried is what a program can do
        let mut command = std::process::Command::new("sh");
        let ready = prepare_for(confined, sandbox).unwrap();
        sys::confined(&mut command, ready.rules, ready.seals);
        let out = command.args(["-c", &script]).output().unwrap();
        assert!(out.status.success(), "{abi}: {out:?}");
        let said = String::from_utf8(out.stdout).unwrap();
        said.lines().map(str::to_owned).collect()
    }

    #[test]
    #[allow(clippy::print_stdout)] // a test that is skipped says so
    fn an_older_landlock_keeps_what_it_can_and_lacks_just_what_is_said() {
        let Ok(newest) = sys::landlock_abi() else {
            println!("skipped: no Landlock here");
            return;
        };
        for abi in super::super::LEAST_ABI..=newest {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            for folder in ["own/a", "own/b", "other", "hidden"] {
                fs::create_dir_all(at(folder)).unwrap();
            }
            for file in ["own/a/f", "other/f", "hidden/f"] {
                fs::write(at(file), "words").unwrap();
            }
            let sandbox = Sandbox {
                hidden: vec![at("hidden")],
                write: vec![at("own")],
                ..Sandbox::default()
            };
            let d = dir.path().display();
            let me = std::process::id();
            let tries = [
                // A suite's own work, on every version.
                (
                    "write",
                    format!("echo x > {d}/own/new && echo x > /dev/null"),
                ),
                (
                    "move",
                    format!("mv {d}/own/a/f {d}/own/b/ && rm {d}/own/b/f"),
                ),
                ("truncate", format!("truncate -s0 {d}/own/new")),
                ("read", format!("read -r x < {d}/other/f; [ $x = words ]")),
                // What none allows.
                ("write-out", format!("echo x > {d}/other/new")),
                ("append-out", format!("echo x >> {d}/other/f")),
                ("read-hidden", format!("read -r x < {d}/hidden/f")),
                ("move-out", format!("mv {d}/own/new {d}/other/")),
                // What the older ones lack.
                (
                    "truncate-hidden",
                    format!("perl -e 'truncate(q({d}/hidden/f), 0) or die'"),
                ),
                ("signal", format!("kill -0 {me}")),
            ];
            let found = succeeding(abi, &sandbox, &tries);
            let mut expected = vec!["write", "move", "truncate", "read"];
            expected.extend((abi < 3).then_some("truncate-hidden"));
            expected.extend((abi < 6).then_some("signal"));
            assert_eq!(found, expected, "ABI {abi}");
        }
    }

    #[test]
    fn why_there_are_no_mounts_is_said_with_what_to_look_for() {
        use nix::errno::Errno;
        for (errno, words) in [
            (Errno::ENOSPC, "sysctl user.max_user_namespaces"),
            (Errno::EPERM, "as containers do"),
            (Errno::EACCES, "apparmor_restrict_unprivileged_userns"),
            (Errno::EINVAL, "lacks user namespaces"),
            (Errno::ENOSYS, "mount_setattr"),
        ] {
            let said = no_mounts(&io::Error::from(errno));
            assert!(said.contains(words), "{errno}: {said}");
        }
    }
}
