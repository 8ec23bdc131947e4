//! The person's repository as the source of files: its objects, attributes and filters, never its hooks.

use super::entries::Entries;
use super::path::{TreePath, covers, place};
use crate::cause::{Bail, Cause};
use crate::storage;
use crate::tool::{Tool, ToolOutput};
use anyhow::{Context, Result};
use git2::{Oid, Repository};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A checkout may have to fetch large files (LFS, partial clones) first.
const DEADLINE: Duration = Duration::from_secs(60 * 60);

/// A file name that no rule is about, unless it is about everything.
const PROBE: &str = "x..veri..x";

/// Variables that point git at another repository, index or work tree (`git rev-parse --local-env-vars`).
pub(super) const LOCAL_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Settings that make git lay exactly the tree, whatever the person configured for their own checkout.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.sparseCheckout=false",
    "index.sparse=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "pack.packSizeLimit=0",
    "maintenance.auto=false",
    "gc.auto=0",
];

/// A repository to lay trees from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    git_dir: PathBuf,
}

impl Source {
    /// The repository behind a checkout or linked worktree.
    pub(super) fn of(repo: &Repository) -> Result<Source> {
        let common = repo.commondir();
        let git_dir = common
            .canonicalize()
            .with_context(|| format!("finding the repository {}", common.display()))?;
        Ok(Source { git_dir })
    }

    /// Opens it again.
    pub(super) fn open(&self) -> Result<Repository> {
        Repository::open(&self.git_dir)
            .with_context(|| format!("opening the repository {}", self.git_dir.display()))
    }

    /// Its object store.
    pub(super) fn objects(&self) -> PathBuf {
        self.git_dir.join("objects")
    }

    /// Writes the given paths of a private index into an empty folder, filters applied.
    pub(super) fn check_out(&self, index: &Path, into: &Path, paths: &[&TreePath]) -> Result<()> {
        let mut list = Vec::new();
        for path in paths {
            list.extend_from_slice(path);
            list.push(0);
        }
        // Without a .gitattributes in the folder git takes the one in the index: the tree's own.
        let call = self
            .git(index, into)
            .args(["checkout-index", "--force", "-z", "--stdin"])
            .stdin(list);
        done(call, "checking files out into the ground").map(drop)
    }

    /// Files that are in no index and that no ignore rule covers.
    pub(super) fn untracked(&self, index: &Path, work: &Path) -> Result<Vec<TreePath>> {
        let call = self
            .git(index, work)
            .args(["ls-files", "--others", "--exclude-standard", "-z"]);
        let output = done(call, "listing what the suite left in the ground")?;
        Ok(output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
            .map(|path| path.strip_suffix(b"/").unwrap_or(path).to_vec())
            .collect())
    }

    /// Which of these folders the ignore files of a tree ignore, or everything in them. Nothing else is asked: no
    /// rules of the person's own, and no ignore file that a suite wrote.
    ///
    /// `rules` is an empty folder to work in.
    pub(super) fn ignored(
        &self,
        entries: &Entries,
        folders: &[TreePath],
        rules: &Path,
    ) -> Result<HashSet<TreePath>> {
        if folders.is_empty() {
            return Ok(HashSet::new());
        }
        self.lay_rules(entries, folders, rules)?;
        let call = self.git(&rules.with_extension("no-index"), rules).args([
            "ls-files",
            "--others",
            "--ignored",
            "--directory",
            "--exclude-per-directory=.gitignore",
            "-z",
        ]);
        let listed = done(call, "asking what the tree ignores")?.stdout;
        let listed: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
        Ok(folders
            .iter()
            .filter(|folder| {
                let probe = [folder.as_slice(), b"/", PROBE.as_bytes()].concat();
                listed.iter().any(|found| match found.strip_suffix(b"/") {
                    Some(above) => covers(above, folder),
                    None => *found == probe,
                })
            })
            .cloned()
            .collect())
    }

    /// Lays the ignore files that have a say over folders, and in each folder something to be ignored.
    fn lay_rules(&self, entries: &Entries, folders: &[TreePath], rules: &Path) -> Result<()> {
        let repo = self.open()?;
        for folder in folders {
            let inside = place(rules, folder);
            fs::create_dir_all(&inside)
                .and_then(|()| fs::write(inside.join(PROBE), ""))
                .with_context(|| format!("writing {}", inside.display()))?;
        }
        for (path, entry) in &entries.files {
            let above = match path.strip_suffix(b".gitignore") {
                Some([]) => true,
                Some(above) => {
                    above.ends_with(b"/") && folders.iter().any(|f| f.starts_with(above))
                }
                None => false,
            };
            // git does not follow a link of that name either.
            if above && entry.form.is_regular() {
                let at = place(rules, path);
                fs::write(&at, repo.find_blob(entry.oid)?.content())
                    .with_context(|| format!("writing {}", at.display()))?;
            }
        }
        Ok(())
    }

    /// Writes a pack of exactly the objects of these trees into a folder of packs.
    pub(super) fn pack(&self, trees: &[Oid], packs: &Path) -> Result<()> {
        let list: String = trees.iter().map(|tree| format!("{tree}\n")).collect();
        // git makes a pack in the object store and renames it: the store that it writes to must lie on the same
        // file system as the ground, which the person's repository need not.
        let store = packs.parent().unwrap_or(packs);
        let call = self
            .git_command()
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_OBJECT_DIRECTORY", store)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.objects()))
            .args(["pack-objects", "-q", "--revs", "--window=0"])
            .arg(packs.join("pack"))
            .stdin(list);
        done(call, "packing the objects of the tree").map(drop)
    }

    fn git(&self, index: &Path, work: &Path) -> Tool {
        self.git_command()
            .dir(work)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_INDEX_FILE", index)
            .env("GIT_WORK_TREE", work)
    }

    fn git_command(&self) -> Tool {
        let mut tool = Tool::new("git").deadline(DEADLINE);
        for name in LOCAL_VARIABLES {
            tool = tool.env_remove(name);
        }
        tool = tool
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("LC_ALL", "C");
        for setting in SETTINGS {
            tool = tool.args(["-c", setting]);
        }
        tool
    }
}

/// A path as one entry of a list that git separates by colons.
fn quoted(path: &Path) -> OsString {
    let mut entry = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            entry.push(b'\\');
        }
        entry.push(*byte);
    }
    entry.push(b'"');
    OsString::from_vec(entry)
}

/// Runs a git call that must succeed.
fn done(call: Tool, what: &str) -> Result<ToolOutput> {
    let output = call
        .run()
        .with_context(|| format!("{what}: git could not be started"))?;
    if output.success() {
        return Ok(output);
    }
    let why = output.stderr_text();
    let said = format!("{what} failed ({:?}): {}", output.end, why.trim());
    Err(match storage::is_named_in(&why) {
        true => Bail::new(Cause::StorageFailed, format!("{said}\n{}", storage::ADVICE)),
        false => Bail::new(Cause::GitFailed, said),
    }
    .into())
}
