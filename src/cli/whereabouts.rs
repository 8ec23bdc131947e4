//! Where the runs of the repository that the command was started in have their folders.

use super::NotThere;
use crate::config::Env;
use crate::git::Repo;
use anyhow::{Result, anyhow};
use std::path::{Path, PathBuf};

/// The working tree of one issue's run.
#[derive(Debug, Clone)]
pub struct Place {
    /// The issue's number.
    pub issue: u64,
    /// The working tree.
    pub tree: PathBuf,
    /// Whether that is the checkout itself (`--here`).
    pub here: bool,
    /// The lock that a running conductor holds.
    pub lock: PathBuf,
}

impl Place {
    /// The folder of runtime files.
    pub fn tdd(&self) -> PathBuf {
        self.tree.join(".tdd")
    }

    /// The command that goes on with the run: in its own words where it has said any.
    pub fn resume(&self) -> String {
        let lines = crate::journal::read(&self.journal()).unwrap_or_default();
        let said = lines
            .iter()
            .rev()
            .filter(|l| l.issue == self.issue)
            .find_map(|l| l.fields.get("resume")?.as_str());
        // A journal is a file that a leaf can write into: what goes to a terminal holds no control characters.
        let said = said.filter(|s| !s.chars().any(char::is_control));
        match said {
            Some(said) => said.to_owned(),
            None => crate::conductor::resume_command(self.issue, self.here),
        }
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.tdd().join("events.jsonl")
    }
}

/// The repository around the current folder, and its home.
pub fn here(env: &Env) -> Result<(Repo, PathBuf)> {
    let folder = std::env::current_dir()?;
    let repo = Repo::discover(&folder)?;
    let home = home_of(env, &repo)?;
    Ok((repo, home))
}

/// `$VERI_HOME/<repo-id>`.
pub fn home_of(env: &Env, repo: &Repo) -> Result<PathBuf> {
    let home = env.veri_home().ok_or_else(|| {
        anyhow!("neither VERI_HOME, XDG_STATE_HOME nor HOME is set: veri has no folder to work in")
    })?;
    Ok(home.join(repo.id()))
}

/// Every run of the repository: those with a worktree of their own, then those of the checkout.
pub fn places(repo: &Repo, home: &Path) -> Vec<Place> {
    let mut places = Vec::new();
    for entry in std::fs::read_dir(home.join("work"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(issue) = name.strip_prefix("issue-").and_then(|n| n.parse().ok())
            && entry.path().is_dir()
        {
            let lock = home.join("work").join(format!("issue-{issue}.lock"));
            places.push(Place {
                issue,
                tree: entry.path(),
                here: false,
                lock,
            });
        }
    }
    let checkout = repo.checkout().to_owned();
    if let Ok(lines) = crate::journal::read(&checkout.join(".tdd/events.jsonl")) {
        let mut issues: Vec<u64> = lines.iter().map(|l| l.issue).collect();
        issues.sort_unstable();
        issues.dedup();
        for issue in issues {
            let lock = checkout.join(".tdd/lock");
            places.push(Place {
                issue,
                tree: checkout.clone(),
                here: true,
                lock,
            });
        }
    }
    places.sort_by_key(|p| p.issue);
    places
}

/// The one run that a command without a number can mean.
pub fn one(places: &[Place], issue: Option<u64>) -> Result<Place> {
    let not_there = |words: String| Err(NotThere(words).into());
    match (issue, places) {
        (Some(issue), _) => match places.iter().find(|p| p.issue == issue) {
            Some(place) => Ok(place.clone()),
            None => not_there(format!(
                "issue {issue} is not known here: `veri status` lists what is"
            )),
        },
        (None, []) => not_there("no issue is known here; `veri tdd <issue>` starts one".to_owned()),
        (None, [only]) => Ok(only.clone()),
        (None, several) => {
            let issues: Vec<_> = several.iter().map(|p| p.issue.to_string()).collect();
            not_there(format!(
                "several issues are known here ({}): name one",
                issues.join(", ")
            ))
        }
    }
}
