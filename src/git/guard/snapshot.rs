//! Files as they were: recorded raw, compared raw, put back raw, without any git in between.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Files larger than this are recorded by their first part only: no hook or configuration is that long.
const LARGEST: u64 = 8 << 20;

/// One place of the file system as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::git) struct Watched {
    #[serde(with = "path_bytes")]
    pub(in crate::git) path: PathBuf,
    pub(in crate::git) content: Content,
}

/// What stood there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::git) enum Content {
    Absent,
    File {
        mode: u32,
        #[serde(with = "hex")]
        bytes: Vec<u8>,
    },
    Link {
        #[serde(with = "path_bytes")]
        target: PathBuf,
    },
    Folder,
    /// A device, a pipe: never what is watched.
    Other,
}

impl Content {
    pub(in crate::git) fn of(path: &Path) -> Result<Content> {
        let what = || format!("{} cannot be read", path.display());
        let meta = match fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(e) if absent(&e) => return Ok(Content::Absent),
            Err(e) => return Err(e).with_context(what),
        };
        if meta.is_symlink() {
            let target = fs::read_link(path).with_context(what)?;
            return Ok(Content::Link { target });
        }
        if meta.is_dir() {
            return Ok(Content::Folder);
        }
        if !meta.is_file() {
            return Ok(Content::Other);
        }
        let mut bytes = Vec::new();
        match fs::File::open(path) {
            Ok(file) => file
                .take(LARGEST)
                .read_to_end(&mut bytes)
                .with_context(what)?,
            // Its mode is part of the record, so that making it unreadable is seen.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => 0,
            Err(e) => return Err(e).with_context(what),
        };
        Ok(Content::File {
            mode: meta.permissions().mode() & 0o7777,
            bytes,
        })
    }

    /// The bytes that are worth keeping of it.
    pub(in crate::git) fn kept(&self) -> Option<Vec<u8>> {
        match self {
            Content::File { bytes, .. } => Some(bytes.clone()),
            Content::Link { target } => Some(target.as_os_str().as_bytes().to_vec()),
            Content::Absent | Content::Folder | Content::Other => None,
        }
    }
}

impl Watched {
    pub(in crate::git) fn of(path: impl Into<PathBuf>) -> Result<Watched> {
        let path = path.into();
        let content = Content::of(&path)?;
        Ok(Watched { path, content })
    }

    /// What stands there now, when it is something else.
    pub(in crate::git) fn changed(&self) -> Result<Option<Content>> {
        let now = Content::of(&self.path)?;
        Ok((now != self.content).then_some(now))
    }

    /// Puts it back. A folder in its place is moved to `aside`.
    pub(in crate::git) fn put_back(&self, aside: &Path) -> Result<()> {
        let what = || format!("{} cannot be put back", self.path.display());
        match Content::of(&self.path)? {
            Content::Absent => {}
            Content::Folder | Content::Other => move_aside(&self.path, aside)?,
            _ => fs::remove_file(&self.path).with_context(what)?,
        }
        if let Some(folder) = self.path.parent()
            && self.content != Content::Absent
        {
            fs::create_dir_all(folder).with_context(what)?;
        }
        match &self.content {
            Content::Absent | Content::Other => Ok(()),
            Content::Folder => fs::create_dir_all(&self.path).with_context(what),
            Content::Link { target } => symlink(target, &self.path).with_context(what),
            Content::File { mode, bytes } => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                let mut file = tempfile::Builder::new()
                    .prefix(".veri")
                    .tempfile_in(folder)
                    .with_context(what)?;
                file.write_all(bytes).with_context(what)?;
                file.as_file()
                    .set_permissions(fs::Permissions::from_mode(*mode))
                    .with_context(what)?;
                file.persist(&self.path)
                    .map_err(|e| e.error)
                    .with_context(what)?;
                Ok(())
            }
        }
    }
}

/// Moves something into a folder, under the first free number.
pub(in crate::git) fn move_aside(path: &Path, aside: &Path) -> Result<()> {
    rename(path, &free(aside)?)
}

/// Moves many files of one folder into a folder of their own there; gives it back.
pub(in crate::git) fn move_all_aside(paths: &[PathBuf], aside: &Path) -> Result<PathBuf> {
    let heap = free(aside)?;
    fs::create_dir(&heap).with_context(|| format!("{} cannot be made", heap.display()))?;
    for path in paths {
        rename(path, &heap.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(heap)
}

/// The first free number in a folder, which is made.
fn free(aside: &Path) -> Result<PathBuf> {
    fs::create_dir_all(aside).with_context(|| format!("{} cannot be made", aside.display()))?;
    let mut number = 1;
    while aside.join(number.to_string()).symlink_metadata().is_ok() {
        number += 1;
    }
    Ok(aside.join(number.to_string()))
}

fn rename(path: &Path, to: &Path) -> Result<()> {
    fs::rename(path, to)
        .with_context(|| format!("{} cannot be moved to {}", path.display(), to.display()))
}

/// Lock files of refs below a folder.
pub(in crate::git) fn locks_below(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut locks = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                // No part of a ref's name ends so: git would refuse it.
                _ if entry.path().extension().is_some_and(|e| e == "lock") => {
                    locks.push(entry.path());
                }
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => {}
            }
        }
    }
    locks
}

/// Removes a file that nobody needs, or whatever was put in its place.
pub(in crate::git) fn remove_if_there(file: &Path) -> Result<()> {
    let is_folder = fs::symlink_metadata(file).is_ok_and(|meta| meta.is_dir());
    let removed = match is_folder {
        true => fs::remove_dir_all(file),
        false => fs::remove_file(file),
    };
    match removed {
        Err(e) if !absent(&e) => {
            Err(e).with_context(|| format!("{} cannot be removed", file.display()))
        }
        _ => Ok(()),
    }
}

/// Whether nothing stands there.
pub(in crate::git) fn absent(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Bytes as hexadecimal text: paths and files need not be UTF-8.
pub(in crate::git) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(in crate::git) fn serialize<S: Serializer>(b: &[u8], s: S) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(b.len() * 2);
        for byte in b {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        s.serialize_str(&text)
    }

    pub(in crate::git) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(d)?;
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .ok_or_else(|| D::Error::custom("no hex"))
        };
        let mut bytes = Vec::with_capacity(text.len() / 2);
        for pair in text.as_bytes().chunks(2) {
            let [high, low] = pair else {
                return Err(D::Error::custom("half a byte"));
            };
            bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
        }
        Ok(bytes)
    }
}

pub(in crate::git) mod path_bytes {
    use super::*;
    use serde::{Deserializer, Serializer};
    use std::ffi::OsString;

    pub(in crate::git) fn serialize<S: Serializer>(p: &Path, s: S) -> Result<S::Ok, S::Error> {
        hex::serialize(p.as_os_str().as_bytes(), s)
    }

    pub(in crate::git) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(PathBuf::from(OsString::from_vec(hex::deserialize(d)?)))
    }
}
