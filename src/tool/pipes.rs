//! The three pipes of one call.

use super::stream::Stream;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStdin};
use std::time::Duration;

/// How long nothing happens on the pipes until whoever turns them may look at something else, in milliseconds.
const TURN: u8 = 20;

/// The pause between two looks at a call that has closed its pipes and goes on.
const PAUSE: Duration = Duration::from_micros(200);

/// The pipes of a call: all of them are moved by one thread, so that no process which holds one keeps another waiting.
pub(super) struct Pipes {
    input: Option<Input>,
    output: Output,
    errors: Output,
}

/// What the call is still to be given.
struct Input {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    at: usize,
}

/// One stream of the call.
struct Output {
    /// None once it is closed.
    pipe: Option<File>,
    said: Stream,
}

impl Pipes {
    pub(super) fn of(
        child: &mut Child,
        stdin: Option<Vec<u8>>,
        kept: Option<usize>,
    ) -> io::Result<Pipes> {
        let given = child.stdin.take().zip(stdin);
        let missing = || io::Error::other("a child without pipes");
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        Ok(Pipes {
            input: given
                .map(|(pipe, bytes)| Input::new(pipe, bytes))
                .transpose()?,
            output: Output::new(output.into(), kept),
            errors: Output::new(errors.into(), kept),
        })
    }

    /// Whether the call can say no more.
    pub(super) fn are_closed(&self) -> bool {
        self.output.pipe.is_none() && self.errors.pipe.is_none()
    }

    /// Moves what can be moved, and waits a moment for it; says whether anything was said.
    pub(super) fn turn(&mut self) -> io::Result<bool> {
        if self.are_closed() && self.input.is_none() {
            std::thread::sleep(PAUSE);
            return Ok(false);
        }
        let outputs = [&self.output, &self.errors];
        let outputs = outputs.map(|o| o.pipe.as_ref().map(|p| (p.as_fd(), PollFlags::POLLIN)));
        let input = self.input.as_ref();
        let input = input.map(|i| (i.pipe.as_fd(), PollFlags::POLLOUT));
        let wanted = [outputs[0], outputs[1], input];
        let mut fds: Vec<PollFd<'_>> = wanted
            .iter()
            .flatten()
            .map(|(fd, flags)| PollFd::new(*fd, *flags))
            .collect();
        match poll(&mut fds, PollTimeout::from(TURN)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let mut ready = fds
            .iter()
            .map(|fd| fd.revents().is_some_and(|r| !r.is_empty()));
        let [output, errors, input] =
            wanted.map(|one| one.is_some() && ready.next().unwrap_or(false));
        if input && self.input.as_mut().is_some_and(|input| !input.give()) {
            self.input = None;
        }
        if output {
            self.output.read()?;
        }
        if errors {
            self.errors.read()?;
        }
        Ok(output || errors)
    }

    /// What both streams have said.
    pub(super) fn into_said(self) -> (Vec<u8>, Vec<u8>) {
        (self.output.said.into_bytes(), self.errors.said.into_bytes())
    }
}

impl Input {
    fn new(pipe: ChildStdin, bytes: Vec<u8>) -> io::Result<Input> {
        // Ours alone: the other end is the call's.
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Input { pipe, bytes, at: 0 })
    }

    /// Gives as much as is taken; says whether there is more to give.
    fn give(&mut self) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match self.pipe.write(rest) {
            Ok(taken) => self.at += taken,
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            // A call that does not read its input closes the pipe: that is its own business.
            Err(_) => return false,
        }
        self.at < self.bytes.len()
    }
}

impl Output {
    fn new(pipe: OwnedFd, kept: Option<usize>) -> Output {
        Output {
            pipe: Some(File::from(pipe)),
            said: Stream::new(kept),
        }
    }

    /// Reads what is there, or that it is closed.
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        let mut buffer = [0u8; 16 * 1024];
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(n) => self.said.take(buffer.get(..n).unwrap_or_default())?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}
