//! `veri ledger`: the ledger without the conductor.

use crate::answer::clip;
use crate::exit;
use crate::ledger::{LARGEST, Ledger};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Read a ledger, or tick a step of it.
#[derive(Debug, clap::Args)]
pub struct LedgerCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Say whether FILE is a ledger; 2 and the line and column when it is not
    Check {
        /// The ledger
        file: PathBuf,
    },
    /// Print the title of the first step that is not ticked; 3 when all are
    Current {
        /// The ledger
        file: PathBuf,
    },
    /// Print what the ledger says
    Show {
        /// The ledger
        file: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Tick step N; changes one character of FILE, none when it is ticked already
    Tick {
        /// The ledger
        file: PathBuf,
        /// The number of the step
        #[arg(value_name = "N")]
        number: u32,
    },
}

impl LedgerCommand {
    /// Does it and gives the exit code: 0, 2 for a file that cannot be read as a ledger or a step that it
    /// does not have, 3 when `current` finds nothing left to do.
    pub fn run(self, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
        match self.action.run(out) {
            Ok(code) => code,
            Err(error) if super::is_closed_pipe(&error) => exit::DONE,
            Err(error) => {
                // Nowhere is left to say that standard error is closed.
                let _ = writeln!(err, "veri ledger: {error:#}");
                exit::PLUMBING_UNREADABLE
            }
        }
    }
}

impl Action {
    fn run(self, out: &mut dyn Write) -> anyhow::Result<u8> {
        match self {
            Action::Check { file } => {
                let ledger = read(&file)?;
                let done = ledger.steps().iter().filter(|step| step.ticked).count();
                writeln!(
                    out,
                    "issue {}: {done} of {} steps done",
                    ledger.issue_number(),
                    ledger.steps().len()
                )?;
            }
            Action::Current { file } => match read(&file)?.current() {
                Some(step) => writeln!(out, "{}", step.title)?,
                None => return Ok(exit::PLUMBING_NOTHING),
            },
            Action::Show { file, json: true } => {
                let ledger = read(&file)?;
                writeln!(out, "{}", serde_json::to_string_pretty(&ledger.to_json())?)?;
            }
            Action::Show { file, json: false } => out.write_all(shown(&read(&file)?).as_bytes())?,
            Action::Tick { file, number } => {
                let ledger = read(&file)?;
                let ticked = ledger.tick(number).with_context(|| named(&file))?;
                if ticked != ledger {
                    replace(&file, ticked.as_bytes())
                        .with_context(|| format!("cannot write the ledger {}", named(&file)))?;
                }
            }
        }
        Ok(exit::DONE)
    }
}

fn read(file: &Path) -> anyhow::Result<Ledger> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(LARGEST + 1).read_to_end(&mut bytes));
    read.with_context(|| format!("cannot read the ledger {}", named(file)))?;
    if bytes.len() as u64 > LARGEST {
        bail!("{} is larger than {LARGEST} bytes: no ledger", named(file));
    }
    Ledger::parse(&bytes).with_context(|| named(file))
}

