//! What the configuration files may say. An unknown key is an error that names the nearest known one.

use super::agents::Agents;
use super::ranges::{MAX_SECONDS, within};
use crate::suite::TestPaths;
use crate::untrusted::given;
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The largest size that may be set: a TiB, in MiB.
const MAX_MIB: u64 = 1 << 20;

/// The longest output that may be quoted: a GiB, in KiB.
const MAX_KIB: u64 = 1 << 20;

/// Everything that the files may set. Absent means the default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The branch that issues are worked on from.
    pub base: Option<String>,
    /// The remote to fetch from and push to (origin).
    pub remote: Option<String>,
    /// Where issues live: `"dir:PATH"`, or a table with `at` and whom to trust.
    pub forge: Option<ForgeConfig>,
    /// `"step"` (default) or `"end"`: when finished commits are pushed.
    pub push: Option<String>,
    /// `"draft"` (default), `"ready"` or `"none"`.
    pub pull_request: Option<String>,
    /// `"run"` (default: one comment a run) or `"off"`.
    pub mirror: Option<String>,
    /// Extra commands that must pass: lint, types, format.
    pub checks: Vec<String>,
    /// `"auto"` (default), `"require"` or `"off"`: whether verifiers are confined by the kernel.
    pub sandbox: Option<String>,
    /// Further folders that confined leaves can write to.
    pub sandbox_write: Vec<String>,
    /// The test suite.
    pub tests: Tests,
    /// The proving ground.
    pub ground: Ground,
    /// Budgets.
    pub limits: LimitsTable,
    /// The plan.
    pub plan: PlanTable,
    /// The cycle of a step.
    pub cycle: Cycle,
    /// Commits.
    pub commit: Commit,
    /// Which agent has which role.
    pub agents: Agents,
}

/// The test suite.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tests {
    /// The command, run by `sh -c` in the root of a clean checkout.
    pub command: Option<String>,
    /// Seconds that a run may take; default 2 hours at baseline, then three times what that took.
    pub timeout: Option<u64>,
    /// Globs of files that count as tests, beside the usual ones.
    pub paths: Vec<String>,
    /// `"list"` (default) or `"forbid"`: lines outside tests in a red.
    pub red_stubs: Option<String>,
}

/// The proving ground.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ground {
    /// Commands that make the ground's own dependency folders; absent means detected.
    pub setup: Option<Vec<String>>,
    /// A file of the checkout (such as `.env`) that is copied into grounds.
    pub env_file: Option<String>,
    /// Names of variables that suites, developers and verifiers get.
    pub pass_env: Vec<String>,
    /// A command that runs before every suite (reset the database).
    pub before_suite: Option<String>,
    /// Commands that run beside everything else from before the first suite to the end of the run.
    pub services: Vec<String>,
    /// `"prove"` (default) or `"trust"`.
    pub isolation: Option<String>,
}

/// Budgets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// Seconds that a leaf may take; default max(900, four times the suite).
    pub timeout: Option<u64>,
    /// Seconds until a leaf that streams must have written something (120).
    pub first_sign: Option<u64>,
    /// Seconds that a leaf that streams may be silent (480).
    pub idle: Option<u64>,
    /// Seconds that a leaf that streams may go on after its final result (30).
    pub lingering: Option<u64>,
    /// Seconds that whatever is ended has between TERM and KILL (5).
    pub grace: Option<u64>,
    /// Relaunches of a leaf that was killed as stuck (2).
    pub stuck_retries: Option<u32>,
    /// Revisions of a phase (3).
    pub revisions: Option<u32>,
    /// Malformed answers in a row that are asked again (1).
    pub malformed: Option<u32>,
    /// Steps of a plan (12).
    pub max_steps: Option<usize>,
    /// MiB that a file of a candidate may have (5).
    pub max_file_mib: Option<u64>,
    /// KiB of output that prompts and comments quote (16).
    pub tail_kib: Option<usize>,
    /// MiB of output of a leaf that are kept (256).
    pub output_mib: Option<u64>,
    /// Minutes that a run may take, at a leaf boundary; default none.
    pub wall_minutes: Option<u64>,
    /// Seconds that a commit hook may take (300).
    pub hook_timeout: Option<u64>,
}

/// The plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanTable {
    /// `"allow"` (default) or `"forbid"`: steps without a test.
    pub no_test: Option<String>,
}

/// The cycle of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cycle {
    /// `"step"` (default), `"end"` or `"off"`.
    pub refactor: Option<String>,
}

/// Commits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Commit {
    /// A template of subjects: `{{ subject }}`, `{{ issue }}`, `{{ phase }}`.
    pub subject: Option<String>,
}

/// The forge: its address alone, or with more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ForgeConfig {
    /// `"dir:PATH"` or `"github:OWNER/NAME"`.
    Address(String),
    /// A table.
    Table(ForgeTable),
}

/// The forge's table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ForgeTable {
    /// `"dir:PATH"` or `"github:OWNER/NAME"`.
    pub at: Option<String>,
    /// Whose text counts beside that of people with write access.
    pub trusted_authors: Vec<String>,
    /// `"run"` (default), `"members"` or `"anyone"`.
    pub trust: Option<String>,
}

impl Config {
    /// The forge's address, if one is configured.
    pub fn forge_address(&self) -> Option<&str> {
        match self.forge.as_ref()? {
            ForgeConfig::Address(address) => Some(address),
            ForgeConfig::Table(table) => table.at.as_deref(),
        }
    }

