//! By which means a leaf's whole tree is ended on this machine: said, so that none is silently missing.

use super::cgroup::Group;
use crate::leaf::spec::LaunchId;
use nix::unistd::Pid;
use std::fmt;
use std::path::Path;

/// What there is to find and end a leaf's tree by, beside its process group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// What loses its parent comes to the shim (Linux).
    pub subreaper: bool,
    /// Holds on processes that no reuse of a pid redirects; else start times are compared.
    pub pidfd: bool,
    /// Processes are found by the launch id in their environment (`/proc`).
    pub environments: bool,
    /// A control group of each leaf's own (cgroup v2, delegated to this user).
    pub cgroup: bool,
}

/// Looks which means this machine has; a control group is made and removed to see.
pub fn reach() -> Reach {
    let linux = cfg!(target_os = "linux");
    Reach {
        subreaper: linux,
        pidfd: crate::leaf::sys::pidfd_open(Pid::this()).is_ok(),
        environments: linux && Path::new("/proc/self/environ").exists(),
        cgroup: LaunchId::random().is_ok_and(|id| Group::place(&id).is_some_and(|g| g.can_be())),
    }
}

impl Reach {
    /// Whether whatever a leaf starts is found, and nothing else taken for it: control groups make that quicker.
    pub fn is_whole(&self) -> bool {
        self.subreaper && self.pidfd && self.environments
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (true, "process group"),
            (self.subreaper, "subreaper"),
            (self.environments, "launch ids of environments"),
            (self.pidfd, "pidfd"),
            (self.cgroup, "cgroup.kill"),
        ];
        let (have, lack): (Vec<_>, Vec<_>) = all.iter().partition(|(has, _)| *has);
        let names = |of: Vec<&(bool, &'static str)>| {
            let names: Vec<&str> = of.iter().map(|(_, name)| *name).collect();
            names.join(", ")
        };
        f.write_str(&names(have))?;
        match lack.is_empty() {
            true => Ok(()),
            false => write!(f, "; not here: {}", names(lack)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        let bare = Reach {
            subreaper: false,
            pidfd: false,
            environments: false,
            cgroup: false,
        };
        assert_eq!(
            bare.to_string(),
            "process group; not here: subreaper, launch ids of environments, pidfd, cgroup.kill"
        );
        assert!(!bare.is_whole());
        assert!(reach().to_string().starts_with("process group"));
    }
}
