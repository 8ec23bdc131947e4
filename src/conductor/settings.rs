//! What is in force in a run: flags over variables over the stored or read configuration.

use super::Ask;
use crate::agent::Wanted;
use crate::config::{AgentEntry, Config, ForgeConfig};
use crate::forge::trust::Trust;
use crate::machine::{Limits, RefactorWhen};
use crate::role::Role;
use std::path::Path;
use std::time::Duration;

/// The configuration in force, and what the command line says once.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The files' configuration with the flags of this start on top.
    pub(super) config: Config,
    /// Whose text reaches prompts.
    pub(super) trust: Option<Trust>,
}

/// A suite's timeout is never shorter than this: three times a very quick suite is no measure.
const SUITE_TIMEOUT_FLOOR: Duration = Duration::from_secs(120);

/// The same where all that is known was measured in an earlier start: what was built then may have to be built anew.
const REMEMBERED_FLOOR: Duration = Duration::from_secs(15 * 60);

/// How long a suite may take at baseline.
pub(super) const BASELINE_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);

/// What a command was seen to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Took {
    /// The longest run, in milliseconds.
    pub(super) longest_ms: u64,
    /// Whether one of them was in this start, and not only remembered: with what was built then, and not now.
    pub(super) measured: bool,
}

/// What the configuration wants of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxWish {
    /// One where it can be had.
    Auto,
    /// A whole one, or no run.
    Require,
    /// None.
    Off,
}

impl Settings {
    /// Puts the flags on top of a configuration. Paths become absolute, so that they mean the same when
    /// the run is taken up from another folder.
    pub(super) fn of(ask: &Ask, mut config: Config) -> Settings {
        if let Some(forge) = &ask.forge {
            let mut table = config.forge_table();
            table.at = Some(absolute(forge, "dir:", &ask.folder));
            config.forge = Some(ForgeConfig::Table(table));
        }
        let roles = [
            (&mut config.agents.planner, &ask.planner),
            (&mut config.agents.developer, &ask.developer),
            (&mut config.agents.verifier, &ask.verifier),
        ];
        for (entry, flag) in roles {
            if let Some(name) = flag.as_ref().or(ask.agent.as_ref()) {
                let name = absolute_command(name, &ask.folder);
                *entry = Some(match entry {
                    Some(entry) => entry.replaced_by(name),
                    None => AgentEntry::Name(name),
                });
            }
            // A flag stands above whatever the files say, of a role, too.
            if let Some(AgentEntry::Table(table)) = entry {
                table.timeout = table.timeout.filter(|_| ask.timeout.is_none());
            }
        }
        if let Some(command) = &ask.test_command {
            config.tests.command = Some(command.clone());
        }
        if !ask.checks.is_empty() {
            config.checks.clone_from(&ask.checks);
        }
        if ask.timeout.is_some() {
            config.limits.timeout = ask.timeout;
        }
        if ask.base.is_some() {
            config.base.clone_from(&ask.base);
        }
        if ask.remote.is_some() {
            config.remote.clone_from(&ask.remote);
        }
        if ask.trust.is_some() {
            let mut table = config.forge_table();
            table.at = config.forge_address().map(str::to_owned);
            table.trust.clone_from(&ask.trust);
            config.forge = Some(ForgeConfig::Table(table));
        }
        let trust = config.forge_table().trust.as_deref().and_then(Trust::parse);
        Settings { config, trust }
    }

    /// Whether leaves are confined.
    pub(super) fn sandbox(&self) -> SandboxWish {
        match self.config.sandbox.as_deref() {
            Some("require") => SandboxWish::Require,
            Some("off") => SandboxWish::Off,
            _ => SandboxWish::Auto,
        }
    }

    /// Whether developers are confined, too.
    pub(super) fn confines_developers(&self) -> bool {
        let developer = self.config.agents.developer.as_ref();
        developer.and_then(AgentEntry::sandbox) == Some(true)
    }

    /// The remote to fetch from and push to.
    pub(super) fn remote(&self) -> &str {
        self.config.remote.as_deref().unwrap_or("origin")
    }

    /// The machine's budgets and choices.
    pub(super) fn limits(&self, plan_only: bool) -> Limits {
        let default = Limits::default();
        let table = &self.config.limits;
        Limits {
            stuck_retries: table.stuck_retries.unwrap_or(default.stuck_retries),
            revisions: table.revisions.unwrap_or(default.revisions),
            malformed: table.malformed.unwrap_or(default.malformed),
            reopens: default.reopens,
            refactor: match self.config.cycle.refactor.as_deref() {
                Some("end") => RefactorWhen::End,
                Some("off") => RefactorWhen::Off,
                _ => RefactorWhen::Step,
            },
            plan_only,
        }
    }

