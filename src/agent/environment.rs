//! The environment of leaves and suites: pure functions over the one that veri was started with.

use crate::blind::Hidden;
use crate::role::{Phase, Role};
use git2::Oid;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

/// A whole environment: name and value.
pub type Env = BTreeMap<OsString, OsString>;

/// Variables of `git` that describe and do not redirect it; every other `GIT_…` is removed.
const GIT_KEPT: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_EXEC_PATH",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// Names removed from all: the ways to a forge that no pattern covers, the agents of SSH, build folders set by environment,
/// and what a shell or `cargo run` left behind.
const REMOVED: &[&str] = &[
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "AZURE_DEVOPS_EXT_PAT",
    "SYSTEM_ACCESSTOKEN",
    "CI_JOB_JWT",
    "CI_JOB_JWT_V2",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "SSH_AUTH_SOCK",
    "CARGO_BUILD_BUILD_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_TARGET_DIR",
    "CARGO",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_MANIFEST_PATH",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
    "OLDPWD",
    "_",
];

/// Beginnings of the names of forges' variables; with a word for a secret in it, a name is removed.
const FORGES: &[&str] = &[
    "GH_",
    "GITHUB_",
    "GITLAB_",
    "GL_",
    "GITEA_",
    "FORGEJO_",
    "CODEBERG_",
    "BITBUCKET_",
    "CI_JOB_",
    "CI_REGISTRY_",
];
const SECRETS: &[&str] = &["TOKEN", "PAT", "PASSWORD", "SECRET", "KEY"];

/// What a verifier keeps of the caller's environment, besides `LC_…`: how to find and run programs, nothing about the work.
const VERIFIER_KEEPS: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
    // Toolchain homes and choices.
    "ANDROID_HOME",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CARGO_NET_OFFLINE",
    "COMPOSER_HOME",
    "DENO_DIR",
    "DOTNET_ROOT",
    "FNM_DIR",
    "FNM_MULTISHELL_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GOTOOLCHAIN",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "MAVEN_OPTS",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "NVM_BIN",
    "NVM_DIR",
    "NVM_INC",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "RBENV_ROOT",
    "RBENV_VERSION",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "VOLTA_HOME",
    // The way out to the agent's service.
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Where programs are looked for when nothing of the caller's `PATH` is left.
const PLAIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The committer by whom a leaf's own commits are known.
const LEAF_NAME: &str = "veri leaf";
const LEAF_EMAIL: &str = "leaf@veri.invalid";

/// What every leaf is told by environment.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    pub(super) role: Role,
    pub(super) phase: Phase,
    pub(super) issue: u64,
    /// The step's title; empty while planning.
    pub(super) step: &'a str,
    pub(super) test_command: &'a str,
    pub(super) skill_commit: Oid,
    pub(super) nonce: Option<&'a str>,
    pub(super) attempt: Option<u32>,
    pub(super) timeout: Duration,
    pub(super) cwd: &'a Path,
}

/// The environment of suites, extra checks, setup and hooks: the caller's without what leads to forges, other repositories or
/// other build folders; with what the config declares for all.
pub fn suite(caller: &Env, declared: &[(OsString, OsString)]) -> Env {
    let both = caller.iter().filter(|(name, _)| !is_removed(name));
    let mut env: Env = both
        .chain(kept_of(declared))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    unattended(&mut env);
    env
}

/// The environment of planners and developers.
pub(super) fn open(caller: &Env, declared: &[(OsString, OsString)], leaf: &Leaf<'_>) -> Env {
    let mut env = suite(caller, declared);
    told(&mut env, caller, leaf);
    env
}

