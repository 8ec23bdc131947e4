//! The cells of a Markdown table, and a command in a code span inside one.
//!
//! A pipe in a cell is written `\|`, in a code span too; a backslash before anything else is itself.

/// A cell of a row: its text without blanks at its ends, and the byte in the row at which it starts.
pub(super) type Cell = (usize, String);

/// The cells of a row, which begins with a pipe.
pub(super) fn cells(row: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut start = None;
    let mut escaped = false;
    for (at, c) in row.char_indices() {
        if c == '|' && escaped {
            cell.pop();
            cell.push('|');
        } else if c == '|' {
            if let Some(start) = start {
                cells.push(trimmed(start, &cell));
            }
            cell.clear();
            start = Some(at + 1);
        } else if start.is_some() {
            cell.push(c);
        }
        escaped = c == '\\';
    }
    if let Some(start) = start
        && !cell.trim().is_empty()
    {
        cells.push(trimmed(start, &cell));
    }
    cells
}

fn trimmed(start: usize, cell: &str) -> Cell {
    let text = cell.trim_start_matches([' ', '\t']);
    let blanks = cell.len() - text.len();
    (
        start + blanks,
        text.trim_end_matches([' ', '\t']).to_owned(),
    )
}

/// The text of a cell that reads back as this one.
pub(super) fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A code span of a command: more backticks around it than in it, blanks where it begins or ends with one.
pub(super) fn code_span(command: &str) -> String {
    let ticks = "`".repeat(longest_run(command) + 1);
    let pad = if command.starts_with('`') || command.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{command}{pad}{ticks}")
}

/// The command of a cell: what its code span holds, or the cell itself when it has no backtick at either end.
/// None when there are backticks and the cell is not one code span.
pub(super) fn command(cell: &str) -> Option<&str> {
    if !cell.starts_with('`') && !cell.ends_with('`') {
        return Some(cell);
    }
    let ticks = cell.len() - cell.trim_start_matches('`').len();
    let inside = cell.get(ticks..cell.len().checked_sub(ticks)?)?;
    let ends = cell[ticks + inside.len()..].bytes().all(|b| b == b'`');
    if ticks == 0 || !ends || inside.is_empty() || inside.ends_with('`') || has_run(inside, ticks) {
        return None;
    }
    Some(inside.trim_matches([' ', '\t']))
}

fn longest_run(text: &str) -> usize {
    runs(text).max().unwrap_or(0)
}

fn has_run(text: &str, length: usize) -> bool {
    runs(text).any(|run| run == length)
}

/// The lengths of the runs of backticks.
fn runs(text: &str) -> impl Iterator<Item = usize> {
    text.split(|c| c != '`').map(str::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_are_split_at_bare_pipes() {
        let texts = |row: &str| cells(row).into_iter().map(|c| c.1).collect::<Vec<_>>();
        assert_eq!(texts("| a | b |"), ["a", "b"]);
        assert_eq!(texts("|a|b"), ["a", "b"]);
        assert_eq!(texts("| a \\| b | |"), ["a | b", ""]);
        assert_eq!(texts("| é\t| \\x |  "), ["é", "\\x"]);
        assert_eq!(cells("| é | b |")[1].0, 7);
    }

    #[test]
    fn a_cell_that_is_not_one_code_span_is_no_command() {
        assert_eq!(command("`cargo test`"), Some("cargo test"));
        assert_eq!(command("cargo test"), Some("cargo test"));
        assert_eq!(command("`` a`b ``"), Some("a`b"));
        assert_eq!(command("`a` && `b`"), None);
        assert_eq!(command("`a"), None);
        assert_eq!(command("a`"), None);
        assert_eq!(command("``"), None);
        assert_eq!(command("``a`"), None);
        assert_eq!(command("`a``"), None);
    }

    proptest! {
        #[test]
        fn every_command_comes_back(pieces in prop::collection::vec(
            prop::sample::select(vec!["`", "``", "|", "\\", "\\|", " ", "a", "é", "$(x)", "\"", "'"]), 1..12)) {
            let text = pieces.concat();
            let text = text.trim();
            prop_assume!(!text.is_empty());
            let row = format!("| tests | {} |", escape(&code_span(text)));
            let cells = cells(&row);
            prop_assert_eq!(cells.len(), 2);
            prop_assert_eq!(command(&cells[1].1), Some(text));
        }
    }
}
