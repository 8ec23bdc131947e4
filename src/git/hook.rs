//! The person's hooks: which there are, whether they can run here, and what the pre-commit hook says.

use super::run;
use super::worktree::WorkTree;
use crate::tool::{ToolEnd, ToolOutput};
use anyhow::Result;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a hook says of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook {
    /// There is none.
    None,
    /// It ran and agreed; what it changed in the working tree belongs to the candidate.
    Passed,
    /// It ran and refused.
    Refused {
        /// Both its streams, the last 16 KiB.
        words: String,
    },
    /// It is configured but cannot run here: no change of the work can mend that.
    Cannot {
        /// Why, and what to do.
        words: String,
    },
    /// It was ended at its deadline.
    TimedOut,
}

impl WorkTree {
    /// Stages everything in an index of veri's own and runs the pre-commit hook on it. Stage again
    /// afterwards: what the hook changed belongs to the candidate.
    ///
    /// # Errors
    /// As `candidate`.
    pub fn pre_commit(&self, deadline: Duration) -> Result<Hook> {
        match self.hook_at_hand("pre-commit")? {
            AtHand::Missing => return Ok(Hook::None),
            AtHand::Cannot(words) => return Ok(Hook::Cannot { words }),
            AtHand::There => {}
        }
        let index = self.staged()?;
        let tool = self
            .git
            .with_hooks(["hook", "run", "--ignore-missing", "pre-commit"])
            .env("GIT_INDEX_FILE", index.file())
            .deadline(deadline);
        let out = run::run(tool, "running the pre-commit hook")?;
        Ok(judge(&out))
    }

    /// Whether a hook exists and can be started.
    pub(super) fn hook_at_hand(&self, name: &str) -> Result<AtHand> {
        let asked = self.git.read(["config", "--get", "core.hooksPath"]);
        let configured = run::run(asked, "looking for hooks")?.success();
        let folder = match configured {
            true => self.hooks_folder()?,
            false => self.common_dir.join("hooks"),
        };
        match fs::metadata(&folder) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Ok(AtHand::Missing), // /dev/null: how hooks are turned off
            Err(_) if configured => {
                return Ok(AtHand::Cannot(format!(
                    "core.hooksPath names {}, which does not exist here. If a set-up step makes it \
                     (npm's `prepare`, for example), give that step as ground.setup or point \
                     core.hooksPath at an absolute path.",
                    folder.display()
                )));
            }
            Err(_) => return Ok(AtHand::Missing),
        }
        let file = folder.join(name);
        let meta = match fs::metadata(&file) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let dangling = fs::symlink_metadata(&file).is_ok();
                return Ok(if dangling {
                    AtHand::Cannot(format!("The hook {} is a link to nothing.", file.display()))
                } else {
                    AtHand::Missing
                });
            }
            Err(e) => {
                return Ok(AtHand::Cannot(format!("The hook {}: {e}.", file.display())));
            }
        };
        if !meta.is_file() {
            let said = format!("The hook {} is no file.", file.display());
            return Ok(AtHand::Cannot(said));
        }
        if meta.permissions().mode() & 0o111 == 0 {
            return Ok(AtHand::Cannot(format!(
                "The hook {0} is not executable, so git would skip it. Make it executable \
                 (chmod +x) or remove it.",
                file.display()
            )));
        }
        Ok(match interpreter(&file) {
            Some(program) if !program.exists() => AtHand::Cannot(format!(
                "The hook {} wants to be run by {}, which does not exist here.",
                file.display(),
                program.display()
            )),
            _ => AtHand::There,
        })
    }

    /// The folder of hooks that core.hooksPath names.
    pub(super) fn hooks_folder(&self) -> Result<PathBuf> {
        let tool = self.git.read(["rev-parse", "--git-path", "hooks"]);
        let out = run::must(tool, "looking for hooks")?;
        // A relative one is relative to the folder in which hooks run: the top.
        Ok(self.path.join(run::stdout_path(&out)))
    }
}

/// Whether a hook can be started.
pub(super) enum AtHand {
    Missing,
    There,
    /// Why not.
    Cannot(String),
}

/// Reads how `git hook run` ended.
pub(super) fn judge(out: &ToolOutput) -> Hook {
    match out.end {
        ToolEnd::TimedOut => Hook::TimedOut,
        ToolEnd::Code(0) => Hook::Passed,
        _ if could_not_start(out) => Hook::Cannot {
            words: run::words(out),
        },
        _ => Hook::Refused {
            words: run::words(out),
        },
    }
}

/// A program that the hook needs is missing: 126 and 127 are the shell's codes for it (POSIX, "Exit
/// Status for Commands"); git itself says "cannot exec" or "cannot run".
pub(super) fn could_not_start(out: &ToolOutput) -> bool {
    matches!(out.end, ToolEnd::Code(126 | 127)) || says_cannot_exec(&run::words(out))
}

pub(super) fn says_cannot_exec(words: &str) -> bool {
    words.contains("cannot exec '") || words.contains("error: cannot run ")
}

/// The interpreter that the first line of a script names.
fn interpreter(file: &Path) -> Option<PathBuf> {
    // A pipe would hold the reader.
    if !fs::metadata(file).is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut head = [0u8; 256];
    let read = fs::File::open(file).ok()?.read(&mut head).ok()?;
    let line = head[..read]
        .strip_prefix(b"#!")?
        .split(|b| *b == b'\n')
        .next()?;
    let program = line
        .trim_ascii_start()
        .split(u8::is_ascii_whitespace)
        .next()?;
    let program = Path::new(std::ffi::OsStr::from_bytes(program));
    program.is_absolute().then(|| program.to_owned())
}
