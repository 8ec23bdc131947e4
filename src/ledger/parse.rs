//! Reading a ledger.

use super::cell::{cells, command};
use super::lines::{self, Kind, Line, Open};
use super::step;
use super::{Content, Criterion, Error, Ledger, Step};
use std::collections::BTreeMap;

/// The version of the format that is read and written.
pub(super) const VERSION: u32 = 1;

pub(super) fn ledger(bytes: &[u8]) -> Result<Ledger, Error> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = &bytes[..error.valid_up_to()];
        let valid = std::str::from_utf8(valid).unwrap_or_default();
        end_of(valid).error("the file is not UTF-8 text from here on")
    })?;
    let (lines, open) = lines::scan(text);
    let mut reader = Reader::default();
    for line in &lines {
        reader.line(line)?;
    }
    let (content, ticks) = reader.finish(&lines, open, end_of(text))?;
    Ok(Ledger {
        text: text.to_owned(),
        content,
        ticks,
    })
}

impl Line<'_> {
    /// An error at a byte of the line.
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> Error {
        Error {
            line: self.number,
            column: self.text.get(..at).unwrap_or(self.text).chars().count() + 1,
            message: message.into(),
        }
    }
}

/// The place behind the last character of a text.
struct End {
    line: usize,
    column: usize,
}

fn end_of(text: &str) -> End {
    match lines::scan(text).0.last() {
        Some(line) if text.ends_with(['\n', '\r']) => End {
            line: line.number + 1,
            column: 1,
        },
        Some(line) => End {
            line: line.number,
            column: line.text.chars().count() + 1,
        },
        None => End { line: 1, column: 1 },
    }
}

impl End {
    fn error(&self, message: impl Into<String>) -> Error {
        Error {
            line: self.line,
            column: self.column,
            message: message.into(),
        }
    }
}

/// Where in the file the reader is.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    #[default]
    Head,
    Criteria,
    Steps,
    Other,
}

/// The cells of the table, each with its row and the byte at which it starts in it.
type Row<'a> = (Line<'a>, usize, String);

