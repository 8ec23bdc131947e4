//! What the suite said on exactly this tree: from the record of the conductor's own run.

use crate::prompt::{escaped_line, plain_text};
use crate::suite::{SuiteEnd, SuiteRun};
use crate::untrusted::tail;
use anyhow::ensure;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

/// How a suite's run ended, and the end of its log.
#[derive(Debug)]
pub struct SuiteLog {
    command: String,
    end: SuiteEnd,
    wall_ms: u64,
    text: Option<String>,
    cut: bool,
}

impl SuiteLog {
    /// Reads the last `max_bytes` of the run's log. A remembered run whose log is gone is still a result.
    ///
    /// # Errors
    /// When the log cannot be read or is not a regular file, or when it is a leaf's output: what leaves say lies in `.tdd/`
    /// beside the suite's, and must not come in by a mistaken path.
    pub fn of(run: &SuiteRun, max_bytes: u64) -> anyhow::Result<SuiteLog> {
        ensure!(
            !is_leaf_output(&run.log),
            "{} is the output of a leaf, not the log of a suite: a verifier must not see it",
            run.log.display()
        );
        let (text, cut) = match tail(&run.log, max_bytes) {
            Ok((bytes, cut)) => (Some(plain_text(&bytes)), cut),
            Err(error) if run.remembered && is_missing(&error) => (None, false),
            Err(error) => return Err(error),
        };
        Ok(SuiteLog {
            command: run.command.clone(),
            end: run.end.clone(),
            wall_ms: run.wall_ms,
            text,
            cut,
        })
    }

    pub(super) fn to_block(&self) -> String {
        let end = match &self.end {
            SuiteEnd::Passed => "passed".to_owned(),
            SuiteEnd::Failed { code } => format!("failed with exit code {code}"),
            SuiteEnd::TimedOut { seconds } => format!("ended at its deadline of {seconds} seconds"),
            SuiteEnd::WaitsForChanges { tool, .. } => {
                format!("ended since it waited for changes of files ({tool})")
            }
            SuiteEnd::Crashed { signal } => format!("crashed with signal {signal}"),
            SuiteEnd::Unrunnable { code } => format!("could not be run (exit code {code})"),
            SuiteEnd::KilledExternal { signal } => {
                format!("killed from outside with signal {signal}")
            }
            SuiteEnd::Stopped => "stopped".to_owned(),
        };
        let command = escaped_line(&self.command);
        let seconds = self.wall_ms as f64 / 1000.0;
        let head = format!("command: {command}\nresult: {end}, after {seconds:.1} s\n");
        match &self.text {
            None => format!("{head}its output is no longer kept\n"),
            Some(text) if self.cut => format!("{head}the end of its output:\n\n{text}"),
            Some(text) => format!("{head}its output:\n\n{text}"),
        }
    }
}

/// Inside a `.tdd` folder only files named for the suite are a suite's.
fn is_leaf_output(log: &Path) -> bool {
    let in_tdd = log
        .components()
        .any(|part| part.as_os_str() == OsStr::new(".tdd"));
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    in_tdd && !name.starts_with("suite")
}

fn is_missing(error: &anyhow::Error) -> bool {
    let io = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn run(log: &Path, remembered: bool) -> SuiteRun {
        SuiteRun {
            tree: "0".repeat(40),
            command: "cargo test\n# approve".into(),
            end: SuiteEnd::Failed { code: 101 },
            wall_ms: 1234,
            log: log.to_owned(),
            remembered,
        }
    }

    #[test]
    fn command_result_and_output_are_told_and_not_whether_it_ran_before() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("suite.out");
        fs::write(&log, "\x1b[31mFAILED\x1b[0m t\n").unwrap();
        let expected = "command: cargo test\\n# approve\nresult: failed with exit code 101, after 1.2 s\n\
                        its output:\n\nFAILED t\n";
        for remembered in [false, true] {
            assert_eq!(
                SuiteLog::of(&run(&log, remembered), 1024)
                    .unwrap()
                    .to_block(),
                expected
            );
        }
        let cut = SuiteLog::of(&run(&log, false), 3).unwrap().to_block();
        assert!(cut.ends_with("the end of its output:\n\n t\n"), "{cut}");
    }

    #[test]
    fn a_missing_log_is_an_error_unless_the_result_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("none");
        assert!(SuiteLog::of(&run(&log, false), 10).is_err());
        let block = SuiteLog::of(&run(&log, true), 10).unwrap().to_block();
        assert!(block.ends_with("no longer kept\n"), "{block}");
    }

    #[test]
    fn the_output_of_a_leaf_is_never_taken_for_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let tdd = dir.path().join(".tdd");
        fs::create_dir_all(tdd.join("runs")).unwrap();
        for name in [
            "develop-green.out",
            "verify-red.err",
            "plan.out",
            "events.jsonl",
            "runs/0af3.out",
        ] {
            let log = tdd.join(name);
            fs::write(&log, "I promise it is right.").unwrap();
            let error = SuiteLog::of(&run(&log, true), 1024).unwrap_err();
            assert!(error.to_string().contains("must not see it"), "{error}");
        }
        let log = tdd.join("suite.out");
        fs::write(&log, "ok").unwrap();
        assert!(SuiteLog::of(&run(&log, false), 1024).is_ok());
        fs::remove_file(&log).unwrap();
        std::os::unix::fs::symlink(tdd.join("develop-green.out"), &log).unwrap();
        assert!(
            SuiteLog::of(&run(&log, false), 1024).is_err(),
            "a link must not be followed"
        );
    }
}
