//! Which forge: what flag, environment and config say, and what follows from `origin` when they do not.

use super::{DirectoryForge, Forge};
use crate::cause::{Bail, Cause};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A forge as a person names it: `dir:PATH` or `github[:OWNER/NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgeSpec {
    /// A directory; relative paths are relative to where the words stood, see [`ForgeSpec::under`].
    Directory(PathBuf),
    /// GitHub: a repository, or the one that `origin` names.
    GitHub {
        /// `OWNER/NAME`, when given.
        repository: Option<String>,
    },
}

/// A forge that could not be understood: the message says which forms there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

const FORMS: &str = "use `dir:PATH` (a directory that keeps issues as Markdown files); \
                     `github:OWNER/NAME` comes in a later version";

impl ForgeSpec {
    /// Reads `dir:PATH` or `github[:OWNER/NAME]`; a path need not be UTF-8.
    pub fn parse(words: impl AsRef<OsStr>) -> Result<ForgeSpec, SpecError> {
        let words = words.as_ref();
        if let Some(path) = after_dir(words) {
            if path.as_os_str().is_empty() {
                return Err(SpecError(format!(
                    "the forge `dir:` names no directory: {FORMS}"
                )));
            }
            if path.starts_with("~") {
                return Err(SpecError(format!(
                    "the forge `dir:{}` begins with `~`, which no shell expands behind `dir:`: \
                     write \"dir:$HOME/…\" instead",
                    path.display()
                )));
            }
            return Ok(ForgeSpec::Directory(path));
        }
        match words.to_str() {
            Some("github") => Ok(ForgeSpec::GitHub { repository: None }),
            Some(text) => match text.strip_prefix("github:") {
                Some(name) if is_repository(name) => Ok(ForgeSpec::GitHub {
                    repository: Some(name.to_owned()),
                }),
                Some(name) => Err(SpecError(format!(
                    "the forge `github:{name}` names no repository: {FORMS}"
                ))),
                None => Err(SpecError(format!("the forge `{text}` is unknown: {FORMS}"))),
            },
            None => Err(SpecError(format!(
                "the forge `{}` is unknown: {FORMS}",
                words.to_string_lossy()
            ))),
        }
    }

    /// The same forge with a relative path put under `root`: the working folder for flag and
    /// environment, the repository for a config file.
    pub fn under(self, root: &Path) -> ForgeSpec {
        match self {
            ForgeSpec::Directory(path) => ForgeSpec::Directory(root.join(path)),
            other => other,
        }
    }
}

impl std::str::FromStr for ForgeSpec {
    type Err = SpecError;

    fn from_str(words: &str) -> Result<ForgeSpec, SpecError> {
        ForgeSpec::parse(words)
    }
}

/// Opens a forge. Nothing is read yet: what is missing shows when it is asked for.
///
/// # Errors
/// `Bail` needs-user for GitHub, which this version does not speak.
pub fn open(spec: &ForgeSpec) -> anyhow::Result<Box<dyn Forge>> {
    match spec {
        ForgeSpec::Directory(path) => Ok(Box::new(DirectoryForge::new(path))),
        ForgeSpec::GitHub { repository } => {
            let named = repository
                .as_deref()
                .unwrap_or("the repository of `origin`");
            Err(Bail::new(
                Cause::NeedsUser,
                format!(
                    "The issue was looked for on GitHub ({named}), which this version of veri cannot \
                     talk to: GitHub comes in a later version. Until then keep the issue in a \
                     directory: save its text as a Markdown file that begins with `# Title` and run \
                     `veri tdd ./issue.md --forge dir:PATH`. Nothing is sent to GitHub then, and you \
                     open the pull request from the finished branch yourself."
                ),
            )
            .into())
        }
    }
}

/// The forge when neither flag nor environment nor config names one: GitHub when `origin` is a
/// GitHub remote.
///
/// # Errors
/// `Bail` needs-user that shows what this version can do. The address of `origin` is not in it: it can carry a token.
pub fn default_for(origin_url: Option<&str>) -> Result<ForgeSpec, Bail> {
    if origin_url.is_some_and(is_github) {
        return Ok(ForgeSpec::GitHub { repository: None });
    }
    let why = match origin_url {
        Some(_) => "the remote `origin` is not on GitHub",
        None => "there is no remote `origin`",
    };
    Err(Bail::needs_user(format!(
        "No forge is named, and {why}, so it is not known where the issue lives. Say it with\n  \
         --forge dir:PATH    issues as Markdown files in a directory, no account needed\n\
         or set `forge = \"dir:PATH\"` in .veri.toml, or VERI_FORGE in the environment. The directory need not \
         exist yet: `veri tdd ./issue.md --forge dir:PATH` files the issue in it. GitHub comes in a later version."
    )))
}

