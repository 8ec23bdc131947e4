//! Bringing a ground to a tree: clean, lay what differs in a fresh folder, move it into place.

use super::clock::{self, Stamp};
use super::entries::{Entries, Form, is_attributes};
use super::hold::{Ground, Laid, Since};
use super::index::{KeptIndex, write_few};
use super::path::{TreePath, covers, place};
use super::put::equal;
use super::record::{LaidFile, Signature};
use super::slot::Kind;
use super::source::Source;
use super::survey::{Survey, has_form, survey};
use super::{files, neutral};
use crate::cause::Bail;
use anyhow::{Context, Result, bail};
use git2::{Oid, Repository};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The index of what is checked out, among the records.
const FEW: &str = "few";

/// The folder in which git is asked what a tree ignores, among the records.
const RULES: &str = "rules";

/// What bringing a ground to a tree took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brought {
    /// Tracked files written, and things removed that did not belong.
    pub changed: usize,
}

impl Ground {
    /// Lays exactly this tree, as a fresh clone would have it, by difference from what was there.
    ///
    /// Untracked files are removed, but not build and dependency folders that the tree ignores and what setup
    /// made; files that a suite changed are put right. What is written gets a modification time in a later whole
    /// second than what it replaces; [`Ground::settle_clock`] waits for it.
    ///
    /// # Errors
    /// git-failed when objects are missing or a filter fails, needs-user when the declared environment file is a
    /// tracked one, and I/O errors.
    pub fn bring_to(&mut self, repo: &Repository, tree: Oid) -> Result<Brought> {
        let laid = Laid {
            tree,
            entries: Arc::new(self.entries_of(repo, tree)?),
            source: Source::of(repo)?,
        };
        self.check_env_file(&laid.entries)?;
        let brought = self.bring(&laid).with_context(|| {
            format!(
                "bringing the ground {} to tree {tree}",
                self.path().display()
            )
        })?;
        match self.kind {
            Kind::Check => neutral::borrowing(self.path(), &laid.source.objects(), tree)?,
            Kind::Verify => {}
        }
        self.write_env_file()?;
        self.laid = Some(laid);
        self.take_index()?;
        Ok(brought)
    }

    /// Lays the last tree again, after setup or a trial changed files of it.
    pub(super) fn bring_back(&mut self) -> Result<Brought> {
        let laid = self.last()?;
        let (repo, tree) = (laid.source.open()?, laid.tree);
        self.bring_to(&repo, tree)
    }

    /// What a tree says; what was laid last and differs from it is all that is read.
    fn entries_of(&mut self, repo: &Repository, tree: Oid) -> Result<Entries> {
        if let Some(before) = self.laid.take() {
            let entries = Arc::try_unwrap(before.entries).unwrap_or_else(|e| (*e).clone());
            // The last tree may be of another repository.
            if let Ok(turned) = entries.turned(repo, before.tree, tree) {
                return Ok(turned);
            }
        }
        Entries::of(repo, tree)
    }

    fn bring(&mut self, laid: &Laid) -> Result<Brought> {
        if !self.record.known || self.record.clock.went_back(clock::now()) {
            self.wipe()?;
        }
        let entries = &laid.entries;
        let spared = self.made();
        let mut found = survey(self.path(), entries, &self.record.files, &spared)?;
        let ignored = self.ignored(laid, &found.builds)?;
        found.judge(&ignored, &spared);
        self.doubt(&mut found, entries);
        let mut changed = found.foreign.len();
        self.clear(&found)?;
        let fresh = self.lay_fresh(laid, &found)?;
        let mut write: BTreeMap<TreePath, Vec<Stamp>> = BTreeMap::new();
        for (path, stat) in found.other {
            let carried = self.carried(&path, &stat);
            write.insert(path, carried);
        }
        write.extend(found.missing.into_iter().map(|path| (path, Vec::new())));
        let mut signed = BTreeMap::new();
        for (path, stat) in found.suspect {
            let standing = place(self.path(), &path);
            if equal(&standing, &place(&fresh, &path))? && stat.modified() <= clock::now() {
                signed.insert(path.clone(), self.sign(entries, &path)?);
            } else {
                let carried = self.carried(&path, &stat);
                write.insert(path, carried);
            }
        }
        changed += write.len();
        let stamps = self.stamps(&write)?;
        for (path, stamp) in &stamps {
            self.put(&fresh, path, *stamp)?;
        }
        for path in stamps.keys() {
            signed.insert(path.clone(), self.sign(entries, path)?);
        }
        for file in signed.values() {
            self.record.clock.known_by(file.signature.changed());
        }
        self.tell_apart(entries, &signed)?;
        let mut changed_paths = without(&self.record.files, &entries.files);
        for path in &changed_paths {
            self.record.files.remove(path);
        }
        changed_paths.extend(signed.keys().cloned());
        self.record.files.extend(signed);
        self.index.note(&changed_paths);
        self.record
            .write_files(&self.lock.records, &changed_paths)?;
        self.record.known = true;
        self.record.write_state(&self.lock.records)?;
        files::remove(&fresh)?;
        Ok(Brought { changed })
    }

