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
mod alone;
mod already_there;
mod attempts;
mod branch;
mod budgets;
mod clean;
mod cleaning;
mod clock;
mod contracts;
mod crash;
mod cut_off;
mod deadlines;
mod demo;
mod developer;
mod difference;
mod dispositions;
mod doctor;
mod endless;
mod executable;
mod fencing;
mod floods;
mod forged;
mod full_disk;
mod ground;
mod here;
mod hooks;
mod installed;
mod isolation;
mod kernel;
mod kills;
mod lanes;
mod leaf;
mod ledger_edits;
mod ledger_examples;
mod left_running;
mod links;
mod names;
mod picture;
mod planner;
mod preflight;
mod processes;
mod project;
mod random_kills;
mod recheck;
mod refused;
mod remotes;
mod rerun;
mod resume;
mod sandbox;
mod sandbox_required;
mod scene;
mod scripted;
mod services;
mod setup;
mod shown;
mod signals;
mod sources;
mod stale;
mod stop;
mod storage;
mod suite;
mod suspended;
mod tampering;
mod tdd;
mod terminal;
mod thread;
mod tidy;
mod vanished;
mod verifier;
mod verify_ground;
mod waiting;
mod walked;
mod watching;
