//! Red, green, refactor and no-test: what each has to show before a verifier is asked.
//!
//! What can be seen without running anything is seen first. Single results (which test failed, which are gone) will
//! enter where [`Looking::suite`] reads a run's end.

use crate::cause::{Bail, Cause};
use crate::check::any_phase::{AnyAsk, any_phase};
use crate::check::change::changed;
use crate::check::lines::TestLines;
use crate::check::moved::moved;
use crate::check::outcome::{Ask, Evidence, Outcome, Run, Runner, What};
use crate::check::protect::in_place;
use crate::check::put_back::put_back;
use crate::check::tree::show;
use crate::role::Claim;
use crate::suite::paths::TestKind;
use crate::suite::{SuiteEnd, SuiteRun};
use git2::Oid;

/// What red is asked beside its trees.
#[derive(Debug, Clone, Copy, Default)]
pub struct RedRules {
    /// `tests.red_stubs = "forbid"`: no lines outside tests.
    pub forbid_stubs: bool,
}

/// Red: a test was added or changed, and it fails for want of the behaviour, twice, and nothing else does.
///
/// A red that `reopen_red` asked for is checked the same way: red may always change tests that stood before, and
/// `Evidence::change.existing_tests_changed` says which.
///
/// # Errors
/// Objects that cannot be read or written; what `run` returns.
pub fn red(ask: &Ask<'_>, rules: RedRules, run: &mut Runner<'_>) -> anyhow::Result<Outcome> {
    let mut looking = match Looking::start(ask)? {
        Ok(looking) => looking,
        Err(outcome) => return Ok(outcome),
    };
    let gone =
        looking.before.files.iter().filter(|(path, kind)| {
            **kind == TestKind::Command && looking.after.entry(path).is_none()
        });
    let gone: Vec<String> = gone
        .map(|(path, _)| {
            format!(
                "{}: the test command names this file, and it is gone",
                show(path)
            )
        })
        .collect();
    looking.reasons.extend(gone);
    let change = &looking.evidence.change;
    if !change.adds_test_lines() {
        let others = change.other_files_changed.join(", ");
        looking.fail(if others.is_empty() {
            "no test was added or changed: a test that is only removed shows nothing".to_owned()
        } else {
            format!(
                "no test was added or changed, only {others}. Tests are files in the usual places or those of \
                 tests.paths, and in Rust sources items under #[cfg(test)] and functions with a test attribute; doc \
                 tests do not count as a red"
            )
        });
    } else if rules.forbid_stubs && !change.listed.stubs.is_empty() {
        let stubs = change.listed.stubs.join(", ");
        looking.fail(format!(
            "lines outside the tests were changed ({stubs}), and tests.red_stubs = \"forbid\""
        ));
    }
    if looking.failed() {
        return Ok(looking.done(Claim::Red));
    }

    let first = match looking.suite(ask.candidate, What::Suite, false, run)? {
        Ok(first) => first,
        Err(outcome) => return Ok(outcome),
    };
    if first.passed() {
        let stubs = looking.evidence.change.listed.stubs.join(", ");
        if stubs.is_empty() {
            let evidence = looking.evidence;
            return Ok(Outcome::PassesAtOnce { evidence });
        }
        looking.fail(format!(
            "the suite passes, and lines outside the tests were changed ({stubs}): red is the test alone, with at \
             most what makes it compile; take the implementation out again"
        ));
        return Ok(looking.done(Claim::Red));
    }
    if !looking.is_red(&first) {
        return Ok(looking.done(Claim::Red));
    }
    let second = match looking.suite(ask.candidate, What::Suite, true, run)? {
        Ok(second) => second,
        Err(outcome) => return Ok(outcome),
    };
    if second.passed() {
        looking.fail(
            "the suite failed, and passed when it was run again on the same tree: the test is not reliable"
                .to_owned(),
        );
        return Ok(looking.done(Claim::Red));
    }
    if !looking.is_red(&second) {
        return Ok(looking.done(Claim::Red));
    }
    let without = put_back(ask.repo, &looking.before, &looking.after)?;
    let beside = match looking.suite(without, What::Suite, false, run)? {
        Ok(beside) => beside,
        Err(outcome) => return Ok(outcome),
    };
    if !beside.passed() {
        let reason = format!(
            "with the test lines put back as they were, the suite fails all the same: it is not (only) the test that \
             fails, something beside it is broken ({}). {}",
            looking.evidence.change.other_files_changed.join(", "),
            ended(&beside, ask.tail_bytes)
        );
        looking.fail(reason);
    }
    Ok(looking.done(Claim::Red))
}