fn after_dir(words: &OsStr) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let path = words.as_bytes().strip_prefix(b"dir:")?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

fn is_repository(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    name.split_once('/')
        .is_some_and(|(owner, repo)| part(owner) && part(repo))
}

/// Whether a remote's address (https, ssh or scp-like) is on github.com.
fn is_github(url: &str) -> bool {
    let rest = match url.split_once("://") {
        Some((_, rest)) => rest.split('/').next().unwrap_or(rest),
        None => match url.split_once(':') {
            Some((host, _)) if !host.contains('/') => host,
            _ => return false,
        },
    };
    let host = rest.rsplit('@').next().unwrap_or(rest);
    let host = host.split(':').next().unwrap_or(host);
    host.eq_ignore_ascii_case("github.com") || host.eq_ignore_ascii_case("ssh.github.com")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_forms_and_refuses_others() {
        let github = |name: Option<&str>| ForgeSpec::GitHub {
            repository: name.map(str::to_owned),
        };
        assert_eq!(
            ForgeSpec::parse("dir:a b").unwrap(),
            ForgeSpec::Directory("a b".into())
        );
        assert_eq!(ForgeSpec::parse("github").unwrap(), github(None));
        assert_eq!(
            ForgeSpec::parse("github:acme/b.k").unwrap(),
            github(Some("acme/b.k"))
        );
        for bad in [
            "",
            "dir:",
            "dir:~/x",
            "gitlab:a/b",
            "github:",
            "github:a",
            "github:a/b/c",
            "/p",
        ] {
            let error = ForgeSpec::parse(bad).unwrap_err().to_string();
            assert!(error.contains("dir:"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_path_that_is_not_utf8_stays_what_it_is() {
        use std::os::unix::ffi::OsStrExt;
        let words = OsStr::from_bytes(b"dir:/x/\xff");
        assert_eq!(
            ForgeSpec::parse(words).unwrap(),
            ForgeSpec::Directory(PathBuf::from(OsStr::from_bytes(b"/x/\xff")))
        );
    }

    #[test]
    fn a_relative_directory_goes_under_its_root() {
        let spec = ForgeSpec::parse("dir:forge")
            .unwrap()
            .under(Path::new("/r"));
        assert_eq!(spec, ForgeSpec::Directory("/r/forge".into()));
        let spec = ForgeSpec::parse("dir:/f").unwrap().under(Path::new("/r"));
        assert_eq!(spec, ForgeSpec::Directory("/f".into()));
    }

    #[test]
    fn github_remotes_in_every_form() {
        for url in [
            "https://github.com/acme/bank.git",
            "https://x:token@github.com/acme/bank",
            "ssh://git@github.com:22/acme/bank",
            "ssh://git@ssh.github.com:443/acme/bank.git",
            "git@github.com:acme/bank.git",
            "github.com:acme/bank",
        ] {
            assert!(default_for(Some(url)).is_ok(), "{url}");
        }
        for url in [
            "https://gitlab.com/github.com/x",
            "https://github.com.evil.example/a/b",
            "/srv/github.com:x",
            "../bank",
            "file:///srv/github.com/a",
        ] {
            assert!(default_for(Some(url)).is_err(), "{url}");
        }
    }

    #[test]
    fn without_a_forge_what_works_is_shown_and_neither_github_nor_a_secret() {
        for origin in [None, Some("https://me:s3cret@git.example/x")] {
            let bail = default_for(origin).unwrap_err();
            assert_eq!(bail.cause, Cause::NeedsUser);
            assert!(bail.detail.contains("dir:PATH"));
            assert!(!bail.detail.contains("github:"), "this version refuses it");
            assert!(!bail.detail.contains("s3cret"));
        }
    }

    #[test]
    fn github_says_that_it_comes_later() {
        let spec = ForgeSpec::parse("github:acme/bank").unwrap();
        let error = open(&spec).err().unwrap();
        let bail = error.downcast_ref::<Bail>().unwrap();
        assert_eq!(bail.cause, Cause::NeedsUser);
        assert!(bail.detail.contains("later version") && bail.detail.contains("dir:PATH"));
    }
}
