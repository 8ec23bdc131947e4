//! git: the person's repository, and the working tree in which veri works on it.
//!
//! git2 reads, diffs, builds trees and moves refs with compare and swap. The `git` program does what
//! hooks, filters, signing, identity and credentials have a say in: staging, commits, pushes, worktrees.
//!
//! In reading order: `run` (how git is called), `repo` (what was found, preflight 1), `base` (where work
//! starts), `worktree`, `registered` and `hold` (where it happens, by one program), `stage` (candidates), `large`, `restore`, `hook`,
//! `commit`, `saved` (refs/veri), `guard` (what a leaf did to git, and undoing it), `nested`, `remote`, `probe`, `tree`.

mod base;
mod commit;
mod cut_off;
mod guard;
mod hold;
mod hook;
mod large;
mod locks;
mod nested;
mod probe;
mod registered;
mod remote;
mod repo;
mod restore;
mod run;
mod saved;
mod stage;
pub mod tree;
mod worktree;

#[cfg(test)]
mod tests;

pub use base::{Base, BaseAsk, IssueBranch, Relation, issue_branch_name};
pub use commit::{Commit, Committed, message};
pub use guard::{Guard, LEAF_EMAIL, Settled, leaf_git_env};
pub use hook::Hook;
pub use large::too_large;
pub use remote::{Merge, Pushed};
pub use repo::Repo;
pub use saved::{Discarded, Refs, Saved};
pub use stage::{CannotStage, Taken};
pub use tree::{Change, Status};
pub use worktree::WorkTree;
