//! `veri doctor`: what this machine gives a run; `--test-cmd`: the test command that a repository's files suggest.

use crate::exit;
use crate::git::Repo;
use crate::ground::project::Project;
use crate::leaf::{Offer, probe_sandbox, reach};
use crate::suite::detect::{Detection, detect};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;

/// Arguments of `veri doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorCommand {
    /// Print the test command that the repository's files suggest; exit 3 when none or several do
    #[arg(long)]
    test_cmd: bool,
}

impl DoctorCommand {
    pub(super) fn run(self, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
        let result = match self.test_cmd {
            true => std::env::current_dir()
                .context("reading the current folder")
                .and_then(|folder| test_command(&folder, out, err)),
            false => machine(out),
        };
        super::report(result, err)
    }
}

/// Says by what leaves are ended and confined on this machine.
fn machine(out: &mut dyn Write) -> Result<u8> {
    writeln!(out, "processes: {}", reach())?;
    // Any folder shows whether a leaf can have mounts of its own.
    let (with, without) = match probe_sandbox(&[std::env::temp_dir()]) {
        Offer::Landlock(confined) => (
            format!("Landlock ABI {}", confined.landlock),
            confined.without,
        ),
        Offer::Nothing(why) => ("none".to_owned(), vec![why]),
    };
    match without.is_empty() {
        true => writeln!(out, "sandbox: {with}")?,
        false => writeln!(out, "sandbox: {with}; not here: {}", without.join("; "))?,
    }
    Ok(exit::DONE)
}

/// Detects the test command of the commit that is checked out in `folder`.
///
/// Prints the command alone to `out`, and gives 0; or says on `err` why there is none, and gives 3.
///
/// # Errors
/// When `folder` is in no repository, its HEAD is unborn, or the streams are closed.
pub fn test_command(folder: &Path, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let found = Repo::discover(folder)?;
    let repo = found.git2();
    let tree = repo
        .head()
        .and_then(|head| head.peel_to_tree())
        .with_context(|| format!("reading the last commit of {}", repo.path().display()))?
        .id();
    let detection = detect(&Project::of_tree(repo, tree)?);
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

#[cfg(test)]
mod tests {
    use super::*;
    use git2::Repository;

    fn asked(files: &[(&str, &str)]) -> (u8, String, String) {
        let dir = tempfile::tempdir().unwrap();
        let repo = Repository::init(dir.path()).unwrap();
        let mut tree = repo.treebuilder(None).unwrap();
        for (name, text) in files {
            let blob = repo.blob(text.as_bytes()).unwrap();
            tree.insert(name, blob, 0o100_644).unwrap();
        }
        let tree = repo.find_tree(tree.write().unwrap()).unwrap();
        let who = git2::Signature::new("t", "t@t", &git2::Time::new(0, 0)).unwrap();
        repo.commit(Some("HEAD"), &who, &who, "x", &tree, &[])
            .unwrap();
        // What is not committed does not count.
        std::fs::write(dir.path().join("go.mod"), "module x").unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = test_command(dir.path(), &mut out, &mut err).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(err))
    }

    #[test]
    fn the_one_command_is_printed_alone() {
        let (code, out, err) = asked(&[("Cargo.toml", "[package]")]);
        assert_eq!((code, out.as_str()), (0, "cargo test --no-fail-fast\n"));
        assert_eq!(err, "");
    }

    #[test]
    fn none_and_two_equal_ones_exit_3_and_say_what_decides() {
        let (code, out, err) = asked(&[]);
        assert_eq!((code, out.as_str()), (3, ""));
        assert!(err.contains("--test-cmd"), "{err}");
        let (code, out, err) = asked(&[("Cargo.toml", ""), ("pytest.ini", "")]);
        assert_eq!((code, out.as_str()), (3, ""));
        assert!(
            err.contains("cargo test") && err.contains("pytest"),
            "{err}"
        );
    }
}
