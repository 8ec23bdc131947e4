//! A ground in use: its folder, what it remembers, and what was laid in it.

use super::entries::Entries;
use super::index::{INDEX, KeptIndex};
use super::path::{TreePath, covers};
use super::record::Record;
use super::slot::{Kind, Slot};
use super::source::Source;
use super::{clock, command, folders};
use crate::cause::Bail;
use crate::untrusted::given;
use anyhow::{Context, Result};
use git2::Oid;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A ground that this process holds the lock of. Dropping it frees the slot; the folder stays.
#[derive(Debug)]
pub struct Ground {
    pub(super) kind: Kind,
    pub(super) lock: Slot,
    pub(super) record: Record,
    pub(super) laid: Option<Laid>,
    pub(super) env_file: Option<EnvFile>,
    pub(super) since: Since,
    pub(super) index: KeptIndex,
    pub(super) shared: Option<u32>,
}

/// What was run in a ground since it was made anew, setup aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Since {
    /// Not known: the ground was found as it is, or something was run that may have left anything behind.
    #[default]
    Unknown,
    /// These commands, each once, on one tree.
    Anew(Vec<(Oid, String)>),
}

/// What was last laid, and from where it can be laid again.
#[derive(Debug, Clone)]
pub(super) struct Laid {
    pub(super) tree: Oid,
    pub(super) entries: Arc<Entries>,
    pub(super) source: Source,
}

/// The most that an environment file may have, in bytes.
pub const ENV_FILE: u64 = 16 << 20;

/// A declared file that is copied into the ground beside the tree.
#[derive(Debug, Clone)]
pub(super) struct EnvFile {
    pub(super) name: TreePath,
    pub(super) content: Vec<u8>,
}

impl Ground {
    /// Gives the ground's own repository an index that knows the files.
    pub(super) fn take_index(&mut self) -> Result<()> {
        let path = self.lock.records.join(INDEX);
        self.index
            .write(&path, &self.record.files)
            .with_context(|| format!("writing the ground's index {}", path.display()))?;
        let own = self.path().join(".git");
        if own.is_dir() {
            let to = own.join(INDEX);
            fs::copy(&path, &to).with_context(|| format!("writing {}", to.display()))?;
        }
        Ok(())
    }

    /// Takes the first free slot of a kind: `ground/check`, `ground/check-1` and so on below `home`.
    ///
    /// A suite of a conductor that was killed may still run in the slot: settle or end the leaves recorded in
    /// [`Ground::records`] before [`Ground::bring_to`].
    ///
    /// # Errors
    /// When the folders cannot be made, or 64 slots are all taken.
    pub fn acquire(home: &Path, kind: Kind) -> Result<Ground> {
        let lock = Slot::take(home, kind)?;
        let record = Record::read(&lock.records);
        Ok(Ground {
            kind,
            lock,
            record,
            laid: None,
            env_file: None,
            since: Since::Unknown,
            index: KeptIndex::default(),
            shared: None,
        })
    }

