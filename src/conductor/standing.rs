//! Whether the folders that a run works in still stand where they stood. One that somebody moves or removes while an agent
//! or a suite is at work is the storage's fault and no work of theirs, whatever they make of it.

use crate::cause::{Bail, Cause};
use crate::storage;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folders, each held open: so the system can give neither another number to it meanwhile nor its number to another.
#[derive(Default)]
pub(super) struct Standing {
    folders: Vec<(PathBuf, File)>,
    /// Whether a developer may have done what is found, who is told to leave alone what it locks.
    developer: bool,
    /// What was found locked away.
    locked: Option<PathBuf>,
}

fn open(folder: &Path) -> Option<File> {
    let flags = nix::libc::O_DIRECTORY | nix::libc::O_NOFOLLOW;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(folder);
    opened.ok()
}

fn stands(folder: &Path, opened: &File) -> bool {
    let (now, then) = (std::fs::symlink_metadata(folder), opened.metadata());
    match (now, then) {
        (Ok(now), Ok(then)) => (now.dev(), now.ino()) == (then.dev(), then.ino()),
        _ => false,
    }
}

impl Standing {
    /// Those that are there.
    pub(super) fn now(folders: Vec<PathBuf>) -> Standing {
        let opened = |folder: PathBuf| open(&folder).map(|file| (folder, file));
        Standing {
            folders: folders.into_iter().filter_map(opened).collect(),
            ..Standing::default()
        }
    }

    /// The same, while a developer's work may be found to have locked them away.
    pub(super) fn beside_a_developer(self, developer: bool) -> Standing {
        Standing { developer, ..self }
    }

    /// This one of them was found locked away, and was opened again.
    pub(super) fn locked_away(&mut self, path: &Path) {
        self.locked = (!self.developer).then(|| path.to_owned());
    }

    /// What lies at or below a path was made again by the run itself: that it is another by now says nothing.
    pub(super) fn made_again(&mut self, path: &Path) {
        self.folders.retain(|(folder, _)| !folder.starts_with(path));
    }

    /// The first of them that is not there any more, is another one by now, or was locked away.
    pub(super) fn fallen(&self) -> Option<Bail> {
        let mut fallen = self
            .folders
            .iter()
            .filter(|(folder, file)| !stands(folder, file));
        let (folder, what, then) = match (fallen.next(), &self.locked) {
            (Some((folder, _)), _) => (
                folder,
                "moved or removed",
                "If it is another's to keep (a disk that was unmounted, a folder that was moved), bring it back first.",
            ),
            (None, Some(folder)) => (
                folder,
                "locked away (its permissions were taken)",
                "It is open again by now.",
            ),
            (None, None) => return None,
        };
        let said = format!(
            "the folder {} was {what} while the run was at work in it. What is committed, and an approved test, is \
             kept. {} {then}",
            folder.display(),
            storage::ADVICE
        );
        Some(Bail::new(Cause::StorageFailed, said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_removed_moved_or_replaced_is_named_and_one_that_never_was_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (own, never) = (dir.path().join("own"), dir.path().join("never"));
        std::fs::create_dir(&own).unwrap();
        let standing = Standing::now(vec![never.clone(), own.clone()]);
        assert!(standing.fallen().is_none());
        std::fs::create_dir(&never).unwrap();
        std::fs::write(own.join("x"), "").unwrap();
        assert!(standing.fallen().is_none());
        let away = dir.path().join("away");
        std::fs::rename(&own, &away).unwrap();
        for make in [
            |_: &PathBuf| (),
            |own: &PathBuf| std::fs::create_dir(own).unwrap(),
        ] {
            make(&own);
            let bail = standing.fallen().unwrap();
            assert_eq!(bail.cause, Cause::StorageFailed);
            assert!(
                bail.detail.contains(&own.display().to_string()),
                "{}",
                bail.detail
            );
        }
        std::fs::remove_dir(&own).unwrap();
        std::fs::rename(&away, &own).unwrap();
        assert!(standing.fallen().is_none());
    }

    #[test]
    fn a_folder_that_was_removed_and_made_again_with_the_same_number_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        std::fs::create_dir(&own).unwrap();
        let standing = Standing::now(vec![own.clone()]);
        // File systems such as ext4 give the number that is free to the next that asks.
        std::fs::remove_dir(&own).unwrap();
        std::fs::create_dir(&own).unwrap();
        assert!(standing.fallen().is_some());
    }

    #[test]
    fn a_folder_that_the_run_made_again_is_not_fallen_and_those_beside_it_are() {
        let dir = tempfile::tempdir().unwrap();
        let folders = ["own", "own/.tdd", "owned"].map(|name| dir.path().join(name));
        folders.iter().for_each(|f| std::fs::create_dir(f).unwrap());
        let mut standing = Standing::now(folders.to_vec());
        folders
            .iter()
            .rev()
            .for_each(|f| std::fs::remove_dir(f).unwrap());
        standing.made_again(&folders[0]);
        let bail = standing.fallen().unwrap();
        assert!(bail.detail.contains(&folders[2].display().to_string()));
        standing.made_again(&folders[2]);
        assert!(standing.fallen().is_none());
    }

    #[test]
    fn a_folder_that_was_locked_away_is_named_unless_a_developer_can_have_done_it() {
        let dir = tempfile::tempdir().unwrap();
        for developer in [true, false] {
            let standing = Standing::now(vec![dir.path().to_owned()]);
            let mut standing = standing.beside_a_developer(developer);
            standing.locked_away(dir.path());
            let bail = standing.fallen();
            assert_eq!(bail.is_none(), developer);
            assert!(bail.is_none_or(|bail| bail.detail.contains("locked away")));
        }
    }
}
