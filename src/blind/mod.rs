//! What a verifier may know, and its prompt. No developer's word can enter here.
//!
//! A [`VerifierPrompt`] can be built from five things alone, each of which reads its own source:
//!
//! | type | its source |
//! | --- | --- |
//! | [`BehaviourSpec`] | the issue as the forge gave it, and the ledger as an object of the repository |
//! | [`TestChange`] | two trees |
//! | [`Claim`] | one of five words, and two trees |
//! | [`SuiteLog`] | the record of a suite's own run, and its log |
//! | [`BaseCommit`] | an object id of the verify ground |
//!
//! **Invariant:** no constructor in this room takes a string. An input that could carry prose needs a change to this table,
//! in the open. tests/wall1.rs shows that passing, converting, formatting and forging do not compile.

mod behaviour;
mod change;
mod hidden;
mod log;
mod shown;
mod verifier;

pub use behaviour::{BehaviourSpec, issue_text};
pub use change::{Claim, TestChange};
pub use hidden::Hidden;
pub use log::SuiteLog;
pub use verifier::{BaseCommit, VerifierPrompt};

#[cfg(test)]
pub(crate) mod testing;
