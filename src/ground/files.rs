//! Single files: written whole or not at all, removed even where that resists, hashed.

use anyhow::{Context, Result};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a file so that a reader sees the old content or the new, never a part.
///
/// # Errors
/// Plain I/O errors, with the path.
pub(crate) fn write_atomic(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file without a folder")?;
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(content)?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("writing {}", path.display()))
}

/// Removes a file, link or whole folder, without following links; absent is fine.
///
/// Folders that a suite took the write permission of are opened up first.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Err(e) if gone(&e) => return Ok(()),
        Err(e) => Err(e),
        Ok(stat) if stat.is_dir() => fs::remove_dir_all(path).or_else(|_| {
            open_up(path)?;
            fs::remove_dir_all(path)
        }),
        Ok(_) => fs::remove_file(path),
    };
    match removed {
        Err(e) if !gone(&e) => Err(e).with_context(|| format!("removing {}", path.display())),
        _ => Ok(()),
    }
}

fn gone(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_forbids_writing_is_removed_and_its_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        let inside = dir.path().join("inside/deep");
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir_all(&inside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o555)).unwrap();
        remove(&dir.path().join("inside")).unwrap();
        assert!(!dir.path().join("inside").exists());
        assert!(outside.join("kept").exists());
        remove(&dir.path().join("inside")).unwrap();
    }
}