#[derive(Default)]
struct Reader<'a> {
    section: Section,
    issue: Option<(u64, String)>,
    version: bool,
    rows: BTreeMap<&'static str, Row<'a>>,
    criteria: Vec<(Line<'a>, Criterion)>,
    /// Whether the line before belongs to the text of the last criterion.
    in_criterion: bool,
    steps: Vec<(Line<'a>, step::Parsed)>,
    numbers: BTreeMap<u32, usize>,
    titles: BTreeMap<String, usize>,
    seen: (bool, bool),
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &Line<'a>) -> Result<(), Error> {
        let in_criterion = std::mem::take(&mut self.in_criterion);
        match (line.kind, self.section) {
            (Kind::Heading { level, content }, _) => self.heading(line, level, content),
            (Kind::Comment, Section::Head) => self.marker(line),
            (Kind::Text | Kind::Continuation, Section::Head) => self.row(line),
            (Kind::Item { content, .. }, Section::Criteria) => self.criterion(line, content),
            (Kind::Continuation, Section::Criteria) if in_criterion => {
                if let Some((_, criterion)) = self.criteria.last_mut() {
                    criterion.text.push(' ');
                    criterion.text.push_str(line.text.trim());
                }
                self.in_criterion = true;
                Ok(())
            }
            (Kind::Item { content, ordered }, Section::Steps) => self.step(line, content, ordered),
            (Kind::Text | Kind::Continuation, Section::Steps) => step::near_miss(line),
            _ => Ok(()),
        }
    }

    fn heading(&mut self, line: &Line<'a>, level: usize, content: usize) -> Result<(), Error> {
        let text = line.text[content..].trim();
        if self.issue.is_none() {
            let issue = (level == 1).then(|| issue_heading(text)).flatten();
            self.issue = Some(issue.ok_or_else(|| {
                line.error(content, "the first heading has to be `# Issue N: title`")
            })?);
            return Ok(());
        }
        if level > 2 {
            return Ok(());
        }
        if self.section == Section::Head {
            self.head_is_complete(|message| line.error(0, message))?;
        }
        let name = text.trim_end_matches('#').trim_end();
        let (section, seen) = if level == 2 && name.eq_ignore_ascii_case("acceptance criteria") {
            (Section::Criteria, &mut self.seen.0)
        } else if level == 2 && name.eq_ignore_ascii_case("steps") {
            (Section::Steps, &mut self.seen.1)
        } else {
            self.section = Section::Other;
            return Ok(());
        };
        if std::mem::replace(seen, true) {
            return Err(line.error(content, format!("there is a second `## {name}`")));
        }
        self.section = section;
        Ok(())
    }

    /// Checks what has to stand above the first section.
    fn head_is_complete(&self, error: impl Fn(String) -> Error) -> Result<(), Error> {
        if !self.version {
            let marker = format!("<!-- veri ledger v{VERSION} -->");
            return Err(error(format!("`{marker}` is missing above")));
        }
        for key in ["issue", "base", "tests"] {
            if !self.rows.contains_key(key) {
                return Err(error(format!("the table above has no row `{key}`")));
            }
        }
        Ok(())
    }

    fn marker(&mut self, line: &Line<'a>) -> Result<(), Error> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let ["<!--", "veri", "ledger", version, "-->"] = words[..] {
            if version.strip_prefix('v') != Some(&VERSION.to_string()) {
                let at = line.text.find(version).unwrap_or_default();
                return Err(line.error(
                    at,
                    format!("version {version:?} of the format is not known, only \"v{VERSION}\""),
                ));
            }
            self.version = true;
        }
        Ok(())
    }

    fn row(&mut self, line: &Line<'a>) -> Result<(), Error> {
        if !line.text.trim_start().starts_with('|') {
            return Ok(());
        }
        let mut cells = cells(line.text).into_iter();
        let (Some((key_at, key)), value) = (cells.next(), cells.next()) else {
            return Ok(());
        };
        let keys = ["issue", "base", "tests"];
        let Some(key) = keys.into_iter().find(|one| key.eq_ignore_ascii_case(one)) else {
            return Ok(());
        };
        let (at, value) = value
            .filter(|(_, value)| !value.is_empty())
            .ok_or_else(|| line.error(key_at, format!("the row `{key}` is empty")))?;
        if self.rows.insert(key, (*line, at, value)).is_some() {
            return Err(line.error(key_at, format!("there is a second row `{key}`")));
        }
        Ok(())
    }

    fn criterion(&mut self, line: &Line<'a>, content: usize) -> Result<(), Error> {
        let Some((id, text_at)) = step::criterion(line, content)? else {
            return Ok(());
        };
        if let Some((first, _)) = self.criteria.iter().find(|(_, other)| other.id == id) {
            let message = format!("{id} is also the criterion of line {}", first.number);
            return Err(line.error(content, message));
        }
        self.criteria.push((
            *line,
            Criterion {
                id: id.to_owned(),
                text: line.text[text_at..].trim().to_owned(),
                inferred: None,
            },
        ));
        self.in_criterion = true;
        Ok(())
    }

    fn step(&mut self, line: &Line<'a>, content: usize, ordered: bool) -> Result<(), Error> {
        let Some(parsed) = step::step(line, content, ordered)? else {
            return Ok(());
        };
        let step = &parsed.step;
        if let Some(first) = self.numbers.insert(step.number, line.number) {
            let message = format!("{} is also the number of line {first}", step.number);
            return Err(line.error(parsed.number_at, message));
        }
        if let Some(first) = self.titles.insert(step.title.clone(), line.number) {
            let message = format!("this is also the title of line {first}");
            return Err(line.error(parsed.title_at, message));
        }
        self.steps.push((*line, parsed));
        Ok(())
    }

    fn finish(
        mut self,
        lines: &[Line<'a>],
        open: Option<Open>,
        end: End,
    ) -> Result<(Content, Vec<usize>), Error> {
        if let Some(open) = open
            && self.section != Section::Other
            && let Some(line) = lines.get(open.line - 1)
        {
            let message = format!("this {} is never closed and would hide the rest", open.what);
            return Err(line.error(line.text.len() - line.text.trim_start().len(), message));
        }
        let Some((issue_number, title)) = self.issue.take() else {
            return Err(end.error("there is no `# Issue N: title`"));
        };
        if self.section == Section::Head {
            self.head_is_complete(|message| end.error(message))?;
        }
        let criteria = self.take_criteria()?;
        if criteria.is_empty() {
            return Err(
                end.error("there is no criterion: below `## Acceptance criteria`, `- AC1: text`")
            );
        }
        let (steps, ticks) = self.take_steps(&criteria)?;
        if steps.is_empty() {
            return Err(end.error("there is no step: below `## Steps`, `- [ ] 1. title (AC1)`"));
        }
        let mut cell = |key| (self.rows.remove(key)).ok_or_else(|| end.error("a row is missing"));
        let (issue_row, issue_at, issue) = cell("issue")?;
        let number = issue.rsplit_once('#').map(|(_, number)| number.parse());
        if number != Some(Ok(issue_number)) {
            let message = format!("the heading says issue {issue_number}, this says {issue:?}");
            return Err(issue_row.error(issue_at, message));
        }
        let (_, _, base) = cell("base")?;
        let (tests_row, tests_at, tests) = cell("tests")?;
        let Some(tests) = command(&tests) else {
            let message = "the test command has to be one code span and nothing else";
            return Err(tests_row.error(tests_at, message));
        };
        Ok((
            Content {
                issue_number,
                issue,
                title,
                base,
                tests: tests.to_owned(),
                criteria,
                steps,
            },
            ticks,
        ))
    }

    fn take_criteria(&mut self) -> Result<Vec<Criterion>, Error> {
        let criteria = std::mem::take(&mut self.criteria).into_iter();
        criteria
            .map(|(line, criterion)| {
                let (text, inferred) = step::split_inferred(&criterion.text);
                if text.is_empty() {
                    let message = format!("{} has no text", criterion.id);
                    return Err(line.error(line.text.trim_end().len(), message));
                }
                Ok(Criterion {
                    text: text.to_owned(),
                    inferred: inferred.map(str::to_owned),
                    id: criterion.id,
                })
            })
            .collect()
    }

    /// The steps and the bytes of their ticks, once all criteria are known.
    fn take_steps(&mut self, criteria: &[Criterion]) -> Result<(Vec<Step>, Vec<usize>), Error> {
        let mut steps = Vec::new();
        let mut ticks = Vec::new();
        for (line, parsed) in std::mem::take(&mut self.steps) {
            for (id, at) in parsed.step.criteria.iter().zip(&parsed.criteria_at) {
                if !criteria.iter().any(|criterion| criterion.id == *id) {
                    let message = format!("{id} is not among the acceptance criteria");
                    return Err(line.error(*at, message));
                }
            }
            ticks.push(line.start + parsed.tick);
            steps.push(parsed.step);
        }
        Ok((steps, ticks))
    }
}

/// Reads `Issue 42: title`.
fn issue_heading(text: &str) -> Option<(u64, String)> {
    let (number, title) = text.strip_prefix("Issue ")?.split_once(':')?;
    let plain = number.bytes().all(|b| b.is_ascii_digit());
    let number = number.parse().ok().filter(|_| plain)?;
    Some((number, title.trim().to_owned()))
}
