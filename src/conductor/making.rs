//! One commit: its message, and what git and the hooks make of it.

use super::run::Run;
use crate::cause::{Bail, Cause};
use crate::git::{Commit, Committed, message};
use crate::machine::Work;
use anyhow::{Result, anyhow};
use git2::Oid;

/// What is to be committed, and as what.
pub(super) struct Wanted<'a> {
    /// The tree without `.tdd/`.
    pub(super) tree: Oid,
    /// The ledger that goes with it.
    pub(super) ledger: &'a [u8],
    /// The subject before the configured template.
    pub(super) subject: &'a str,
    /// `Veri-Phase`.
    pub(super) phase: &'a str,
    /// `Veri-Step`.
    pub(super) step: Option<u32>,
    pub(super) parent: Oid,
}

impl<'a> Wanted<'a> {
    /// A commit of the ledger alone: the plan, or a person's edit of it.
    pub(super) fn of_ledger(tree: Oid, ledger: &'a [u8], subject: &'a str, parent: Oid) -> Self {
        Wanted {
            tree,
            ledger,
            subject,
            phase: "plan",
            step: None,
            parent,
        }
    }
}

/// What a commit attempt came to.
pub(super) enum Made {
    Commit(Oid),
    Refused(Vec<String>),
}

impl Run<'_> {
    /// The whole message of a commit: the subject by the configured template, and the trailers.
    pub(super) fn message(&self, subject: &str, phase: &str, step: Option<u32>) -> Result<String> {
        Ok(message(
            &self.subject(subject, phase)?,
            &self.trailers(phase, step),
        ))
    }

    fn subject(&self, subject: &str, phase: &str) -> Result<String> {
        let Some(template) = &self.settings.config.commit.subject else {
            return Ok(subject.to_owned());
        };
        let rendered = minijinja::Environment::new().render_str(
            template,
            minijinja::context! { subject, phase, issue => self.issue_number },
        );
        let rendered = rendered
            .map_err(|e| Bail::needs_user(format!("commit.subject cannot be used: {e}.")))?;
        match rendered.lines().next() {
            Some(line) if !line.trim().is_empty() => Ok(line.to_owned()),
            _ => Err(Bail::needs_user("commit.subject gives an empty subject.").into()),
        }
    }

    pub(super) fn trailers(&self, phase: &str, step: Option<u32>) -> Vec<(String, String)> {
        let mut trailers = vec![(
            "Veri-Issue".to_owned(),
            self.forge.issue_ref(self.issue_number),
        )];
        if let Some(step) = step {
            trailers.push(("Veri-Step".to_owned(), step.to_string()));
        }
        trailers.push(("Veri-Phase".to_owned(), phase.to_owned()));
        if let Some(skill) = &self.source.skill_commit {
            trailers.push(("Veri-Snapshot".to_owned(), skill.clone()));
        }
        trailers
    }

    /// A tree that hooks changed while it was committed is checked once more, and committed as it is.
    pub(super) fn make_checked_commit(
        &mut self,
        work: &Work,
        mut wanted: Wanted<'_>,
    ) -> Result<Made> {
        for last in [false, true] {
            match self.try_commit(&wanted)? {
                Committed::TreeDiffers { got } if !last => {
                    if let Some(reasons) = self.check_again(work, got)? {
                        return Ok(Made::Refused(reasons));
                    }
                    wanted.tree = got;
                }
                ended => return self.made(ended, wanted.ledger, wanted.parent),
            }
        }
        Err(anyhow!("a commit was tried twice and has no end"))
    }

    pub(super) fn make_commit(&mut self, wanted: &Wanted<'_>) -> Result<Made> {
        let ended = self.try_commit(wanted)?;
        self.made(ended, wanted.ledger, wanted.parent)
    }

    fn try_commit(&self, wanted: &Wanted<'_>) -> Result<Committed> {
        let subject = self.subject(wanted.subject, wanted.phase)?;
        let trailers = self.trailers(wanted.phase, wanted.step);
        self.tree.commit(
            &Commit {
                tree: wanted.tree,
                ledger_path: &self.ledger_path(),
                ledger: wanted.ledger,
                subject: &subject,
                trailers: &trailers,
                parent: wanted.parent,
            },
            self.settings.hook_deadline(),
        )
    }

    pub(super) fn made(&mut self, ended: Committed, ledger: &[u8], parent: Oid) -> Result<Made> {
        match ended {
            Committed::Done(commit) | Committed::Already(commit) => Ok(Made::Commit(commit)),
            Committed::LedgerChanged { oid, bytes } => {
                let path = self.ledger_path();
                let why = match (self.parse_ledger(&bytes), self.parse_ledger(ledger)) {
                    (Ok(now), Ok(meant)) if now.steps() == meant.steps() => return Ok(Made::Commit(oid)),
                    (Ok(_), Ok(_)) => "has other steps or ticks".to_owned(),
                    (Err(e), _) | (_, Err(e)) => format!("cannot be read any more: {e:#}"),
                };
                self.tree.take_back(oid, parent, &path)?;
                Err(Bail::needs_user(format!(
                    "A hook changed the ledger {path} while it was committed, so that it {why}. The commit was taken \
                     back. Exclude that path from the hook, then run again."
                ))
                .into())
            }
            Committed::Refused { words, about_ledger: false } => {
                Ok(Made::Refused(vec![format!("the pre-commit hook refused the commit:\n{words}")]))
            }
            Committed::Refused { words, about_ledger: true } => Err(Bail::needs_user(format!(
                "A hook refuses the ledger {}, which no change of the work can mend; exclude that path from it:\n{words}",
                self.ledger_path()
            ))
            .into()),
            Committed::Cannot { words } => Err(Bail::needs_user(format!(
                "git refused the commit in a way that no change of the work can mend:\n{words}"
            ))
            .into()),
            Committed::TimedOut => Err(Bail::new(
                Cause::GitFailed,
                format!(
                    "A commit did not end within {} seconds (limits.hook_timeout): a hook or the signing program hangs.",
                    self.settings.hook_deadline().as_secs()
                ),
            )
            .into()),
            Committed::TreeDiffers { got } => Err(Bail::new(
                Cause::GitFailed,
                format!("A hook changes what is committed each time (tree {got} instead of the one that was checked): the commit was taken back."),
            )
            .into()),
        }
    }
}
