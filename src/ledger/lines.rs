//! The lines of a Markdown file, each with what it is at the top level of the document.
//!
//! As much of CommonMark as decides whether a line is a heading or an item of a top-level list, or lies
//! inside something that makes it neither: a code fence, indented code, a comment, an item's detail. A fence
//! or comment inside an item needs no following: whatever is indented belongs to the item, and the first line
//! that is not ends the item with all that is open in it.
//!
//! Not followed: HTML tags other than `pre`, `script`, `style` and `textarea`. A step right below a
//! `<details>` counts.

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// The byte at which it starts in the file.
    pub start: usize,
    /// Its text without its ending (LF, CRLF or CR) and without a byte order mark.
    pub text: &'a str,
    /// What it is.
    pub kind: Kind,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// White space alone.
    Blank,
    /// A heading; `content` is the byte in the line at which its text starts.
    Heading { level: usize, content: usize },
    /// The first line of an item of a top-level list.
    Item { content: usize, ordered: bool },
    /// Text that goes on with the paragraph of the line before, in an item or not.
    Continuation,
    /// Further lines of an item.
    Detail,
    /// The first line of a comment.
    Comment,
    /// Code, raw HTML, the inside of a comment, a rule, the underline of a heading.
    Hidden,
    /// The first line of anything else: a paragraph, a table, a quote.
    Text,
}

/// Something at the top level that runs on until it is closed, and where it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    /// The line that opened it.
    pub line: usize,
    /// What it is, for messages.
    pub what: &'static str,
    until: Until,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Fence { mark: u8, length: usize },
    Any(&'static [&'static str]),
}

/// What starts raw HTML that runs on over blank lines, and what ends it. Tags in lower case.
const RAW: &[(&str, &str, &[&str])] = &[
    ("<!--", "comment", &["-->"]),
    ("<?", "processing instruction", &["?>"]),
    ("<![cdata[", "CDATA section", &["]]>"]),
    ("<pre", "HTML block", RAW_ENDS),
    ("<script", "HTML block", RAW_ENDS),
    ("<style", "HTML block", RAW_ENDS),
    ("<textarea", "HTML block", RAW_ENDS),
];
const RAW_ENDS: &[&str] = &["</pre>", "</script>", "</style>", "</textarea>"];

/// Reads the lines of a file; also what is still open at its end.
pub(super) fn scan(file: &str) -> (Vec<Line<'_>>, Option<Open>) {
    let mut scanner = Scanner::default();
    for (index, (start, text)) in split(file).enumerate() {
        let kind = scanner.next(index + 1, text);
        scanner.lines.push(Line {
            number: index + 1,
            start,
            text,
            kind,
        });
    }
    (scanner.lines, scanner.open)
}

/// The lines of a file with the bytes at which they start.
fn split(file: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = if file.starts_with('\u{feff}') { 3 } else { 0 };
    std::iter::from_fn(move || {
        let rest = file.get(at..).filter(|rest| !rest.is_empty())?;
        let start = at;
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let ending = match rest.as_bytes()[length..] {
            [b'\r', b'\n', ..] => 2,
            [_, ..] => 1,
            [] => 0,
        };
        at += length + ending;
        Some((start, &rest[..length]))
    })
}

#[derive(Default)]
struct Scanner<'a> {
    lines: Vec<Line<'a>>,
    open: Option<Open>,
    /// Inside an item: the column at which its content starts.
    item: Option<usize>,
    /// Whether the next line can go on with a paragraph.
    paragraph: bool,
}

impl<'a> Scanner<'a> {
    fn next(&mut self, number: usize, text: &'a str) -> Kind {
        if let Some(open) = self.open {
            if open.until.ends(text) {
                self.open = None;
            }
            return Kind::Hidden;
        }
        let (indent, at) = indentation(text, 0, 0);
        let rest = &text[at..];
        if rest.is_empty() {
            self.paragraph = false;
            return Kind::Blank;
        }
        if self.item.is_some_and(|content| indent >= content) {
            self.paragraph &= !starts_block(rest);
            return if self.paragraph {
                Kind::Continuation
            } else {
                Kind::Detail
            };
        }
        if indent >= 4 || !starts_block(rest) {
            return self.text(indent, rest);
        }
        let kind = self.block(number, indent, at, text);
        if !matches!(kind, Kind::Item { .. }) {
            self.item = None;
        }
        kind
    }

