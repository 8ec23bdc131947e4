//! `sandbox_write`: what the configuration opens to confined leaves, and that it opens nothing that is closed to them.

use crate::cause::Bail;
use crate::conductor::run::Run;
use crate::event::Kind;
use crate::forge::ForgeSpec;
use anyhow::Result;
use std::io;
use std::path::{Path, PathBuf};

/// One entry of `sandbox_write`, as things are now.
enum Opened {
    /// It leads here.
    At(PathBuf),
    /// Nothing is opened, and why.
    Nothing(String),
}

impl Run<'_> {
    /// What no confined verifier can read: the work, and what tells of it.
    pub(super) fn closed(&self) -> Vec<PathBuf> {
        let mut closed = vec![
            self.tree.path().to_owned(),
            self.repo.checkout().to_owned(),
            self.repo.common_dir().to_owned(),
            self.home.clone(),
        ];
        let forge = self.settings.config.forge_address();
        if let Some(Ok(ForgeSpec::Directory(at))) = forge.map(ForgeSpec::parse) {
            // Comments tell of attempts, verdicts and questions.
            let at = self.repo.checkout().join(at);
            closed.extend([at.join("issues"), at.join("pulls")]);
        }
        closed
    }

    /// The folders of `sandbox_write` that are there, without links. Looked at for each leaf: whoever can write in one of
    /// them can lead a link elsewhere.
    ///
    /// # Errors
    /// A `Bail` needs-user for one that opens what is closed.
    pub(super) fn more_writable(&self) -> Result<Vec<PathBuf>> {
        let all = self.more_opened()?.into_iter();
        Ok(all
            .filter_map(|opened| match opened {
                Opened::At(real) => Some(real),
                Opened::Nothing(_) => None,
            })
            .collect())
    }

    /// Says, once in a run, which of `sandbox_write` opens nothing.
    ///
    /// # Errors
    /// As `more_writable`.
    pub(super) fn look_at_more_writable(&mut self) -> Result<()> {
        for opened in self.more_opened()? {
            if let Opened::Nothing(said) = opened
                && !self.lines.iter().any(|l| l.text("said") == said)
            {
                self.say(Kind::Preflight, said)?;
            }
        }
        Ok(())
    }

    fn more_opened(&self) -> Result<Vec<Opened>> {
        let home = self.ask.env.get("HOME").map(Path::new);
        let closed: Vec<PathBuf> = self.closed().iter().map(|p| real(p).0).collect();
        let listed = self.settings.config.sandbox_write.iter();
        listed
            .map(|word| opened(word, home, self.repo.checkout(), &closed).map_err(Into::into))
            .collect()
    }
}

fn opened(
    word: &str,
    home: Option<&Path>,
    checkout: &Path,
    closed: &[PathBuf],
) -> Result<Opened, Bail> {
    let below_home = match word {
        "~" => Some(""),
        _ => word.strip_prefix("~/"),
    };
    let path = match (below_home, home.filter(|home| home.is_absolute())) {
        (Some(below), Some(home)) => home.join(below),
        (Some(_), None) => {
            return Ok(Opened::Nothing(format!(
                "sandbox_write: {word:?} opens nothing, since HOME is not set: write the whole path"
            )));
        }
        (None, _) => checkout.join(word),
    };
    let (real, found) = real(&path);
    let clash = closed.iter().find_map(|closed| {
        let how = match (real.starts_with(closed), closed.starts_with(&real)) {
            (true, true) => "is just that",
            (true, false) => "lies in it",
            (false, true) => "holds it",
            (false, false) => return None,
        };
        Some((closed, how))
    });
    if let Some((closed, how)) = clash {
        return Err(Bail::needs_user(format!(
            "The configuration opens {word:?} to confined leaves (sandbox_write). {} is closed to them, and {} {how}. Name \
             the single folders that a tool must write to, such as \"~/.cache/uv\" (a relative path starts at the checkout), \
             then run again.",
            closed.display(),
            real.display(),
        )));
    }
    Ok(match found {
        Ok(()) => Opened::At(real),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Opened::Nothing(format!(
            "sandbox_write: {} is not there, so no confined leaf can write there: make it, if a tool needs it",
            real.display()
        )),
        Err(e) => Opened::Nothing(format!(
            "sandbox_write: {} opens nothing: it cannot be looked at: {e}",
            real.display()
        )),
    })
}

