//! Showing that the suite tests the ground's code, and not that of some other checkout.
//!
//! With every program file outside the tests made unusable the suite must fail. If it passes, something else is
//! under test, and [`super::leads`] looks for what leads there.

use super::disk;
use super::hold::{Ground, Since};
use super::leads::{self, Found};
use super::path::TreePath;
use super::project::{Language, is_program};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes that are no program in any language that is known: a syntax error from the first on, and not text.
const UNUSABLE: &[u8] = b")]}`'\"\0\xff made unusable to see whether the suite notices\n";
/// The same for PHP, where text outside of `<?php` is printed.
const UNUSABLE_PHP: &[u8] = b"<?php )]}`'\"\0\xff made unusable to see whether the suite notices\n";

/// Whether the suite tests this ground.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "isolation")]
pub enum Isolation {
    /// It fails without the ground's program files.
    Shown,
    /// It passes without them, and nothing was found that leads out of the ground: to be said.
    NotShown {
        /// Why, in a sentence.
        why: String,
    },
    /// It passes without them, and what would know what leads out of the ground gave no answer: to be said, and asked
    /// again by the next start.
    Unknown {
        /// Why, in a sentence.
        why: String,
    },
    /// It passes without them, and something leads out of the ground: a person has to decide.
    Leads {
        /// What leads where, in a sentence.
        what: String,
    },
    /// The run was stopped, or ended by somebody else, before it could show anything.
    Interrupted,
}

/// How the suite ended in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// Exit code 0.
    Passed,
    /// Any other end of its own, or by its deadline.
    Failed,
    /// Stopped, or killed by somebody else.
    Interrupted,
}

/// What is asked about a ground that was brought to the base and set up.
pub struct IsolationAsk<'a> {
    /// The languages of the project; none stands for all that are known.
    pub languages: &'a [Language],
    /// Whether a path is a test, fixture or runner configuration.
    pub is_test: &'a dyn Fn(&[u8]) -> bool,
    /// The test command, and other texts that name scripts of it (the test script of `package.json`).
    pub commands: &'a [&'a str],
    /// The person's checkouts: where an editable install would lead.
    pub checkouts: &'a [PathBuf],
    /// The caller's declared environment.
    pub env: &'a [(OsString, OsString)],
}

impl Ground {
    /// Makes the program files unusable, runs the suite once, and puts everything back.
    ///
    /// # Errors
    /// When nothing was laid yet, the ground cannot be written, or the run itself fails. The files are put back
    /// also then; a process that is killed in between leaves them to the next [`Ground::bring_to`].
    pub fn isolation(
        &mut self,
        ask: &IsolationAsk<'_>,
        run: &mut dyn FnMut(&mut Ground) -> Result<Trial>,
    ) -> Result<Isolation> {
        let programs = self.programs(ask)?;
        if programs.is_empty() {
            return Ok(Isolation::NotShown {
                why: "there are no program files outside the tests yet".to_owned(),
            });
        }
        let unusable: Vec<(TreePath, &[u8])> = programs
            .into_iter()
            .map(|path| {
                let php = path.ends_with(b".php");
                (path, if php { UNUSABLE_PHP } else { UNUSABLE })
            })
            .collect();
        self.since = Since::Unknown;
        let trial = self.overwrite(&unusable).and_then(|()| {
            self.settle_clock();
            run(self)
        });
        // Before the ground is cleaned: what the run itself installed may be what leads out.
        let installed = match trial {
            Ok(Trial::Passed) => {
                leads::find(self.path(), ask.checkouts, &self.environment(ask.env))
            }
            _ => Found::Nothing,
        };
        let back = self.bring_back();
        let trial = trial?;
        back?;
        Ok(match trial {
            Trial::Failed => Isolation::Shown,
            Trial::Interrupted => Isolation::Interrupted,
            Trial::Passed => {
                let written = match &installed {
                    Found::Leads(_) => None,
                    _ => leads::written_down(self.path(), &self.tracked()?, ask.checkouts),
                };
                match (installed, written) {
                    (Found::Leads(what), _) | (_, Some(what)) => Isolation::Leads { what },
                    (Found::Unknown(why), None) => Isolation::Unknown { why },
                    (Found::Nothing, None) => Isolation::NotShown {
                        why: format!(
                            "the suite passes with {} program files made unusable, and nothing was found that leads out of the ground",
                            unusable.len()
                        ),
                    },
                }
            }
        })
    }

    fn tracked(&self) -> Result<Vec<TreePath>> {
        let files = self.last()?.entries.files.iter();
        let regular = files.filter(|(_, entry)| entry.form.is_regular());
        Ok(regular.map(|(path, _)| path.clone()).collect())
    }

    fn programs(&self, ask: &IsolationAsk<'_>) -> Result<Vec<TreePath>> {
        Ok(self
            .last()?
            .entries
            .files
            .iter()
            .filter(|(_, entry)| entry.form.is_regular())
            .map(|(path, _)| path)
            .filter(|path| is_program(path, ask.languages))
            .filter(|path| !(ask.is_test)(path))
            .filter(|path| !ask.commands.iter().any(|command| names(command, path)))
            .cloned()
            .collect())
    }
}

/// Whether a command text names a file: as a word, from the root, with or without `./`, or as a Python module.
fn names(command: &str, path: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(path) else {
        return false;
    };
    let module = path.strip_suffix(".py").map(|stem| stem.replace('/', "."));
    command
        .split(|c: char| c.is_whitespace() || "'\"`;&|()=<>,".contains(c))
        .map(|word| word.trim_start_matches("./"))
        .any(|word| word == path || module.as_deref() == Some(word))
}

fn cache_place(base: &str, setup: &str, command: &str) -> String {
    let key = crate::hash::of_parts(&[base.as_bytes(), setup.as_bytes(), command.as_bytes()]);
    format!("isolation/{key}.json")
}

/// Remembers what was shown for a base, setup and command; an interrupted trial, a lead and an unknown are not remembered.
///
/// # Errors
/// When it cannot be written.
pub fn remember(
    home: &Path,
    base: &str,
    setup: &str,
    command: &str,
    shown: &Isolation,
) -> Result<()> {
    match shown {
        Isolation::Shown | Isolation::NotShown { .. } => {
            disk::remember(home, &cache_place(base, setup, command), shown)
        }
        Isolation::Leads { .. } | Isolation::Unknown { .. } | Isolation::Interrupted => Ok(()),
    }
}

/// What was shown earlier for the same base, setup and command.
pub fn recall(home: &Path, base: &str, setup: &str, command: &str) -> Option<Isolation> {
    disk::recall(home, &cache_place(base, setup, command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_the_command_names_is_left_usable() {
        assert!(names("sh ./run.sh", b"run.sh"));
        assert!(names("node 'tools/t.js'; true", b"tools/t.js"));
        assert!(names("python -m tools.check", b"tools/check.py"));
        assert!(!names("sh run.sh", b"src/run.sh"));
        assert!(!names("pytest", b"pytest.py.py"));
    }
}