    /// A line that starts no block: it goes on with a paragraph, or is a paragraph, or indented code.
    fn text(&mut self, indent: usize, rest: &str) -> Kind {
        if self.paragraph && self.item.is_none() && indent < 4 && is_underline(rest) {
            return self.underline(rest);
        }
        if self.paragraph {
            return Kind::Continuation;
        }
        self.item = None;
        if indent >= 4 {
            return Kind::Hidden;
        }
        self.paragraph = true;
        Kind::Text
    }

    /// The line makes a heading of the paragraph above it.
    fn underline(&mut self, rest: &str) -> Kind {
        if let Some(above) = self.lines.last_mut() {
            above.kind = Kind::Heading {
                level: if rest.starts_with('=') { 1 } else { 2 },
                content: indentation(above.text, 0, 0).1,
            };
        }
        self.paragraph = false;
        Kind::Hidden
    }

    /// A line that starts a block and lies in no item.
    fn block(&mut self, number: usize, indent: usize, at: usize, text: &str) -> Kind {
        let rest = &text[at..];
        if self.paragraph && self.item.is_none() && is_underline(rest) {
            return self.underline(rest);
        }
        self.paragraph = false;
        if let Some((level, content)) = heading(rest) {
            return Kind::Heading {
                level,
                content: at + content,
            };
        }
        if let Some(fence) = fence(rest) {
            self.open = Some(Open {
                line: number,
                what: "code fence",
                until: fence,
            });
            return Kind::Hidden;
        }
        if let Some((what, ends)) = raw(rest) {
            let until = Until::Any(ends);
            if !until.ends(rest) {
                self.open = Some(Open {
                    line: number,
                    what,
                    until,
                });
            }
            return if rest.starts_with("<!--") {
                Kind::Comment
            } else {
                Kind::Hidden
            };
        }
        if is_rule(rest) {
            return Kind::Hidden;
        }
        if let Some((marker, ordered)) = marker(rest) {
            let (column, content) = indentation(text, at + marker, indent + marker);
            let blanks = column - (indent + marker);
            let inside = &text[content..];
            // An item of nothing, or of indented code, has its content one blank after its marker.
            self.item = Some(if inside.is_empty() || blanks > 4 {
                indent + marker + 1
            } else {
                column
            });
            self.paragraph = !inside.is_empty() && blanks <= 4 && !starts_block(inside);
            return Kind::Item { content, ordered };
        }
        Kind::Text
    }
}

impl Until {
    fn ends(self, text: &str) -> bool {
        match self {
            Until::Any(ends) => {
                let lower = text.to_ascii_lowercase();
                ends.iter().any(|end| lower.contains(end))
            }
            Until::Fence { mark, length } => {
                let (indent, at) = indentation(text, 0, 0);
                let rest = &text[at..];
                let run = run_of(rest, mark);
                indent < 4 && run >= length && is_blank(&rest[run..])
            }
        }
    }
}

/// The column after the blanks that stand at byte `at`, in column `column`, and the byte after them.
fn indentation(text: &str, at: usize, column: usize) -> (usize, usize) {
    let mut reached = (column, at);
    for byte in &text.as_bytes()[at..] {
        match byte {
            b' ' => reached.0 += 1,
            b'\t' => reached.0 += 4 - reached.0 % 4,
            _ => break,
        }
        reached.1 += 1;
    }
    reached
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' ' | b'\t'))
}

fn run_of(text: &str, mark: u8) -> usize {
    text.bytes().take_while(|b| *b == mark).count()
}

/// Whether a line that begins thus (after its indentation) can not be the next line of a paragraph.
fn starts_block(rest: &str) -> bool {
    heading(rest).is_some()
        || fence(rest).is_some()
        || raw(rest).is_some()
        || is_rule(rest)
        || rest.starts_with('>')
        || marker(rest).is_some()
}

/// `#` to `######` and a blank or nothing: the level, and where the text starts.
fn heading(rest: &str) -> Option<(usize, usize)> {
    let level = run_of(rest, b'#');
    let (_, content) = indentation(rest, level, 0);
    ((1..=6).contains(&level) && (content > level || content == rest.len()))
        .then_some((level, content))
}

fn fence(rest: &str) -> Option<Until> {
    let mark = *rest.as_bytes().first()?;
    let length = run_of(rest, mark);
    let fences = match mark {
        b'`' => length >= 3 && !rest[length..].contains('`'),
        b'~' => length >= 3,
        _ => false,
    };
    fences.then_some(Until::Fence { mark, length })
}

