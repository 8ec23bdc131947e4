//! Untrusted text made fit to be published: leaves, tests and issues have a say in comments and pull
//! requests, and can use it neither to notify people, close issues, leak credentials nor forge markup.
//!
//! [`clean`] is the core, for every text. The others also fit it into its place in Markdown.

use super::redact::redact;
use super::visible::{is_control, is_invisible, unix_lines};

/// Breaks up what a forge would act on and shows nothing itself. [`clean`] removes it from what comes
/// in, so that cleaning twice is as once.
const BREAK: char = '\u{200b}';

/// Redacts credentials, removes control and invisible characters, and defuses mentions (`@name`),
/// issue references (`#9`, `GH-9`, with or without closing keywords) and addresses.
///
/// At most one character (three bytes) is added for each that was there, and ten for each credential
/// in an address, which can be shorter than the `[redacted]` that replaces it.
pub fn clean(text: &str) -> String {
    defuse(&redact(&printable(text)))
}

fn printable(text: &str) -> String {
    unix_lines(text)
        .chars()
        .filter(|c| !is_control(*c) && !is_invisible(*c))
        .collect()
}

fn defuse(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for (at, c) in text.char_indices() {
        out.push(c);
        let after = &text[at + c.len_utf8()..];
        let next = after.chars().next();
        let digit_follows = next.is_some_and(|n| n.is_ascii_digit());
        let follows = |word: &str| {
            let start = at.checked_sub(word.len());
            start
                .and_then(|start| text.get(start..at))
                .is_some_and(|before| before.eq_ignore_ascii_case(word))
        };
        let live = match c {
            '@' => next.is_some_and(|n| !n.is_whitespace()),
            '#' => digit_follows,
            '-' => digit_follows && follows("gh"),
            ':' => after.starts_with("//"),
            '.' => follows("www") && next.is_some(),
            _ => false,
        };
        if live {
            out.push(BREAK);
        }
    }
    out
}

/// Cuts on a character boundary to at most `max` bytes, `…` included; says whether it cut.
pub fn cut(text: &str, max: usize) -> (String, bool) {
    if text.len() <= max {
        return (text.to_owned(), false);
    }
    let mut end = max.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (format!("{}…", &text[..end]), true)
}

/// One line of plain words for a place that is not markup: a title. At most `max` bytes.
pub fn line(text: &str, max: usize) -> String {
    let words = clean(text);
    cut(&words.split_whitespace().collect::<Vec<_>>().join(" "), max).0
}

/// One line inside Markdown, with no markup of its own but `code` between single backticks. At most
/// `2 * max + 1` bytes.
pub fn inline(text: &str, max: usize) -> String {
    escape(&line(text, max))
}

