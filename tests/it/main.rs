//! Every test that needs real git, real processes or the real binary, in one binary: it links once.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)] // a test may panic, and has no users

mod demo;
mod ground;
mod isolation;
mod leaf;
mod ledger_examples;
mod names;
mod picture;
mod planner;
mod preflight;
mod project;
mod scene;
mod setup;
mod sources;
mod suite;
mod tdd;
mod tidy;
mod verifier;
mod verify_ground;