/// Green: suite and extra checks pass, and every test that stood at red is what and where it was.
///
/// # Errors
/// Objects that cannot be read; what `run` returns.
pub fn green(ask: &Ask<'_>, run: &mut Runner<'_>) -> anyhow::Result<Outcome> {
    passing(ask, Claim::Green, in_place, run)
}

/// Refactor: as green, against the green commit; tests may move if they are the same otherwise.
///
/// # Errors
/// Objects that cannot be read; what `run` returns.
pub fn refactor(ask: &Ask<'_>, run: &mut Runner<'_>) -> anyhow::Result<Outcome> {
    passing(ask, Claim::Refactor, moved, run)
}

/// No test: suite and extra checks pass, and every test that stood before is what and where it was.
///
/// # Errors
/// Objects that cannot be read; what `run` returns.
pub fn no_test(ask: &Ask<'_>, run: &mut Runner<'_>) -> anyhow::Result<Outcome> {
    passing(ask, Claim::NoTest, in_place, run)
}

fn passing(
    ask: &Ask<'_>,
    claim: Claim,
    protect: fn(&TestLines, &TestLines) -> Vec<String>,
    run: &mut Runner<'_>,
) -> anyhow::Result<Outcome> {
    let mut looking = match Looking::start(ask)? {
        Ok(looking) => looking,
        Err(outcome) => return Ok(outcome),
    };
    for broken in protect(&looking.before, &looking.after) {
        looking.fail(broken);
    }
    if looking.failed() {
        return Ok(looking.done(claim));
    }
    let checks = (0..ask.extra_checks).map(What::Extra);
    for what in std::iter::once(What::Suite).chain(checks) {
        let seen = match looking.suite(ask.candidate, what, false, run)? {
            Ok(seen) => seen,
            Err(outcome) => return Ok(outcome),
        };
        if !seen.passed() {
            let name = match what {
                What::Suite => "the suite",
                What::Extra(_) => "an extra check",
            };
            looking.fail(format!("{name} fails. {}", ended(&seen, ask.tail_bytes)));
        }
    }
    Ok(looking.done(claim))
}

/// One candidate under the checks.
struct Looking<'a> {
    ask: &'a Ask<'a>,
    before: TestLines,
    after: TestLines,
    reasons: Vec<String>,
    evidence: Evidence,
}

