//! `veri tdd 42` takes one issue from start to a draft pull request by test-driven development.
//!
//! ARCHITECTURE.md is the map: four floors, each importing only what is below it.

// The pure floor: no clock, file, environment, process or network.
pub mod answer;
pub mod cause;
pub mod event;
pub mod exit;
pub mod ledger;
pub mod machine;
pub mod plan;
pub mod prompt;
pub mod role;
pub mod verdict;

// The effects floor: each module wraps one piece of the outside world.
pub mod agent;
pub mod blind;
pub mod check;
pub mod config;
pub mod folder;
pub mod forge;
pub mod git;
pub mod ground;
pub mod hash;
pub mod journal;
pub mod leaf;
pub mod lock;
pub mod storage;
pub mod suite;
pub mod tool;
pub mod untrusted;

// The shells: observe, next, store, perform.
pub mod conductor;

// The door.
pub mod cli;

// The unit tests share this with the whole-program ones.
#[cfg(test)]
#[path = "../tests/it/executable.rs"]
mod executable;