/// Puts the bytes in the place of the file at once: whoever reads it, after a crash too, finds the old or the new.
fn replace(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // Through a symbolic link, which stays one.
    let file = file.canonicalize()?;
    let folder = file.parent().context("it lies in no folder")?;
    let mut new = tempfile::Builder::new()
        .prefix(".ledger-")
        .tempfile_in(folder)?;
    new.write_all(bytes)?;
    new.as_file()
        .set_permissions(file.metadata()?.permissions())?;
    new.as_file().sync_all()?;
    new.persist(&file)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

fn shown(ledger: &Ledger) -> String {
    let mut text = format!("issue {}: {}\n", ledger.issue_ref(), ledger.title());
    text += &format!("base   {}\ntests  {}\n\n", ledger.base(), ledger.tests());
    for criterion in ledger.criteria() {
        text += &format!("{}: {}", criterion.id, criterion.text);
        if let Some(reason) = &criterion.inferred {
            text += &format!(" (inferred: {reason})");
        }
        text.push('\n');
    }
    text.push('\n');
    let current = ledger.current().map(|step| step.number);
    for step in ledger.steps() {
        let mark = match step.ticked {
            true => "done",
            false if current == Some(step.number) => "next",
            false => "    ",
        };
        text += &format!(
            "{mark} {}. {} ({})",
            step.number,
            step.title,
            step.criteria.join(", ")
        );
        if let Some(reason) = &step.no_test {
            text += &format!(" [no test: {reason}]");
        }
        text.push('\n');
    }
    clip(&text, usize::MAX) + "\n"
}

fn named(file: &Path) -> String {
    clip(&file.display().to_string(), 4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::io::ErrorKind;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const LEDGER: &str = "# Issue 42: Limits\r\n\r\n<!-- veri ledger v1 -->\r\n\r\n| | |\r\n| --- | --- |\r\n\
        | issue | #42 |\r\n| base | main @ 3f2c |\r\n| tests | `cargo test` |\r\n\r\n\
        ## Acceptance criteria\r\n\r\n- AC1: Refused\r\n\r\n## Steps\r\n\r\n\
        - [x] 1. Refuse it (AC1)\r\n- [ ] 2. Say \"$(why)\" (AC1) [no test: words]\r\n";

    #[derive(Parser)]
    struct Door {
        #[command(flatten)]
        command: LedgerCommand,
    }

    /// The exit code, standard output and standard error of a command line.
    fn run(words: &[&str], file: &Path) -> (u8, String, String) {
        let words = words.iter().map(|word| match *word {
            "FILE" => file.as_os_str(),
            word => word.as_ref(),
        });
        let door = Door::try_parse_from(std::iter::once("ledger".as_ref()).chain(words)).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = door.command.run(&mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(err))
    }

    fn ledger() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("issue 42.md");
        std::fs::write(&file, LEDGER).unwrap();
        (folder, file)
    }

    #[test]
    fn current_prints_the_title_as_data_and_ends_with_3_when_all_is_done() {
        let (_folder, file) = ledger();
        let (code, out, err) = run(&["current", "FILE"], &file);
        assert_eq!(
            (code, out.as_str(), err.as_str()),
            (0, "Say \"$(why)\"\n", "")
        );
        assert_eq!(
            run(&["tick", "FILE", "2"], &file),
            (0, String::new(), String::new())
        );
        assert_eq!(
            run(&["current", "FILE"], &file),
            (3, String::new(), String::new())
        );
    }

    #[test]
    fn a_tick_changes_one_byte_and_keeps_mode_and_link() {
        let (folder, file) = ledger();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        let link = folder.path().join("link.md");
        symlink(&file, &link).unwrap();
        assert_eq!(run(&["tick", "FILE", "2"], &link).0, 0);
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            LEDGER.replace("[ ]", "[x]")
        );
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(
            folder.path().read_dir().unwrap().count(),
            2,
            "nothing is left behind"
        );
    }

    #[test]
    fn a_tick_of_a_ticked_step_leaves_the_file_alone_and_of_no_step_is_refused() {
        let (_folder, file) = ledger();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o400)).unwrap();
        assert_eq!(run(&["tick", "FILE", "1"], &file).0, 0);
        let (code, _, err) = run(&["tick", "FILE", "7"], &file);
        assert_eq!(code, 2);
        assert!(err.contains("issue 42.md: there is no step 7"), "{err}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), LEDGER);
    }

    #[test]
    fn what_is_no_ledger_is_said_with_line_and_column() {
        let (_folder, file) = ledger();
        std::fs::write(&file, LEDGER.replace("[ ]", "[?]")).unwrap();
        for words in [
            &["check", "FILE"][..],
            &["current", "FILE"],
            &["show", "FILE"],
            &["tick", "FILE", "2"],
        ] {
            let (code, out, err) = run(words, &file);
            assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
            assert!(
                err.contains("issue 42.md: line 18, column 4: a tick is"),
                "{err}"
            );
        }
        let (code, _, err) = run(&["check", "FILE"], Path::new("/nowhere/at all"));
        assert_eq!(code, 2);
        assert!(
            err.contains("cannot read the ledger /nowhere/at all: No such file"),
            "{err}"
        );
    }

    #[test]
    fn check_and_show_say_what_the_ledger_says() {
        let (_folder, file) = ledger();
        assert_eq!(
            run(&["check", "FILE"], &file).1,
            "issue 42: 1 of 2 steps done\n"
        );
        assert_eq!(
            run(&["show", "FILE"], &file).1,
            "issue #42: Limits\nbase   main @ 3f2c\ntests  cargo test\n\nAC1: Refused\n\n\
             done 1. Refuse it (AC1)\nnext 2. Say \"$(why)\" (AC1) [no test: words]\n"
        );
        let json: serde_json::Value =
            serde_json::from_str(&run(&["show", "FILE", "--json"], &file).1).unwrap();
        assert_eq!(json["current"], 2);
        assert_eq!(json["steps"][1]["no_test"], "words");
    }

    #[test]
    fn a_reader_that_goes_away_is_no_failure() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (_folder, file) = ledger();
        let action = Action::Show { file, json: false };
        let mut err = Vec::new();
        assert_eq!(LedgerCommand { action }.run(&mut Gone, &mut err), 0);
        assert!(err.is_empty());
    }
}
