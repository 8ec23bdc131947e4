//! What must hold of a candidate before a verifier is asked: established from trees and runs, never from words.
//!
//! `tree` and `lines` read, `change` compares, `protect` and `moved` say what of the tests is not as it was,
//! `put_back` tells tests from what is beside them, `phase` and `breaks` put the questions.

mod added;
mod any_phase;
mod breaks;
mod change;
mod lines;
mod listed;
mod modules;
mod moved;
mod outcome;
mod phase;
mod protect;
mod put_back;
mod runner;
mod tree;

#[cfg(test)]
mod back;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod cheats;
#[cfg(test)]
mod findings;
#[cfg(test)]
mod phases;

pub use added::{AddedLines, added_lines, added_test_lines};
pub use any_phase::{AnyAsk, Finding, FindingKind, any_phase};
pub use breaks::{Breaks, breaks_with};
pub use change::{Change, TestName, changed};
pub use lines::TestLines;
pub use listed::{Kind as ListedKind, Listed, kind as listed_kind};
pub use outcome::{Ask, Evidence, Outcome, Run, Runner, What};
pub use phase::{RedRules, green, no_test, red, refactor};
pub use put_back::{put_back, put_test_lines_back};
pub use tree::{Entry, Flat, show};
