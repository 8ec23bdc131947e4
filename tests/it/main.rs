//! Every test that needs real git, real processes or the real binary, in one binary: it links once.

// A test may panic, starts processes of its own, reads its own environment, and has no users.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    missing_docs
)]

mod acceptance;
mod again;
mod already_there;
mod attempts;
mod branch;
mod budgets;
mod clean;
mod cleaning;
mod contracts;
mod crash;
mod demo;
mod developer;
mod difference;
mod executable;
mod forged;
mod ground;
mod here;
mod hooks;
mod isolation;
mod kernel;
mod kills;
mod leaf;
mod ledger_edits;
mod ledger_examples;
mod links;
mod names;
mod picture;
mod planner;
mod preflight;
mod project;
mod recheck;
mod remotes;
mod rerun;
mod resume;
mod sandbox;
mod scene;
mod setup;
mod shown;
mod sources;
mod stale;
mod stop;
mod storage;
mod suite;
mod tampering;
mod tdd;
mod thread;
mod tidy;
mod verifier;
mod verify_ground;
mod walked;
mod watching;
