//! git's configuration before and after a leaf: which keys make git run or hide something, and putting
//! them back without touching what else somebody changed in the same file.

use super::snapshot::{Content, Watched};
use crate::git::run::{self, Git};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a change of a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::git) enum Weight {
    /// Nothing that a commit or check depends on: left, and said.
    Harmless,
    /// Whose name the commits bear: put back, and said.
    Identity,
    /// It makes git run, hide or send something elsewhere: put back, and a failed check.
    Tampering,
}

/// Weighs a change of a key as `git config --list` prints it: section and name in lower case.
/// `existed`: whether the file had the key before; `remote`: the one that the run pushes to.
pub(in crate::git) fn weigh(key: &str, existed: bool, remote: &str) -> Weight {
    let section = key.split('.').next().unwrap_or(key);
    let name = key.rsplit('.').next().unwrap_or(key);
    match (section, name) {
        ("user" | "author" | "committer" | "commit" | "tag", _) => Weight::Identity,
        // How git prints to people.
        ("core", "abbrev" | "commentchar" | "commentstring" | "whitespace") => Weight::Harmless,
        // What git sees of files, which programs it runs, whom it asks for secrets, where it sends.
        (
            "core" | "extensions" | "include" | "includeif" | "alias" | "filter" | "hook"
            | "credential" | "pager" | "gpg" | "url" | "http" | "ssh" | "protocol" | "safe"
            | "trace2" | "uploadpack" | "receive" | "transfer" | "index" | "status" | "lfs"
            | "sendemail" | "man" | "web" | "browser" | "guitool",
            _,
        ) => Weight::Tampering,
        ("sequence", "editor")
        | ("interactive", "difffilter")
        | ("init", "templatedir")
        | ("submodule", "update" | "ignore")
        | ("diff", "external" | "command" | "textconv" | "ignoresubmodules")
        | ("merge", "driver")
        | ("difftool" | "mergetool", "cmd" | "path")
        | ("remote", "pushurl" | "receivepack" | "uploadpack" | "vcs" | "proxy") => {
            Weight::Tampering
        }
        // The run's own, new or not, gets the pushes, and on this machine its hooks run.
        ("remote", _) if within(key) == remote => Weight::Tampering,
        // A new remote is the person's or nobody's; another address of an old one gets their pushes.
        ("remote", "url") if existed => Weight::Tampering,
        _ => Weight::Harmless,
    }
}

/// What stands between the section and the name of a key.
fn within(key: &str) -> &str {
    let inner = key.split_once('.').map_or("", |(_, rest)| rest);
    inner.rsplit_once('.').map_or("", |(inner, _)| inner)
}

/// Every setting of one file, in order; values of one key in order. None stands for "no value".
type Settings = BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>;

/// Where git's configuration in a folder comes from.
pub(in crate::git) struct Sources {
    /// Its files, apart from what `-c` and variables make up.
    pub(in crate::git) files: BTreeSet<PathBuf>,
    /// Whether any of it names a folder of hooks.
    pub(in crate::git) names_hooks: bool,
}

/// Asks git where its configuration comes from.
pub(in crate::git) fn sources(git: &Git) -> Result<Sources> {
    let tool = git.read(["config", "--list", "--show-origin", "--includes", "-z"]);
    let out = run::must(tool, "reading git's configuration")?;
    let mut sources = Sources {
        files: BTreeSet::new(),
        names_hooks: false,
    };
    let parts: Vec<&[u8]> = out.stdout.split(|b| *b == 0).collect();
    for pair in parts.chunks_exact(2) {
        if let Some(path) = pair[0].strip_prefix(b"file:") {
            sources
                .files
                .insert(git.dir().join(OsStr::from_bytes(path)));
        }
        let key = pair[1].split(|b| *b == b'\n').next();
        sources.names_hooks |= key == Some(b"core.hookspath");
    }
    Ok(sources)
}

/// What became of one configuration file.
pub(in crate::git) struct Mended {
    /// Keys that were put back because they are tampering.
    pub(in crate::git) tampered: Vec<String>,
    /// Keys that were put back because they are the person's identity.
    pub(in crate::git) identity: Vec<String>,
    /// Whether something else in it changed, which was left.
    pub(in crate::git) others: bool,
}

