//! Which agent a role runs, found and made safe before the first leaf.

use crate::cause::{Bail, Cause};
use crate::leaf::Sign;
use anyhow::Context;
use nix::unistd::{AccessFlags, access};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// What config and flags ask for, for one role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The agent's name (`use`), or `command:PATH`.
    pub name: String,
    /// The model, where the agent takes one.
    pub model: Option<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// `[agents.command] argv`, for the name `command`.
    pub command_argv: Vec<String>,
    /// The names of the environment variables that carry the agent's credentials: a verifier gets no others.
    pub credentials: Vec<String>,
}

/// Where agents are looked for, and what leaves can write to.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The folder that relative paths are from.
    pub relative_to: &'a Path,
    /// The folders that leaves can write to or whose content changes under a run: the person's checkout, the working tree.
    pub repository: &'a [PathBuf],
    /// `PATH`.
    pub path: &'a OsStr,
    /// A folder outside the repository for copies; made when needed.
    pub aside: &'a Path,
}

/// An agent that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// Any program: prompt on standard input, answer on standard output.
    Command {
        /// The whole command line; the program comes first, as an absolute path.
        argv: Vec<OsString>,
        /// The names of the variables with its credentials.
        credentials: Vec<String>,
    },
}

/// What is known of an agent that streams what it does: how the supervisor can tell that it is alive, works, waits, or is
/// done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Streaming {
    /// What lines of its standard output mean.
    pub signs: Vec<Sign>,
    /// Where it keeps a transcript, a file or a folder.
    pub transcript: Option<PathBuf>,
}

/// A resolved agent, and what the person should be told about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The agent.
    pub agent: Agent,
    /// One line for each file that was copied aside.
    pub said: Vec<String>,
}

impl Agent {
    /// Finds what is asked for. A program or script of it that lies in the repository is copied aside, so that what a leaf
    /// writes there is not run as the next leaf.
    ///
    /// # Errors
    /// `agent-unavailable` when there is no such program, it is not executable, or the name is of an agent that this
    /// version does not run; storage errors of the copy as they are.
    pub fn select(wanted: &Wanted, origin: Origin<'_>) -> anyhow::Result<Selected> {
        let argv: Vec<OsString> = match wanted.name.strip_prefix("command:") {
            Some("") => {
                return Err(unavailable(
                    "`command:` names no program: write command:./my-agent",
                ));
            }
            Some(program) => vec![program.into()],
            None if wanted.name == "command" => {
                wanted.command_argv.iter().map(Into::into).collect()
            }
            None => return Err(not_yet(&wanted.name)),
        };
        let Some((program, rest)) = argv.split_first() else {
            return Err(unavailable(
                "the agent `command` has no program: set `argv` under [agents.command], or use --agent command:./my-agent",
            ));
        };
        let mut said = Vec::new();
        let mut whole = vec![
            origin
                .keep(&origin.find(program)?, &mut said)?
                .into_os_string(),
        ];
        for arg in rest {
            whole.push(origin.argument(arg, &mut said)?);
        }
        if wanted.model.is_some() {
            said.push("`model` means nothing to the agent `command`; pass it in `args`".to_owned());
        }
        whole.extend(wanted.args.iter().map(OsString::from));
        Ok(Selected {
            agent: Agent::Command {
                argv: whole,
                credentials: wanted.credentials.clone(),
            },
            said,
        })
    }

    /// The whole command line.
    pub fn argv(&self) -> &[OsString] {
        match self {
            Agent::Command { argv, .. } => argv,
        }
    }

    /// How it streams; None for an agent that may be silent to its end.
    pub fn streaming(&self) -> Option<Streaming> {
        match self {
            Agent::Command { .. } => None,
        }
    }

    pub(super) fn credentials(&self) -> &[String] {
        match self {
            Agent::Command { credentials, .. } => credentials,
        }
    }
}

