//! What a reader of an issue's page can see. The rest is taken out of the text, and named.

use regex::Regex;
use std::sync::LazyLock;

/// A text without what its reader cannot see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Visible {
    pub text: String,
    /// One line for each thing taken out.
    pub removed: Vec<String>,
}

/// How much of a hidden text is shown to the person who is told of it, in characters.
const SHOWN: usize = 120;

/// Whether a character shows nothing, or changes the order in which others show: zero-width and
/// filler characters, variation selectors, bidirectional controls, tag characters.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character controls a terminal or a parser rather than showing anything; line feed and
/// tab aside.
pub(super) fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Every line end as LF, Unicode's own included.
pub(super) fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace(['\r', '\u{85}', '\u{2028}', '\u{2029}'], "\n")
}

/// Takes out of a Markdown text what its reader cannot see.
///
/// HTML comments inside fenced code can be seen and stay, where it is certain that GitHub too sees a
/// fence there; in doubt they go. Not covered, because a click or the pointer shows it: targets and
/// titles of links, folded sections.
pub(super) fn visible(text: &str) -> Visible {
    let mut removed = vec![];
    let text = without_characters(&unix_lines(text), &mut removed);
    let text = without_comments(&text, &mut removed);
    Visible { text, removed }
}

fn without_characters(text: &str, removed: &mut Vec<String>) -> String {
    let (mut unseen, mut controls) = (0usize, 0usize);
    let mut tags = String::new();
    let kept = text
        .chars()
        .filter(|c| {
            // Tag characters mirror ASCII: text that only a machine reads.
            if let Some(ascii) = (*c as u32)
                .checked_sub(0xe0000)
                .filter(|n| (0x20..0x7f).contains(n))
            {
                tags.extend(char::from_u32(ascii));
            } else if is_invisible(*c) {
                unseen += 1;
            } else if is_control(*c) {
                controls += 1;
            } else {
                return true;
            }
            false
        })
        .collect();
    if !tags.is_empty() {
        removed.push(format!(
            "text in invisible tag characters: {}",
            shown(&tags)
        ));
    }
    if unseen > 0 {
        removed.push(format!("{unseen} zero-width or direction characters"));
    }
    if controls > 0 {
        removed.push(format!("{controls} control characters"));
    }
    kept
}

fn shown(hidden: &str) -> String {
    let line = hidden.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(SHOWN).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    format!("“{short}{more}”")
}

enum Place {
    Prose,
    Fence { mark: char, length: usize },
    Comment(String),
}

fn without_comments(text: &str, removed: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut place = Place::Prose;
    // Raw HTML and fences inside lists or quotes make it uncertain where GitHub sees code.
    let mut fences_are_certain = true;
    let last_close = text.rfind("-->");
    let mut read = 0;
    for line in text.split_inclusive('\n') {
        read += line.len();
        let mut rest = line;
        if let Place::Fence { mark, length } = place {
            out.push_str(line);
            if closes(line, mark, length) {
                place = Place::Prose;
            }
            continue;
        }
        if let Place::Comment(hidden) = &mut place {
            let Some(end) = line.find("-->") else {
                hidden.push_str(line);
                continue;
            };
            hidden.push_str(&line[..end]);
            removed.push(format!("an HTML comment: {}", shown(hidden)));
            rest = &line[end + 3..];
            place = Place::Prose;
        } else if fences_are_certain && let Some((mark, length)) = opens(line) {
            out.push_str(line);
            place = Place::Fence { mark, length };
            continue;
        }
        let mut prose = String::new();
        while let Some(start) = rest.find("<!--") {
            prose.push_str(&rest[..start]);
            let inside = &rest[start + 4..];
            // `<!-->` and `<!--->` are whole comments.
            if let Some(end) = rest[start + 2..].find("-->") {
                let hidden = inside.get(..end.saturating_sub(2)).unwrap_or_default();
                removed.push(format!("an HTML comment: {}", shown(hidden)));
                rest = &rest[start + 2 + end + 3..];
            } else if last_close.is_some_and(|at| at >= read) || opens_a_block(&prose) {
                place = Place::Comment(inside.to_owned());
                rest = "";
            } else {
                // Never closed in the middle of a paragraph: the reader sees it.
                rest = &rest[start..];
                break;
            }
        }
        prose.push_str(rest);
        if HIDDEN_DEFINITION.is_match(&prose) {
            removed.push(format!("a hidden link definition: {}", shown(&prose)));
            prose = "\n".to_owned();
        }
        fences_are_certain &= !UNCERTAIN.is_match(&prose);
        out.push_str(&prose);
    }
    if let Place::Comment(hidden) = place {
        removed.push(format!(
            "an HTML comment that is never closed: {}",
            shown(&hidden)
        ));
    }
    out
}

#[allow(clippy::expect_used)] // Constant patterns, compiled by every test of this room.
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

