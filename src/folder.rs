//! Folders of veri's own at paths that a leaf can reach: whether they still stand where they were found.

use crate::cause::{Bail, Cause};
use anyhow::{Context, Result};
use std::fs;
use std::io;
use std::path::Path;

/// Takes away links in the place of a folder of veri's own, or of the folder that it lies in: what they lead to is
/// somebody else's. The folder is made again, empty. Says whether there was one.
///
/// `path` is absolute and was without links when it was found.
///
/// # Errors
/// storage-failed when the path leads elsewhere all the same; io errors.
pub(crate) fn unlinked(path: &Path) -> Result<bool> {
    let mut replaced = false;
    for at in path.parent().into_iter().chain([path]) {
        if fs::symlink_metadata(at).is_ok_and(|meta| meta.is_symlink()) {
            fs::remove_file(at)
                .with_context(|| format!("the link {} cannot be removed", at.display()))?;
            replaced = true;
        }
    }
    if replaced {
        fs::create_dir_all(path)
            .with_context(|| format!("{} cannot be made again", path.display()))?;
    }
    leads_to_itself(path)?;
    Ok(replaced)
}

/// Holds that a path is where it was when it was found without links; one that is gone leads nowhere.
///
/// # Errors
/// storage-failed when it leads elsewhere; io errors.
pub(crate) fn leads_to_itself(path: &Path) -> Result<()> {
    match path.canonicalize() {
        Ok(now) if now == path => Ok(()),
        Ok(now) => Err(Bail::new(
            Cause::StorageFailed,
            format!(
                "veri works in {}, but that path leads to {} now: something put a link in its place. Nothing there was \
                 touched; remove the link and run again.",
                path.display(),
                now.display()
            ),
        )
        .into()),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        Err(e) => Err(e).with_context(|| format!("{} cannot be looked at", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_in_the_place_of_a_folder_or_of_its_own_go_and_what_they_lead_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (home, own) = (top.join("work"), top.join("work/own"));
        let person = top.join("person");
        fs::create_dir_all(person.join("own")).unwrap();
        fs::write(person.join("own/file"), "theirs").unwrap();
        fs::create_dir_all(&own).unwrap();
        assert!(!unlinked(&own).unwrap());
        fs::remove_dir(&own).unwrap();
        symlink(person.join("own"), &own).unwrap();
        assert!(unlinked(&own).unwrap());
        fs::remove_dir_all(&home).unwrap();
        symlink(&person, &home).unwrap();
        assert!(unlinked(&own).unwrap());
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
        assert_eq!(fs::read(person.join("own/file")).unwrap(), b"theirs");
        // Further up it may be the person's own doing.
        fs::rename(top.join("work"), top.join("moved")).unwrap();
        let inner = top.join("a/b/c");
        fs::create_dir_all(person.join("b/c")).unwrap();
        symlink(&person, top.join("a")).unwrap();
        let error = unlinked(&inner).unwrap_err();
        assert!(error.is::<Bail>(), "{error:#}");
    }
}