/// The environment of verifiers: built from nothing; no value in it leads into a hidden folder.
pub(super) fn secluded(
    caller: &Env,
    declared: &[(OsString, OsString)],
    credentials: &[String],
    hidden: &Hidden,
    temp: &Path,
    leaf: &Leaf<'_>,
) -> Env {
    let named = |name: &OsStr| {
        VERIFIER_KEEPS.iter().any(|kept| name == OsStr::new(kept))
            || name.as_bytes().starts_with(b"LC_")
            || credentials.iter().any(|kept| name == OsStr::new(kept))
    };
    let kept = caller.iter();
    let both = kept
        .filter(|(name, _)| named(name) && !is_removed(name))
        .chain(kept_of(declared));
    let leads_in = |text: &OsStr| hidden.named_in(&text.to_string_lossy());
    let mut env: Env = both
        .filter(|(name, _)| !leads_in(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let path = env
        .remove(OsStr::new("PATH"))
        .unwrap_or_else(|| PLAIN_PATH.into());
    env.retain(|_, value| !leads_in(value));
    env.insert("PATH".into(), without(&path, &leads_in));
    env.entry("HOME".into()).or_insert_with(|| temp.into());
    env.insert("TMPDIR".into(), temp.into());
    // The person's git config can name the checkout (includeIf, safe.directory) and run their aliases.
    env.insert("GIT_CONFIG_GLOBAL".into(), "/dev/null".into());
    env.insert("GIT_CONFIG_NOSYSTEM".into(), "1".into());
    unattended(&mut env);
    let step = hidden.withhold(leaf.step);
    let test_command = hidden.withhold(leaf.test_command);
    told(
        &mut env,
        caller,
        &Leaf {
            step: &step,
            test_command: &test_command,
            attempt: None,
            ..*leaf
        },
    );
    env
}

/// Nobody is there to answer, and nothing waits for a pager.
fn unattended(env: &mut Env) {
    for (name, value) in [
        ("CI", "true"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_EDITOR", "true"),
        ("GIT_SEQUENCE_EDITOR", "true"),
        // An install of dependencies must not point the person's repository at hooks (husky's `prepare`).
        ("HUSKY", "0"),
    ] {
        env.insert(name.into(), value.into());
    }
}

/// The variables of spec for leaves. Shell tools get the leaf's own time limit unless the caller set theirs.
fn told(env: &mut Env, caller: &Env, leaf: &Leaf<'_>) {
    let mut set = |name: &str, value: &str| {
        // An environment cannot hold a NUL; a title from a hand-edited ledger could.
        env.insert(name.into(), value.replace('\0', "\u{fffd}").into());
    };
    set("VERI_ISSUE", &leaf.issue.to_string());
    set("VERI_STEP", leaf.step);
    set("VERI_ROLE", leaf.role.as_str());
    set("VERI_PHASE", leaf.phase.as_str());
    set("VERI_TEST_CMD", leaf.test_command);
    set("VERI_SKILL_COMMIT", &leaf.skill_commit.to_string());
    if let Some(nonce) = leaf.nonce {
        set("VERI_NONCE", nonce);
    }
    if let Some(attempt) = leaf.attempt {
        set("VERI_ATTEMPT", &attempt.to_string());
    }
    for (name, value) in [
        ("GIT_AUTHOR_NAME", LEAF_NAME),
        ("GIT_AUTHOR_EMAIL", LEAF_EMAIL),
        ("GIT_COMMITTER_NAME", LEAF_NAME),
        ("GIT_COMMITTER_EMAIL", LEAF_EMAIL),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.logAllRefUpdates"),
        ("GIT_CONFIG_VALUE_0", "always"),
    ] {
        set(name, value);
    }
    let milliseconds = leaf.timeout.as_millis().to_string();
    for name in ["BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS"] {
        match caller.get(OsStr::new(name)) {
            Some(own) => env.insert(name.into(), own.clone()),
            None => env.insert(name.into(), milliseconds.clone().into()),
        };
    }
    env.insert("PWD".into(), leaf.cwd.into());
}

/// What is declared, without what is removed whoever declares it; the ground's number is veri's own.
fn kept_of(declared: &[(OsString, OsString)]) -> impl Iterator<Item = (&OsString, &OsString)> {
    let kept = |(name, _): &(&OsString, &OsString)| *name == "VERI_SLOT" || !is_removed(name);
    declared
        .iter()
        .map(|(name, value)| (name, value))
        .filter(kept)
}

fn is_removed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let upper = name.to_ascii_uppercase();
    upper.starts_with("VERI_")
        || upper.starts_with("CARGO_PKG_")
        || upper.starts_with("CARGO_BIN_EXE_")
        || (upper.starts_with("GIT_") && !GIT_KEPT.contains(&name))
        || REMOVED.contains(&name)
        || (FORGES.iter().any(|forge| upper.starts_with(forge))
            && SECRETS.iter().any(|secret| upper.contains(secret)))
}

/// The entries of a search path that do not lead in; never empty, which would mean the working folder.
fn without(path: &OsStr, leads_in: &dyn Fn(&OsStr) -> bool) -> OsString {
    let kept: Vec<&[u8]> = path
        .as_bytes()
        .split(|byte| *byte == b':')
        .filter(|entry| !entry.is_empty() && !leads_in(OsStr::from_bytes(entry)))
        .collect();
    if kept.is_empty() {
        PLAIN_PATH.into()
    } else {
        OsString::from_vec(kept.join(&b':'))
    }
}

#[cfg(test)]
mod tests;
