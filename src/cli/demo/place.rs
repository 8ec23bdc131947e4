//! The demo's folder: a repository, a directory forge beside it, the agent, and veri's own folder. Nothing outside
//! of it is written, and no configuration of the person's has a say in it.

use super::super::demo_agent::COMMAND as AGENT;
use crate::agent;
use crate::cause::{Bail, Cause};
use crate::conductor::{Ask, IssueArg};
use crate::config::Env;
use crate::tool::{Tool, ToolEnd};
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The issue that is worked on.
pub(super) const ISSUE: u64 = 42;

/// Written last, so that a folder that has it is whole; holds the seconds that a leaf may take.
const MARKER: &str = ".veri-demo";

/// The shortest time that a leaf is given, in seconds: the demo waits that long for the one that hangs.
const LEAF_SECONDS: u64 = 3;

/// The longest that the project's suite may take before the demo is given up.
const SUITE_DEADLINE: Duration = Duration::from_secs(10 * 60);

/// The moment of the first commit, always the same: so are then the ids of all trees that name it.
const FIRST_COMMIT: &str = "2026-01-05T09:00:00+00:00";

/// The project's files: path and text.
const PROJECT: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("bank/manifest.toml")),
    ("Cargo.lock", include_str!("bank/lock.toml")),
    ("README.md", include_str!("bank/readme.md")),
    (".gitignore", "/target\n"),
    (".veri.toml", include_str!("bank/veri.toml")),
    ("src/lib.rs", include_str!("bank/lib.rs")),
    ("tests/transfers.rs", include_str!("bank/transfers.rs")),
];

/// The folder of a demo.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    env: Env,
    program: PathBuf,
    /// Seconds that a leaf may take.
    timeout: u64,
    /// Whether an earlier demo goes on here.
    pub(super) taken_up: bool,
}

impl Place {
    /// A new temporary folder.
    ///
    /// # Errors
    /// As [`Place::at`].
    pub(super) fn fresh(env: &Env) -> Result<Place> {
        let folder = tempfile::Builder::new()
            .prefix("veri-demo-")
            .tempdir()
            .map_err(|e| storage("cannot make a temporary folder", &e))?;
        // It stays, whatever comes: there is something to look at.
        Place::at(&folder.keep(), env)
    }

    /// A folder that is new, empty, or an earlier demo's.
    ///
    /// # Errors
    /// `needs-user` when the folder holds something else, or git or a Rust toolchain is missing; `storage-failed` when
    /// it cannot be written.
    pub(super) fn at(folder: &Path, env: &Env) -> Result<Place> {
        fs::create_dir_all(folder)
            .and_then(|()| folder.canonicalize())
            .map_err(|e| storage(&format!("cannot make the folder {}", folder.display()), &e))
            .and_then(|folder| Place::open(folder, env))
    }

    fn open(folder: PathBuf, env: &Env) -> Result<Place> {
        let program = std::env::current_exe()
            .and_then(|program| program.canonicalize())
            .context("finding the path of this program")?;
        let mut place = Place {
            env: own_environment(env, &folder),
            folder,
            program,
            timeout: LEAF_SECONDS,
            taken_up: false,
        };
        if let Ok(marker) = fs::read_to_string(place.folder.join(MARKER)) {
            place.timeout = marker.trim().parse().unwrap_or(LEAF_SECONDS);
            place.taken_up = true;
            return Ok(place);
        }
        let mut entries = fs::read_dir(&place.folder)
            .map_err(|e| storage(&format!("cannot read {}", place.folder.display()), &e))?;
        if entries.next().is_some() {
            return Err(Bail::needs_user(format!(
                "{} is neither empty nor a demo: name another folder with --keep, or leave it out.",
                place.folder.display()
            ))
            .into());
        }
        place
            .write_files()
            .map_err(|e| storage("cannot write the demo's files", &e))?;
        place.make_repository()?;
        let suite = place.first_suite()?;
        place.timeout = match env.text("VERI_TIMEOUT").map(str::parse) {
            Some(Ok(seconds)) => seconds,
            // On a slow machine a verifier, which runs the suite, must not look like one that hangs.
            _ => LEAF_SECONDS.max(4 * (suite.as_secs() + 1)),
        };
        fs::write(place.folder.join(MARKER), place.timeout.to_string())
            .map_err(|e| storage("cannot write the demo's files", &e))?;
        Ok(place)
    }

