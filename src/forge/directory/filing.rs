//! A Markdown file as an issue: its first heading is the title, the rest the body.

use super::front::{Document, FrontError};

/// Splits a Markdown text (front matter allowed: its keys are kept, its title wins) into the issue's
/// front matter and body. None when it has no title.
pub(super) fn issue_from(markdown: &str) -> Result<Option<Document>, FrontError> {
    let plain = markdown
        .strip_prefix('\u{feff}')
        .unwrap_or(markdown)
        .replace("\r\n", "\n");
    let mut issue = Document::parse(&plain)?.unwrap_or_else(|| Document::of_body(plain.clone()));
    if issue.text("title")?.is_some() {
        return Ok(Some(issue));
    }
    let Some((title, body)) = split_heading(&issue.body) else {
        return Ok(None);
    };
    issue.set("title", &title);
    issue.body = body;
    Ok(Some(issue))
}

/// The first heading (`# Title`, of any level, or underlined) outside code, and the text without it.
fn split_heading(text: &str) -> Option<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut fence: Option<(char, usize)> = None;
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_start_matches(' ');
        let indented = line.len() - bare.len() > 3;
        if let Some((c, length)) = fence_of(bare).filter(|_| !indented) {
            fence = match fence {
                None => Some((c, length)),
                Some((open, least))
                    if open == c && length >= least && bare[length..].trim().is_empty() =>
                {
                    None
                }
                still => still,
            };
            continue;
        }
        if fence.is_some() || indented {
            continue;
        }
        let underlined = lines.get(at + 1).is_some_and(|next| is_underline(next));
        let (title, used) = match atx(bare) {
            Some(title) => (title, 1),
            None if underlined && !bare.trim().is_empty() => (bare.trim().to_owned(), 2),
            None => continue,
        };
        if title.is_empty() {
            continue;
        }
        let rest = lines[..at].iter().chain(&lines[at + used..]);
        let body = rest.copied().collect::<Vec<_>>().join("\n");
        return Some((title, body.trim_matches('\n').to_owned()));
    }
    None
}

fn atx(bare: &str) -> Option<String> {
    let level = bare.bytes().take_while(|b| *b == b'#').count();
    let rest = &bare[level..];
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let title = rest.trim();
    let closed = title.trim_end_matches('#');
    let closes = closed.is_empty() || closed.ends_with([' ', '\t']);
    Some(if closes { closed.trim() } else { title }.to_owned())
}

fn is_underline(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 2 && (line.bytes().all(|b| b == b'=') || line.bytes().all(|b| b == b'-'))
}

fn fence_of(bare: &str) -> Option<(char, usize)> {
    let c = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = bare.chars().take_while(|x| *x == c).count();
    (length >= 3).then_some((c, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(markdown: &str, title: &str, body: &str) {
        let issue = issue_from(markdown).unwrap().unwrap();
        assert_eq!(issue.text("title").unwrap().unwrap(), title, "{markdown}");
        assert_eq!(issue.body, body, "{markdown}");
    }

    #[test]
    fn the_first_heading_is_the_title() {
        check("# Title\n\nBody\n", "Title", "Body");
        check(
            "\u{feff}## Title ##\r\n\r\nBody\r\nmore\r\n",
            "Title",
            "Body\nmore",
        );
        check("Intro\n\n# C#\n\nBody", "C#", "Intro\n\n\nBody");
        check("Title\n=====\n\nBody", "Title", "Body");
        check(
            "```\n# code\n```\n# Real\nBody",
            "Real",
            "```\n# code\n```\nBody",
        );
        check("#hashtag\n# Real\n", "Real", "#hashtag");
        check("# `a` \"b\" $(c) #\nx", "`a` \"b\" $(c)", "x");
    }

    #[test]
    fn front_matter_of_the_file_is_kept_and_its_title_wins() {
        let issue = issue_from("---\ntitle: T\nlabels: [a]\nextra: 1\n---\n# H\nBody")
            .unwrap()
            .unwrap();
        assert_eq!(issue.text("title").unwrap().unwrap(), "T");
        assert_eq!(issue.list("labels").unwrap(), ["a"]);
        assert_eq!(issue.text("extra").unwrap().unwrap(), "1");
        assert_eq!(issue.body, "# H\nBody");
        check("---\nlabels: [a]\n---\n# H\nBody", "H", "Body");
    }

    #[test]
    fn without_a_heading_there_is_no_title() {
        for text in [
            "",
            "text",
            "```\n# code\n```",
            "    # code",
            "#\n",
            "####### seven",
        ] {
            assert_eq!(issue_from(text).unwrap(), None, "{text}");
        }
    }
}
