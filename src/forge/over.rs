//! What is over in an issue's thread is marked as over: the question of a bail, or a stop, after which the run went on.

use super::mirror::{Post, marker};

const HEAD: &str =
    "**Over:** the run has gone on since. Nothing here waits for an answer any more.";

/// How a comment of this text reads once the run has gone on; None for one that told no end of a run, or says so already.
pub fn over(issue: u64, body: &str) -> Option<Post> {
    let (first, rest) = body.trim_start().split_once('\n')?;
    let name = first
        .trim()
        .strip_prefix(&format!("<!-- veri:issue-{issue}:"))?
        .strip_suffix(" -->")?;
    let told = name == "stop" || name.starts_with("bail-");
    let text = rest.trim();
    if !told || text.starts_with(HEAD) {
        return None;
    }
    let marker = marker(issue, name);
    let body = format!(
        "{marker}\n{HEAD}\n\n<details><summary>What it said</summary>\n\n{text}\n\n</details>\n"
    );
    Some(Post { marker, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ends_of_this_issue_are_marked_as_over_and_once() {
        for (name, told) in [
            ("issue-42:bail-0123", true),
            ("issue-42:stop", true),
            ("issue-42:run", false),
            ("issue-42:run-2", false),
            ("issue-4:stop", false),
        ] {
            let body = format!("<!-- veri:{name} -->\n**veri** says a thing.\n\n> a\n");
            let post = over(42, &body);
            assert_eq!(post.is_some(), told, "{name}");
            if let Some(post) = post {
                assert!(post.body.contains("> a\n\n</details>"), "{}", post.body);
                assert_eq!(over(42, &post.body), None, "marked twice");
                assert_eq!(over(42, &post.body.replace('\n', "\r\n")), None);
            }
        }
        assert_eq!(over(42, "a person: <!-- veri:issue-42:stop -->\nx"), None);
    }
}