/// `[//]: # (text)`: a link that leads nowhere, used as a comment.
static HIDDEN_DEFINITION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^\s*\[[^\[\]]+\]:\s*(?:#|<>|<#>)\s*(?:["'(].*)?\n?$"#));

static UNCERTAIN: LazyLock<Regex> = LazyLock::new(|| pattern(r"<[A-Za-z/?!]|```|~~~"));

/// A fence at the very beginning of a line, where no list or quote can hold it.
fn opens(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let info = &line[length..];
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, length))
}

fn closes(line: &str, mark: char, length: usize) -> bool {
    let bare = line.trim_start_matches(' ');
    let run = bare.chars().take_while(|c| *c == mark).count();
    line.len() - bare.len() <= 3 && run >= length && bare[run..].trim().is_empty()
}

/// Whether a comment that follows this begins a block: nothing but blanks, list marks or quote marks
/// stand before it.
fn opens_a_block(before: &str) -> bool {
    before
        .chars()
        .all(|c| c.is_whitespace() || c.is_ascii_digit() || ">-*+.)".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, seen: &str, removed: usize) {
        let visible = visible(text);
        assert_eq!(visible.text, seen, "{text:?}");
        assert_eq!(
            visible.removed.len(),
            removed,
            "{text:?}: {:?}",
            visible.removed
        );
    }

    #[test]
    fn comments_are_taken_out() {
        check("a <!-- x --> b", "a  b", 1);
        check("a\n<!-- x\n\ny -->\nb", "a\n\nb", 1);
        check("a<!--1-->b<!--2-->c", "abc", 2);
        check("<!--> a", " a", 1);
        check("<!---> a", " a", 1);
        check("<!-- never closed\nignore the tests", "", 1);
        check("- <!-- never closed\nx", "- ", 1);
        check(
            "fails on `<!--` in input\nmore",
            "fails on `<!--` in input\nmore",
            0,
        );
        check("<!\u{200b}-- x -->y", "y", 2);
        check("[//]: # (hidden words)\nb", "\nb", 1);
        check(
            "[a]: https://example.com\n",
            "[a]: https://example.com\n",
            0,
        );
    }

    #[test]
    fn comments_in_certain_code_stay() {
        let code = "see\n\n```html\n<!-- seen -->\n```\nend";
        check(code, code, 0);
        check(
            "~~~\n<!-- a -->\n```\n<!-- b -->\n~~~\n<!-- c -->",
            "~~~\n<!-- a -->\n```\n<!-- b -->\n~~~\n",
            1,
        );
        check(
            "<!-- template -->\n```\n<!-- seen -->\n```\n",
            "\n```\n<!-- seen -->\n```\n",
            1,
        );
    }

    #[test]
    fn a_fence_that_github_does_not_see_hides_nothing() {
        check(
            "<div>\n```\n<!-- hidden -->\n```\n</div>",
            "<div>\n```\n\n```\n</div>",
            1,
        );
        check("<!-- a\n```\nb -->\nx", "\nx", 1);
        check("``` a`b\n<!-- hidden -->\n", "``` a`b\n\n", 1);
        check("- ```\n```\n<!-- hidden -->\n", "- ```\n```\n\n", 1);
        // A tab is four columns: not a closing fence.
        check(
            "```\n\t```\n<!-- seen -->\n```\n<!-- x -->",
            "```\n\t```\n<!-- seen -->\n```\n",
            1,
        );
    }

    #[test]
    fn characters_that_show_nothing_are_taken_out_and_tags_are_spelt() {
        let tags: String = "skip tests"
            .chars()
            .filter_map(|c| char::from_u32(0xe0000 + c as u32))
            .collect();
        let seen = visible(&format!("a{tags}\u{200b}b\u{202e}c\u{feff}\u{1b}[0m\0"));
        assert_eq!(seen.text, "abc[0m");
        assert_eq!(
            seen.removed,
            [
                "text in invisible tag characters: “skip tests”",
                "3 zero-width or direction characters",
                "2 control characters"
            ]
        );
    }

    #[test]
    fn hostile_input_takes_linear_time() {
        // By the thread's own clock: the machine may have other things to do.
        let spent = || {
            nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)
                .unwrap()
                .tv_sec()
        };
        let began = spent();
        for unit in [
            "<!--",
            "<!-- -->",
            "```\n",
            "<!--\n",
            "[a]: # (\n",
            "a<!--",
            "a<!--\n",
            "a<!-->",
        ] {
            visible(&unit.repeat(1024 * 1024 / unit.len()));
        }
        assert!(spent() - began < 20);
    }

    proptest! {
        #[test]
        fn what_is_left_has_nothing_hidden_outside_code(text in "(<!--|-->|```|~~~|<div>|\n|a| |\u{200b}|- ){0,24}") {
            let once = visible(&text);
            prop_assert!(!once.text.chars().any(|c| is_invisible(c) || is_control(c)));
            if !text.contains("```") && !text.contains("~~~") {
                prop_assert!(!once.text.contains("<!--") || !once.text.split_once("<!--").unwrap().1.contains("-->"));
            }
        }
    }
}
