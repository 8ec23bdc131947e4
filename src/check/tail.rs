//! The end of a log, for the developer.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The last lines of a log, at most `limit` bytes of them, after a line that says where the whole is. Escape sequences
/// and other control characters are left out, bytes that are not UTF-8 are replaced.
pub fn tail(log: &Path, limit: usize) -> String {
    match end_of(log, limit) {
        Ok(text) if text.is_empty() => format!("It wrote nothing ({}).", log.display()),
        Ok(text) => format!("The end of {}:\n{text}", log.display()),
        Err(error) => format!("Its log {} cannot be read: {error}.", log.display()),
    }
}

fn end_of(log: &Path, limit: usize) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(limit as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(limit as u64).read_to_end(&mut bytes)?;
    if from > 0 {
        // Not from the middle of a line, nor of a character; one line that is longer than all of it, from its middle.
        let start = bytes.iter().position(|b| *b == b'\n').map_or_else(
            || {
                bytes
                    .iter()
                    .position(|b| *b & 0xC0 != 0x80)
                    .unwrap_or(bytes.len())
            },
            |newline| newline + 1,
        );
        bytes.drain(..start);
    }
    Ok(plain(&String::from_utf8_lossy(&bytes))
        .trim_end()
        .to_owned())
}

/// Without escape sequences (`ESC [ … letter`) and control characters, line breaks and tabs aside.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
                }
            }
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(content: &[u8], limit: usize) -> String {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, content).unwrap();
        end_of(&log, limit).unwrap()
    }

    #[test]
    fn whole_lines_of_the_end() {
        assert_eq!(tail_of(b"one\ntwo\nthree\n", 10), "three");
        assert_eq!(tail_of(b"one\ntwo\n", 100), "one\ntwo");
        assert_eq!(tail_of(b"", 100), "");
    }

    #[test]
    fn never_from_the_middle_of_a_character() {
        for limit in 1..20 {
            let text = tail_of("a€€€€€€".as_bytes(), limit);
            assert!(!text.contains('\u{fffd}'), "{limit}: {text}");
        }
    }

    #[test]
    fn escape_sequences_are_left_out() {
        assert_eq!(
            tail_of(b"\x1b[31mred\x1b[0m\x07\r\nplain", 100),
            "red\nplain"
        );
    }

    #[test]
    fn a_log_that_is_gone_is_said() {
        assert!(tail(Path::new("/nowhere/log"), 10).contains("cannot be read"));
    }
}
