//! The files of one launch: its prompt, and what it wrote.

use crate::leaf::{LaunchId, Records};
use crate::untrusted;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How much of a verifier's files is copied to where every launch's are, in bytes: it may have put anything there.
const KEPT: u64 = 256 << 20;

/// The files of one launch.
pub(in crate::conductor) struct Files {
    pub(in crate::conductor) prompt: PathBuf,
    pub(in crate::conductor) stdout: PathBuf,
    pub(in crate::conductor) stderr: PathBuf,
    /// A verifier's folder, which goes when it has ended.
    temp: Option<PathBuf>,
}

impl Files {
    pub(in crate::conductor) fn below(records: &Records, id: &LaunchId) -> Files {
        Files {
            prompt: records.run(id, "prompt"),
            stdout: records.run(id, "out"),
            stderr: records.run(id, "err"),
            temp: None,
        }
    }

    /// In a verifier's temporary folder, as an earlier conductor has made it.
    pub(in crate::conductor) fn at(temp: &Path) -> Files {
        let folder = temp.join("leaf");
        Files {
            prompt: folder.join("prompt"),
            stdout: folder.join("out"),
            stderr: folder.join("err"),
            temp: Some(temp.to_owned()),
        }
    }

    /// In a verifier's temporary folder, which is made.
    pub(in crate::conductor) fn in_temp(temp: &Path) -> Files {
        // Made with the temporary folder, or the launch fails saying so.
        let _ = std::fs::create_dir_all(temp.join("leaf"));
        Files::at(temp)
    }

    /// What a verifier has as its own folder for temporary files: its prompt and output lie beside it, where it can put
    /// nothing in their place.
    pub(super) fn own_temp(&self) -> PathBuf {
        let beside = self.temp.as_deref().or(self.prompt.parent());
        beside.unwrap_or(Path::new("")).join("tmp")
    }

    /// Where the answer stands: where it was written, or where that was kept.
    pub(in crate::conductor) fn answer(&self, records: &Records, id: &LaunchId) -> PathBuf {
        match self.stdout.exists() {
            true => self.stdout.clone(),
            false => records.run(id, "out"),
        }
    }

    /// A verifier's words go where every launch's are, once it can no longer see them there.
    pub(in crate::conductor) fn keep(&self, records: &Records, id: &LaunchId) {
        let Some(temp) = &self.temp else { return };
        for (from, what) in [
            (&self.prompt, "prompt"),
            (&self.stdout, "out"),
            (&self.stderr, "err"),
        ] {
            let to = records.run(id, what);
            // Its shim has linked its output there already: copying a file onto itself would empty it.
            if !to.exists() {
                // What cannot be kept is not needed to go on, nor is what was put in its place: a link, a pipe.
                let new = to.with_extension("new");
                let kept = OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&new)
                    .and_then(|mut file| untrusted::copy_end(from, KEPT, &mut file));
                let _ = match kept {
                    Ok(()) => std::fs::rename(&new, &to),
                    Err(_) => std::fs::remove_file(&new),
                };
            }
        }
        let _ = std::fs::remove_dir_all(temp);
    }
}
