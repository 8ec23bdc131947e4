//! One start of the conductor: the loop, the journal, and what both need to know.

use super::failures::{StoppedInSuite, classify, known_cause};
use super::record::{self, Entry};
use super::settings::Settings;
use super::signals::Asked;
use super::suites::Took;
use super::{Ask, Ended, stop};
use crate::agent::Agents;
use crate::event::{Kind, Line};
use crate::exit;
use crate::forge::trust::TrustedText;
use crate::forge::{Forge, Issue};
use crate::git::{Base, Repo, WorkTree};
use crate::ground::Ground;
use crate::journal::{Journal, Source};
use crate::lock::Lock;
use crate::machine::{Effect, Ending, Event, State, next};
use crate::prompt::Templates;
use crate::role::StopMode;
use anyhow::Result;
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
    /// What was undone of a leaf's doings before this start's preflight: tampering, and what is only said.
    pub(super) settled: (Vec<String>, Vec<String>),
    /// Counts the performed effects, for `VERI_CRASH_AT`.
    pub(super) effects: u64,
    /// Held until the run ends.
    pub(super) _lock: Lock,
}

/// What preflight has established.
pub(super) struct Ready {
    pub(super) text: TrustedText,
    pub(super) base: Base,
    pub(super) test_command: String,
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
        let Some(ending) = self.state.ending().cloned() else {
            return self.internal(&anyhow::anyhow!("the run awaits nothing and has not ended"));
        };
        self.close(&ending)
    }

    fn go_on(&mut self) -> Result<()> {
        while let Some(effect) = self.state.pending() {
            self.look_for_stops()?;
            self.crash_point("before");
            if let Some(entry) = record::intent(&effect) {
                self.write(entry)?;
            }
            let (event, fields) = match self.perform(&effect) {
                Ok(outcome) => outcome,
                Err(error) if error.is::<StoppedInSuite>() => (Event::Interrupted, Value::Null),
                Err(error) => (Event::Failed(classify(&error, &effect)), Value::Null),
            };
            self.crash_point("after");
            self.feed(event, Some(&effect), fields)?;
        }
        Ok(())
    }

    /// Gives the machine an event: journalled first, then whatever needs no waiting.
    pub(super) fn feed(
        &mut self,
        event: Event,
        effect: Option<&Effect>,
        fields: Value,
    ) -> Result<()> {
        let mut entry = record::input(&event, effect);
        if let Value::Object(more) = fields {
            entry.fields.extend(more);
        }
        entry
            .fields
            .insert("input".to_owned(), serde_json::to_value(&event)?);
        let was_bailed = matches!(event, Event::Failed(_));
        self.write(entry)?;
        let unwinding = |state: &State| {
            matches!(
                state.at,
                crate::machine::At::Unwinding(_) | crate::machine::At::Ended(_)
            )
        };
        let before = unwinding(&self.state);
        let (state, effects) = next(self.state.clone(), event)?;
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
        Ok(())
    }

    /// A bail that the machine itself decided on has no line of its own yet.
    fn tell_of_bail(&mut self) -> Result<()> {
        if let crate::machine::At::Unwinding(Ending::Bailed(bail)) = &self.state.at {
            let fields = record::bail_fields(bail);
            self.write(Entry::new(Kind::Bail, Default::default(), fields))?;
        }
        Ok(())
    }

    /// Writes a line and tells whoever watches.
    pub(super) fn write(&mut self, entry: Entry) -> Result<()> {
        let line = self
            .journal
            .append(&self.source, &entry.subject, entry.kind, entry.fields)?;
        (self.watch)(&line);
        self.lines.push(line);
        Ok(())
    }

    /// Says something to whoever watches and to the journal, under the kind of what it is about.
    pub(super) fn say(&mut self, kind: Kind, said: impl Into<String>) -> Result<()> {
        self.write(Entry::new(kind, Default::default(), Value::Null).say(said))
    }

    /// The stop that is asked for by now, by file or by signal.
    pub(super) fn stop_mode(&mut self) -> Option<StopMode> {
        stop::look(&self.tree.tdd()).mode().max(self.signals.mode())
    }

    fn look_for_stops(&mut self) -> Result<()> {
        if let stop::Request::Doubtful(why) = stop::look(&self.tree.tdd())
            && self.state.stop.is_none()
        {
            self.say(
                Kind::Stop,
                format!("a stop request is there but no mode ({why}); it counts as at-ledger"),
            )?;
        }
        if let Some(mode) = self.stop_mode()
            && self.state.stop.is_none_or(|known| known < mode)
        {
            self.feed(Event::StopAsked { mode }, None, Value::Null)?;
            if self.signals.mode() == Some(StopMode::AtLeaf) {
                self.say(
                    Kind::Stop,
                    "the running leaf may end; press Ctrl-C again to end it now",
                )?;
            }
        }
        Ok(())
    }

    /// Kills the conductor at the n-th effect: `VERI_CRASH_AT=n[:before|after]`, a testing aid.
    fn crash_point(&mut self, side: &str) {
        if side == "before" {
            self.effects += 1;
        }
        let Some(word) = self.ask.env.text("VERI_CRASH_AT") else {
            return;
        };
        let (number, wanted) = word.split_once(':').unwrap_or((word, "before"));
        if wanted == side && number.parse() == Ok(self.effects) {
            let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        }
    }

    fn close(mut self, ending: &Ending) -> Ended {
        let n = self.issue_number;
        let (word, code, last) = match ending {
            Ending::Done { url } => {
                let place = url.as_deref().unwrap_or("no pull request was wanted");
                ("done", exit::DONE, format!("done: {place}"))
            }
            Ending::Planned => (
                "planned",
                exit::DONE,
                format!("planned: `veri tdd {n}` goes on"),
            ),
            Ending::Stopped(mode) => (
                "stopped",
                exit::STOPPED,
                format!("stopped: {mode}; `veri tdd {n}` goes on"),
            ),
            Ending::Bailed(bail) => {
                self.last_words.push(bail.detail.clone());
                let class = bail.cause.class();
                (
                    "bailed",
                    class.exit_code(),
                    format!("bail: {} ({})", bail.cause, class.as_str()),
                )
            }
        };
        let fields = json!({ "ending": word, "exit": code });
        let entry = Entry::new(Kind::RunEnd, Default::default(), fields).say(word);
        if let Err(error) = self.write(entry) {
            self.last_words
                .push(format!("the end could not be journalled: {error:#}"));
        }
        if matches!(ending, Ending::Done { .. } | Ending::Stopped(_)) {
            stop::clear(&self.tree.tdd());
        }
        self.last_words.push(last);
        Ended {
            exit: code,
            last_words: self.last_words,
        }
    }

    /// The loop itself failed: the journal cannot be written, or the machine refused an event.
    fn internal(self, error: &anyhow::Error) -> Ended {
        let mut last_words = self.last_words;
        if let Some(bail) = known_cause(error) {
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
