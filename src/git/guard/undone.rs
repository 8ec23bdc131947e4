//! Refs and stash after a leaf: what is its own goes to discarded and is undone, all others are left.

use super::{Guard, Head, LEAF_EMAIL, Settling};
use crate::git::saved::{self, Refs};
use crate::git::worktree::WorkTree;
use crate::git::{run, tree};
use anyhow::{Context, Result};
use git2::{ErrorCode, ObjectType, Oid};
use std::collections::BTreeSet;

impl Guard {
    pub(in crate::git) fn refs_back(
        &self,
        wt: &WorkTree,
        issue: u64,
        settled: &mut Settling<'_>,
    ) -> Result<()> {
        let refs = wt.refs(issue);
        let own = refs.name("");
        let discarded = refs.name("discarded/");
        let now = wt.direct_refs()?;
        let names: BTreeSet<&String> = self.refs.keys().chain(now.keys()).collect();
        for name in names {
            let (old, new) = (self.refs.get(name), now.get(name));
            let on_head = matches!(&self.head, Head::Branch(branch) if branch == name);
            // What was put aside since the guard was set is ours; so are the refs of other issues' runs.
            let added_by_us = name.starts_with(&discarded) && old.is_none();
            let other_issue = name.starts_with("refs/veri/") && !name.starts_with(&own);
            if old == new || on_head || added_by_us || other_issue {
                continue;
            }
            let leafs = name.starts_with(&own) || is_leafs(wt, name)?;
            ref_back(wt, refs, name, (old, new), leafs, settled)
                .with_context(|| format!("settling {name}"))?;
        }
        Ok(())
    }

    pub(in crate::git) fn stash_back(
        &self,
        wt: &WorkTree,
        issue: u64,
        settled: &mut Settling<'_>,
    ) -> Result<()> {
        let refs = wt.refs(issue);
        let now = wt.stash()?;
        for (number, (oid, email)) in now.iter().enumerate().rev() {
            if self.stash.contains(&oid.to_string()) || email != LEAF_EMAIL.as_bytes() {
                continue;
            }
            let why = "what a leaf stashed";
            let kept = keep_commit(refs, wt, *oid, Oid::from_str(&self.commit)?, why)?;
            let entry = format!("stash@{{{number}}}");
            run::must(
                wt.git.quiet(["stash", "drop", "--quiet", &entry]),
                "dropping a leaf's stash",
            )?;
            settled.noted(format!(
                "the leaf's own stash was kept as {kept} and dropped"
            ));
        }
        for old in &self.stash {
            let old = Oid::from_str(old)?;
            if now.iter().any(|(oid, _)| *oid == old) || wt.git2.find_commit(old).is_err() {
                continue;
            }
            let kept = refs.keep(old)?;
            settled.noted(format!(
                "a stash entry vanished while the leaf ran; it is kept as {kept} (`git stash apply` \
                 takes it)"
            ));
        }
        Ok(())
    }
}

/// Puts one ref back that a leaf moved, made or deleted, or says that somebody else did.
fn ref_back(
    wt: &WorkTree,
    refs: Refs<'_>,
    name: &str,
    (old, new): (Option<&String>, Option<&String>),
    leafs: bool,
    settled: &mut Settling<'_>,
) -> Result<()> {
    let oid = |text: &String| Oid::from_str(text);
    match (old, new) {
        (Some(old), None) => {
            // A deletion leaves no trace of who did it.
            let old = oid(old)?;
            if wt.git2.find_object(old, None).is_err() {
                settled.noted(format!(
                    "{name} was deleted while the leaf ran, and what it named ({old}) is gone"
                ));
            } else if name.starts_with(&refs.name("")) {
                // By force: a symbolic ref may stand there.
                wt.git2.reference(name, old, true, "veri: put back")?;
                settled.noted(format!("{name} had been deleted: put back"));
            } else if name.starts_with("refs/heads/") || name.starts_with("refs/tags/") {
                let kept = refs.keep(old)?;
                settled.noted(format!(
                    "{name} was deleted while the leaf ran; what it named is kept as {kept}"
                ));
            }
        }
        (old, Some(new)) if leafs => {
            let new = oid(new)?;
            let base = old.map(oid).transpose()?;
            let kept = keep_any(refs, wt, new, base, &format!("{name}, as a leaf left it"))?;
            match base {
                Some(base) => {
                    moved_back(wt, name, base, new)?;
                    settled.noted(format!("{name} was moved back; kept as {kept}"));
                }
                None => {
                    saved::delete(&wt.git2, name)?;
                    settled.noted(format!("{name} was removed; kept as {kept}"));
                }
            }
        }
        _ if name.starts_with("refs/remotes/") => {}
        _ => settled.noted(format!(
            "{name} changed while the leaf ran, but not by the leaf: left"
        )),
    }
    Ok(())
}

/// Moves a ref back unless somebody moved it meanwhile.
fn moved_back(wt: &WorkTree, name: &str, to: Oid, from: Oid) -> Result<()> {
    match wt
        .git2
        .reference_matching(name, to, true, from, "veri: a leaf's change undone")
    {
        Err(e) if e.code() == ErrorCode::Modified => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// Whether the newest entry of a ref's log bears the leaf's address.
fn is_leafs(wt: &WorkTree, name: &str) -> Result<bool> {
    if !wt.git2.reference_has_log(name)? {
        return Ok(false);
    }
    let log = wt.git2.reflog(name)?;
    let newest = log.get(0);
    Ok(newest.is_some_and(|entry| entry.committer().email_bytes() == LEAF_EMAIL.as_bytes()))
}

/// Keeps whatever a ref named under a discarded ref: a commit with its history, as a change from `base` (HEAD without
/// one), any other object as it is.
pub(in crate::git) fn keep_any(
    refs: Refs<'_>,
    wt: &WorkTree,
    object: Oid,
    base: Option<Oid>,
    why: &str,
) -> Result<String> {
    let commit = wt
        .git2
        .find_object(object, None)
        .and_then(|found| found.peel(ObjectType::Commit));
    match (commit, base) {
        (Ok(commit), Some(base)) if wt.git2.find_commit(base).is_ok() => {
            keep_commit(refs, wt, commit.id(), base, why)
        }
        (Ok(commit), None) => keep_commit(refs, wt, commit.id(), wt.head()?, why),
        _ => refs.keep(object),
    }
}

/// Keeps a commit with its history under a discarded ref, as a change from `base`.
pub(in crate::git) fn keep_commit(
    refs: Refs<'_>,
    wt: &WorkTree,
    commit: Oid,
    base: Oid,
    why: &str,
) -> Result<String> {
    let tree = tree::of_commit(&wt.git2, commit)?;
    refs.discard_with(tree, &[base, commit], why)
}
