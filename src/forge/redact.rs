//! Credentials out of texts that others will read.

use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// What stands where a credential stood. No pattern matches it, so that redacting twice is as once.
const REDACTED: &str = "[redacted]";

/// Each pattern's group 1, where it has one, is kept. The shapes are those that the vendors publish
/// for secret scanning, with minimal lengths a little below the real ones.
const PATTERNS: [&str; 18] = [
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{30,}",
    r"\bcio[A-Za-z0-9]{32}\b",
    r"hf_[A-Za-z0-9]{30,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",
    r"(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{16,}",
    r"(?i)(\bauthorization:\s*(?:token\s+)?)[A-Za-z0-9._~+/=-]{16,}",
    r"(://)[^/\s:@]+:[^/\s@]+@",
    r#"(\b[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_KEY|ACCESS_KEY)[A-Z0-9_]*=["']?)[^\s"'\[]{8,}"#,
];

#[allow(clippy::expect_used)] // Constant patterns, compiled by every test of this room.
static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    PATTERNS
        .iter()
        .map(|pattern| Regex::new(pattern).expect("a constant pattern"))
        .collect()
});

/// The text with every credential that is recognised by its shape replaced by `[redacted]`.
pub(super) fn redact(text: &str) -> String {
    let replace = |found: &Captures<'_>| {
        let kept = found.get(1).map_or("", |kept| kept.as_str());
        let after = if found[0].ends_with('@') { "@" } else { "" };
        format!("{kept}{REDACTED}{after}")
    };
    let mut text = Cow::Borrowed(text);
    // A replacement can lay another credential bare, so until nothing is found; each round removes
    // at least one, and four rounds are more than any real text needs.
    for _ in 0..4 {
        let mut found = false;
        // One by one: a set of all patterns is a hundred times slower, for want of literals to seek.
        for pattern in COMPILED.iter() {
            if let Cow::Owned(redacted) = pattern.replace_all(&text, replace) {
                found |= redacted != text;
                text = Cow::Owned(redacted);
            }
        }
        if !found {
            break;
        }
    }
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go() {
        let long = "a1B2".repeat(10);
        for secret in [
            format!("ghp_{long}"),
            format!("github_pat_{long}_{long}"),
            format!("sk-ant-api03-{long}"),
            format!("sk-proj-{long}"),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("xoxb-{long}"),
            format!("npm_{long}"),
            format!("eyJ{long}.{long}.{long}"),
            format!(
                "-----BEGIN OPENSSH PRIVATE KEY-----\n{long}\n-----END OPENSSH PRIVATE KEY-----"
            ),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{long}"),
        ] {
            let text = redact(&format!("before ({secret}"));
            assert_eq!(text, "before ([redacted]", "{secret}");
        }
    }

    #[test]
    fn what_stands_around_a_credential_stays() {
        for (text, expected) in [
            (
                "Authorization: Bearer abcdefghij0123456789 x",
                "Authorization: Bearer [redacted] x",
            ),
            (
                "authorization: token abcdefghij0123456789",
                "authorization: token [redacted]",
            ),
            ("https://me:pass@host/x", "https://[redacted]@host/x"),
            ("MY_API_KEY='abcdefgh1' y", "MY_API_KEY='[redacted]' y"),
            (
                "a risk-assessment-of-the-plan",
                "a risk-assessment-of-the-plan",
            ),
            ("the bearer of bad news", "the bearer of bad news"),
            ("token: identifier", "token: identifier"),
            (
                "ghp_aaaabbbbccccddddX_TOKEN=Authorization: ",
                "[redacted]_TOKEN=[redacted] ",
            ),
            ("https://host:80/a@b", "https://host:80/a@b"),
        ] {
            assert_eq!(redact(text), expected);
            assert_eq!(redact(expected), expected);
        }
    }
}
