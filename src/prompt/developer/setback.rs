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

/// Why the work is to be done again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setback {
    /// A verifier rejected the claim.
    Rejected(Vec<RejectReason>),
    /// A check of the conductor's failed; with its evidence.
    CheckFailed(String),
    /// A hook or git itself refused the candidate for its content; with the words.
    Refused(String),
    /// The developer's process ended with this code.
    Failed(i32),
    /// The developer left everything as it was.
    NothingChanged,
    /// The developer was ended at its deadline of so many seconds.
    Stuck(u64),
    /// The launch was lost or stopped before it ended.
    CutOff,
}

/// What the working tree holds when a developer starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The change as the earlier attempt left it.
    FromCandidate,
    /// What that attempt itself started from.
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
            Setback::Refused(_) => "The change was refused when it was to be committed.".to_owned(),
            Setback::Failed(code) => format!("The attempt ended with exit code {code}."),
            Setback::NothingChanged => {
                "The attempt changed no file, so there was nothing to judge.".to_owned()
            }
            Setback::Stuck(seconds) => format!(
                "The attempt did not end within {seconds} seconds and was killed. Work in smaller pieces, and run nothing that \
                 waits for input or does not end by itself."
            ),
            Setback::CutOff => {
                "The attempt was cut off before it ended, through no fault of the work.".to_owned()
            }
        }
    }

    pub(super) fn add_to(&self, blocks: &mut Blocks) {
        match self {
            Setback::Rejected(reasons) => blocks.add("reasons", "reasons", reasons_block(reasons)),
            Setback::CheckFailed(evidence) | Setback::Refused(evidence) => {
                blocks.add("evidence", "evidence", evidence.as_str());
            }
            Setback::Failed(_) | Setback::NothingChanged | Setback::Stuck(_) | Setback::CutOff => {}
        }
    }
}

impl Start {
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Start::FromCandidate => "Its change is in your working folder: go on from there.",
            Start::Fresh => {
                "Your working folder is as it was before that attempt: nothing of it is there."
            }
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
