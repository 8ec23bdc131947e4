//! The files that a leaf writes to: made anew, appended to, kept bounded, and kept under the launch's name.

use super::files::{self, is_file, link, remove, same_file};
use super::records::{Records, Started};
use super::spec::LaunchId;
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The granularity of holes, in bytes: file systems free whole blocks.
const BLOCK: u64 = 4096;

/// Makes an output file anew, readable by its owner alone. What lay there before is unlinked, not emptied:
/// an earlier launch's file keeps its content under that launch's name.
pub(super) fn create(path: &Path) -> anyhow::Result<()> {
    remove(path)
        .and_then(|()| {
            OpenOptions::new()
                .append(true)
                .create_new(true) // follows no link that somebody put there
                .mode(0o600)
                .open(path)
        })
        .map(drop)
        .with_context(|| format!("cannot make the output file {}", path.display()))
}

/// Opens an output file for appending: writers of both streams never overwrite each other.
pub(super) fn open(path: &Path) -> io::Result<File> {
    files::open(OpenOptions::new().append(true), path)
}

/// One output file while its leaf runs.
pub(super) struct Output {
    path: PathBuf,
    file: File,
    cap: Option<u64>,
    /// How much of the file is a hole that was punched, in bytes.
    hole: u64,
    /// How much was cut off where no hole could be punched, in bytes.
    cut: u64,
    seen: u64,
}

impl Output {
    pub(super) fn new(path: PathBuf, file: File, cap: Option<u64>) -> Output {
        Output {
            path,
            file,
            cap,
            hole: 0,
            cut: 0,
            seen: 0,
        }
    }

    /// Whether its middle was removed.
    pub(super) fn truncated(&self) -> bool {
        self.hole > 0 || self.cut > 0
    }

    /// How much was written to it, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.len() + self.cut
    }

    fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.len())
    }

    /// Removes the middle when the file takes more disk than it may; says whether it has grown since last time.
    pub(super) fn bound(&mut self) -> bool {
        let len = self.len();
        let grown = len != self.seen;
        self.seen = len;
        if let Some(cap) = self.cap
            && len.saturating_sub(self.hole) > cap
        {
            self.remove_middle(len, cap);
        }
        grown
    }

    fn remove_middle(&mut self, len: u64, cap: u64) {
        let kept = (cap / 4 / BLOCK * BLOCK).max(BLOCK);
        let end = len.saturating_sub(kept) / BLOCK * BLOCK;
        if end <= kept {
            return; // a cap of a few blocks: nothing in the middle yet
        }
        if punch(&self.file, kept, end - kept).is_ok() {
            self.hole = end - kept;
            self.mark(kept, end - kept);
        } else {
            self.cut_off(len, kept);
        }
    }

    /// Where no hole can be punched, all but the head goes. The writers append: they go on right after it.
    fn cut_off(&mut self, len: u64, kept: u64) {
        if self.file.set_len(kept).is_err() {
            return; // the disk itself says so in the end; the leaf is not to blame and goes on
        }
        self.cut += len - kept;
        let note = format!("\n[veri: {} bytes removed here]\n", self.cut);
        if self.file.write_all(note.as_bytes()).is_ok() {
            self.cut -= note.len() as u64; // which the leaf has not written
        }
        self.seen = self.len();
    }

    /// Says in the file what is missing, at the start of the hole; the rest of the hole reads as zero bytes.
    fn mark(&self, at: u64, bytes: u64) {
        let note = format!("\n[veri: {bytes} bytes removed here]\n");
        // Not through `file`: a descriptor opened for appending writes at the end, wherever it is told to.
        if let Ok(file) = self.again(OpenOptions::new().write(true)) {
            let _ = file.write_all_at(note.as_bytes(), at);
        }
    }

    /// Opens the same file for reading.
    pub(super) fn reader(&self) -> io::Result<File> {
        self.again(OpenOptions::new().read(true))
    }

    /// Opens the same file in another way, whatever the leaf has put in its place; where there is no `/proc`, what is there.
    fn again(&self, options: &mut OpenOptions) -> io::Result<File> {
        let same = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match options.open(same) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => files::open(options, &self.path),
            other => other,
        }
    }
}

#[cfg(target_os = "linux")]
fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    use nix::fcntl::{FallocateFlags, fallocate};
    let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    Ok(fallocate(file, mode, offset as i64, len as i64)?)
}

