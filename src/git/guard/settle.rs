//! After a leaf: what it did to git is undone or folded back into plain changes of the working tree.
//!
//! Files are compared and put back raw before git is called at all, so that no git call runs with what a
//! leaf has set up.

use super::config;
use super::frame;
use super::snapshot::{self, Content, Watched};
use super::undone::keep_commit;
use super::{Guard, Head, Hooks, Settled, Settling};
use crate::git::worktree::WorkTree;
use crate::git::{guard, repo, run, stage};
use crate::untrusted::whole;
use anyhow::Result;
use git2::Oid;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// At most this many new files of one folder of hooks are kept one by one; git knows 28 hooks.
const MOST_HOOKS: usize = 100;

/// Contents of tampered files, to be kept.
type Kept = Vec<(PathBuf, Vec<u8>)>;

impl Guard {
    /// Puts git back to how it was before the leaf; the files of the working tree stay as the leaf left
    /// them. What it committed, staged, stashed, branched or set up is kept under
    /// `refs/veri/issue-<n>/discarded/`. Done twice it does nothing more. `tell` records what is tampering, each before
    /// it is undone.
    ///
    /// # Errors
    /// git-failed; io errors; what `tell` gives.
    pub fn settle(
        &self,
        wt: &WorkTree,
        issue: u64,
        tell: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<Settled> {
        let mut settling = Settling {
            done: Settled::default(),
            tell,
        };
        let settled = &mut settling;
        let mut kept = Kept::new();
        let aside = wt.git_dir.join("veri-aside");
        if wt.regain()? {
            let said = format!("{} was replaced by a link", wt.path().display());
            settled.tampered(said)?;
        }
        self.frame.back(wt, settled)?;
        self.files_back(&aside, settled, &mut kept)?;
        self.tdd_back(wt, issue, &aside, settled, &mut kept)?;
        self.config_back(wt, &aside, settled, &mut kept)?;
        self.packed_back(wt, settled)?;
        self.clear_way(wt, issue, settled)?;
        keep_files(wt, issue, &kept)?;
        self.head_back(wt, issue, settled)?;
        self.refs_back(wt, issue, settled)?;
        self.stash_back(wt, issue, settled)?;
        self.flatten(wt, &aside, settled)?;
        Ok(settling.done)
    }

    fn files_back(&self, aside: &Path, settled: &mut Settling<'_>, kept: &mut Kept) -> Result<()> {
        for file in self.ties.iter().chain(&self.whole) {
            file_back(file, aside, settled, kept)?;
        }
        for hooks in &self.hooks {
            let mut new = Hooks::paths(&hooks.folder)?;
            new.retain(|path| hooks.files.iter().all(|file| file.path != *path));
            let many = new.split_off(new.len().min(MOST_HOOKS));
            for path in new {
                let new = Watched {
                    path,
                    content: Content::Absent,
                };
                file_back(&new, aside, settled, kept)?;
            }
            if !many.is_empty() {
                let (count, folder) = (many.len(), hooks.folder.display());
                settled.tampered(format!("{count} more files were written into {folder}"))?;
                let heap = snapshot::move_all_aside(&many, aside)?
                    .display()
                    .to_string();
                settled.noted(format!("they were moved to {heap}"));
            }
            for file in &hooks.files {
                file_back(file, aside, settled, kept)?;
            }
        }
        Ok(())
    }

    /// `.tdd/` as it was. The issue's own ledger is the conductor's to put back: it knows what it should be.
    fn tdd_back(
        &self,
        wt: &WorkTree,
        issue: u64,
        aside: &Path,
        settled: &mut Settling<'_>,
        kept: &mut Kept,
    ) -> Result<()> {
        let tdd = wt.tdd();
        let ledger = tdd.join(format!("issue-{issue}.md"));
        if let Some(runs) = &self.runs {
            for folder in [tdd.clone(), tdd.join("runs")] {
                let stands = fs::symlink_metadata(&folder).ok();
                if stands.as_ref().is_some_and(|meta| meta.is_dir()) {
                    continue;
                }
                settled.tampered(format!("{} was removed", folder.display()))?;
                if stands.is_some() {
                    snapshot::move_aside(&folder, aside)?;
                }
                fs::create_dir_all(&folder)?;
            }
            let left = guard::names(&tdd.join("runs"))?.unwrap_or_default();
            let gone = runs.iter().filter(|name| !left.contains(name)).count();
            if gone > 0 {
                settled.tampered(format!(
                    "{gone} files of {} were removed, which are the records of earlier launches",
                    tdd.join("runs").display()
                ))?;
            }
        }
        for path in frame::no_records(&tdd)? {
            if self.tdd.iter().all(|file| file.path != path) {
                settled.tampered(format!("{} was made", path.display()))?;
                snapshot::move_aside(&path, aside)?;
            }
        }
        for path in guard::tdd_files(&tdd)? {
            if path == ledger || self.tdd.iter().any(|file| file.path == path) {
                continue;
            }
            if fs::symlink_metadata(&path)?.is_file() {
                let new = Watched {
                    path,
                    content: Content::Absent,
                };
                file_back(&new, aside, settled, kept)?;
            } else {
                settled.tampered(format!("{} was made", path.display()))?;
                snapshot::move_aside(&path, aside)?;
            }
        }
        for file in self.tdd.iter().filter(|file| file.path != ledger) {
            file_back(file, aside, settled, kept)?;
        }
        Ok(())
    }

    fn config_back(
        &self,
        wt: &WorkTree,
        aside: &Path,
        settled: &mut Settling<'_>,
        kept: &mut Kept,
    ) -> Result<()> {
        // Reading a named file runs nothing, follows no include, and does not look at the repository.
        let git = wt.git.at("/");
        let mut known = BTreeSet::new();
        for file in &self.config {
            known.insert(file.path.clone());
            mend(&git, &wt.remote, file, aside, settled, kept)?;
        }
        // A file that was not part of the configuration before: a new ~/.gitconfig.
        for path in config::sources(&wt.git)?.files {
            let watched = self.whole.iter().any(|file| file.path == path);
            if !watched && known.insert(path.clone()) {
                let new = Watched {
                    path,
                    content: Content::Absent,
                };
                mend(&git, &wt.remote, &new, aside, settled, kept)?;
            }
        }
        Ok(())
    }

    /// HEAD, branch, index, and whatever git is in the middle of.
    fn head_back(&self, wt: &WorkTree, issue: u64, settled: &mut Settling<'_>) -> Result<()> {
        let refs = wt.refs(issue);
        let base = Oid::from_str(&self.commit)?;
        if wt.linked {
            for lock in guard::LOCKS {
                if self.locks.iter().any(|there| there == lock) {
                    continue;
                }
                stage::remove_if_there(&wt.git_dir.join(lock))?;
            }
        }
        if let Some(what) = repo::in_progress(&wt.git2) {
            settled.noted(format!(
                "a {what} that the leaf left unfinished was called off"
            ));
            wt.git2.cleanup_state()?;
        }
        for left in [
            "AUTO_MERGE",
            "SQUASH_MSG",
            "BISECT_START",
            "BISECT_NAMES",
            "BISECT_TERMS",
        ] {
            stage::remove_if_there(&wt.git_dir.join(left))?;
        }
        let now = match wt.git2.find_reference("HEAD") {
            Ok(head) => match head.symbolic_target()? {
                Some(branch) => Head::Branch(branch.to_owned()),
                None => Head::Detached(head.target().map(|o| o.to_string()).unwrap_or_default()),
            },
            Err(_) => Head::Detached(String::new()),
        };
        let mut tips = BTreeSet::new();
        tips.extend(wt.git2.refname_to_id("HEAD").ok());
        if let Head::Branch(branch) = &self.head {
            tips.extend(wt.git2.refname_to_id(branch).ok());
        }
        tips.remove(&base);
        for tip in tips {
            let why = "commits that a leaf made; their files stayed in the working tree";
            let kept = keep_commit(refs, wt, tip, base, why)?;
            settled.noted(format!(
                "the leaf moved on to {tip}: folded back, kept as {kept}"
            ));
        }
        if now != self.head {
            match &self.head {
                Head::Branch(branch) => {
                    let log = "veri: a leaf's switch undone";
                    wt.git2.reference_symbolic("HEAD", branch, true, log)?;
                }
                Head::Detached(oid) => wt.git2.set_head_detached(Oid::from_str(oid)?)?,
            }
            settled.noted("the leaf had switched to another branch: switched back".to_owned());
        }
        match &self.head {
            Head::Branch(branch) => {
                // A branch that only leads to another is none of its own.
                let found = wt.git2.find_reference(branch).ok();
                if found.and_then(|found| found.target()) != Some(base) {
                    wt.git2
                        .reference(branch, base, true, "veri: a leaf's commits folded back")?;
                }
            }
            Head::Detached(_) => {}
        }
        self.index_back(wt)
    }

    fn index_back(&self, wt: &WorkTree) -> Result<()> {
        let index = wt.git_dir.join("index");
        let now = whole(&index, self.index.len() as u64).ok().flatten();
        if now.unwrap_or_default() == self.index {
            return Ok(());
        }
        let content = if self.index.is_empty() {
            Content::Absent
        } else {
            Content::File {
                mode: 0o644,
                bytes: self.index.clone(),
            }
        };
        let watched = Watched {
            path: index,
            content,
        };
        watched.put_back(&wt.git_dir.join("veri-aside"))?;
        // git takes files that are as new as the index for possibly changed: the time is part of it.
        match self.index_time {
            Some(time) => stage::set_modified(&watched.path, time),
            None => Ok(()),
        }
    }

    /// Makes plain files of repositories that the leaf made within the working tree: git could not commit
    /// what is in them.
    fn flatten(&self, wt: &WorkTree, aside: &Path, settled: &mut Settling<'_>) -> Result<()> {
        // A repository may lie within another.
        for _ in 0..100 {
            let mut any = false;
            let nested = wt.nested(&mut |path| {
                settled.tampered(format!(
                    "{} was made, which git cannot read",
                    path.display()
                ))?;
                snapshot::move_aside(path, aside)
            })?;
            for folder in nested {
                let inner = wt.path.join(&folder).join(".git");
                if self.nested.contains(&folder) || fs::symlink_metadata(&inner).is_err() {
                    continue;
                }
                snapshot::move_aside(&inner, aside)?;
                any = true;
                settled.noted(format!(
                    "{folder} had been made a repository of its own: its files are plain files now, \
                     its .git was moved to {}",
                    aside.display()
                ));
            }
            if !any {
                break;
            }
        }
        Ok(())
    }
}

fn file_back(
    file: &Watched,
    aside: &Path,
    settled: &mut Settling<'_>,
    kept: &mut Kept,
) -> Result<()> {
    let Some(now) = file.changed()? else {
        return Ok(());
    };
    let what = match (&file.content, &now) {
        (Content::Absent, _) => "written",
        (_, Content::Absent) => "removed",
        _ => "changed",
    };
    settled.tampered(format!("{} was {what}", file.path.display()))?;
    if let Some(bytes) = now.kept() {
        kept.push((file.path.clone(), bytes));
    }
    file.put_back(aside)
}

fn mend(
    git: &run::Git,
    remote: &str,
    file: &Watched,
    aside: &Path,
    settled: &mut Settling<'_>,
    kept: &mut Kept,
) -> Result<()> {
    let Some(now) = file.changed()? else {
        return Ok(());
    };
    let shown = file.path.display();
    let mended = config::mend(git, remote, file, &now, aside, &mut |tampered| {
        settled.tampered(format!("{shown}: {} changed", tampered.join(", ")))
    })?;
    if !mended.tampered.is_empty()
        && let Some(bytes) = now.kept()
    {
        kept.push((file.path.clone(), bytes));
    }
    if !mended.identity.is_empty() {
        settled.noted(format!("{shown}: {} put back", mended.identity.join(", ")));
    }
    if mended.others {
        settled.noted(format!(
            "{shown}: other settings changed meanwhile and were left"
        ));
    }
    Ok(())
}

/// Keeps the contents of tampered files as blobs of one discarded commit.
fn keep_files(wt: &WorkTree, issue: u64, kept: &Kept) -> Result<()> {
    if kept.is_empty() {
        return Ok(());
    }
    let mut builder = wt.git2.treebuilder(None)?;
    let mut why = "what a leaf set up in git's own files; it was put back".to_owned();
    why.push('\n');
    for (number, (path, bytes)) in kept.iter().enumerate() {
        let base = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = format!("{number}-{base}");
        builder.insert(&name, wt.git2.blob(bytes)?, 0o100_644)?;
        why.push_str(&format!("\n{name}: {}", path.display()));
    }
    let tree = builder.write()?;
    wt.refs(issue).discard(tree, None, &why).map(drop)
}
