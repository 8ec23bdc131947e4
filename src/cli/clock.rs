//! The times that people are shown: those of the journal, which are UTC, to the second.

use std::ops::Range;

/// The time of day of a journal line.
pub fn clock(ts: &str) -> &str {
    part(ts, 11..19)
}

/// The day of a journal line.
pub fn day(ts: &str) -> &str {
    part(ts, 0..10)
}

/// A part of a time; empty where that is none: a journal is a file that a leaf can write into.
fn part(ts: &str, place: Range<usize>) -> &str {
    let part = ts.get(place).unwrap_or_default();
    let fits = |c: char| c.is_ascii_digit() || c == ':' || c == '-';
    if part.chars().all(fits) { part } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_are_shown_as_times() {
        let ts = "2026-11-30T21:43:00.359Z";
        assert_eq!((day(ts), clock(ts)), ("2026-11-30", "21:43:00"));
        assert_eq!((day("\x1b[2J------"), clock("ééééééééééé")), ("", ""));
    }
}
