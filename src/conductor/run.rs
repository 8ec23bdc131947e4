//! One start of the conductor: the loop, the journal, and what both need to know.

use super::failures::{StoppedInSuite, classify, known_cause, of_the_world, vanished};
use super::proving::services::Services;
use super::record::{self, Entry};
use super::settings::{Settings, Took};
use super::standing::Standing;
use super::stopping::signals::Asked;
use super::{Ask, Ended, stop};
use crate::agent::Agents;
use crate::cause::Cause;
use crate::config::Config;
use crate::event::{Kind, Line};
use crate::exit;
use crate::forge::trust::TrustedText;
use crate::forge::{Forge, Issue};
use crate::git::{Base, Guard, Repo, WorkTree};
use crate::ground::Ground;
use crate::journal::{Journal, Source};
use crate::lock::{Lock, Locked};
use crate::machine::{At, Effect, Ending, Event, State, next};
use crate::prompt::Templates;
use crate::role::{Claim, StopMode};
use anyhow::Result;
use git2::Oid;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// What a developer is told that wrote, moved or removed the journal.
pub(super) const JOURNAL_TOUCHED: &str =
    "the journal .tdd/events.jsonl was touched: it is veri's and was put back; leave it alone";

/// One start of the conductor.
pub(super) struct Run<'a> {
    pub(super) ask: &'a Ask,
    pub(super) issue_number: u64,
    pub(super) repo: Repo,
    pub(super) tree: WorkTree,
    /// `$VERI_HOME/<repo-id>`.
    pub(super) home: PathBuf,
    pub(super) settings: Settings,
    /// What the files of the configuration said when the run began, where that is known.
    pub(super) files: Option<Config>,
    pub(super) forge: Box<dyn Forge>,
    pub(super) journal: Journal,
    pub(super) source: Source,
    /// Every line of this issue, older starts included.
    pub(super) lines: Vec<Line>,
    pub(super) state: State,
    pub(super) watch: &'a mut dyn FnMut(&Line),
    pub(super) signals: Asked,
    pub(super) started: Instant,
    pub(super) last_words: Vec<String>,
    /// Filled by preflight.
    pub(super) ready: Option<Ready>,
    /// The issue, once the forge has given it.
    pub(super) issue: Option<Issue>,
    /// The strongest stop that was said and journalled in this start.
    pub(super) told_stop: Option<StopMode>,
    /// What of git the developer that is at work, or candidate code that runs, could change.
    pub(super) guard: Option<Guard>,
    /// What this start has itself seen of the claim under way.
    pub(super) seen: Seen,
    /// The folders that must still stand when the effect under way is performed.
    pub(super) standing: Standing,
    /// Whether this start has made the working tree.
    pub(super) made: bool,
    /// How many lines of other issues the journal holds.
    pub(super) others: usize,
    /// Whether what is over in the issue's thread is marked as over.
    pub(super) thread_in_order: bool,
    /// What `ground.services` names, from the baseline to the end.
    pub(super) services: Option<Services>,
    /// Counts the performed effects, for `VERI_CRASH_AT`.
    pub(super) effects: u64,
    /// Held until the run ends.
    pub(super) _locks: (Lock, Option<Locked>),
}

/// What this start has established itself, and need not take the journal's word for.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The tree whose checks held, and for which claim.
    pub(super) held: Option<(Claim, Oid)>,
    /// The tree that a verifier approved.
    pub(super) approved: Option<Oid>,
    /// Whether the forge has given the issue, trusted or not.
    pub(super) issue: bool,
}

/// What preflight has established.
pub(super) struct Ready {
    pub(super) text: TrustedText,
    pub(super) base: Base,
    pub(super) test_command: String,
    /// Where that is from, in words.
    pub(super) tests_from: String,
    pub(super) agents: Agents,
    pub(super) templates: Templates,
    pub(super) ground: Ground,
    /// What the suite took at baseline, in milliseconds.
    pub(super) suite_ms: u64,
    /// What the pull request must say of the ground, if anything.
    pub(super) isolation: Option<String>,
    /// The hash of the declared environment file; empty for none.
    pub(super) env_file: String,
    /// Files that suites are known to leave behind: not part of a candidate.
    pub(super) debris: Vec<Vec<u8>>,
    /// Whether leaves are confined that are to be.
    pub(super) sandbox: bool,
    /// What each command was seen to take.
    pub(super) took: BTreeMap<String, Took>,
}

