//! Every test that needs real git, real processes or the real binary, in one binary: it links once.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)] // a test may panic, and has no users

mod crash;
mod ground;
mod here;
mod isolation;
mod leaf;
mod ledger_examples;
mod names;
mod picture;
mod planner;
mod preflight;
mod project;
mod rerun;
mod resume;
mod scene;
mod setup;
mod shown;
mod sources;
mod stop;
mod storage;
mod suite;
mod tdd;
mod tidy;
mod verifier;
mod verify_ground;
mod watching;
