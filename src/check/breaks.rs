//! The patch that comes with the approval of an already-there claim: the code broken so that the test fails.

use crate::check::any_phase::{AnyAsk, any_phase};
use crate::check::change::changed;
use crate::check::lines::TestLines;
use crate::check::outcome::{Ask, Outcome, Run, Runner, What};
use crate::check::phase::fatal;
use crate::suite::{SuiteEnd, SuiteRun};
use git2::Diff;

/// Patches larger than this, in bytes, are not small.
const MAX_PATCH: usize = 64 << 10;

/// What came of the patch.
#[derive(Debug)]
pub enum Breaks {
    /// The suite fails under it: the test is not vacuous.
    Shown {
        /// The failing run.
        run: Box<SuiteRun>,
    },
    /// It shows nothing.
    Refused {
        /// Why, for the journal and the developer.
        why: String,
    },
    /// The run as a whole has to end: `Outcome::Bail` or `Outcome::Stopped`.
    Ended(Box<Outcome>),
}

/// Applies a patch to the candidate and sees for itself whether the suite then fails. The patch is in git's format,
/// changes code and no test line, and leaves Rust sources that can be parsed (a broken build shows nothing).
///
/// # Errors
/// Objects that cannot be read or written; what `run` returns.
pub fn breaks_with(ask: &Ask<'_>, patch: &str, run: &mut Runner<'_>) -> anyhow::Result<Breaks> {
    let refused = |why: String| Ok(Breaks::Refused { why });
    if patch.len() > MAX_PATCH {
        return refused(format!("the patch is larger than {MAX_PATCH} bytes"));
    }
    let patch = in_git_format(patch);
    let repo = ask.repo;
    let diff = match Diff::from_buffer(patch.as_bytes()) {
        Ok(diff) if diff.deltas().len() > 0 => diff,
        Ok(_) => return refused("the patch changes nothing".to_owned()),
        Err(error) => return refused(format!("the patch cannot be read: {}", error.message())),
    };
    let tree = repo.find_tree(ask.candidate)?;
    let applied = repo
        .apply_to_tree(&tree, &diff, None)
        .and_then(|mut index| index.write_tree_to(repo));
    let broken = match applied {
        Ok(tree) => tree,
        Err(error) => {
            return refused(format!("the patch does not apply: {}", error.message()));
        }
    };
    let found = any_phase(
        repo,
        &AnyAsk {
            base_tree: ask.candidate,
            candidate: broken,
            max_file_bytes: ask.max_file_bytes,
            paths: ask.paths,
        },
    )?;
    if let Some(finding) = found.first() {
        return refused(format!("the patched tree: {}", finding.message));
    }
    let before = TestLines::of(repo, ask.candidate, ask.paths)?;
    let after = before.of_next(repo, broken, ask.paths)?;
    let change = changed(repo, &before, &after)?;
    if let Some(what) = change.unparsable.first() {
        return refused(format!("the patched source cannot be parsed: {what}"));
    }
    if change.touches_tests() {
        return refused("the patch touches tests or their configuration".to_owned());
    }
    if change.other_files_changed.is_empty() {
        return refused("the patch changes nothing".to_owned());
    }
    let seen = run(Run {
        tree: broken,
        what: What::Suite,
        again: false,
    })?;
    if let Some(outcome) = fatal(&seen) {
        return Ok(Breaks::Ended(Box::new(outcome)));
    }
    match seen.end {
        SuiteEnd::Failed { .. } => Ok(Breaks::Shown {
            run: Box::new(seen),
        }),
        SuiteEnd::Passed => refused("the suite passes under the patch, too".to_owned()),
        _ => refused(
            "under the patch the suite crashes or does not end, which no test shows".to_owned(),
        ),
    }
}

/// The patch with the headers that git's format asks for and `diff -u` leaves out, and a line break at its end.
fn in_git_format(patch: &str) -> String {
    let patch = patch.trim_start_matches(['\n', '\r']);
    let mut lines: Vec<String> = Vec::new();
    let has_headers = patch.lines().any(|line| line.starts_with("diff --git "));
    let mut ahead = patch.lines().peekable();
    while let Some(line) = ahead.next() {
        let files = line
            .strip_prefix("--- ")
            .zip(ahead.peek().and_then(|next| next.strip_prefix("+++ ")));
        if let (false, Some((old, new))) = (has_headers, files) {
            let name = |side: &str| {
                let name = side.split('\t').next().unwrap_or(side).trim_end();
                let named = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"));
                (name != "/dev/null").then(|| named.unwrap_or(name).to_owned())
            };
            let (old, new) = (name(old), name(new));
            if let Some(path) = new.as_ref().or(old.as_ref()) {
                lines.push(format!("diff --git a/{path} b/{path}"));
                if old.is_none() {
                    lines.push("new file mode 100644".to_owned());
                }
                if new.is_none() {
                    lines.push("deleted file mode 100644".to_owned());
                }
                let side = |letter: &str, name: Option<String>| {
                    name.map_or("/dev/null".to_owned(), |name| format!("{letter}/{name}"))
                };
                lines.push(format!("--- {}", side("a", old)));
                lines.push(format!("+++ {}", side("b", new)));
                ahead.next();
                continue;
            }
        }
        lines.push(line.to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}