#[cfg(not(target_os = "linux"))]
fn punch(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Keeps a launch's output under the launch's name and, as the newest, under the leaf's. Done again it
/// changes nothing.
///
/// What the leaf has put in the place of its output is not kept.
///
/// Before the launch only files that lie in the records folder are linked: a leaf whose output lies elsewhere
/// must find no way from there to the records.
pub(super) fn keep(
    records: &Records,
    name: &str,
    launch: &LaunchId,
    streams: &[(&Path, &str)],
) -> io::Result<()> {
    for (path, what) in streams {
        let kept = records.run(launch, what);
        if !is_file(&kept) {
            if !is_file(path) {
                continue; // nothing was made, or it is gone
            }
            remove(&kept)?;
            match link(path, &kept) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            }
        }
        if !same_file(&kept, &records.plain(name, what)) {
            records.publish(name, launch, what)?;
        }
    }
    Ok(())
}

/// The streams of a launch as `keep` wants them: one when both are one file.
pub(super) fn streams<'a>(stdout: &'a Path, stderr: &'a Path) -> Vec<(&'a Path, &'static str)> {
    let mut streams = vec![(stdout, "out")];
    if stderr != stdout {
        streams.push((stderr, "err"));
    }
    streams
}

/// Says in a launch's stderr, and in its kept copy, how the leaf ended; best effort.
pub(super) fn note(records: &Records, started: &Started, line: &str) {
    let what = if started.stderr == started.stdout {
        "out"
    } else {
        "err"
    };
    let (given, kept) = (started.stderr.path(), records.run(&started.launch, what));
    let plain = records.plain(&started.leaf, what);
    let mut told: Vec<&Path> = Vec::new();
    for path in [kept.as_path(), plain.as_path(), given] {
        if !told.iter().any(|t| same_file(t, path))
            && let Ok(mut file) = open(path)
        {
            let _ = writeln!(file, "{line}");
            told.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    fn filled(dir: &Path, len: usize, cap: u64) -> Output {
        let path = dir.join("o");
        create(&path).unwrap();
        let mut file = open(&path).unwrap();
        let lines: Vec<u8> = (0..)
            .flat_map(|i| format!("{i}\n").into_bytes())
            .take(len)
            .collect();
        file.write_all(&lines).unwrap();
        Output::new(path, file, Some(cap))
    }

    #[test]
    fn head_and_tail_stay_and_the_disk_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let (len, cap) = (3 << 20, 256 << 10);
        let mut output = filled(dir.path(), len, cap);
        let before = fs::read(&output.path).unwrap();
        assert!(output.bound());
        assert!(output.truncated());
        assert_eq!(output.bytes(), len as u64);
        let after = fs::read(&output.path).unwrap();
        assert_eq!(after[..64 << 10], before[..64 << 10]);
        if output.cut == 0 {
            assert_eq!(after[len - (64 << 10)..], before[len - (64 << 10)..]);
            assert!(fs::metadata(&output.path).unwrap().blocks() * 512 <= cap);
        }
        assert!(String::from_utf8_lossy(&after).contains("bytes removed here"));
        assert!(!output.bound());
    }

    #[test]
    fn where_no_hole_can_be_punched_the_head_stays_and_what_is_gone_is_said_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (len, kept) = (3 << 20, 64 << 10);
        let mut output = filled(dir.path(), len, 256 << 10);
        let before = fs::read(&output.path).unwrap();
        output.cut_off(len as u64, kept);
        let mut written = len as u64;
        for more in [&b"after the first\n"[..], b"after the second\n"] {
            assert!(output.truncated());
            assert_eq!(output.bytes(), written, "what veri says is not the leaf's");
            // It is no sign of life either.
            assert!(!output.bound());
            open(&output.path).unwrap().write_all(more).unwrap();
            written += more.len() as u64;
            assert!(output.bound());
            let after = fs::read(&output.path).unwrap();
            assert_eq!(after[..kept as usize], before[..kept as usize]);
            let rest = String::from_utf8_lossy(&after[kept as usize..]).into_owned();
            let gone = written - kept - more.len() as u64;
            let said = format!("\n[veri: {gone} bytes removed here]\n");
            assert_eq!(rest, said + std::str::from_utf8(more).unwrap());
            output.cut_off(after.len() as u64, kept);
        }
    }

    #[test]
    fn an_output_file_is_never_an_old_one_nor_somebody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let (old, link) = (dir.path().join("old"), dir.path().join("link"));
        fs::write(&old, "old").unwrap();
        std::os::unix::fs::symlink(&old, &link).unwrap();
        create(&link).unwrap();
        assert_eq!(fs::read(&link).unwrap(), b"");
        assert_eq!(fs::read(&old).unwrap(), b"old");
        assert_eq!(fs::metadata(&link).unwrap().mode() & 0o777, 0o600);
    }
}