/// One line inside an HTML element such as `<summary>`, where Markdown is not read.
pub fn html(text: &str, max: usize) -> String {
    line(text, max)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A name or path as a code span.
pub fn code(text: &str, max: usize) -> String {
    span(&line(text, max))
}

/// A command of the person's own as a code span: nothing is put into it, so that it can be copied.
pub fn command(text: &str, max: usize) -> String {
    let words = redact(&printable(text));
    span(&cut(&words.split_whitespace().collect::<Vec<_>>().join(" "), max).0)
}

/// Text of several lines as a quotation: each line read as prose, none as markup.
pub fn quote(text: &str, max: usize) -> String {
    let (text, _) = cut(&clean(text), max);
    let mut out = String::new();
    for raw in text.trim_matches('\n').lines() {
        let bare = raw.trim();
        let indent = raw.len() - raw.trim_start().len();
        out.push('>');
        if !bare.is_empty() {
            out.push(' ');
            // No-break spaces keep an indent without making it code.
            out.extend(std::iter::repeat_n('\u{a0}', indent.min(8)));
            out.push_str(&escape(bare));
        }
        out.push('\n');
    }
    out
}

/// Text of several lines as a fenced block that nothing inside can close. Ends with a line feed.
pub fn fence(text: &str, language: &str, max: usize) -> String {
    let (text, _) = cut(&clean(text), max);
    fenced(&text, language)
}

/// Commands of the person's own as a fenced block that can be copied: nothing is put into them.
pub fn command_fence(text: &str, max: usize) -> String {
    let (text, _) = cut(&redact(&printable(text)), max);
    fenced(&text, "sh")
}

fn fenced(text: &str, language: &str) -> String {
    let ticks = "`".repeat(longest_run(text).max(2) + 1);
    let text = text.trim_matches('\n');
    format!("{ticks}{language}\n{text}\n{ticks}\n")
}

fn span(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let ticks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Escapes what Markdown would read as markup in one line that stands behind a list or quote mark.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let chars: Vec<char> = text.chars().collect();
    let digits = chars.iter().take_while(|c| c.is_ascii_digit()).count();
    let alphanumeric = |at: Option<usize>| {
        at.and_then(|at| chars.get(at))
            .is_some_and(|c| c.is_alphanumeric())
    };
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if c == '`'
            && let Some(end) = simple_span(&chars, at)
        {
            out.extend(&chars[at..=end]);
            at = end + 1;
            continue;
        }
        let special = match c {
            '\\' | '`' | '*' | '[' | '<' | '$' | '~' | '|' => true,
            // Inside a word it is a letter: `test_of_it`.
            '_' => !(alphanumeric(at.checked_sub(1)) && alphanumeric(Some(at + 1))),
            '&' => chars
                .get(at + 1)
                .is_some_and(|n| *n == '#' || n.is_ascii_alphabetic()),
            '#' | '>' | '-' | '+' | '=' => at == 0,
            '.' | ')' => digits > 0 && at == digits,
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(c);
        at += 1;
    }
    out
}

/// The end of a span of code between single backticks that begins here.
fn simple_span(chars: &[char], start: usize) -> Option<usize> {
    let alone = |at: usize| {
        let tick = |at: Option<usize>| at.and_then(|at| chars.get(at)) == Some(&'`');
        !tick(at.checked_sub(1)) && !tick(Some(at + 1))
    };
    let length = chars[start + 1..].iter().position(|c| *c == '`')?;
    let end = start + 1 + length;
    (length > 0 && alone(start) && alone(end)).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mentions_references_and_addresses_are_defused() {
        for (text, expected) in [
            ("ask @octocat", "ask @\u{200b}octocat"),
            ("does not close #967", "does not close #\u{200b}967"),
            (
                "fixes acme/bank#9, GH-7",
                "fixes acme/bank#\u{200b}9, GH-\u{200b}7",
            ),
            (
                "see https://x.y/issues/9",
                "see https:\u{200b}//x.y/issues/9",
            ),
            ("www.x.y", "www.\u{200b}x.y"),
            ("a #tag, x - 3, a: b @ c", "a #tag, x - 3, a: b @ c"),
            ("@\u{200b}\u{200d}octocat\0\u{1b}", "@\u{200b}octocat"),
            ("ghp_\u{200b}aaaabbbbccccddddeeee", "[redacted]"),
        ] {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn markup_in_a_line_is_words() {
        for (text, expected) in [
            (
                "<img src=x> **b** [a](b)",
                "\\<img src=x> \\*\\*b\\*\\* \\[a](b)",
            ),
            (
                "calls `a*b` with snake_case_name _x_",
                "calls `a*b` with snake_case_name \\_x\\_",
            ),
            ("# heading", "\\# heading"),
            ("- [ ] item", "\\- \\[ ] item"),
            ("12. item", "12\\. item"),
            ("a ``b` c `d", "a \\`\\`b` c `d"),
            ("&#64;octocat & &amp;", "\\&#\u{200b}64;octocat & \\&amp;"),
            ("two\nlines\r\n three", "two lines three"),
            ("\\<b>", "\\\\\\<b>"),
        ] {
            assert_eq!(inline(text, 500), expected);
        }
        assert_eq!(html("<b> & \"x\"", 99), "&lt;b&gt; &amp; &quot;x&quot;");
    }

    #[test]
    fn code_and_fences_cannot_be_left() {
        assert_eq!(code("a`b", 99), "``a`b``");
        assert_eq!(code("`a", 99), "`` `a ``");
        assert_eq!(
            fence("x\n````\n</details>", "", 99),
            "`````\nx\n````\n</details>\n`````\n"
        );
        assert_eq!(command("cargo test -p @x/y", 99), "`cargo test -p @x/y`");
        assert_eq!(quote("a\n\n  # b\n", 99), "> a\n>\n> \u{a0}\u{a0}\\# b\n");
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(cut("äöü", 6), ("äöü".to_owned(), false));
        assert_eq!(cut("äöüä", 7), ("äö…".to_owned(), true));
        assert_eq!(cut("abc", 2), ("…".to_owned(), true));
    }

    /// Pieces that patterns and rules care about, next to anything.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("@".to_owned()),
            Just("#".to_owned()),
            Just("closes ".to_owned()),
            Just("GH-".to_owned()),
            Just("://".to_owned()),
            Just("www.".to_owned()),
            Just("`".to_owned()),
            Just("```\n".to_owned()),
            Just("<!--".to_owned()),
            Just("&#64;".to_owned()),
            Just("\u{200b}".to_owned()),
            Just("\\".to_owned()),
            Just("Bearer ".to_owned()),
            Just("Authorization: ".to_owned()),
            Just("X_TOKEN=".to_owned()),
            Just("-----BEGIN PRIVATE KEY-----".to_owned()),
            Just("u:p@".to_owned()),
            Just("ghp_aaaabbbbccccdddd".to_owned()),
            Just("sk-aaaabbbbccccddddeeee".to_owned()),
            "[a-z0-9]{1,20}",
            "\\PC{0,8}",
            "[\\x00-\\x20]{0,3}",
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// What GitHub would turn into a mention.
    fn mentions(text: &str) -> bool {
        text.split('@')
            .skip(1)
            .any(|after| after.starts_with(|c: char| c.is_ascii_alphanumeric()))
    }

    proptest! {
        #[test]
        fn cleaning_is_idempotent_and_bounded(text in hostile()) {
            let once = clean(&text);
            prop_assert_eq!(clean(&once), once.clone());
            let credentials = text.matches("://").count();
            prop_assert!(once.chars().count() <= 2 * text.chars().count() + 10 * credentials);
        }

        #[test]
        fn nothing_published_acts(text in hostile(), max in 0usize..60) {
            for published in [
                clean(&text), line(&text, max), inline(&text, max), html(&text, max),
                code(&text, max), quote(&text, max), fence(&text, "", max),
            ] {
                prop_assert!(!mentions(&published), "{published}");
                prop_assert!(!published.contains("://"), "{published}");
                let reference = published.split('#').skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_digit()));
                prop_assert!(!reference, "{published}");
                prop_assert!(!published.contains("ghp_aaaabbbbccccdddd"), "{published}");
            }
            prop_assert!(line(&text, max).len() <= max.max(3));
            prop_assert!(inline(&text, max).len() <= 2 * max.max(3) + 1);
        }

        #[test]
        fn a_fence_is_closed_by_its_own_last_line_only(text in hostile()) {
            let block = fence(&text, "", 1000);
            let mut lines = block.lines();
            let open = lines.next().unwrap().to_owned();
            let closing: Vec<usize> = lines.clone().enumerate()
                .filter(|(_, l)| l.trim().starts_with(open.as_str())).map(|(at, _)| at).collect();
            prop_assert_eq!(closing, vec![lines.count() - 1]);
        }
    }
}
