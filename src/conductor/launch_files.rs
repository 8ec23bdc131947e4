//! The files of one launch: its prompt, and what it wrote.

use crate::leaf::{LaunchId, Records};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files of one launch.
pub(super) struct Files {
    pub(super) prompt: PathBuf,
    pub(super) stdout: PathBuf,
    pub(super) stderr: PathBuf,
}

impl Files {
    pub(super) fn below(records: &Records, id: &LaunchId) -> Files {
        Files {
            prompt: records.run(id, "prompt"),
            stdout: records.run(id, "out"),
            stderr: records.run(id, "err"),
        }
    }

    pub(super) fn in_temp(temp: &Path) -> Files {
        let folder = temp.join("leaf");
        // Made with the temporary folder, or the launch fails saying so.
        let _ = std::fs::create_dir_all(&folder);
        Files {
            prompt: folder.join("prompt"),
            stdout: folder.join("out"),
            stderr: folder.join("err"),
        }
    }

    pub(super) fn move_below(&self, records: &Records, id: &LaunchId) {
        for (from, what) in [
            (&self.prompt, "prompt"),
            (&self.stdout, "out"),
            (&self.stderr, "err"),
        ] {
            // What cannot be kept is not needed to go on: the answer is in the journal by then.
            let _ = std::fs::copy(from, records.run(id, what));
        }
    }
}

/// Whether a file that was to be read was not there.
pub(super) fn not_found(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|e| e.downcast_ref::<std::io::Error>());
    causes.any(|e| e.kind() == ErrorKind::NotFound)
}