    /// The forge's table, empty when only an address is configured.
    pub fn forge_table(&self) -> ForgeTable {
        match &self.forge {
            Some(ForgeConfig::Table(table)) => table.clone(),
            _ => ForgeTable::default(),
        }
    }

    /// Refuses words that are not of a setting's set, numbers that nothing can be measured with, and globs that
    /// cannot be read.
    ///
    /// # Errors
    /// Names the key, what it is set to, and what it may be; or the glob.
    pub fn check(&self) -> Result<()> {
        let table = self.forge_table();
        let words: [(&str, &Option<String>, &[&str]); 9] = [
            ("push", &self.push, &["step", "end"]),
            (
                "pull_request",
                &self.pull_request,
                &["draft", "ready", "none"],
            ),
            ("mirror", &self.mirror, &["run", "off"]),
            ("sandbox", &self.sandbox, &["auto", "require", "off"]),
            (
                "tests.red_stubs",
                &self.tests.red_stubs,
                &["list", "forbid"],
            ),
            (
                "ground.isolation",
                &self.ground.isolation,
                &["prove", "trust"],
            ),
            ("plan.no_test", &self.plan.no_test, &["allow", "forbid"]),
            (
                "cycle.refactor",
                &self.cycle.refactor,
                &["step", "end", "off"],
            ),
            ("forge.trust", &table.trust, &["run", "members", "anyone"]),
        ];
        for (key, value, known) in words {
            if let Some(value) = value
                && !known.contains(&value.as_str())
            {
                return Err(anyhow!(
                    "the configuration says {key} = {value:?}; it may be one of {}",
                    known.join(", ")
                ));
            }
        }
        self.agents.check()?;
        let limits = &self.limits;
        let quoted = limits.tail_kib.map(|kib| kib as u64);
        for (key, value, least, most) in [
            ("limits.timeout", limits.timeout, 1, MAX_SECONDS),
            ("limits.first_sign", limits.first_sign, 1, MAX_SECONDS),
            ("limits.idle", limits.idle, 1, MAX_SECONDS),
            ("limits.lingering", limits.lingering, 0, MAX_SECONDS),
            ("limits.grace", limits.grace, 0, MAX_SECONDS),
            ("limits.hook_timeout", limits.hook_timeout, 1, MAX_SECONDS),
            ("tests.timeout", self.tests.timeout, 1, MAX_SECONDS),
            (
                "limits.wall_minutes",
                limits.wall_minutes,
                0,
                MAX_SECONDS / 60,
            ),
            ("limits.max_file_mib", limits.max_file_mib, 0, MAX_MIB),
            ("limits.output_mib", limits.output_mib, 0, MAX_MIB),
            ("limits.tail_kib", quoted, 0, MAX_KIB),
        ] {
            within(key, value, least, most)?;
        }
        TestPaths::new(&self.tests.paths, "").map(drop)
    }
}

/// The most that a configuration file may have, in bytes.
const LARGEST: u64 = 1 << 20;

/// Reads both files, the repository's over the user's; files that are not there count as empty.
///
/// # Errors
/// When a file cannot be read, is not TOML, or says something that is not known.
pub fn load(repository: Option<&Path>, user: Option<&Path>) -> Result<Config> {
    let mut merged = toml::Table::new();
    for path in [user, repository].into_iter().flatten() {
        let text = match given(path, LARGEST) {
            Ok(text) => String::from_utf8(text).map_err(|e| {
                let at = e.utf8_error().valid_up_to();
                anyhow!(
                    "the configuration file {} is not UTF-8 at byte {at}",
                    path.display()
                )
            })?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => {
                return Err(e).with_context(|| {
                    format!("cannot read the configuration file {}", path.display())
                });
            }
        };
        let table: toml::Table = toml::from_str(&text)
            .with_context(|| format!("the configuration file {} is not TOML", path.display()))?;
        // Each file by itself, so that an error names the right one.
        read(table.clone())
            .with_context(|| format!("in the configuration file {}", path.display()))?;
        merge(&mut merged, table);
    }
    read(merged)
}

fn read(table: toml::Table) -> Result<Config> {
    let config: Config =
        serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
            anyhow!(explain(
                &error.path().to_string(),
                &error.inner().to_string()
            ))
        })?;
    config.check()?;
    Ok(config)
}

fn merge(into: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Adds the nearest known key to serde's message about an unknown one.
fn explain(path: &str, message: &str) -> String {
    let at = if path == "." || path.is_empty() {
        String::new()
    } else {
        format!(" (at {path})")
    };
    let mut names = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field")
        && let Some(unknown) = names.next()
        && let Some(nearest) = names.min_by_key(|known| strsim::levenshtein(unknown, known))
    {
        return format!("the key `{unknown}` is not known{at}; did you mean `{nearest}`?");
    }
    // In the file's words, not in those of this program's types; the place is said once.
    let first = message.trim().lines().next().unwrap_or_default();
    let (said, expected) = first.split_once(", expected ").unwrap_or((first, ""));
    let expected = match expected {
        "" => return format!("{first}{at}"),
        "u32" | "u64" | "usize" => "a whole number",
        "struct CommandAgent" => "a table, as in `agents.command.argv = [\"../agent\"]`",
        of if of.starts_with("struct ") => "a table",
        "a sequence" => "a list",
        other => other,
    };
    format!("{said}, expected {expected}{at}")
}

#[cfg(test)]
mod tests;