/// Puts the keys of a changed file back that a leaf has no business with. The rest of the file stays,
/// unless the file cannot be mended key by key: then all of it is put back. `tell` is given what is tampering before.
pub(in crate::git) fn mend(
    git: &Git,
    remote: &str,
    before: &Watched,
    now: &Content,
    aside: &Path,
    tell: &mut dyn FnMut(&[String]) -> Result<()>,
) -> Result<Mended> {
    let old = settings_of(git, &before.content)?.unwrap_or_default();
    let Some(new) = settings_of(git, now)? else {
        let tampered = vec!["the whole file, which git could not read any more".to_owned()];
        tell(&tampered)?;
        before.put_back(aside)?;
        return Ok(Mended {
            tampered,
            identity: Vec::new(),
            others: false,
        });
    };
    let mut mended = Mended {
        tampered: Vec::new(),
        identity: Vec::new(),
        others: false,
    };
    let keys: BTreeSet<&Vec<u8>> = old.keys().chain(new.keys()).collect();
    let mut wrong = Vec::new();
    for key in keys {
        if old.get(key) == new.get(key) {
            continue;
        }
        let text = String::from_utf8_lossy(key).into_owned();
        let weight = weigh(&text, old.contains_key(key), remote);
        if weight != Weight::Harmless {
            wrong.push(key.clone());
        }
        match weight {
            Weight::Harmless => mended.others = true,
            Weight::Identity => mended.identity.push(text),
            Weight::Tampering => mended.tampered.push(text),
        }
    }
    if wrong.is_empty() {
        return Ok(mended);
    }
    if !mended.tampered.is_empty() {
        tell(&mended.tampered)?;
    }
    let same_kind =
        matches!(now, Content::File { .. }) && matches!(before.content, Content::File { .. });
    if !same_kind || !mended.others {
        before.put_back(aside)?;
        return Ok(mended);
    }
    if !put_keys_back(git, &before.path, &wrong, &old)? {
        before.put_back(aside)?;
    }
    Ok(mended)
}

/// Sets single keys to what they were; false when the file did not come out right.
fn put_keys_back(git: &Git, file: &Path, keys: &[Vec<u8>], old: &Settings) -> Result<bool> {
    for key in keys {
        let key_arg = OsStr::from_bytes(key);
        let unset = git
            .quiet(["config", "--file"])
            .arg(file)
            .arg("--unset-all")
            .arg(key_arg);
        run::run(unset, "putting a setting back")?;
        for value in old.get(key).into_iter().flatten() {
            let Some(value) = value else { return Ok(false) };
            let add = git
                .quiet(["config", "--file"])
                .arg(file)
                .arg("--add")
                .arg(key_arg);
            if !run::run(add.arg(OsStr::from_bytes(value)), "putting a setting back")?.success() {
                return Ok(false);
            }
        }
    }
    let now = settings_of(git, &Content::of(file)?)?.unwrap_or_default();
    Ok(keys.iter().all(|key| now.get(key) == old.get(key)))
}

/// The settings of a file's content; None when git cannot read them.
fn settings_of(git: &Git, content: &Content) -> Result<Option<Settings>> {
    let Content::File { bytes, .. } = content else {
        return Ok(matches!(content, Content::Absent).then(Settings::new));
    };
    let mut copy = tempfile::NamedTempFile::new().context("a temporary file")?;
    copy.write_all(bytes)?;
    let tool = git
        .read(["config", "--file"])
        .arg(copy.path())
        .args(["--list", "-z"]);
    let out = run::run(tool, "reading git's configuration")?;
    if !out.success() {
        return Ok(None);
    }
    let mut settings = Settings::new();
    for part in run::nul_separated(&out.stdout) {
        let mut halves = part.splitn(2, |b| *b == b'\n');
        let key = halves.next().unwrap_or_default().to_vec();
        settings
            .entry(key)
            .or_default()
            .push(halves.next().map(<[u8]>::to_vec));
    }
    Ok(Some(settings))
}
