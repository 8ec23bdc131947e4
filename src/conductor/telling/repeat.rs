//! The commands with which a reviewer repeats the evidence: the whole suite on the branch, and a step's test without
//! the step's code.

use crate::check::Evidence;
use crate::conductor::again::quoted;
use crate::conductor::run::Run;
use crate::forge::facts::RedHalf;
use crate::git::tree;
use crate::role::Claim;
use anyhow::Result;
use git2::Oid;

/// A step whose red can be seen again: all its tests stand in files of their own.
pub(in crate::conductor) struct Red {
    step: u32,
    commit: Oid,
    files: Vec<String>,
}

impl Red {
    /// The red of a step that was committed with its test and its code; None where they share a file.
    pub(in crate::conductor) fn of(
        step: u32,
        commit: Oid,
        evidence: &[(String, Evidence)],
    ) -> Option<Red> {
        let red = |(claim, _): &&(String, Evidence)| claim == Claim::Red.as_str();
        let change = &evidence.iter().find(red)?.1.change;
        let files = change.test_files_added.iter();
        let files: Vec<String> = files.chain(&change.test_files_changed).cloned().collect();
        let apart = change.test_items_added.is_empty()
            && change.test_items_changed.is_empty()
            && change.test_files_removed.is_empty()
            && change.test_items_removed.is_empty();
        (apart && !files.is_empty()).then_some(Red {
            step,
            commit,
            files,
        })
    }
}

impl Run<'_> {
    /// The suite on the finished branch. Detached: the branch itself is checked out in veri's worktree, and git refuses
    /// it a second time.
    pub(in crate::conductor) fn evidence_command(&self, branch: &str) -> Result<String> {
        let remote = self.settings.remote();
        let go = match self.repo.has_remote(remote) {
            true => format!("git fetch {remote} {branch} && git switch --detach FETCH_HEAD"),
            false => format!("git switch --detach {branch}"),
        };
        let checks = self.settings.config.checks.iter().map(String::as_str);
        let tests = &self.ready()?.test_command;
        let suite: Vec<&str> = std::iter::once(tests.as_str()).chain(checks).collect();
        let set_up = self.set_up_by_hand(self.tip_tree()?)?;
        Ok(format!("{go}{set_up} && {}", suite.join(" && ")))
    }

    /// The suite where the step began, with the step's tests.
    pub(in crate::conductor) fn red_half(&self, red: &Red) -> Result<RedHalf> {
        let repo = self.tree.git2();
        let before = repo.find_commit(red.commit)?.parent(0)?.tree_id();
        let folder = format!("../issue-{}-step-{}", self.issue_number, red.step);
        let commit = format!("{:.9}", red.commit.to_string());
        let files: Vec<String> = red.files.iter().map(|f| quoted(f)).collect();
        let command = format!(
            "git worktree add --detach {folder} {commit}~1 && cd {folder} && git checkout {commit} -- {}{} && {}",
            files.join(" "),
            self.set_up_by_hand(tree::without_tdd(repo, before)?)?,
            self.ready()?.test_command
        );
        Ok(RedHalf {
            step: red.step,
            command,
        })
    }

    /// What makes the dependencies of a tree, as a continuation of a command; empty where it needs none.
    fn set_up_by_hand(&self, tree: Oid) -> Result<String> {
        let mut commands = self.setup_commands(tree)?;
        let own = self.ready()?.ground.path().join(".venv/bin/activate");
        if !commands.is_empty() && own.is_file() {
            commands.push(". .venv/bin/activate".to_owned());
        }
        Ok(commands.iter().map(|c| format!(" && {c}")).collect())
    }
}
