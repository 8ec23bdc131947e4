//! The folders that nothing a verifier gets may lead to.

use std::path::{Path, PathBuf};

/// The working tree, the person's checkout and what else is closed to verifiers, in every form in which text may name it.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    forms: Vec<String>,
}

/// What stands in a prompt in place of a hidden path.
const WITHHELD: &str = "(path withheld)";

impl Hidden {
    /// Takes the folders: as given, with links resolved, and with spaces escaped as shells and URLs do.
    /// Paths that are not UTF-8 cannot stand in a prompt as they are and are matched as far as they can.
    pub fn new<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Hidden {
        let mut forms = Vec::new();
        for folder in folders {
            let folder = folder.as_ref();
            let resolved = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
            for path in [folder.to_owned(), resolved] {
                let path: PathBuf = path.components().collect();
                if path.is_relative() || path.file_name().is_none() {
                    continue; // the root would hide everything
                }
                let text = path.to_string_lossy().into_owned();
                forms.extend([text.replace(' ', "\\ "), text.replace(' ', "%20"), text]);
            }
        }
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        Hidden { forms }
    }

    /// Whether a text names one of the folders or something in it.
    pub fn named_in(&self, text: &str) -> bool {
        self.forms
            .iter()
            .any(|form| occurrences(text, form).next().is_some())
    }

    /// The text with each such name replaced; what follows it, the path inside the folder, stays.
    pub fn withhold(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for form in &self.forms {
            let found: Vec<usize> = occurrences(&text, form).collect();
            if found.is_empty() {
                continue;
            }
            let mut clean = String::with_capacity(text.len());
            let mut done = 0;
            for at in found {
                clean.push_str(&text[done..at]);
                clean.push_str(WITHHELD);
                done = at + form.len();
            }
            clean.push_str(&text[done..]);
            text = clean;
        }
        text
    }
}

/// Where a form stands as a whole path or the beginning of one: `/a/bank` is not in `/a/bank-data`.
fn occurrences<'t>(text: &'t str, form: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(form)
        .map(|(at, _)| at)
        .filter(move |at| {
            let next = text[at + form.len()..].chars().next();
            next.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_paths_are_found_and_neighbours_are_not() {
        let hidden = Hidden::new(["/home/u/bank/", "/home/u/my work"]);
        for text in [
            "/home/u/bank",
            "a:/home/u/bank/src",
            "in /home/u/bank.",
            "cd /home/u/my\\ work",
            "/home/u/my%20work/x",
        ] {
            assert!(hidden.named_in(text), "{text}");
        }
        for text in ["/home/u/bank-data", "/home/u/bankö", "/home/u", "bank", ""] {
            assert!(!hidden.named_in(text), "{text}");
        }
    }

    #[test]
    fn withheld_text_names_nothing_hidden_and_keeps_the_rest() {
        let hidden = Hidden::new(["/w/issue-4", "/w/issue-42"]);
        let text = "at /w/issue-42/src/lib.rs:3 and /w/issue-4, not /w/issue-421";
        let clean = hidden.withhold(text);
        assert_eq!(
            clean,
            "at (path withheld)/src/lib.rs:3 and (path withheld), not /w/issue-421"
        );
        assert!(!hidden.named_in(&clean));
    }

    #[test]
    fn a_link_hides_what_it_leads_to_as_well() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let hidden = Hidden::new([&link]);
        assert!(hidden.named_in(&format!("{}/x", link.display())));
        assert!(hidden.named_in(&format!("{}/x", real.canonicalize().unwrap().display())));
    }

    #[test]
    fn the_root_and_relative_paths_hide_nothing() {
        assert!(!Hidden::new(["/", ".", ""]).named_in("/ . everything"));
    }
}