    /// Removes what does not belong, having noted when.
    fn clear(&mut self, found: &Survey) -> Result<()> {
        self.record.clock.read(clock::now());
        // What a suite deleted may have been written by it before; what becomes a file may hold files.
        let deleted = found
            .missing
            .iter()
            .filter(|path| self.record.files.contains_key(*path));
        let folders = found.other.iter().filter(|(_, stat)| stat.is_folder());
        let removed: Vec<&TreePath> = found
            .foreign
            .iter()
            .chain(deleted)
            .chain(folders.map(|(path, _)| path))
            .collect();
        if removed.is_empty() {
            return Ok(());
        }
        for path in removed {
            self.record.clock.removed(path);
        }
        if self.record.known {
            self.record.write_state(&self.lock.records)?;
        }
        for path in &found.foreign {
            files::remove(&place(self.path(), path))?;
        }
        Ok(())
    }

    /// Which of these folders the tree that is laid ignores by its own rules.
    pub(super) fn ignored(&self, laid: &Laid, folders: &[TreePath]) -> Result<HashSet<TreePath>> {
        let rules = self.lock.records.join(RULES);
        files::remove(&rules)?;
        let ignored = laid.source.ignored(&laid.entries, folders, &rules)?;
        files::remove(&rules)?;
        Ok(ignored)
    }

    /// Tracked files that are not what was laid.
    pub(super) fn differences(&mut self, laid: &Laid) -> Result<Vec<TreePath>> {
        let found = survey(self.path(), &laid.entries, &self.record.files, &self.made())?;
        let mut different: Vec<TreePath> = found.missing.clone();
        different.extend(found.other.keys().cloned());
        if !found.suspect.is_empty() {
            let fresh = self.lay_fresh(
                laid,
                &Survey {
                    suspect: found.suspect.clone(),
                    ..Survey::default()
                },
            )?;
            for path in found.suspect.keys() {
                if !equal(&place(self.path(), path), &place(&fresh, path))? {
                    different.push(path.clone());
                }
            }
            files::remove(&fresh)?;
        }
        different.sort();
        Ok(different)
    }

    /// Empties the ground and forgets what was laid.
    pub(super) fn wipe(&mut self) -> Result<()> {
        // With all that may remember a time here, the times are forgotten.
        self.record.forget(&self.lock.records)?;
        self.index = KeptIndex::default();
        files::remove(self.path())?;
        self.since = Since::Anew(Vec::new());
        fs::create_dir(self.path()).with_context(|| format!("making {}", self.path().display()))
    }

    /// What was laid under other attributes may have to look different now; changed attributes are written anew.
    fn doubt(&self, found: &mut Survey, entries: &Entries) {
        let before = self
            .record
            .files
            .iter()
            .filter(|(path, _)| is_attributes(path))
            .map(|(path, file)| (path, file.entry.oid));
        if before.eq(entries.attributes()) {
            return;
        }
        let changed: HashSet<TreePath> = (found.suspect.keys())
            .chain(found.other.keys())
            .chain(&found.missing)
            .cloned()
            .collect();
        for path in entries.files.keys().filter(|path| !changed.contains(*path)) {
            if let Some(laid) = self.record.files.get(path)
                && laid.entry.form.is_regular()
            {
                found.suspect.insert(path.clone(), laid.signature);
            }
        }
    }

