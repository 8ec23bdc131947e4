//! One step's line, and one criterion's text.

use super::lines::Line;
use super::{Error, Step};
use crate::plan::{INFERRED_MARK, NO_TEST_MARK, is_criterion_id, is_title_char};

/// How a step is written, for messages.
const SHAPE: &str = "a step is written `- [ ] N. title (AC1)`";

/// A step as it stands in its line.
pub(super) struct Parsed {
    pub step: Step,
    /// The byte in the line of its tick.
    pub tick: usize,
    /// The bytes in the line at which its number and title start.
    pub number_at: usize,
    pub title_at: usize,
    /// The same for each criterion that it names.
    pub criteria_at: Vec<usize>,
}

/// Reads an item below `## Steps`; None when it is a person's note.
///
/// What is nearly a step is an error and not a note: a step that is silently skipped would be silently not done.
pub(super) fn step(
    line: &Line<'_>,
    content: usize,
    ordered: bool,
) -> Result<Option<Parsed>, Error> {
    let text = line.text;
    let Some((tick, rest)) = checkbox(line, content)? else {
        return Ok(None);
    };
    if ordered {
        return Err(line.error(0, format!("the number goes behind the tick: {SHAPE}")));
    }
    let ticked = match &text[content + 1..rest - 1] {
        " " => false,
        "x" | "X" => true,
        other => {
            return Err(line.error(tick, format!("a tick is a blank, x or X, not {other:?}")));
        }
    };
    let number_at = skip_blanks(text, rest);
    if number_at == rest {
        return Err(line.error(rest, format!("a blank is missing behind the tick: {SHAPE}")));
    }
    let after = number_at + digits(&text[number_at..]);
    let title_at = skip_blanks(text, after + 1);
    if after == number_at || !text[after..].starts_with('.') || title_at == after + 1 {
        return Err(line.error(number_at, format!("this step has no number: {SHAPE}")));
    }
    let number = text[number_at..after]
        .parse()
        .map_err(|_| line.error(number_at, "the number of this step is too large"))?;
    let tail = tail(line, title_at)?;
    Ok(Some(Parsed {
        step: Step {
            number,
            title: tail.title.to_owned(),
            criteria: tail
                .criteria
                .iter()
                .map(|(_, id)| (*id).to_owned())
                .collect(),
            ticked,
            no_test: tail.no_test.map(str::to_owned),
        },
        tick,
        number_at,
        title_at,
        criteria_at: tail.criteria.iter().map(|(at, _)| *at).collect(),
    }))
}

/// Where the tick of an item is, and what comes behind its bracket; None for an item without a tick.
fn checkbox(line: &Line<'_>, content: usize) -> Result<Option<(usize, usize)>, Error> {
    let text = &line.text[content..];
    let numbered = |text: &str| {
        let number = digits(text);
        number > 0 && text[number..].starts_with('.')
    };
    let Some(body) = text.strip_prefix('[') else {
        if numbered(text) {
            return Err(line.error(content, format!("this step has no tick: {SHAPE}")));
        }
        return Ok(None);
    };
    let Some((inside, rest)) = body.split_once(']') else {
        return Err(line.error(content, format!("the bracket is not closed: {SHAPE}")));
    };
    // `[x](…)`, `[x][…]` and `[x]: …` are links, and so is `[more] …`.
    let tick = inside.chars().nth(1).is_none() && !rest.starts_with(['(', '[', ':']);
    if tick || numbered(rest.trim_start()) {
        return Ok(Some((content + 1, content + inside.len() + 2)));
    }
    Ok(None)
}

/// A line below `## Steps` that is no item, though it was most likely meant to be one.
pub(super) fn near_miss(line: &Line<'_>) -> Result<(), Error> {
    let starts = ["-[", "*[", "+[", "[ ]", "[x]", "[X]"];
    if starts.iter().any(|start| line.text.starts_with(start)) {
        return Err(line.error(0, format!("this is no item of a list: {SHAPE}")));
    }
    Ok(())
}