impl<'a> Looking<'a> {
    /// What holds in any phase; the outcome at once when nothing changed.
    fn start(ask: &'a Ask<'a>) -> anyhow::Result<Result<Looking<'a>, Outcome>> {
        let found = any_phase(
            ask.repo,
            &AnyAsk {
                base_tree: ask.from,
                candidate: ask.candidate,
                max_file_bytes: ask.max_file_bytes,
                paths: ask.paths,
            },
        )?;
        if ask.from == ask.candidate && found.is_empty() {
            return Ok(Err(Outcome::Unchanged));
        }
        let before = TestLines::of(ask.repo, ask.from, ask.paths)?;
        let after = before.of_next(ask.repo, ask.candidate, ask.paths)?;
        let change = changed(ask.repo, &before, &after)?;
        let mut reasons: Vec<String> = found.into_iter().map(|finding| finding.message).collect();
        reasons.extend(change.unparsable.iter().map(|what| {
            format!(
                "{what} (this source cannot be parsed, so its tests cannot be told from its code)"
            )
        }));
        let runs = Vec::new();
        let evidence = Evidence { runs, change };
        Ok(Ok(Looking {
            ask,
            before,
            after,
            reasons,
            evidence,
        }))
    }

    fn fail(&mut self, reason: String) {
        self.reasons.push(reason);
    }

    fn failed(&self) -> bool {
        !self.reasons.is_empty()
    }

    fn done(self, claim: Claim) -> Outcome {
        let evidence = self.evidence;
        if self.reasons.is_empty() {
            Outcome::Holds { claim, evidence }
        } else {
            let reasons = self.reasons;
            Outcome::Failed { reasons, evidence }
        }
    }

    /// Runs something and keeps what was seen; the outcome when the run as a whole has to end.
    fn suite(
        &mut self,
        tree: Oid,
        what: What,
        again: bool,
        run: &mut Runner<'_>,
    ) -> anyhow::Result<Result<SuiteRun, Outcome>> {
        let seen = run(Run { tree, what, again })?;
        self.evidence.runs.push(seen.clone());
        Ok(match fatal(&seen) {
            Some(outcome) => Err(outcome),
            None => Ok(seen),
        })
    }

    /// Whether a run that did not pass failed as a test does; says why not.
    fn is_red(&mut self, seen: &SuiteRun) -> bool {
        let red = matches!(seen.end, SuiteEnd::Failed { .. });
        if !red {
            let how = ended(seen, self.ask.tail_bytes);
            self.fail(format!(
                "this is no red: a red test fails by its assertion. {how}"
            ));
        }
        red
    }
}

/// The outcome of a run's end that says nothing of the candidate.
pub(crate) fn fatal(seen: &SuiteRun) -> Option<Outcome> {
    let (command, log) = (&seen.command, seen.log.display());
    match seen.end {
        SuiteEnd::Unrunnable { code } => Some(Outcome::Bail(Bail::needs_user(format!(
            "`{command}` could not be run (exit code {code}: {}). Its output is in {log}. Is the program installed, \
             and is the command right? Set it with --test-cmd or in .veri.toml.",
            if code == 126 {
                "not executable"
            } else {
                "not found"
            },
        )))),
        SuiteEnd::KilledExternal { signal } => Some(Outcome::Bail(Bail::new(
            Cause::KilledExternal,
            format!(
                "`{command}` was ended by signal {signal}, which veri did not send (out of memory? a person?). Its \
                 output is in {log}. Run veri again to go on."
            ),
        ))),
        SuiteEnd::Stopped => Some(Outcome::Stopped),
        SuiteEnd::Passed
        | SuiteEnd::Failed { .. }
        | SuiteEnd::TimedOut { .. }
        | SuiteEnd::WaitsForChanges { .. }
        | SuiteEnd::Crashed { .. } => None,
    }
}

/// How a run ended, with the end of its log.
fn ended(seen: &SuiteRun, tail_bytes: usize) -> String {
    let how = match &seen.end {
        SuiteEnd::WaitsForChanges { .. } => seen.end.to_string(),
        SuiteEnd::Passed => "passed".to_owned(),
        SuiteEnd::Failed { code } | SuiteEnd::Unrunnable { code } => {
            format!("ended with exit code {code}")
        }
        SuiteEnd::TimedOut { seconds } => format!("did not end within {seconds} s"),
        SuiteEnd::Crashed { signal } => format!("crashed (signal {signal})"),
        SuiteEnd::KilledExternal { signal } => format!("was killed (signal {signal})"),
        SuiteEnd::Stopped => "was stopped".to_owned(),
    };
    format!(
        "`{}` {how}. {}",
        seen.command,
        crate::untrusted::of_log(&seen.log, tail_bytes)
    )
}
