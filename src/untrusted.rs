//! Files that an untrusted process wrote, or has put something else in the place of: the end of one, its bytes or as text
//! for developers and people; or all of one that is known to be small.

use crate::hash;
use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The last `max` bytes of a file, and whether there were more before them.
///
/// Never follows a symbolic link in the last place, never waits on a pipe or device, and never reads more than `max`, however
/// large the file is or grows.
///
/// # Errors
/// When the file cannot be opened or read, or is not a regular file.
pub fn tail(path: &Path, max: u64) -> anyhow::Result<(Vec<u8>, bool)> {
    let read = || -> anyhow::Result<(Vec<u8>, bool)> {
        let Some((mut file, length)) = open(path)? else {
            bail!("it is not a regular file");
        };
        let skipped = length.saturating_sub(max);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(max).read_to_end(&mut bytes)?;
        Ok((bytes, skipped > 0))
    };
    read().with_context(|| format!("reading the end of {}", path.display()))
}

/// All of a file, as [`tail`] reads; None when it is a link, a folder, a pipe or a device, or longer than `max` bytes.
///
/// # Errors
/// When it is not there (`NotFound`), or cannot be opened or read.
pub fn whole(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open(path).or_else(no_file)? {
        Some((file, length)) if length <= max => file,
        _ => return Ok(None),
    };
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max).then_some(bytes))
}

/// All of a file that a person names or has put there: as [`whole`], but links are followed.
///
/// # Errors
/// When it is not there (`NotFound`), cannot be opened or read, is not a regular file, or is longer than `max` bytes.
pub fn given(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Some((file, length)) = open_as(path, flags).or_else(no_file)? else {
        return Err(io::Error::other("it is not a regular file"));
    };
    let mut bytes = Vec::new();
    if length <= max {
        file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if length.max(bytes.len() as u64) > max {
        let said = format!("it is larger than {max} bytes");
        return Err(io::Error::other(said));
    }
    Ok(bytes)
}

/// Copies the last `max` bytes of a file, as [`tail`] reads, after a line that says how many before them are missing, if
/// any are; holds none of it in memory.
///
/// # Errors
/// When the file cannot be opened or read, or is not a regular file; when nothing can be written.
pub fn copy_end(path: &Path, max: u64, to: &mut impl Write) -> io::Result<()> {
    let Some((mut file, length)) = open(path)? else {
        return Err(io::Error::other("it is not a regular file"));
    };
    let skipped = length.saturating_sub(max);
    if skipped > 0 {
        writeln!(to, "[veri: {skipped} bytes before this are not kept]")?;
        file.seek(SeekFrom::Start(skipped))?;
    }
    io::copy(&mut file.take(max), to).map(drop)
}

/// What cannot be opened since it is a link; or a socket, or a device that is not there.
fn no_file<T>(error: io::Error) -> io::Result<Option<T>> {
    let of = [Errno::ELOOP, Errno::ENXIO].map(|e| Some(e as i32));
    match of.contains(&error.raw_os_error()) {
        true => Ok(None),
        false => Err(error),
    }
}

/// The hash of a file; None when it is a link, a folder, a pipe or a device, or longer than `max` bytes.
///
/// # Errors
/// As [`whole`].
pub fn hash(path: &Path, max: u64) -> io::Result<Option<String>> {
    let opened = open(path).or_else(no_file)?;
    opened
        .filter(|(_, length)| *length <= max)
        .map(|(file, _)| hash::of_reader(&mut file.take(max)))
        .transpose()
}

/// Opens a file, following no link and waiting for nobody; gives its length, too. None for what is no regular file.
fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    open_as(
        path,
        OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC,
    )
}

fn open_as(path: &Path, flags: OFlag) -> io::Result<Option<(File, u64)>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    let about = file.metadata()?;
    Ok(about.is_file().then_some((file, about.len())))
}

/// The last lines of a log, at most `limit` bytes of them, after a line that says where the whole is. Escape sequences
/// and other control characters are left out, bytes that are not UTF-8 are replaced. Reads as [`tail`] does.
pub fn of_log(log: &Path, limit: usize) -> String {
    match tail(log, limit as u64) {
        Ok((bytes, cut)) => match lines(bytes, cut) {
            text if text.is_empty() => format!("It wrote nothing ({}).", log.display()),
            text => format!("The end of {}:\n{text}", log.display()),
        },
        // `tail` names the file.
        Err(error) => format!("Its log cannot be read: {error:#}."),
    }
}