    /// How long a suite or an extra check may take, from what it took.
    pub(super) fn suite_timeout(&self, took: Option<Took>) -> Duration {
        if let Some(seconds) = self.config.tests.timeout {
            return Duration::from_secs(seconds);
        }
        let Some(took) = took else {
            return BASELINE_TIMEOUT;
        };
        let floor = if took.measured {
            SUITE_TIMEOUT_FLOOR
        } else {
            REMEMBERED_FLOOR
        };
        floor.max(Duration::from_millis(took.longest_ms.saturating_mul(3)))
    }

    /// How long a commit hook may take.
    pub(super) fn hook_deadline(&self) -> Duration {
        Duration::from_secs(self.config.limits.hook_timeout.unwrap_or(300))
    }

    /// How many bytes of output prompts and comments quote.
    pub(super) fn tail_bytes(&self) -> usize {
        self.config
            .limits
            .tail_kib
            .unwrap_or(16)
            .saturating_mul(1024)
    }

    /// How many bytes of a leaf's output are kept.
    pub(super) fn output_cap(&self) -> u64 {
        self.config
            .limits
            .output_mib
            .unwrap_or(256)
            .saturating_mul(1024 * 1024)
    }

    /// How many bytes a file of a candidate may have.
    pub(super) fn max_file_bytes(&self) -> u64 {
        self.config
            .limits
            .max_file_mib
            .unwrap_or(5)
            .saturating_mul(1024 * 1024)
    }

    /// How many steps a plan may have.
    pub(super) fn max_steps(&self) -> usize {
        self.config.limits.max_steps.unwrap_or(12)
    }

    /// Whether steps without a test are refused.
    pub(super) fn no_test_forbidden(&self) -> bool {
        self.config.plan.no_test.as_deref() == Some("forbid")
    }

    pub(super) fn entry(&self, role: Role) -> Option<&AgentEntry> {
        let agents = &self.config.agents;
        match role {
            Role::Planner => agents.planner.as_ref(),
            Role::Developer => agents.developer.as_ref(),
            Role::Verifier => agents.verifier.as_ref(),
        }
    }

    /// The agent that a role wants.
    pub(super) fn agent(&self, role: Role) -> Wanted {
        let agents = &self.config.agents;
        let mut wanted = match self.entry(role) {
            // Without a word about it, an agent named `command` in the file serves every role.
            None if agents.command.is_some() => Wanted {
                name: "command".into(),
                ..Wanted::default()
            },
            // None is chosen.
            None => Wanted::default(),
            Some(AgentEntry::Name(name)) => Wanted {
                name: name.clone(),
                ..Wanted::default()
            },
            Some(AgentEntry::Table(table)) => Wanted {
                name: table.r#use.clone(),
                model: table.model.clone(),
                args: table.args.clone(),
                ..Wanted::default()
            },
        };
        if let Some(command) = &agents.command {
            wanted.command_argv.clone_from(&command.argv);
        }
        wanted
    }
}

pub(super) fn absolute(word: &str, prefix: &str, folder: &Path) -> String {
    match word.strip_prefix(prefix) {
        Some(path) if !path.is_empty() && !path.starts_with('~') => {
            let path = folder.join(path);
            // What is there already is named without detours; what is not is made later.
            format!("{prefix}{}", path.canonicalize().unwrap_or(path).display())
        }
        _ => word.to_owned(),
    }
}

/// A program that is named by a path means the one that is there now; a bare name is looked up on PATH.
pub(super) fn absolute_command(word: &str, folder: &Path) -> String {
    match word.strip_prefix("command:") {
        Some(path) if path.contains('/') => absolute(word, "command:", folder),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(timeout: Option<u64>) -> Settings {
        let mut config = Config::default();
        config.tests.timeout = timeout;
        Settings {
            config,
            trust: None,
        }
    }

    #[test]
    fn a_command_has_as_long_as_is_known_of_it_and_of_no_other() {
        let took = |longest_ms, measured| {
            let took = Took {
                longest_ms,
                measured,
            };
            settings(None).suite_timeout(Some(took)).as_secs()
        };
        let unknown = settings(None).suite_timeout(None).as_secs();
        assert_eq!(
            unknown, 7200,
            "an extra check at baseline is not measured by the suite"
        );
        assert_eq!(took(1_000, true), 120);
        assert_eq!(took(100_000, true), 300);
        assert_eq!(
            took(1_000, false),
            900,
            "it may have been warm, and is cold now"
        );
        assert_eq!(took(600_000, false), 1800);
        assert_eq!(settings(Some(7)).suite_timeout(None).as_secs(), 7);
    }
}
