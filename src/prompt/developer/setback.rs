//! Why a developer is launched again, in the program's own words and with fenced evidence.

use crate::prompt::Blocks;
use std::fmt::Write as _;

/// One reason of a verifier that rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectReason {
    /// What it said.
    pub text: String,
    /// A test that shows it, as a patch; proven or not.
    pub counterexample: Option<String>,
}

/// Why an answer was not taken, so that the work is to be done again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setback {
    /// A verifier rejected the claim.
    Rejected(Vec<RejectReason>),
    /// A check of the conductor's failed; with its evidence.
    CheckFailed(String),
    /// A hook or git itself refused the candidate for its content; with the words.
    Refused(String),
    /// The developer's process ended with a code that says that it failed; with that code.
    Failed(String),
    /// The developer left everything as it was.
    NothingChanged,
}

/// Why the launch before this one gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutShort {
    /// The developer was ended at its deadline of so many seconds.
    Stuck(u64),
    /// The developer was ended because it gave no sign of life.
    Silent,
    /// The launch was lost, stopped or killed before it ended.
    CutOff,
}

/// What the working tree holds of an answer that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The change as the earlier attempt left it.
    FromCandidate,
    /// Nothing of it: the phase is begun anew.
    Fresh,
}

/// Where unfinished work is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// A ref of the repository, in full (`refs/veri/issue-42/discarded/…`).
    pub reference: String,
}

impl Setback {
    pub(super) fn sentence(&self) -> String {
        match self {
            Setback::Rejected(_) => "The change was rejected.".to_owned(),
            Setback::CheckFailed(_) => {
                "The change failed a check before anybody judged it.".to_owned()
            }
            Setback::Refused(_) => "The change was not taken as it was.".to_owned(),
            Setback::Failed(_) => "The attempt ended with an exit code other than 0.".to_owned(),
            Setback::NothingChanged => {
                "The attempt changed no file, so there was nothing to judge.".to_owned()
            }
        }
    }

    pub(super) fn add_to(&self, blocks: &mut Blocks) {
        match self {
            Setback::Rejected(reasons) => blocks.add("reasons", "reasons", reasons_block(reasons)),
            Setback::CheckFailed(evidence)
            | Setback::Refused(evidence)
            | Setback::Failed(evidence) => {
                blocks.add("evidence", "evidence", evidence.as_str());
            }
            Setback::NothingChanged => {}
        }
    }
}

impl CutShort {
    pub(super) fn sentence(self) -> String {
        match self {
            CutShort::Stuck(seconds) => format!(
                "The last launch did not end within {seconds} seconds and was killed. Work in smaller pieces, and run nothing \
                 that waits for input or does not end by itself."
            ),
            CutShort::Silent => "The last launch gave no sign of life for too long and was killed. Run nothing that waits for \
                 input or is silent without end."
                .to_owned(),
            CutShort::CutOff => {
                "The last launch was cut off before it ended, through no fault of the work."
                    .to_owned()
            }
        }
    }
}

impl Start {
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Start::FromCandidate => "Its change is in your working folder: go on from there.",
            Start::Fresh => "Your working folder is as it was before: nothing of that is in it.",
        }
    }
}

impl Kept {
    pub(super) fn sentence(&self) -> String {
        let name = super::escaped_line(&self.reference);
        format!(
            "What it had done is kept in `{name}`: `git diff HEAD {name}` shows it, take over what is good."
        )
    }
}

fn reasons_block(reasons: &[RejectReason]) -> String {
    let mut block = String::new();
    for (number, reason) in (1..).zip(reasons) {
        let _ = writeln!(block, "{number}. {}", reason.text);
        if let Some(patch) = &reason.counterexample {
            let _ = writeln!(block, "\na test that shows it, as a patch:\n\n{patch}\n");
        }
    }
    block
}
