//! Commands in a ground: what is handed to the supervisor, what comes back, and their environment.

use super::source::LOCAL_VARIABLES;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A command to be supervised: standard input is /dev/null, both streams go to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Names the leaf in the records.
    pub name: String,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The working folder.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where both streams go.
    pub output: PathBuf,
    /// The deadline.
    pub wall: Duration,
    /// The folder for the leaf's records.
    pub records: PathBuf,
}

/// How a supervised command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// A signal that was not ours ended its own process.
    Signal(i32),
    /// Ended by us at its deadline.
    TimedOut,
    /// Ended by us since it had run and waited for changes of files.
    Waits {
        /// The program that waits.
        tool: String,
        /// What to run instead.
        instead: String,
    },
    /// Ended by us for a stop request of mode now.
    Stopped,
    /// It could not be started: 126 or 127.
    Unstartable(i32),
}

/// Runs a command under the supervisor to its end, its whole process tree swept.
pub type Launcher<'a> = dyn FnMut(&Launch) -> anyhow::Result<Ended> + 'a;

/// Variables that put what is built, or what is run, somewhere else than into the ground.
const MISLEADING: &[&str] = &[
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_BUILD_BUILD_DIR",
    "UV_PROJECT_ENVIRONMENT",
    "PYTHONPYCACHEPREFIX",
    "INIT_CWD",
    "OLDPWD",
];

/// The argument list that gives a command text to the shell.
pub fn shell(command: &str) -> Vec<OsString> {
    ["sh", "-c", command].map(OsString::from).to_vec()
}

/// The caller's environment for a command in a ground.
///
/// Without variables that lead git to another repository or a build to another folder, with `VERI_SLOT`, and with
/// the ground's own `.venv` in the place of one that the caller had active.
pub fn environment(
    base: &[(OsString, OsString)],
    root: &Path,
    slot: u32,
) -> Vec<(OsString, OsString)> {
    let own = root.join(".venv");
    let own = own.join("bin").is_dir().then_some(own);
    let active = base
        .iter()
        .find(|(name, _)| name == "VIRTUAL_ENV")
        .map(|(_, value)| PathBuf::from(value).join("bin"));
    let mut env = Vec::with_capacity(base.len() + 3);
    for (name, value) in base {
        if is_misleading(name) || (own.is_some() && (name == "VIRTUAL_ENV" || name == "PYTHONHOME"))
        {
            continue;
        }
        let value = match &own {
            Some(own) if name == "PATH" => search_path(own, active.as_deref(), value),
            _ => value.clone(),
        };
        env.push((name.clone(), value));
    }
    if let Some(own) = own {
        env.push(("VIRTUAL_ENV".into(), own.into_os_string()));
    }
    env.push(("PWD".into(), root.as_os_str().to_owned()));
    env.push(("VERI_SLOT".into(), slot.to_string().into()));
    env
}

fn is_misleading(name: &OsStr) -> bool {
    name == "PWD"
        || name == "VERI_SLOT"
        || MISLEADING.iter().chain(LOCAL_VARIABLES).any(|n| name == *n)
}

fn search_path(own: &Path, active: Option<&Path>, value: &OsStr) -> OsString {
    let mut path = own.join("bin").into_os_string().into_vec();
    for part in value.as_bytes().split(|byte| *byte == b':') {
        if active.is_none_or(|active| active.as_os_str().as_bytes() != part) {
            path.push(b':');
            path.extend_from_slice(part);
        }
    }
    OsString::from_vec(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(k, v)| (k.into(), v.into())).collect()
    }

    fn value<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a str> {
        let found: Vec<_> = env.iter().filter(|(key, _)| key == name).collect();
        assert!(found.len() <= 1, "{name} is there twice");
        found.first().and_then(|(_, value)| value.to_str())
    }

    #[test]
    fn variables_that_lead_elsewhere_are_gone() {
        let root = tempfile::tempdir().unwrap();
        let base = pairs(&[
            ("CARGO_TARGET_DIR", "/elsewhere"),
            ("GIT_DIR", "/person/.git"),
            ("VERI_SLOT", "9"),
            ("PWD", "/person"),
            ("VIRTUAL_ENV", "/person/.venv"),
            ("PATH", "/person/.venv/bin:/usr/bin"),
            ("CARGO_HOME", "/kept"),
        ]);
        let env = environment(&base, root.path(), 3);
        assert_eq!(value(&env, "CARGO_TARGET_DIR"), None);
        assert_eq!(value(&env, "GIT_DIR"), None);
        assert_eq!(value(&env, "VERI_SLOT"), Some("3"));
        assert_eq!(value(&env, "PWD"), root.path().to_str());
        assert_eq!(value(&env, "CARGO_HOME"), Some("/kept"));
        assert_eq!(value(&env, "VIRTUAL_ENV"), Some("/person/.venv"));
    }

    #[test]
    fn the_grounds_own_virtual_environment_replaces_the_active_one() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(".venv/bin")).unwrap();
        let base = pairs(&[
            ("VIRTUAL_ENV", "/person/.venv"),
            ("PATH", "/person/.venv/bin:/usr/bin"),
        ]);
        let env = environment(&base, root.path(), 0);
        let own = root.path().join(".venv");
        assert_eq!(value(&env, "VIRTUAL_ENV"), own.to_str());
        let path = format!("{}/bin:/usr/bin", own.display());
        assert_eq!(value(&env, "PATH"), Some(path.as_str()));
    }
}
