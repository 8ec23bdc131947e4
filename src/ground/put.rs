//! Moving files into their places, each with the time that its path needs.

use super::clock::{self, Stamp};
use super::entries::base_name;
use super::files;
use super::hold::Ground;
use super::path::{TreePath, place};
use super::record::Signature;
use crate::untrusted::whole;
use anyhow::{Context, Result};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder that files are laid in before they are moved into the ground, among the records.
const FRESH: &str = "fresh";

impl Ground {
    /// An empty folder on the ground's own file system.
    pub(super) fn fresh(&self) -> Result<PathBuf> {
        let fresh = self.lock.records.join(FRESH);
        files::remove(&fresh)?;
        fs::create_dir(&fresh).with_context(|| format!("making {}", fresh.display()))?;
        Ok(fresh)
    }

    /// The times that a path's files carried, as far as what stands there tells.
    pub(super) fn carried(&self, path: &TreePath, standing: &Signature) -> Vec<Stamp> {
        let laid = self.record.files.get(path).map(|file| file.signature);
        if laid.as_ref() == Some(standing) {
            return vec![standing.modified()];
        }
        // The change time cannot be made up: whatever a suite wrote here, it wrote by then.
        let mut carried = vec![standing.modified(), standing.changed()];
        carried.extend(laid.map(|laid| laid.modified()));
        carried
    }

    /// Gives each path that is to be written its time, and records them before any file carries one.
    pub(super) fn stamps(
        &mut self,
        write: &BTreeMap<TreePath, Vec<Stamp>>,
    ) -> Result<BTreeMap<TreePath, Stamp>> {
        let clock = &mut self.record.clock;
        clock.read(clock::now());
        if write.values().any(|carried| clock.ahead(carried)) {
            clock::settle(clock.due());
            clock.read(clock::now());
        }
        let mut stamps = BTreeMap::new();
        for (path, carried) in write {
            stamps.insert(path.clone(), clock.give(path, carried));
        }
        if self.record.known && !stamps.is_empty() {
            self.record.write_state(&self.lock.records)?;
        }
        Ok(stamps)
    }

    /// Moves a fresh file into its place.
    pub(super) fn put(&self, fresh: &Path, path: &TreePath, stamp: Stamp) -> Result<()> {
        let from = place(fresh, path);
        let to = place(self.path(), path);
        let moved = || -> io::Result<()> {
            let time = TimeSpec::from_duration(stamp);
            utimensat(
                AT_FDCWD,
                &from,
                &time,
                &time,
                UtimensatFlags::NoFollowSymlink,
            )?;
            if fs::rename(&from, &to).is_ok() {
                return Ok(());
            }
            // Its folder is new, or a folder stands in its place, or something else where a folder is laid.
            files::remove(&to).map_err(io::Error::other)?;
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::rename(&from, &to)
        };
        moved().with_context(|| format!("putting {} in its place", to.display()))
    }

    /// Puts other bytes in the place of tracked files; the record still says what should be there.
    pub(super) fn overwrite(&mut self, files: &[(TreePath, &[u8])]) -> Result<()> {
        let fresh = self.fresh()?;
        let mut write = BTreeMap::new();
        for (path, bytes) in files {
            let target = place(&fresh, path);
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder)
                    .with_context(|| format!("making {}", folder.display()))?;
            }
            fs::write(&target, bytes).with_context(|| format!("writing {}", target.display()))?;
            let standing = fs::symlink_metadata(place(self.path(), path));
            let (carried, mode) = standing.map_or((Vec::new(), 0o644), |stat| {
                let carried = self.carried(path, &Signature::of(&stat));
                (carried, stat.mode() & 0o777)
            });
            fs::set_permissions(&target, fs::Permissions::from_mode(mode))
                .with_context(|| format!("setting the mode of {}", target.display()))?;
            write.insert(path.clone(), carried);
        }
        for (path, stamp) in self.stamps(&write)? {
            self.put(&fresh, &path, stamp)?;
        }
        files::remove(&fresh)
    }

    /// Copies the declared file to its place, unless it stands there already.
    pub(super) fn write_env_file(&mut self) -> Result<()> {
        let Some(file) = &self.env_file else {
            return Ok(());
        };
        let path = file.name.clone();
        let at = place(self.path(), &path);
        let standing = fs::symlink_metadata(&at).ok();
        let there = whole(&at, file.content.len() as u64).ok().flatten();
        if there.as_ref() == Some(&file.content) {
            return Ok(());
        }
        let content = file.content.clone();
        let carried = standing.map_or(Vec::new(), |stat| {
            self.carried(&path, &Signature::of(&stat))
        });
        let fresh = self.fresh()?;
        let target = place(&fresh, &path);
        let written = target
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&target, content));
        written.with_context(|| {
            format!(
                "copying the declared {} into the ground",
                String::from_utf8_lossy(base_name(&path))
            )
        })?;
        for (path, stamp) in self.stamps(&BTreeMap::from([(path, carried)]))? {
            self.put(&fresh, &path, stamp)?;
        }
        files::remove(&fresh)
    }
}

/// Whether two files or links hold the same; one that cannot be read is different.
pub(super) fn equal(standing: &Path, fresh: &Path) -> Result<bool> {
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