impl Origin<'_> {
    /// The program's absolute path: by path from that folder, by bare name on PATH.
    fn find(&self, program: &OsStr) -> anyhow::Result<PathBuf> {
        if program.as_bytes().contains(&b'/') {
            let path = self.absolute(Path::new(program));
            return match runnable(&path) {
                Ok(()) => Ok(path),
                Err(why) => Err(unavailable(format!("the agent {} {why}", path.display()))),
            };
        }
        std::env::split_paths(self.path)
            .map(|folder| self.absolute(&folder).join(program))
            .find(|path| runnable(path).is_ok())
            .ok_or_else(|| {
                let name = program.to_string_lossy();
                unavailable(format!(
                    "the agent `{name}` is not on PATH: install it, or give its path (./{name})"
                ))
            })
    }

    /// An argument that names a file from that folder (`./agent.py` after `python3`) is found and kept like
    /// the program; any other stays as it is.
    fn argument(&self, arg: &OsStr, said: &mut Vec<String>) -> anyhow::Result<OsString> {
        let path = Path::new(arg);
        let relative = matches!(
            path.components().next(),
            Some(Component::CurDir | Component::ParentDir)
        );
        let absolute = self.absolute(path);
        if (relative || path.is_absolute()) && absolute.is_file() {
            return Ok(self.keep(&absolute, said)?.into_os_string());
        }
        Ok(arg.to_owned())
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        self.relative_to.join(path).components().collect()
    }

    /// The path itself, or that of a copy when it lies in the repository. A link that lies there and leads out is resolved.
    fn keep(&self, path: &Path, said: &mut Vec<String>) -> anyhow::Result<PathBuf> {
        let real = fs::canonicalize(path)
            .with_context(|| format!("resolving the agent {}", path.display()))?;
        if !self.in_repository(&real) {
            return Ok(if self.in_repository(path) {
                real
            } else {
                path.to_owned()
            });
        }
        let copy = self.copy(&real).with_context(|| {
            format!(
                "copying the agent {} to {}",
                real.display(),
                self.aside.display()
            )
        })?;
        said.push(format!(
            "the agent {} lies in the repository: this run uses a copy of that one file, {}; files beside it are not copied",
            path.display(),
            copy.display()
        ));
        Ok(copy)
    }

    fn in_repository(&self, path: &Path) -> bool {
        self.repository.iter().any(|folder| {
            path.starts_with(folder)
                || fs::canonicalize(folder).is_ok_and(|real| path.starts_with(real))
        })
    }

    /// Copies by content: the name carries a hash, and the copy is put in place whole, also over one that was tampered with or
    /// is being run.
    fn copy(&self, real: &Path) -> anyhow::Result<PathBuf> {
        let mut program = fs::File::open(real)?;
        let hash = crate::hash::of_reader(&mut program)?;
        program.rewind()?;
        let mut name = OsString::from(format!("{hash:.12}-"));
        name.push(real.file_name().unwrap_or_default());
        fs::create_dir_all(self.aside)?;
        let copy = self.aside.join(name);
        let file = tempfile::NamedTempFile::new_in(self.aside)?;
        io::copy(&mut program, &mut file.as_file())?;
        fs::set_permissions(file.path(), fs::metadata(real)?.permissions())?;
        // The handle that is open for writing goes first: a program with a writer cannot be run (ETXTBSY).
        file.into_temp_path().persist(&copy)?;
        Ok(copy)
    }
}

fn runnable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Err(error) => Err(format!("cannot be used: {error}")),
        Ok(about) if !about.is_file() => Err("is not a file".to_owned()),
        Ok(_) if access(path, AccessFlags::X_OK).is_err() => {
            Err(format!("is not executable: chmod +x {}", path.display()))
        }
        Ok(_) => Ok(()),
    }
}

fn unavailable(detail: impl Into<String>) -> anyhow::Error {
    Bail::new(Cause::AgentUnavailable, detail).into()
}

fn not_yet(name: &str) -> anyhow::Error {
    if name.is_empty() {
        return unavailable(
            "no agent is chosen: name one with --agent command:./my-agent (a program that reads a prompt on standard \
             input and writes its answer to standard output), or say under [agents] in .veri.toml which it is",
        );
    }
    if name.contains('/') {
        return unavailable(format!(
            "the agent `{name}` is a path: write `command:{name}`, with `command:` before it"
        ));
    }
    unavailable(format!(
        "the agent `{name}` is not one that this version runs: it runs agents through `command`, any program that reads \
         the prompt on stdin and writes its answer to stdout. Put a few lines of shell around it (the README, under \
         Agents, has such a wrapper), make that executable, and name it: --agent command:./my-agent"
    ))
}

#[cfg(test)]
mod tests;
