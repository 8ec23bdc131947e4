//! The mirror: the issue's thread brought up to date. Best effort: it never stops a run.

use crate::conductor::pick_up::is;
use crate::conductor::run::Run;
use crate::event::{Kind, Line};
use crate::forge::mirror::{self, BailFacts, MirrorFacts, Post, StopFacts};
use crate::forge::over::over;
use crate::git::issue_branch_name;
use crate::machine::{At, Ending};
use anyhow::Result;
use serde_json::json;

impl Run<'_> {
    /// Brings the thread up to date with the state, and says when that is not possible.
    pub(in crate::conductor) fn mirror(&mut self) {
        // Nothing is said on a thread whose issue has not passed preflight, now or earlier.
        let known = self.issue.is_some()
            || self
                .lines
                .iter()
                .any(|l| l.event == Kind::Preflight && l.fields.contains_key("input"));
        if self.settings.config.mirror.as_deref() == Some("off") || !known {
            return;
        }
        if let Err(error) = self.try_mirror() {
            let said = format!(
                "the issue's thread is not up to date ({error:#}); it is brought up to date at the next chance"
            );
            drop(self.say(Kind::Mirror, said));
        }
    }

    /// A later start goes on with the work: what an earlier one has asked is over.
    pub(in crate::conductor) fn mirror_going_on(&mut self) {
        if self.lines.iter().any(|l| is(l, "resumed")) {
            self.mirror();
        }
    }

    fn try_mirror(&mut self) -> Result<()> {
        let posted = self
            .lines
            .iter()
            .filter(|l| l.event == Kind::Mirror)
            .filter_map(|l| l.fields.get("posted")?.as_u64())
            .max()
            .unwrap_or(0) as usize;
        let n = self.issue_number;
        let resume = self.resume_command();
        let full_text = format!("veri log --issue {n}");
        let ledger = self.ledger_lines();
        let mut posts: Vec<Post> = mirror::run(&MirrorFacts {
            issue: n,
            state: self.standing(&ledger),
            ledger: ledger.clone(),
            steps: self.stories(),
            // A run that is done has nothing to go on with.
            resume: match self.state.ending() {
                Some(Ending::Done { .. }) => String::new(),
                _ => resume.clone(),
            },
            full_text: full_text.clone(),
            posted,
            later: self.began_later(),
        });
        let run_posts = posts.len();
        match self.state.ending() {
            Some(Ending::Bailed(bail)) => posts.push(mirror::bail(&BailFacts {
                issue: n,
                cause: bail.cause,
                in_preflight: !self.passed_preflight(),
                detail: bail.detail.clone(),
                evidence: None,
                ledger,
                discarded: self.newest_discarded(),
                resume,
                full_text,
            })),
            Some(Ending::Stopped(mode)) => {
                posts.push(mirror::stop(&StopFacts {
                    issue: n,
                    mode: *mode,
                    ledger,
                    resume,
                }));
            }
            _ => {}
        }
        let mut changed = 0;
        for post in &posts {
            let comment = self.forge.put_comment(n, &post.marker, &post.body)?;
            changed += usize::from(comment.changed);
        }
        changed += self.mark_what_is_over(&posts)?;
        self.crash_point("posted");
        if changed > 0 {
            let fields = json!({ "posted": run_posts, "changed": changed });
            self.write(crate::conductor::record::Entry::new(
                Kind::Mirror,
                Default::default(),
                fields,
            ))?;
        }
        Ok(())
    }

    /// Marks the questions and stops of earlier starts as over, once this one is past preflight: it goes on with the
    /// work. Those among `posts` are what it ends with.
    fn mark_what_is_over(&mut self, posts: &[Post]) -> Result<usize> {
        if self.thread_in_order || !self.passed_preflight() {
            return Ok(0);
        }
        let n = self.issue_number;
        let mut changed = 0;
        for comment in self.forge.comments(n)? {
            let ended = comment
                .is_veris()
                .then(|| over(n, comment.body()))
                .flatten();
            if let Some(post) = ended.filter(|e| posts.iter().all(|p| p.marker != e.marker)) {
                let comment = self.forge.put_comment(n, &post.marker, &post.body)?;
                changed += usize::from(comment.changed);
            }
        }
        self.thread_in_order = true;
        Ok(changed)
    }

    /// The lines of this start, or of the one whose end is told late, newest first.
    fn of_this_start(&self) -> impl Iterator<Item = &Line> {
        let begins = |l: &Line| is(l, "resumed") || is(l, "begun");
        self.lines.iter().rev().take_while(move |l| !begins(l))
    }

    /// Whether the start that the thread is told of got past preflight.
    fn passed_preflight(&self) -> bool {
        self.of_this_start().any(|l| is(l, "preflight-passed"))
    }

    /// Which journal this is, if it began on a branch that had finished steps: their proof is not in it.
    fn began_later(&self) -> Option<String> {
        let first_read = self
            .lines
            .iter()
            .filter(|l| l.event == Kind::Plan)
            .find_map(|l| l.fields.get("done")?.as_u64());
        let finished_before = match first_read {
            Some(done) => done > 0,
            // Not read yet: then nothing that the branch has is this journal's.
            None => {
                let name = format!("refs/heads/{}", issue_branch_name(self.issue_number));
                let tip = self.repo.git2().refname_to_id(&name).ok();
                let ledger = tip.and_then(|tip| self.ledger_at(tip).ok().flatten());
                ledger.is_some_and(|l| l.steps().iter().any(|s| s.ticked))
            }
        };
        let first = self.lines.first().filter(|_| finished_before)?;
        Some(first.run.chars().take(12).collect())
    }

    fn standing(&self, ledger: &[crate::forge::facts::LedgerLine]) -> String {
        let done = ledger.iter().filter(|l| l.ticked).count();
        let all = ledger.len();
        let finished = match all {
            1 => "the one step is done".to_owned(),
            _ => format!("all {all} steps are done"),
        };
        let so_far = match all {
            0 => "no step is planned yet".to_owned(),
            _ => format!("{done} of {all} steps are done"),
        };
        let planned = if all == 1 {
            "1 step".to_owned()
        } else {
            format!("{all} steps")
        };
        match &self.state.at {
            At::Ended(Ending::Done { url: Some(url) }) => {
                format!("{finished}; the pull request is {url}")
            }
            At::Ended(Ending::Done { url: None }) => finished,
            At::Ended(Ending::Planned) => format!("planned in {planned}"),
            At::Ended(Ending::Bailed(bail)) | At::Unwinding(Ending::Bailed(bail)) => {
                format!("it cannot go on ({}); {so_far}", bail.cause)
            }
            At::Ended(Ending::Stopped(mode)) | At::Unwinding(Ending::Stopped(mode)) => {
                format!("stopped on request ({mode}); {so_far}")
            }
            At::Accepting | At::Publishing => {
                format!("{finished}; the branch is looked at once more")
            }
            _ => match &self.state.work {
                Some(work) => format!(
                    "working on step {} ({}); {so_far}",
                    work.step.number,
                    work.claim.phase()
                ),
                None => so_far,
            },
        }
    }

    /// Where unfinished work of this start, or of the one whose end is told late, was put.
    fn newest_discarded(&self) -> Option<String> {
        self.of_this_start()
            .any(|l| l.text("said").starts_with("unfinished work is kept in"))
            .then(|| format!("veri discarded {}", self.issue_number))
    }
}