    /// The person's repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.folder.join("bank")
    }

    /// The directory forge.
    pub(super) fn forge(&self) -> PathBuf {
        self.folder.join("forge")
    }

    /// The demo's VERI_HOME.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("veri-home")
    }

    /// The program, as a person would type it: `veri` where the shell finds this one.
    pub(super) fn program_word(&self) -> String {
        let path = self.env.get("PATH").unwrap_or_default();
        let found = std::env::split_paths(path)
            .map(|folder| folder.join("veri"))
            .find(|program| program.is_file());
        match found.and_then(|program| program.canonicalize().ok()) {
            Some(found) if found == self.program => "veri".to_owned(),
            _ => shell_word(&self.program),
        }
    }

    /// The environment of everything in the demo.
    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// What comes after `veri` on the conductor's command line.
    pub(super) fn arguments(&self) -> [String; 4] {
        let [issue, timeout] = [ISSUE, self.timeout].map(|n| n.to_string());
        ["tdd".into(), issue, "--timeout".into(), timeout]
    }

    /// The same as the conductor is asked it.
    pub(super) fn ask(&self) -> Ask {
        Ask {
            env: self.env.clone(),
            folder: self.repository(),
            program: self.program.clone(),
            issue: IssueArg::Number(ISSUE),
            forge: None,
            agent: None,
            planner: None,
            developer: None,
            verifier: None,
            test_command: None,
            checks: Vec::new(),
            base: None,
            remote: None,
            here: false,
            plan: None,
            plan_only: false,
            timeout: Some(self.timeout),
            trust: None,
            reset_budgets: false,
            new_templates: false,
        }
    }

    /// What is said before the run.
    pub(super) fn opening(&self) -> String {
        let what = if self.taken_up {
            "goes on in"
        } else {
            "is played in"
        };
        format!(
            "The demo {what} {}:\n\n\
             \x20 bank/                     a repository: a small Rust library with two tests\n\
             \x20 forge/issues/{ISSUE}/issue.md  what is asked for, in three criteria: a daily limit is to be held to\n\
             \x20 agent                     writes and judges by a script; everything else is real\n\n{}",
            self.folder.display(),
            self.command_line()
        )
    }

    /// The conductor's command line, as a person would type it.
    pub(super) fn command_line(&self) -> String {
        format!(
            "$ cd {} && export VERI_HOME={}\n$ {} {}\n\n",
            shell_word(&self.repository()),
            shell_word(&self.home()),
            self.program_word(),
            self.arguments().join(" ")
        )
    }

    fn write_files(&self) -> std::io::Result<()> {
        for (path, text) in PROJECT {
            write(&self.repository().join(path), text)?;
        }
        let issue = self.forge().join(format!("issues/{ISSUE}/issue.md"));
        write(&issue, include_str!("bank/issue.md"))?;
        let agent = self.folder.join("agent");
        let program = shell_word(&self.program);
        write(&agent, &format!("#!/bin/sh\nexec {program} {AGENT}\n"))?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))
    }

    /// One commit on main; the identity is the repository's own.
    fn make_repository(&self) -> Result<()> {
        let settings = ["user.name=Robin Banks", "user.email=robin@bank.example"];
        self.git(&["init", "--quiet", "--initial-branch=main"])?;
        for (key, value) in settings.iter().filter_map(|s| s.split_once('=')) {
            self.git(&["config", key, value])?;
        }
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message=A small bank"])
    }

    fn git(&self, args: &[&str]) -> Result<()> {
        let date = [
            ("GIT_AUTHOR_DATE", FIRST_COMMIT),
            ("GIT_COMMITTER_DATE", FIRST_COMMIT),
        ];
        let ran = self
            .tool("git")
            .args(args)
            .env(date[0].0, date[0].1)
            .env(date[1].0, date[1].1)
            .run()
            .map_err(|e| missing("git", &e))?;
        match ran.end {
            ToolEnd::Code(0) => Ok(()),
            _ => Err(anyhow!(Bail::new(
                Cause::GitFailed,
                format!("git {}: {}", args.join(" "), ran.stderr_text())
            ))),
        }
    }

    /// Shows that the toolchain works here, and how long the suite takes.
    fn first_suite(&self) -> Result<Duration> {
        let started = Instant::now();
        let ran = self
            .tool("cargo")
            .args(["test", "--quiet", "--offline"])
            .deadline(SUITE_DEADLINE)
            .run()
            .map_err(|e| missing("cargo", &e))?;
        match ran.end {
            ToolEnd::Code(0) => Ok(started.elapsed()),
            _ => Err(Bail::needs_user(format!(
                "The demo's project does not pass its tests before anything has begun. The demo needs a Rust toolchain \
                 and a C compiler; cargo says:\n{}",
                ran.stderr_text()
            ))
            .into()),
        }
    }

    fn tool(&self, program: &str) -> Tool {
        let env = agent::suite(self.env.all(), &[]);
        let tool = Tool::new(program).dir(self.repository()).env_clear();
        env.iter()
            .fold(tool, |tool, (name, value)| tool.env(name, value))
    }
}

/// A path as one word of a shell's command line.
pub(super) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// The person's environment without what configures git and veri for other repositories than this.
fn own_environment(env: &Env, folder: &Path) -> Env {
    let kept = env.all().iter().filter(|(name, _)| {
        let name = name.as_encoded_bytes();
        name == b"VERI_CRASH_AT" || !(name.starts_with(b"VERI_") || name.starts_with(b"GIT_"))
    });
    let own: [(&str, PathBuf); 4] = [
        ("VERI_HOME", folder.join("veri-home")),
        ("XDG_CONFIG_HOME", folder.join("veri-home/config")),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
    ];
    let own = own.map(|(name, value)| (name.into(), value.into_os_string()));
    Env::of(
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .chain(own),
    )
}

fn missing(program: &str, error: &std::io::Error) -> anyhow::Error {
    Bail::needs_user(format!(
        "The demo needs git, a Rust toolchain and a C compiler; {program} cannot be run: {error}."
    ))
    .into()
}

fn storage(what: &str, error: &std::io::Error) -> anyhow::Error {
    Bail::new(Cause::StorageFailed, format!("{what}: {error}.")).into()
}