fn raw(rest: &str) -> Option<(&'static str, &'static [&'static str])> {
    let (_, what, ends) = RAW.iter().find(|(start, ..)| {
        let begins = rest
            .get(..start.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(start));
        let tag = start.as_bytes()[1].is_ascii_alphabetic();
        let after = rest.as_bytes().get(start.len());
        begins && (!tag || after.is_none_or(|b| matches!(b, b' ' | b'\t' | b'>')))
    })?;
    Some((what, ends))
}

/// `***`, `- - -`, `___` and the like.
fn is_rule(rest: &str) -> bool {
    let Some(mark) = rest.bytes().next().filter(|b| b"*-_".contains(b)) else {
        return false;
    };
    let mut marks = 0;
    for byte in rest.bytes() {
        match byte {
            b' ' | b'\t' => {}
            b if b == mark => marks += 1,
            _ => return false,
        }
    }
    marks >= 3
}

/// The line under a heading: only `=`, or only `-`.
fn is_underline(rest: &str) -> bool {
    let run = run_of(rest, b'=').max(run_of(rest, b'-'));
    run > 0 && is_blank(&rest[run..])
}

/// The length of a list marker (a blank or nothing follows it), and whether it is a number.
fn marker(rest: &str) -> Option<(usize, bool)> {
    let bytes = rest.as_bytes();
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let (length, ordered) = match (digits, bytes.get(digits)?) {
        (0, b'-' | b'*' | b'+') => (1, false),
        (1..=9, b'.' | b')') => (digits + 1, true),
        _ => return None,
    };
    bytes
        .get(length)
        .is_none_or(|b| matches!(b, b' ' | b'\t'))
        .then_some((length, ordered))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter a line: what the scanner takes it for.
    fn check(file: &str, letters: &str) {
        let seen: String = scan(file)
            .0
            .iter()
            .map(|line| match line.kind {
                Kind::Blank => '.',
                Kind::Heading { .. } => 'h',
                Kind::Item { .. } => 'i',
                Kind::Continuation => 'c',
                Kind::Detail => 'd',
                Kind::Comment => '!',
                Kind::Hidden => '_',
                Kind::Text => 't',
            })
            .collect();
        assert_eq!(seen, letters, "{file}");
    }

    #[test]
    fn lines_end_as_commonmark_says() {
        let starts: Vec<_> = split("\u{feff}a\r\nb\rc\n\nd").collect();
        assert_eq!(starts, [(3, "a"), (6, "b"), (8, "c"), (10, ""), (11, "d")]);
    }

    #[test]
    fn fences_hide_what_is_in_them_until_one_as_long_closes() {
        check("```\n- a\n```\n- b", "___i");
        check("````\n- a\n```\n- b\n`````\n- c", "_____i");
        check("~~~ `x`\n```\n~~~ no\n# a\n  ~~~  \n# b", "_____h");
        check("``` `x`\n- a", "ti");
        check("    ```\n- a", "_i");
        check("```\n    ```\n- a\n```\n- b", "____i");
    }

    #[test]
    fn comments_and_raw_html_hide_what_is_in_them() {
        check("<!-- a -->\n- a", "!i");
        check("<!--\n- a\n\n# b\n-->\n- c", "!____i");
        check("<PRE>\n- a\n</pre> x\n- b", "___i");
        check("<preface>\n- a", "ti");
        check("text <!--\n- a", "ti");
    }

    #[test]
    fn what_is_indented_below_an_item_belongs_to_it() {
        check("- a\n  b\n\n  - c\n  ```\n- d", "ic.ddi");
        check("- a\n lazy\n\n text\n  - b", "ic.ti");
        check("-   a\n  - b\n    - c", "iid");
        check("- \n  a\n- b", "idi");
        check("-\ta\n\tb\n    - c", "icd");
        check("- a\n> quote\n  - b", "iti");
        check("1. a\n  - b\n   - c\n    - d", "iiid");
        check("- ```\n- a", "ii");
    }

    #[test]
    fn headings_of_both_styles_are_seen() {
        check("# a\n##\n###### b #\n#c\n####### d", "hhhtc");
        check("a\n===\nb\nc\n---\n\n---\n- d\n---", "h_th_._i_");
        check("    # a\n\n   # b", "_.h");
        check("a\n    # b", "tc");
    }

    #[test]
    fn rules_are_no_items() {
        check("* * *\n- - x\n___", "_i_");
    }

    #[test]
    fn what_is_still_open_at_the_end_is_said() {
        assert_eq!(
            scan("a\n```\nb").1.map(|o| (o.line, o.what)),
            Some((2, "code fence"))
        );
        assert_eq!(
            scan("<!--\n->").1.map(|o| (o.line, o.what)),
            Some((1, "comment"))
        );
        assert_eq!(scan("```\n```").1, None);
    }
}