/// The text of a log's end; `cut` when there was more before it.
fn lines(mut bytes: Vec<u8>, cut: bool) -> String {
    if cut {
        // Not from the middle of a line, nor of a character; one line that is longer than all of it, from its middle.
        let start = bytes.iter().position(|b| *b == b'\n').map_or_else(
            || {
                bytes
                    .iter()
                    .position(|b| *b & 0xC0 != 0x80)
                    .unwrap_or(bytes.len())
            },
            |newline| newline + 1,
        );
        bytes.drain(..start);
    }
    plain(&String::from_utf8_lossy(&bytes))
        .trim_end()
        .to_owned()
}

/// Without escape sequences (`ESC [ … letter`, `ESC ] … BEL`) and control characters, line breaks and tabs aside.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
                } else if chars.next_if_eq(&']').is_some() {
                    // A title or a link: up to BEL or the next escape, of which one letter is left; never beyond a line.
                    while chars
                        .next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n'))
                        .is_some()
                    {}
                    chars.next_if_eq(&'\u{7}');
                } else {
                    // A sequence of two characters, such as the end of a title.
                    chars.next_if(|c| ('@'..='_').contains(c));
                }
            }
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn lines_of(content: &[u8], limit: usize) -> String {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, content).unwrap();
        let text = of_log(&log, limit);
        let lines = text.split_once('\n').map_or("", |(_, lines)| lines);
        lines.to_owned()
    }

    #[test]
    fn whole_lines_of_the_end() {
        assert_eq!(lines_of(b"one\ntwo\nthree\n", 10), "three");
        assert_eq!(lines_of(b"one\ntwo\n", 100), "one\ntwo");
        assert_eq!(lines_of(b"", 100), "");
    }

    #[test]
    fn never_from_the_middle_of_a_character() {
        for limit in 1..20 {
            let text = lines_of("a€€€€€€".as_bytes(), limit);
            assert!(!text.contains('\u{fffd}'), "{limit}: {text}");
        }
    }

    #[test]
    fn escape_sequences_are_left_out() {
        assert_eq!(
            lines_of(b"\x1b[31mred\x1b[0m\x07\r\nplain", 100),
            "red\nplain"
        );
        assert_eq!(
            lines_of(
                b"\x1b]0;title\x07one\n\x1b]8;;url\x1b\\two\n\x1b]open\nthree",
                100
            ),
            "one\ntwo\n\nthree"
        );
    }

    #[test]
    fn a_log_that_is_gone_or_a_pipe_is_said_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for log in [pipe, folder.path().join("none")] {
            let said = of_log(&log, 10);
            assert!(
                said.contains("cannot be read") && said.contains(log.to_str().unwrap()),
                "{said}"
            );
        }
    }

    #[test]
    fn the_end_of_a_file_and_whether_there_was_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(tail(&path, 4).unwrap(), (b"6789".to_vec(), true));
        assert_eq!(tail(&path, 10).unwrap(), (b"0123456789".to_vec(), false));
        assert_eq!(tail(&path, 0).unwrap(), (vec![], true));
        assert_eq!(whole(&path, 10).unwrap(), Some(b"0123456789".to_vec()));
        assert_eq!(whole(&path, 9).unwrap(), None);
    }

    #[test]
    fn what_a_person_names_may_be_a_link_and_has_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "0123456789").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        File::create(at("huge")).unwrap().set_len(2 << 40).unwrap();
        assert_eq!(given(&at("link"), 10).unwrap(), b"0123456789");
        let refused = |name: &str| given(&at(name), 9).unwrap_err();
        assert!(refused("link").to_string().contains("larger than 9"));
        assert!(refused("huge").to_string().contains("larger than 9"));
        assert!(refused("pipe").to_string().contains("not a regular file"));
        assert!(refused(".").to_string().contains("not a regular file"));
        assert_eq!(refused("none").kind(), io::ErrorKind::NotFound);
        assert_eq!(hash(&at("huge"), 10).unwrap(), None);
    }

    #[test]
    fn links_pipes_folders_and_nothing_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("secret");
        fs::write(&secret, "x").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [link, pipe, dir.path().to_owned(), dir.path().join("none")] {
            match whole(&path, 9) {
                Ok(found) => assert_eq!(found, None),
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::NotFound),
            }
            let error = tail(&path, 9).unwrap_err();
            assert!(
                error.to_string().starts_with("reading the end of "),
                "{error}"
            );
        }
    }
}