    fn lay_fresh(&self, laid: &Laid, found: &Survey) -> Result<PathBuf> {
        let fresh = self.fresh()?;
        let paths: Vec<&TreePath> = found
            .suspect
            .keys()
            .chain(found.other.keys())
            .chain(&found.missing)
            .collect();
        if !paths.is_empty() {
            // git takes the attributes from the index that it checks out from.
            let index = self.lock.records.join(FEW);
            let all = &laid.entries.files;
            let asked = paths.iter().filter_map(|path| all.get_key_value(*path));
            let attributes = all.iter().filter(|(path, _)| is_attributes(path));
            write_few(&index, asked.chain(attributes))?;
            laid.source.check_out(&index, &fresh, &paths)?;
            files::remove(&index)?;
        }
        Ok(fresh)
    }

    fn sign(&self, entries: &Entries, path: &TreePath) -> Result<LaidFile> {
        let at = place(self.path(), path);
        let stat =
            fs::symlink_metadata(&at).with_context(|| format!("looking at {}", at.display()))?;
        let entry = *entries
            .files
            .get(path)
            .context("a path that the tree does not have")?;
        if !has_form(entry.form, &stat) {
            bail!("{} was laid, but is not a {:?}", at.display(), entry.form);
        }
        let signature = Signature::of(&stat);
        Ok(LaidFile { entry, signature })
    }

    /// Whether each path that was laid is a file of its own: not so where names are told apart by git alone.
    fn tell_apart(&self, entries: &Entries, signed: &BTreeMap<TreePath, LaidFile>) -> Result<()> {
        if signed.is_empty() || tells_names_apart(&self.lock.records)? {
            return Ok(());
        }
        let mut inodes: HashMap<u64, &TreePath> = HashMap::new();
        for (path, entry) in &entries.files {
            if entry.form == Form::Submodule {
                continue;
            }
            let at = place(self.path(), path);
            let stat = fs::symlink_metadata(&at)
                .with_context(|| format!("looking at {}", at.display()))?;
            if let Some(twin) = inodes.insert(Signature::of(&stat).inode(), path) {
                return Err(Bail::needs_user(format!(
                    "{} and {} are one file on this file system, which does not tell their names apart: \
                     set VERI_HOME to a folder on one that does",
                    String::from_utf8_lossy(twin),
                    String::from_utf8_lossy(path)
                ))
                .into());
            }
        }
        Ok(())
    }

    fn check_env_file(&self, entries: &Entries) -> Result<()> {
        let Some(file) = &self.env_file else {
            return Ok(());
        };
        let below = |path: &TreePath| covers(path, &file.name);
        if entries.folders.contains(&file.name) || entries.files.keys().any(below) {
            return Err(Bail::needs_user(format!(
                "ground.env_file names {}, which git tracks already: the tree's own would be hidden by it",
                String::from_utf8_lossy(&file.name)
            ))
            .into());
        }
        Ok(())
    }
}

/// Whether a file system tells names apart that differ in case, or in how an accent is written.
fn tells_names_apart(folder: &Path) -> Result<bool> {
    let name = folder.join("name-\u{e9}");
    fs::write(&name, "").with_context(|| format!("writing {}", name.display()))?;
    let twins = ["NAME-\u{e9}", "name-e\u{301}"];
    let apart = (twins.iter()).all(|twin| fs::symlink_metadata(folder.join(twin)).is_err());
    files::remove(&name)?;
    Ok(apart)
}

/// The paths of one map that are not in another, in linear time.
fn without<A, B>(
    these: &BTreeMap<TreePath, A>,
    others: &BTreeMap<TreePath, B>,
) -> BTreeSet<TreePath> {
    let mut others = others.keys().peekable();
    let gone = these.keys().filter(|path| {
        while others.next_if(|other| other < path).is_some() {}
        others.peek() != Some(path)
    });
    gone.cloned().collect()
}
