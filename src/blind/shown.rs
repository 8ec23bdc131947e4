//! Paths and the lines added to them, as a verifier is shown them.

use crate::check::{AddedLines, TestLines, show};
use crate::prompt::escaped_line;
use std::fmt::Write as _;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Added,
    Changed,
    Deleted,
}

/// One path with what was added to it.
#[derive(Debug)]
pub(super) struct Shown {
    path: String,
    label: &'static str,
    fate: Fate,
    added: Vec<String>,
}

/// How many bytes of added lines one block of a prompt shows; the rest can be read in the checkout.
const BLOCK_BYTES: usize = 128 * 1024;

/// How many characters of one line are shown: generated and minified files have lines of megabytes.
const LINE_CHARS: usize = 1000;

impl Shown {
    /// Takes the lines of one path; what became of it is read from the two trees.
    pub(super) fn new(
        lines: AddedLines,
        label: &'static str,
        before: &TestLines,
        after: &TestLines,
    ) -> Shown {
        let (path, added) = lines;
        let fate = match (before.entry(&path), after.entry(&path)) {
            (None, _) => Fate::Added,
            (_, None) => Fate::Deleted,
            _ => Fate::Changed,
        };
        Shown {
            path: show(&path),
            label,
            fate,
            added,
        }
    }
}

/// Writes a data block.
pub(super) fn block(shown: &[Shown]) -> String {
    let mut block = String::new();
    let mut left = BLOCK_BYTES;
    for file in shown {
        let fate = match file.fate {
            Fate::Added => "new",
            Fate::Changed => "changed",
            Fate::Deleted => "deleted",
        };
        let _ = writeln!(block, "{} ({}{fate})", escaped_line(&file.path), file.label);
        for line in &file.added {
            let end = line.char_indices().nth(LINE_CHARS).map(|(end, _)| end);
            let (text, more) = match end {
                Some(end) => (&line[..end], " … (line cut)"),
                None => (line.as_str(), ""),
            };
            if left < text.len() + 1 {
                block.push_str("  (the other added lines are not shown here: read the file)\n");
                left = 0;
                break;
            }
            left -= text.len() + 1;
            let text: Vec<String> = text.split('\t').map(escaped_line).collect();
            let _ = writeln!(block, "  + {}{more}", text.join("\t"));
        }
    }
    block
}
