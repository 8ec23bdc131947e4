//! `veri doctor --test-cmd`: the test command that a repository's files suggest.

use crate::exit;
use crate::ground::project::Project;
use crate::suite::detect::{Detection, detect};
use anyhow::{Context, Result};
use git2::Repository;
use std::io::Write;
use std::path::Path;

/// Detects the test command of the commit that is checked out in `folder`.
///
/// Prints the command alone to `out`, and gives 0; or says on `err` why there is none, and gives 3.
///
/// # Errors
/// When `folder` is in no repository, its HEAD is unborn, or the streams are closed.
pub fn test_command(folder: &Path, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let repo = Repository::discover(folder)
        .with_context(|| format!("finding the git repository of {}", folder.display()))?;
    let tree = repo
        .head()
        .and_then(|head| head.peel_to_tree())
        .with_context(|| format!("reading the last commit of {}", repo.path().display()))?
        .id();
    let detection = detect(&Project::of_tree(&repo, tree)?);
    match &detection {
        Detection::One(candidate) => {
            writeln!(out, "{}", candidate.command)?;
            Ok(exit::DONE)
        }
        Detection::None | Detection::Several(_) => {
            writeln!(err, "{detection}")?;
            Ok(exit::PLUMBING_NOTHING)
        }
    }
}
