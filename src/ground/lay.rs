//! Bringing a ground to a tree: clean, lay what differs in a fresh folder, move it into place, compare.

use super::clock::{self, Stamp};
use super::entries::{Entries, Form, base_name, is_attributes};
use super::hold::{Ground, INDEX, Laid, Since};
use super::path::{TreePath, covers, place};
use super::record::{LaidFile, Signature};
use super::slot::Kind;
use super::source::Source;
use super::survey::{self, Survey, has_form, survey};
use super::{files, neutral};
use crate::cause::Bail;
use anyhow::{Context, Result, bail};
use git2::{Oid, Repository};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder that files are laid in before they are moved into the ground, among the records.
const FRESH: &str = "fresh";

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
    /// made; files that a suite changed are put right. What is written gets a modification time at least one second after that of what
    /// it replaces; [`Ground::settle_clock`] waits for it.
    ///
    /// # Errors
    /// git-failed when objects are missing or a filter fails, needs-user when the declared environment file is a
    /// tracked one, and I/O errors.
    pub fn bring_to(&mut self, repo: &Repository, tree: Oid) -> Result<Brought> {
        let laid = Laid {
            tree,
            entries: Entries::of(repo, tree)?,
            source: Source::of(repo)?,
        };
        self.check_env_file(&laid.entries)?;
        self.laid = None;
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
        let laid = self.last()?.clone();
        self.bring_to(&laid.source.open()?, laid.tree)
    }

    fn bring(&mut self, laid: &Laid) -> Result<Brought> {
        if !self.record.known || clock::went_back(clock::now(), self.record.stamp) {
            self.wipe()?;
        }
        let entries = &laid.entries;
        let spared = self.made();
        let mut found = survey(self.path(), entries, &self.record.files, &spared)?;
        let ignored = self.ignored(laid, &found.builds)?;
        found.judge(&ignored, &spared);
        self.doubt(&mut found, entries);
        let mut changed = found.foreign.len();
        for path in &found.foreign {
            files::remove(&place(self.path(), path))?;
        }
        laid.source
            .read_tree(&self.lock.records.join(INDEX), self.path(), laid.tree)?;
        let fresh = self.lay_fresh(laid, &found)?;
        let mut write: BTreeMap<TreePath, Stamp> = found.other;
        write.extend(found.missing.into_iter().map(|path| (path, Stamp::ZERO)));
        let mut laid_files: BTreeMap<TreePath, LaidFile> = BTreeMap::new();
        for path in found.same {
            if let Some(kept) = self.record.files.get(&path) {
                laid_files.insert(path, *kept);
            }
        }
        for (path, modified) in found.suspect {
            let standing = place(self.path(), &path);
            if equal(&standing, &place(&fresh, &path))? && modified <= clock::now() {
                laid_files.insert(path.clone(), self.sign(entries, &path)?);
            } else {
                write.insert(path, modified);
            }
        }
        changed += write.len();
        if !write.is_empty() {
            self.next_stamp()?;
        }
        for (path, old) in &write {
            self.put(&fresh, path, *old)?;
        }
        for path in write.keys() {
            laid_files.insert(path.clone(), self.sign(entries, path)?);
        }
        self.record.files = laid_files;
        self.record.known = true;
        self.record.write_files(&self.lock.records)?;
        self.record.write_state(&self.lock.records)?;
        files::remove(&fresh)?;
        self.compare(entries, &spared, &ignored)?;
        Ok(Brought { changed })
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

    /// Puts other bytes in the place of tracked files; the record still says what should be there.
    pub(super) fn overwrite(&mut self, files: &[(TreePath, &[u8])]) -> Result<()> {
        let fresh = self.fresh()?;
        self.next_stamp()?;
        for (path, bytes) in files {
            let target = place(&fresh, path);
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder)
                    .with_context(|| format!("making {}", folder.display()))?;
            }
            fs::write(&target, bytes).with_context(|| format!("writing {}", target.display()))?;
            let standing = fs::symlink_metadata(place(self.path(), path));
            let (old, mode) = standing.map_or((Stamp::ZERO, 0o644), |stat| {
                (survey::modified(&stat), stat.mode() & 0o777)
            });
            fs::set_permissions(&target, fs::Permissions::from_mode(mode))
                .with_context(|| format!("setting the mode of {}", target.display()))?;
            self.put(&fresh, path, old)?;
        }
        self.record.write_state(&self.lock.records)?;
        files::remove(&fresh)
    }

    /// Empties the ground and forgets what was laid.
    pub(super) fn wipe(&mut self) -> Result<()> {
        let stamp = self.record.stamp;
        self.record.forget(&self.lock.records)?;
        if !clock::went_back(clock::now(), stamp) {
            self.record.stamp = stamp;
        }
        files::remove(&self.lock.records.join(INDEX))?;
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
        for path in std::mem::take(&mut found.same) {
            let form = entries.files.get(&path).map(|entry| entry.form);
            match fs::symlink_metadata(place(self.path(), &path)) {
                Ok(stat) if matches!(form, Some(Form::File | Form::Program)) => {
                    found.suspect.insert(path, survey::modified(&stat));
                }
                _ => found.same.push(path),
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
            laid.source
                .check_out(&self.lock.records.join(INDEX), &fresh, &paths)?;
        }
        Ok(fresh)
    }

    fn fresh(&self) -> Result<PathBuf> {
        let fresh = self.lock.records.join(FRESH);
        files::remove(&fresh)?;
        fs::create_dir(&fresh).with_context(|| format!("making {}", fresh.display()))?;
        Ok(fresh)
    }

    /// Takes the next time for files, and records it before any file carries it.
    fn next_stamp(&mut self) -> Result<()> {
        // Else times would run ahead of the clock further with every tree.
        clock::settle(self.record.stamp);
        self.record.stamp = clock::next(clock::now(), self.record.stamp);
        if self.record.known {
            self.record.write_state(&self.lock.records)?;
        }
        Ok(())
    }

    /// Moves a fresh file into its place.
    fn put(&mut self, fresh: &Path, path: &TreePath, old: Stamp) -> Result<()> {
        let from = place(fresh, path);
        let to = place(self.path(), path);
        let stamp = clock::replacing(self.record.stamp, old);
        self.record.stamp = self.record.stamp.max(stamp);
        let moved = || -> io::Result<()> {
            let time = TimeSpec::from_duration(stamp);
            utimensat(
                AT_FDCWD,
                &from,
                &time,
                &time,
                UtimensatFlags::NoFollowSymlink,
            )?;
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            // A rename replaces files and links, but not a folder.
            if fs::symlink_metadata(&to).is_ok_and(|stat| stat.is_dir()) {
                files::remove(&to).map_err(io::Error::other)?;
            }
            fs::rename(&from, &to)
        };
        moved().with_context(|| format!("putting {} in its place", to.display()))
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

    /// Looks once more at everything: the ground holds the tree, and nothing beside it that was not spared.
    fn compare(
        &self,
        entries: &Entries,
        spared: &[TreePath],
        ignored: &HashSet<TreePath>,
    ) -> Result<()> {
        let mut found = survey(self.path(), entries, &self.record.files, spared)?;
        found.judge(ignored, spared);
        let wrong = found
            .foreign
            .first()
            .or(found.missing.first())
            .or(found.other.keys().next())
            .or(found.suspect.keys().next());
        if let Some(path) = wrong {
            bail!(
                "after laying the tree, {} is not as it should be: does something else write there?",
                place(self.path(), path).display()
            );
        }
        let mut inodes: HashMap<(u64, u64), &TreePath> = HashMap::new();
        for (path, entry) in &entries.files {
            if entry.form == Form::Submodule {
                continue;
            }
            let at = place(self.path(), path);
            let stat = fs::symlink_metadata(&at)
                .with_context(|| format!("looking at {}", at.display()))?;
            if let Some(twin) = inodes.insert((stat.dev(), stat.ino()), path) {
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

    /// Gives the ground's own repository an index that knows the files.
    pub(super) fn take_index(&self) -> Result<()> {
        let index = self.lock.records.join(INDEX);
        let laid = self.last()?;
        if !self.record.is_known_to(&index) {
            laid.source.refresh(&index, self.path())?;
        }
        let own = self.path().join(".git");
        if own.is_dir() {
            let to = own.join(INDEX);
            fs::copy(&index, &to).with_context(|| format!("writing {}", to.display()))?;
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

    fn write_env_file(&self) -> Result<()> {
        let Some(file) = &self.env_file else {
            return Ok(());
        };
        let at = place(self.path(), &file.name);
        files::remove(&at)?;
        if let Some(folder) = at.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(&at, &file.content).with_context(|| {
            format!(
                "copying the declared {} into the ground",
                String::from_utf8_lossy(base_name(&file.name))
            )
        })
    }
}

/// Whether two files or links hold the same; one that cannot be read is different.
fn equal(standing: &Path, fresh: &Path) -> Result<bool> {
    let (Ok(a), Ok(b)) = (fs::symlink_metadata(standing), fs::symlink_metadata(fresh)) else {
        return Ok(false);
    };
    if a.is_symlink() && b.is_symlink() {
        return Ok(fs::read_link(standing)? == fs::read_link(fresh)?);
    }
    if !(a.is_file() && b.is_file() && a.len() == b.len() && a.mode() == b.mode()) {
        return Ok(false);
    }
    let (Ok(a), Ok(b)) = (fs::File::open(standing), fs::File::open(fresh)) else {
        return Ok(false);
    };
    let (mut a, mut b) = (BufReader::new(a), BufReader::new(b));
    let (mut left, mut right) = ([0u8; 8192], [0u8; 8192]);
    loop {
        let n = a.read(&mut left)?;
        if n == 0 {
            return Ok(true);
        }
        if b.read_exact(&mut right[..n]).is_err() || left[..n] != right[..n] {
            return Ok(false);
        }
    }
}