    /// Empties the ground, so that the next tree in it is what a fresh clone would be.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn make_anew(&mut self) -> Result<()> {
        self.laid = None;
        self.wipe()
    }

    /// Notes that a command is about to run on a tree; says whether it finds the ground as a fresh clone is, but
    /// for what other commands left that ran on this very tree.
    pub(crate) fn note_run(&mut self, tree: Oid, command: &str) -> bool {
        let Since::Anew(ran) = &mut self.since else {
            return false;
        };
        let fresh = ran.iter().all(|(on, it)| *on == tree && it != command);
        if fresh {
            ran.push((tree, command.to_owned()));
        } else {
            self.since = Since::Unknown;
        }
        fresh
    }

    /// The root of the tree under test.
    pub fn path(&self) -> &Path {
        &self.lock.root
    }

    /// The slot's number (`VERI_SLOT`), small and unique among the grounds of its kind that are in use.
    pub fn slot(&self) -> u32 {
        self.shared.unwrap_or(self.lock.number)
    }

    /// Gives it the number of another ground, which the same process holds and runs nothing in meanwhile.
    pub fn share_slot(&mut self, of: u32) {
        self.shared = Some(of);
    }

    /// The folder for logs and leaf records, beside the ground and outside the tree under test.
    pub fn records(&self) -> &Path {
        &self.lock.records
    }

    /// The tree that was last laid by this process.
    pub fn tree(&self) -> Option<Oid> {
        self.laid.as_ref().map(|laid| laid.tree)
    }

    /// The dependency key of the last setup; empty when none was run.
    pub fn setup_key(&self) -> &str {
        self.record
            .setup
            .as_ref()
            .map_or("", |done| done.key.as_str())
    }

    /// Declares a file (`ground.env_file`) that [`Ground::bring_to`] copies to the same relative place.
    ///
    /// Gives the hash of its content, a part of the key that results are kept by.
    ///
    /// # Errors
    /// needs-user when the file cannot be read, or its place is not inside the tree.
    pub fn declare_env_file(&mut self, from: &Path, place: &Path) -> Result<String> {
        let inside = place.components().next().is_some()
            && place
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(name) if name != ".git"));
        if !inside {
            return Err(Bail::needs_user(format!(
                "ground.env_file names {}, which is not a place inside the tree: give a relative path like .env",
                place.display()
            ))
            .into());
        }
        // Whatever the reason: it is the person's file, and only they can make it readable.
        let content = given(from, ENV_FILE).map_err(|e| {
            Bail::needs_user(format!(
                "ground.env_file names {}, which cannot be read: {e}. Make the file, or take the key out",
                from.display()
            ))
        })?;
        let hash = crate::hash::of_parts(&[&content]);
        self.env_file = Some(EnvFile {
            name: place.as_os_str().as_bytes().to_vec(),
            content,
        });
        Ok(hash)
    }

    /// Waits until every modification time that was given is past; at once when that is so already.
    pub fn settle_clock(&self) {
        clock::settle(self.record.clock.due());
    }

    /// The environment for a command in this ground: the caller's, without what would lead it elsewhere.
    pub fn environment(&self, base: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        command::environment(base, self.path(), self.slot())
    }

    /// Tracked files that are not what `tree` says, by content, kind or executable bit; sorted.
    ///
    /// # Errors
    /// When `tree` is not the one that was last laid, or the ground cannot be read.
    pub fn verify_exact(&mut self, tree: Oid) -> Result<Vec<TreePath>> {
        self.regain()?;
        let laid = self.laid(tree)?;
        // Nothing that ran here before is later.
        self.record.clock.read(clock::now());
        self.differences(&laid)
    }

    /// Files that a run left behind: neither tracked nor ignored, nor made by setup or declared.
    ///
    /// Build and dependency folders are one entry each, with a `/` at the end.
    ///
    /// # Errors
    /// When nothing was laid yet, or git cannot list the folder.
    pub fn debris(&self) -> Result<Vec<TreePath>> {
        let laid = self.last()?;
        let made = self.made();
        let mut found: Vec<TreePath> = laid
            .source
            .untracked(&self.lock.records.join(INDEX), self.path())?
            .into_iter()
            .filter(|path| !made.iter().any(|known| covers(known, path)))
            .map(|path| folders::build_folder_of(&path).unwrap_or(path))
            .collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    pub(super) fn last(&self) -> Result<&Laid> {
        self.laid
            .as_ref()
            .context("nothing was laid in this ground yet")
    }

    fn laid(&self, tree: Oid) -> Result<Laid> {
        match &self.laid {
            Some(laid) if laid.tree == tree => Ok(laid.clone()),
            _ => anyhow::bail!(
                "the ground {} was not brought to tree {tree}",
                self.path().display()
            ),
        }
    }

    /// Paths that are neither tracked nor to be cleaned away: made by setup, and the declared file.
    pub(super) fn made(&self) -> Vec<TreePath> {
        let mut made: Vec<TreePath> = match &self.record.setup {
            Some(done) => done.made.clone(),
            None => Vec::new(),
        };
        made.extend(self.env_file.iter().map(|file| file.name.clone()));
        made
    }
}
