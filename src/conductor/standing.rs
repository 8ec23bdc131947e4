//! Whether the folders that a run works in still stand where they stood. One that somebody moves or removes while an agent
//! or a suite is at work is the storage's fault and no work of theirs, whatever they make of it.

use super::run::Run;
use crate::cause::{Bail, Cause};
use crate::machine::Effect;
use crate::role::Role;
use crate::storage;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Folders, and which ones they were.
#[derive(Default)]
pub(super) struct Standing {
    folders: Vec<(PathBuf, Option<(u64, u64)>)>,
    /// Whether a developer is at work, who is told to leave alone what it locks.
    developer: bool,
    /// What nobody could write any more in the end.
    locked: Option<PathBuf>,
}

fn which(folder: &PathBuf) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(folder).ok()?;
    found.is_dir().then(|| (found.dev(), found.ino()))
}

impl Standing {
    fn now(folders: Vec<PathBuf>) -> Standing {
        let with = |folder: PathBuf| (folder.clone(), which(&folder));
        Standing {
            folders: folders.into_iter().map(with).collect(),
            ..Standing::default()
        }
    }

    /// What lies at or below a path was made again by the run itself: that it is another by now says nothing.
    pub(super) fn made_again(&mut self, path: &Path) {
        self.folders.retain(|(folder, _)| !folder.starts_with(path));
    }

    /// This one of them was found locked away, and opened again.
    pub(super) fn locked_away(&mut self, path: &Path) {
        self.locked = (!self.developer).then(|| path.to_owned());
    }

    /// The first of them that is not there any more, is another one by now, or was locked away.
    pub(super) fn fallen(&self) -> Option<Bail> {
        let stood = self.folders.iter().filter(|(_, before)| before.is_some());
        let mut fallen = stood.filter(|(folder, before)| which(folder) != *before);
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

impl Run<'_> {
    /// The folders that nobody has any business to take away during an effect. A developer that removes `.tdd/` is told
    /// so, and goes on.
    pub(super) fn what_stands(&self, effect: &Effect) -> Standing {
        // Whoever writes objects makes it again, or what looks like it.
        let mut folders = vec![self.repo.git2().commondir().to_owned()];
        let (own, tdd) = (self.tree.path().to_owned(), self.tree.tdd());
        let mut developer = true;
        match effect {
            Effect::Launch(leaf) if leaf.role == Role::Developer => folders.push(own),
            Effect::Launch(_) | Effect::Check(_) | Effect::Prove(_) | Effect::Accept => {
                folders.extend([own, tdd.join("runs"), tdd]);
                developer = false;
            }
            // What a developer locked may be found when its work is taken.
            _ => {}
        }
        Standing {
            developer,
            ..Standing::now(folders)
        }
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
        // What is locked away is the storage's fault, unless a developer can have done it.
        standing.developer = true;
        standing.locked_away(&folders[0]);
        assert!(standing.fallen().is_none());
        standing.developer = false;
        standing.locked_away(&folders[0]);
        let bail = standing.fallen().unwrap();
        assert!(bail.detail.contains("locked away"), "{}", bail.detail);
    }
}