struct Tail<'a> {
    title: &'a str,
    criteria: Vec<(usize, &'a str)>,
    no_test: Option<&'a str>,
}

/// Reads `title (AC1, AC2) [no test: reason]` from the byte on.
fn tail<'a>(line: &Line<'a>, from: usize) -> Result<Tail<'a>, Error> {
    let text: &'a str = line.text.trim_end();
    let mut end = text.len();
    let mut no_test = None;
    if text.ends_with(']')
        && let Some(mark) = text[from..].rfind(NO_TEST_MARK).map(|at| from + at)
    {
        let reason = text[mark + NO_TEST_MARK.len()..text.len() - 1].trim();
        if reason.is_empty() {
            return Err(line.error(mark, "`[no test: …]` needs its reason"));
        }
        no_test = Some(reason);
        end = text[..mark].trim_end().len();
    }
    let body = &text[..end.max(from)];
    let missing = || {
        let message = format!("this step names no criterion at its end: {SHAPE}");
        line.error(body.len(), message)
    };
    let inside_end = body.len() - usize::from(body.ends_with(')'));
    let open = body[from..].rfind('(').map(|at| from + at);
    let (true, Some(open)) = (inside_end < body.len(), open) else {
        return Err(missing());
    };
    let mut criteria: Vec<(usize, &str)> = Vec::new();
    let mut at = open + 1;
    for part in body[at..inside_end].split(',') {
        let id = part.trim();
        let id_at = at + (part.len() - part.trim_start().len());
        if !is_criterion_id(id) {
            return Err(line.error(
                id_at,
                format!("{id:?} is no criterion (AC and a number); {SHAPE}"),
            ));
        }
        if criteria.iter().any(|(_, other)| *other == id) {
            return Err(line.error(id_at, format!("{id} is named twice")));
        }
        criteria.push((id_at, id));
        at += part.len() + 1;
    }
    let title = body[from..open].trim_end();
    if title.is_empty() {
        return Err(line.error(from, format!("this step has no title: {SHAPE}")));
    }
    if title.len() == open - from {
        return Err(line.error(open, "a blank is missing in front of the criteria"));
    }
    if let Some((at, c)) = title.char_indices().find(|(_, c)| !is_title_char(*c)) {
        return Err(line.error(
            from + at,
            format!("the title has a control character (U+{:04X})", u32::from(c)),
        ));
    }
    Ok(Tail {
        title,
        criteria,
        no_test,
    })
}

/// Reads the start of a criterion, `AC1: text`: its id and the byte at which its text starts. None for a note.
pub(super) fn criterion<'a>(
    line: &Line<'a>,
    content: usize,
) -> Result<Option<(&'a str, usize)>, Error> {
    let text = &line.text[content..];
    let is_one = text
        .get(..2)
        .is_some_and(|ac| ac.eq_ignore_ascii_case("AC"))
        && text.as_bytes().get(2).is_some_and(u8::is_ascii_digit);
    if !is_one {
        return Ok(None);
    }
    let length = 2 + digits(&text[2..]);
    if !is_criterion_id(&text[..length]) || !text[length..].starts_with(':') {
        return Err(line.error(content, "a criterion is written `- AC1: text`"));
    }
    Ok(Some((&text[..length], content + length + 1)))
}

/// Takes a criterion's text apart: what must hold, and why it is assumed.
pub(super) fn split_inferred(text: &str) -> (&str, Option<&str>) {
    if let Some(inside) = text.strip_suffix(')')
        && let Some((text, reason)) = inside.split_once(INFERRED_MARK)
        && text.ends_with(' ')
        && !reason.trim().is_empty()
    {
        return (text.trim(), Some(reason.trim()));
    }
    (text.trim(), None)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The byte behind the blanks that stand at this one.
fn skip_blanks(text: &str, from: usize) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}
