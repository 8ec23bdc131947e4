//! What is handed to the supervisor for one leaf. Each role has its own way in, which takes that role's prompt and no other.

use super::environment::{self, Env, Leaf};
use super::select::{Agent, Streaming};
use crate::blind::{Hidden, VerifierPrompt};
use crate::leaf::Sandbox;
use crate::prompt::{DeveloperPrompt, Nonce, PlannerPrompt, Templates};
use crate::role::{Phase, Role};
use anyhow::Context;
use git2::Oid;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What launches of every role have in common.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The environment that veri was started with.
    pub caller: &'a Env,
    /// What `ground.env_file` and `ground.pass_env` declare.
    pub declared: &'a [(OsString, OsString)],
    /// The issue's number.
    pub issue: u64,
    /// The command that runs the tests.
    pub test_command: &'a str,
    /// The snapshot in force.
    pub skill_commit: Oid,
    /// The leaf's effective timeout.
    pub timeout: Duration,
    /// The role's working folder.
    pub cwd: &'a Path,
    /// Where the prompt is written, for the leaf's standard input.
    pub prompt: &'a Path,
    /// Where its standard output goes.
    pub stdout: &'a Path,
    /// Where its standard error goes.
    pub stderr: &'a Path,
}

/// What closes a verifier off.
#[derive(Debug, Clone, Copy)]
pub struct Seclusion<'a> {
    /// The folders that nothing it gets may lead to.
    pub hidden: &'a Hidden,
    /// Its own temporary folder, outside them; made when it is not there.
    pub temp: &'a Path,
}

/// A leaf ready for the supervisor: made by the three functions of this room alone.
#[derive(Debug)]
pub struct Launch {
    role: Role,
    phase: Phase,
    argv: Vec<OsString>,
    cwd: PathBuf,
    env: Env,
    stdin: PathBuf,
    stdout: PathBuf,
    stderr: PathBuf,
    streaming: Option<Streaming>,
    sandbox: Option<Sandbox>,
}

/// A launch of a planner; its prompt is written.
///
/// # Errors
/// When the prompt cannot be written.
pub fn planner_launch(
    agent: &Agent,
    prompt: &PlannerPrompt,
    place: &Place<'_>,
) -> anyhow::Result<Launch> {
    let leaf = Leaf {
        nonce: Some(prompt.nonce().as_str()),
        ..place.leaf(Role::Planner, Phase::Plan)
    };
    let env = environment::open(place.caller, place.declared, &leaf);
    place.launch(agent, &leaf, env, prompt.text())
}

/// A launch of a developer; its prompt is written.
///
/// # Errors
/// When the prompt cannot be written.
pub fn developer_launch(
    agent: &Agent,
    prompt: &DeveloperPrompt,
    place: &Place<'_>,
) -> anyhow::Result<Launch> {
    let leaf = Leaf {
        step: prompt.step_title(),
        attempt: Some(prompt.attempt()),
        ..place.leaf(Role::Developer, prompt.phase())
    };
    let env = environment::open(place.caller, place.declared, &leaf);
    place.launch(agent, &leaf, env, prompt.text())
}

/// A launch of a verifier; its prompt is rendered and written. There is no other way to launch one.
///
/// # Errors
/// When the prompt cannot be rendered or written, or the temporary folder not made.
pub fn verifier_launch(
    agent: &Agent,
    prompt: &VerifierPrompt,
    templates: &Templates,
    nonce: &Nonce,
    seclusion: &Seclusion<'_>,
    place: &Place<'_>,
) -> anyhow::Result<Launch> {
    let leaf = Leaf {
        step: prompt.step_title(),
        nonce: Some(nonce.as_str()),
        ..place.leaf(Role::Verifier, prompt.claim().phase())
    };
    let Seclusion { hidden, temp } = seclusion;
    fs::create_dir_all(temp)
        .with_context(|| format!("making the verifier's folder {}", temp.display()))?;
    let env = environment::secluded(
        place.caller,
        place.declared,
        agent.credentials(),
        hidden,
        temp,
        &leaf,
    );
    let text = prompt
        .render(templates, nonce, hidden)
        .context("writing the verifier's prompt")?;
    place.launch(agent, &leaf, env, &text)
}

impl<'a> Place<'a> {
    fn leaf(&self, role: Role, phase: Phase) -> Leaf<'a> {
        Leaf {
            role,
            phase,
            issue: self.issue,
            step: "",
            test_command: self.test_command,
            skill_commit: self.skill_commit,
            nonce: None,
            attempt: None,
            timeout: self.timeout,
            cwd: self.cwd,
        }
    }

    fn launch(
        &self,
        agent: &Agent,
        leaf: &Leaf<'_>,
        env: Env,
        prompt: &str,
    ) -> anyhow::Result<Launch> {
        write_private(self.prompt, prompt)
            .with_context(|| format!("writing the prompt {}", self.prompt.display()))?;
        Ok(Launch {
            role: leaf.role,
            phase: leaf.phase,
            argv: agent.argv().to_vec(),
            cwd: self.cwd.to_owned(),
            env,
            stdin: self.prompt.to_owned(),
            stdout: self.stdout.to_owned(),
            stderr: self.stderr.to_owned(),
            streaming: agent.streaming(),
            sandbox: None,
        })
    }
}

impl Launch {
    /// The same in a sandbox, with variables that lead to where it can write.
    pub fn confined(
        mut self,
        sandbox: Sandbox,
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Launch {
        self.env.extend(env);
        self.sandbox = Some(sandbox);
        self
    }

    /// What it is confined to, if to anything.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Who the leaf is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The phase it works in.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The command line; the program comes first, as an absolute path.
    pub fn argv(&self) -> &[OsString] {
        &self.argv
    }

    /// The working folder.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The whole environment, but for `VERI_LAUNCH`, which the supervisor adds.
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        self.env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The file that its standard input is read from: the prompt.
    pub fn stdin(&self) -> &Path {
        &self.stdin
    }

    /// Where its standard output goes.
    pub fn stdout(&self) -> &Path {
        &self.stdout
    }

    /// Where its standard error goes.
    pub fn stderr(&self) -> &Path {
        &self.stderr
    }

    /// How the agent streams, if it does.
    pub fn streaming(&self) -> Option<&Streaming> {
        self.streaming.as_ref()
    }
}

/// Writes a file for this user alone, as a new one: a link that lies in its place is replaced and not followed.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
