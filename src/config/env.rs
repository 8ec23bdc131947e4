//! The process environment, read once and handed on as a value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A copy of the environment that the program was started with.
#[derive(Debug, Clone, Default)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// Reads the process environment.
    pub fn of_process() -> Env {
        Env(std::env::vars_os().collect())
    }

    /// An environment of these variables, for tests.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Env {
        Env(variables
            .into_iter()
            .map(|(k, v)| (k.into(), v.into()))
            .collect())
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|v| !v.is_empty())
    }

    /// The same as text; None when it is not UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// All variables, for the environment of a child.
    pub fn all(&self) -> &BTreeMap<OsString, OsString> {
        &self.0
    }

    /// Whether the run is unattended by the usual sign.
    pub fn is_ci(&self) -> bool {
        self.text("CI").is_some_and(|v| v != "0" && v != "false")
    }

    /// `$VERI_HOME`, else `$XDG_STATE_HOME/veri`, else `~/.local/state/veri`; None without a home.
    pub fn veri_home(&self) -> Option<PathBuf> {
        if let Some(home) = self.get("VERI_HOME") {
            return Some(PathBuf::from(home));
        }
        match self.get("XDG_STATE_HOME") {
            Some(state) => Some(PathBuf::from(state).join("veri")),
            None => Some(PathBuf::from(self.get("HOME")?).join(".local/state/veri")),
        }
    }

    /// `$XDG_CONFIG_HOME/veri/config.toml`, else `~/.config/veri/config.toml`; None without a home.
    pub fn user_config(&self) -> Option<PathBuf> {
        let folder = match self.get("XDG_CONFIG_HOME") {
            Some(config) => PathBuf::from(config),
            None => PathBuf::from(self.get("HOME")?).join(".config"),
        };
        Some(folder.join("veri/config.toml"))
    }
}