/// The path without links and detours as far as it exists, then as it is; and what kept it from being followed to its end.
pub(super) fn real(path: &Path) -> (PathBuf, io::Result<()>) {
    let whole = match path.canonicalize() {
        Ok(found) => return (found, Ok(())),
        Err(e) => Err(e),
    };
    // A step back over what is not there is no detour.
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                real.pop();
            }
            _ => real.push(part),
        }
        real = real.canonicalize().unwrap_or(real);
    }
    (real, whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A home with a cache, a checkout in it, and what is closed.
    struct World {
        _dir: tempfile::TempDir,
        home: PathBuf,
        checkout: PathBuf,
        closed: Vec<PathBuf>,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let checkout = home.join("repo");
        let state = home.join("state/id");
        for folder in [&home.join("cache/uv"), &checkout, &state] {
            fs::create_dir_all(folder).unwrap();
        }
        let closed = vec![checkout.clone(), state];
        World {
            _dir: dir,
            home,
            checkout,
            closed,
        }
    }

    impl World {
        fn opens(&self, word: &str) -> Result<Opened, Bail> {
            opened(word, Some(&self.home), &self.checkout, &self.closed)
        }

        #[track_caller]
        fn leads_to(&self, word: &str, below: &str) {
            let Ok(Opened::At(at)) = self.opens(word) else {
                panic!("{word}: nothing");
            };
            assert_eq!(at, self.home.join(below), "{word}");
        }

        #[track_caller]
        fn says(&self, word: &str, words: &str) {
            let Ok(Opened::Nothing(said)) = self.opens(word) else {
                panic!("{word}: it is open");
            };
            assert!(said.contains(words), "{word}: {said}");
        }

        #[track_caller]
        fn refuses(&self, word: &str, how: &str) {
            let Err(bail) = self.opens(word) else {
                panic!("{word}: it is open");
            };
            let said = bail.to_string();
            assert!(said.contains(&format!("{word:?} to confined")), "{said}");
            assert!(said.contains(how), "{word}: {said}");
        }
    }

    #[test]
    fn what_is_opened_is_what_a_path_leads_to() {
        let w = world();
        symlink("cache", w.home.join("link")).unwrap();
        for word in [
            "~/cache/uv",
            "~/link/uv",
            "../cache/uv",
            "~/cache/../link/uv",
        ] {
            w.leads_to(word, "cache/uv");
        }
        w.leads_to(&w.home.join("cache").display().to_string(), "cache");
    }

    #[test]
    fn nothing_that_is_closed_is_opened_by_any_name() {
        let w = world();
        symlink(&w.checkout, w.home.join("in")).unwrap();
        symlink("/", w.home.join("cache/all")).unwrap();
        for word in ["/", "~", "~/", "..", "~/cache/all", "~/state"] {
            w.refuses(word, "holds it");
        }
        for word in ["", ".", "~/in", "~/state/id"] {
            w.refuses(word, "is just that");
        }
        // What is made later is not open either; another's home, and a variable, are taken for names.
        for word in [
            "target",
            "~/in/target",
            "~/state/id/ground/verify",
            "~ann/x",
            "$HOME/x",
            "~/cache/../repo/not/there",
            "~/nowhere/../repo/x",
        ] {
            w.refuses(word, "lies in it");
        }
    }

    #[test]
    fn what_opens_nothing_is_said_with_what_to_do() {
        let w = world();
        symlink("loop", w.home.join("loop")).unwrap();
        symlink("nowhere", w.home.join("dangling")).unwrap();
        for word in ["~/not/there", "~/dangling", "../not-there"] {
            w.says(word, "is not there, so no confined leaf can write there");
        }
        w.says("~/loop", "cannot be looked at");
        let homeless = |home: Option<&Path>| {
            let Ok(Opened::Nothing(said)) = opened("~/cache", home, &w.checkout, &w.closed) else {
                panic!("{home:?}: it is open");
            };
            assert!(said.contains("HOME is not set: write the whole path"));
        };
        homeless(None);
        homeless(Some(Path::new("relative")));
    }
}
