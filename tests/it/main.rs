//! Every test that needs real git, real processes or the real binary, in one binary: it links once.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod ground;
mod isolation;
mod leaf;
mod ledger_examples;
mod project;
mod scene;
mod setup;
mod suite;
mod tdd;
mod verify_ground;
