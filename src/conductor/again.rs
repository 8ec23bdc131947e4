//! The command that goes on with a run: the one place that knows what it must say.

use super::Ask;
use super::run::Run;
use super::settings::{absolute, absolute_command};
use super::snapshot;

/// The command that goes on with an issue's run whose configuration is stored.
pub fn resume_command(issue: u64, here: bool) -> String {
    format!("veri tdd {issue}{}", if here { " --here" } else { "" })
}

impl Run<'_> {
    /// The command that goes on with this run. What preflight has stored need not be said again.
    pub(super) fn resume_command(&self) -> String {
        let mut command = resume_command(self.issue_number, self.ask.here);
        if !snapshot::is_kept(self.repo.git2(), self.issue_number) {
            for word in flags(self.ask) {
                command.push(' ');
                command.push_str(&quoted(&word));
            }
        }
        command
    }
}

/// The flags of a start that its configuration is made of.
fn flags(ask: &Ask) -> Vec<String> {
    let agent = |flag: &Option<String>| flag.as_ref().map(|f| absolute_command(f, &ask.folder));
    let forge = ask.forge.as_ref().map(|f| absolute(f, "dir:", &ask.folder));
    let mut words = Vec::new();
    for (name, value) in [
        ("--forge", forge),
        ("--agent", agent(&ask.agent)),
        ("--planner", agent(&ask.planner)),
        ("--developer", agent(&ask.developer)),
        ("--verifier", agent(&ask.verifier)),
        ("--test-cmd", ask.test_command.clone()),
        ("--base", ask.base.clone()),
        ("--remote", ask.remote.clone()),
        ("--timeout", ask.timeout.map(|seconds| seconds.to_string())),
        ("--trust", ask.trust.clone()),
    ] {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    }
    for check in &ask.checks {
        words.extend(["--check".to_owned(), check.clone()]);
    }
    words
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell_only_where_they_must_be() {
        for (word, text) in [
            ("dir:/a/b-c", "dir:/a/b-c"),
            ("make check", "'make check'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), text);
        }
    }
}
