//! What the branch and the issue's refs say of the claim under way: an approved red that is kept, a commit that
//! was made before a crash, somebody else's commits.

use super::leaves::oid;
use super::record::{Entry, of_work};
use super::run::Run;
use crate::cause::Bail;
use crate::event::{Kind, Line};
use crate::git::tree;
use crate::machine::{Event, KeptRed, Stage, Tree, Work};
use crate::role::Claim;
use anyhow::Result;
use git2::Oid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The message of the ref that keeps an approved red: what it was approved for.
#[derive(Debug, Serialize, Deserialize)]
struct RedKey {
    title: String,
    criteria: Vec<String>,
}

impl Run<'_> {
    /// The approved red that was kept for what the branch holds, ledgers aside.
    pub(super) fn kept_red(&self) -> Result<Option<KeptRed>> {
        let Some(saved) = self.tree.refs(self.issue_number).load("red")? else {
            return Ok(None);
        };
        let Ok(key) = serde_json::from_str::<RedKey>(saved.message.trim()) else {
            return Ok(None);
        };
        let repo = self.tree.git2();
        let files = |commit| tree::without_tdd(repo, tree::of_commit(repo, commit)?);
        let fits = match saved.parent {
            Some(parent) => files(parent)? == self.tree.head_tree()?,
            None => false,
        };
        Ok(fits.then(|| KeptRed {
            title: key.title,
            criteria: key.criteria,
            tree: Tree(saved.tree.to_string()),
        }))
    }

    /// Whether the claim under way cannot be gone on with: its trees are gone, or somebody else's commits
    /// came onto the branch since, which its trees would take back.
    pub(super) fn is_moved(&self, head_tree: &str) -> bool {
        let repo = self.tree.git2();
        let gone = |tree: &Tree| Oid::from_str(&tree.0).is_ok_and(|id| repo.find_tree(id).is_err());
        let work = self.state.work.as_ref();
        self.known_head_tree()
            .is_some_and(|known| known != head_tree)
            || work.is_some_and(|w| w.trees().into_iter().any(gone))
    }

    /// The tree of the branch as this run last saw or made it.
    pub(super) fn known_head_tree(&self) -> Option<&str> {
        let mut lines = self.lines.iter().rev();
        lines.find_map(|l| l.fields.get("head_tree")?.as_str())
    }

    /// Keeps what there is of a claim that is begun again: nothing that was approved or paid for is just gone.
    pub(super) fn put_work_aside(&mut self, work: &Work) -> Result<()> {
        let repo = self.tree.git2();
        let refs = self.tree.refs(self.issue_number);
        let before = refs.load("candidate")?.and_then(|saved| saved.parent);
        for tree in work.trees() {
            let tree = oid(Some(tree))?;
            if repo.find_tree(tree).is_ok() {
                refs.discard(tree, before, "work on a branch that has moved on since")?;
            }
        }
        refs.delete("reopened")
    }

    pub(super) fn keep_red(&mut self, work: &Work) -> Result<(Event, Value)> {
        let tree = oid(work.candidate.as_ref())?;
        let key = RedKey {
            title: work.step.title.clone(),
            criteria: work.step.criteria.clone(),
        };
        let message = serde_json::to_string(&key)?;
        self.tree
            .refs(self.issue_number)
            .save("red", tree, Some(self.tree.head()?), &message)?;
        Ok((Event::RedKept, json!({ "tree": tree.to_string() })))
    }

    /// An approved red that no longer fits the ledger goes to the discarded work.
    pub(super) fn put_red_aside(&mut self, red: &Tree) {
        let aside = || -> Result<()> {
            self.tree.discard(
                self.issue_number,
                oid(Some(red))?,
                "an approved test whose step was changed by hand",
            )?;
            self.tree.refs(self.issue_number).delete("red")
        };
        if let Err(error) = aside() {
            let said = format!("the approved test could not be put aside: {error:#}");
            drop(self.say(Kind::Check, said));
        }
    }

    /// The commit of this claim, when it was made already and is what was judged.
    pub(super) fn committed_already(&self, work: &Work) -> Result<Option<Oid>> {
        match self.commit_of(work)? {
            Some(commit) if self.is_as_judged(work, commit)? => Ok(Some(commit)),
            _ => Ok(None),
        }
    }

    /// Before anything is built on the branch: a commit that was made, and whose conductor was killed before it had
    /// seen that hooks made something else of it than was judged, is taken back. It is made once more, and what then
    /// comes of it is judged.
    pub(super) fn take_unjudged_commit_back(&mut self) -> Result<()> {
        let Some(work) = self.state.work.clone().filter(|w| w.stage == Stage::Commit) else {
            return Ok(());
        };
        let Some(commit) = self.commit_of(&work)? else {
            return Ok(());
        };
        if self.is_as_judged(&work, commit)? {
            return Ok(());
        }
        let parent = self.tree.git2().find_commit(commit)?.parent_id(0)?;
        if self.tree.head()? != commit {
            return Err(Bail::needs_user(format!(
                "Hooks made something else of the commit {commit} than was judged, the run was killed before it could \
                 take it back, and by now there are commits on top of it. Take it out of the branch (`git rebase \
                 --onto {parent} {commit}`), then run again; the step is committed once more."
            ))
            .into());
        }
        let tree = tree::without_tdd(self.tree.git2(), tree::of_commit(self.tree.git2(), commit)?)?;
        let why = "a commit that is not what was judged, since hooks changed it";
        let refs = self.tree.refs(self.issue_number);
        let kept = refs.discard(tree, Some(parent), why)?;
        // What a person has written into the ledger since would be overwritten with it.
        let base = self.committed_ledger(parent)?.unwrap_or_default();
        let committed = self.committed_ledger(commit)?;
        if let Some(now) = self
            .ledger_file()?
            .filter(|now| Some(now) != committed.as_ref())
        {
            let edit = self.without_own_tick(now, &base);
            if edit != base {
                self.keep_edit(&edit)?;
            }
        }
        let said = format!(
            "{:.9}, {why}, is taken back; kept in {kept}",
            commit.to_string()
        );
        // The hooks changed the files of the working tree, too. On record first: once the branch is back, nothing tells
        // of that commit.
        let fields = json!({ "left": tree.to_string() });
        self.write(Entry::new(Kind::Commit, of_work(&work), fields).say(said))?;
        self.tree.take_back(commit, parent, &self.ledger_path())
    }

    /// Whether a commit of this claim holds what was checked and approved, or checked once more when hooks had changed
    /// it, with a ledger that says what it should.
    fn is_as_judged(&self, work: &Work, commit: Oid) -> Result<bool> {
        let repo = self.tree.git2();
        let tree = tree::without_tdd(repo, tree::of_commit(repo, commit)?)?.to_string();
        let judged = work.candidate.as_ref().is_some_and(|c| c.0 == tree);
        let since_verdict = self.lines.iter().rev();
        let mut since_verdict = since_verdict.take_while(|l| l.event != Kind::Verdict);
        let rechecked = |l: &Line| l.fields.contains_key("recheck") && l.text("tree") == tree;
        if !judged && !since_verdict.any(rechecked) {
            return Ok(false);
        }
        let steps = |commit| -> Result<_> {
            let bytes = self.committed_ledger(commit)?.unwrap_or_default();
            Ok(self.parse_ledger(&bytes).ok())
        };
        let before = steps(repo.find_commit(commit)?.parent_id(0)?)?;
        let meant = before.and_then(|ledger| match work.claim {
            Claim::Refactor => Some(ledger),
            _ => ledger.tick(work.step.number).ok(),
        });
        let is = steps(commit)?;
        Ok(is
            .zip(meant)
            .is_some_and(|(is, meant)| is.steps() == meant.steps()))
    }

    /// The commit of this claim: by its trailers, among those that came onto the branch since it was first intended.
    fn commit_of(&self, work: &Work) -> Result<Option<Oid>> {
        let since = self
            .lines
            .iter()
            .rev()
            .take_while(|l| !matches!(l.event, Kind::Verdict) && l.text("what") != "breaks-with")
            .filter(|l| l.text("intent") == "commit")
            .last();
        let Some(Ok(before)) = since.map(|l| Oid::from_str(l.text("head"))) else {
            return Ok(None);
        };
        let repo = self.tree.git2();
        if repo.find_commit(before).is_err() {
            return Ok(None);
        }
        let mut wanted = self.trailers(work.claim.phase().as_str(), Some(work.step.number));
        wanted.retain(|(key, _)| key != "Veri-Snapshot");
        let mut walk = repo.revwalk()?;
        walk.push(self.tree.head()?)?;
        walk.hide(before)?;
        for id in walk {
            let id = id?;
            let commit = repo.find_commit(id)?;
            let text = String::from_utf8_lossy(commit.message_bytes()).into_owned();
            let has = |(key, value): &(String, String)| {
                text.lines().any(|l| l == format!("{key}: {value}"))
            };
            if wanted.iter().all(has) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}