impl Run<'_> {
    /// Performs what the machine awaits until the run has ended.
    pub(super) fn drive(mut self) -> Ended {
        match self.go_on() {
            Ok(()) => {}
            Err(error) => return self.internal(&error),
        }
        if let Err(error) = self.end_services() {
            self.last_words.push(format!("{error:#}"));
        }
        let Some(ending) = self.state.ending().cloned() else {
            return self.internal(&anyhow::anyhow!("the run awaits nothing and has not ended"));
        };
        self.close(&ending)
    }

    /// What preflight has established.
    pub(super) fn ready(&self) -> Result<&Ready> {
        self.ready
            .as_ref()
            .ok_or_else(|| anyhow::anyhow!("preflight has not passed in this start"))
    }

    pub(super) fn ready_mut(&mut self) -> Result<&mut Ready> {
        self.ready
            .as_mut()
            .ok_or_else(|| anyhow::anyhow!("preflight has not passed in this start"))
    }

    fn go_on(&mut self) -> Result<()> {
        while let Some(effect) = self.state.pending() {
            self.look_for_stops()?;
            self.crash_point("before");
            if let Some(mut entry) = record::intent(&effect) {
                if let Effect::Commit(_) = effect {
                    let head = self.tree.head()?.to_string();
                    entry.fields.insert("head".to_owned(), head.into());
                }
                self.write(entry)?;
                self.crash_point("intended");
            }
            self.standing = self.what_stands(&effect);
            // What is published or put in order is finished.
            let finish = matches!(self.state.at, At::Publishing | At::Unwinding(_));
            self.signals.may_end_calls(!finish);
            let performed = self.perform(&effect);
            let ended = self.signals.ended_a_call();
            self.signals.may_end_calls(false);
            let (event, fields) = match performed {
                // Whatever came of a call that was ended says nothing: the next start performs it again.
                _ if ended => {
                    self.look_for_stops()?;
                    (Event::Interrupted, Value::Null)
                }
                _ if let Some(bail) = self.standing.fallen() => (Event::Failed(bail), Value::Null),
                Ok(outcome) => outcome,
                Err(error) if error.is::<StoppedInSuite>() => {
                    // The request that ended it is what the run stops for.
                    self.look_for_stops()?;
                    (Event::Interrupted, Value::Null)
                }
                Err(error) => {
                    let bail = classify(&error, &effect, &self.own_folders());
                    (Event::Failed(bail), Value::Null)
                }
            };
            self.crash_point("after");
            self.tell_of_services()?;
            self.feed(event, Some(&effect), fields)?;
        }
        Ok(())
    }

    /// The folders that veri made for this run and that nobody else may take away.
    fn own_folders(&self) -> Vec<PathBuf> {
        let mut own = vec![
            self.home.clone(),
            self.tree.path().to_owned(),
            self.tree.tdd(),
            self.repo.git2().commondir().to_owned(),
        ];
        if let Some(ready) = &self.ready {
            own.extend([
                ready.ground.path().to_owned(),
                ready.ground.records().to_owned(),
            ]);
        }
        own
    }

    /// Gives the machine an event: what it makes of it is asked first, so that no event that cannot be gets into
    /// the journal; then it is journalled, then it counts, then whatever needs no waiting is done.
    pub(super) fn feed(
        &mut self,
        event: Event,
        effect: Option<&Effect>,
        fields: Value,
    ) -> Result<()> {
        let (state, effects) = next(self.state.clone(), event.clone())?;
        let mut entry = record::input(&event, effect);
        if let Value::Object(more) = fields {
            entry.fields.extend(more);
        }
        entry
            .fields
            .insert("input".to_owned(), serde_json::to_value(&event)?);
        let was_bailed = matches!(event, Event::Failed(_));
        let passed = matches!(event, Event::PreflightPassed { .. });
        self.write(entry)?;
        self.crash_point("journalled");
        let unwinding = |state: &State| matches!(state.at, At::Unwinding(_) | At::Ended(_));
        let before = unwinding(&self.state);
        self.state = state;
        if !before && unwinding(&self.state) && !was_bailed {
            self.tell_of_bail()?;
        }
        for effect in effects {
            match effect {
                Effect::Note(notice) => {
                    let entry = record::notice(&notice, self.state.work.as_ref());
                    self.write(entry)?;
                    self.noticed(&notice);
                }
                Effect::Mirror => self.mirror(),
                Effect::Push => self.push_if_wanted(),
                _ => {}
            }
        }
        if passed {
            self.mirror_going_on();
        }
        self.crash_point("told");
        Ok(())
    }

    /// A bail that the machine itself decided on has no line of its own yet.
    pub(super) fn tell_of_bail(&mut self) -> Result<()> {
        if let At::Unwinding(Ending::Bailed(bail)) = &self.state.at {
            let fields = record::bail_fields(bail);
            self.write(Entry::new(Kind::Bail, Default::default(), fields))?;
        }
        Ok(())
    }

    /// Writes a line and tells whoever watches.
    pub(super) fn write(&mut self, entry: Entry) -> Result<()> {
        self.beside_the_tree(|_, write| write(entry))
    }

    /// Does something with the working tree in the course of which lines are written.
    pub(super) fn beside_the_tree<T>(
        &mut self,
        act: impl FnOnce(&WorkTree, &mut dyn FnMut(Entry) -> Result<()>) -> T,
    ) -> T {
        let (journal, lines, watch) = (&mut self.journal, &mut self.lines, &mut self.watch);
        act(&self.tree, &mut |entry| {
            let line = journal.append(&self.source, &entry.subject, entry.kind, entry.fields)?;
            watch(&line);
            lines.push(line);
            Ok(())
        })
    }

    /// Says something to whoever watches and to the journal, under the kind of what it is about.
    pub(super) fn say(&mut self, kind: Kind, said: impl Into<String>) -> Result<()> {
        self.write(Entry::new(kind, Default::default(), Value::Null).say(said))
    }

    /// Kills the conductor at its n-th awaited effect: `VERI_CRASH_AT=n[:point]`, a testing aid.
    ///
    /// The points, in their order: before (the default), intended (the intent is journalled), launching and
    /// started (around the start of a leaf), committed (git has made the commit), after (the effect is
    /// performed), journalled (its outcome is, too), posted (a comment was put), told (notices, mirror and
    /// push are done).
    pub(super) fn crash_point(&mut self, point: &str) {
        if point == "before" {
            self.effects += 1;
        }
        let Some(word) = self.ask.env.text("VERI_CRASH_AT") else {
            return;
        };
        let (number, wanted) = word.split_once(':').unwrap_or((word, "before"));
        if wanted == point && number.parse() == Ok(self.effects) {
            let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        }
    }

    /// However the run ended, it has stopped: a request is not left for the next start.
    fn forget_stop(&mut self, ending: &Ending) {
        let overtaken = !matches!(ending, Ending::Stopped(_))
            && stop::look(&self.tree.tdd()) != stop::Request::None;
        stop::clear(&self.tree.tdd());
        if overtaken {
            let said =
                "the run ended before it could stop as it was asked to; the request is removed";
            drop(self.say(Kind::Stop, said));
        }
    }

    /// Where the output of the last leaf of this start lies, where that is what the run ended for.
    fn printed_last(&self, cause: Cause) -> Option<String> {
        use Cause::{KilledStuck, PlanInvalid, ReviseExhausted, VerdictMalformed};
        if !matches!(
            cause,
            KilledStuck | PlanInvalid | ReviseExhausted | VerdictMalformed
        ) {
            return None;
        }
        let newest = self.lines.iter().rev();
        let launch = newest
            .take_while(|l| l.run == self.source.run)
            .find(|l| l.event == Kind::Launch)?;
        let runs = self.tree.tdd().join("runs");
        let out = runs.join(format!("{}.out", launch.text("launch")));
        out.exists().then(|| {
            format!(
                "What the {} printed last: {} (and .err)",
                launch.actor,
                out.display()
            )
        })
    }

    /// Whether this start ended with the question of a leaf.
    fn was_asked(&self) -> bool {
        let run = &self.source.run;
        let newest = self.lines.iter().rev().take_while(|l| l.run == *run);
        newest
            .filter(|l| l.event == Kind::Exit)
            .take(1)
            .any(|l| l.text("said") == record::ASKS)
    }

    fn close(mut self, ending: &Ending) -> Ended {
        let resume = self.resume_command();
        let (word, code, last) = match ending {
            Ending::Done { .. } => ("done", exit::DONE, format!("done: {}", self.published())),
            Ending::Planned => (
                "planned",
                exit::DONE,
                format!(
                    "planned: `{resume}` goes on; the plan, to be read and edited: {}",
                    self.tree
                        .tdd()
                        .join(format!("issue-{}.md", self.issue_number))
                        .display()
                ),
            ),
            Ending::Stopped(mode) => (
                "stopped",
                exit::STOPPED,
                format!("stopped: {mode}; `{resume}` goes on"),
            ),
            Ending::Bailed(bail) => {
                self.last_words.push(bail.detail.clone());
                if self.was_asked() {
                    self.last_words.push(format!(
                        "Answer in a comment of issue {} ({}), or change the issue; then `{resume}` goes on.",
                        self.issue_number,
                        self.forge.describe()
                    ));
                }
                if let Some(printed) = self.printed_last(bail.cause) {
                    self.last_words.push(printed);
                }
                let class = bail.cause.class();
                (
                    "bailed",
                    class.exit_code(),
                    format!("bail: {} ({})", bail.cause, class.as_str()),
                )
            }
        };
        self.forget_stop(ending);
        let fields = json!({ "ending": word, "exit": code, "resume": resume });
        let entry = Entry::new(Kind::RunEnd, Default::default(), fields).say(word);
        if let Err(error) = self.write(entry) {
            self.last_words
                .push(format!("the end could not be journalled: {error:#}"));
        }
        self.last_words.push(last);
        self.leave(ending, code)
    }

    /// The loop itself failed: the journal cannot be written, or the machine refused an event.
    fn internal(self, error: &anyhow::Error) -> Ended {
        let own = self.own_folders();
        let mut last_words = self.last_words;
        if let Some(bail) = known_cause(error)
            .or_else(|| vanished(error, &own))
            .or_else(|| of_the_world(error))
        {
            let class = bail.cause.class();
            last_words.push(bail.detail.clone());
            last_words.push(format!("bail: {} ({})", bail.cause, class.as_str()));
            return Ended {
                exit: class.exit_code(),
                last_words,
            };
        }
        last_words.push(format!("internal error: {error:#}"));
        last_words.push(
            "this is a bug in veri: please report it with the journal; nothing finished is lost, \
             and the same command goes on"
                .to_owned(),
        );
        Ended {
            exit: exit::INTERNAL,
            last_words,
        }
    }
}
