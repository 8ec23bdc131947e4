//! Printing that never holds a run: a bounded queue, and a thread of its own that writes.
//!
//! A reader may be slow (a pager, a terminal stopped with Ctrl-S), may read nothing at all, or may be gone. None of that
//! is the run's business: a line that is printed is put into the queue, and the run goes on. What does not fit is left
//! out, and how much that was is said where it would have stood. [`Write::flush`] waits for the reader, as long as it
//! reads.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How many bytes of lines wait for a reader at most.
const ROOM: usize = 4 << 20;

/// How long a reader that takes nothing is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much is written at once: what a pipe takes whole (POSIX: at least 512; Linux: 4096), so that a reader who takes
/// a little is seen to read.
const PIECE: usize = 4096;

/// The pause before a stream that somebody else made non-blocking is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// The line that stands for so many lines that were left out.
pub(super) type LeftOut = fn(u64) -> String;

/// One stream of the program's. Complete lines are queued; the rest of a line waits for its end or a flush.
#[derive(Debug)]
pub(super) struct Outlet {
    queue: Arc<Queue>,
    line: Vec<u8>,
}

/// Lines on their way to the stream.
#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    /// Told of everything: a new line, a written piece, the end.
    changed: Condvar,
    room: usize,
    patience: Duration,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    /// Of the lines in `items` and the one that is being written.
    bytes: usize,
    /// Pieces written so far.
    progress: u64,
    /// Lines that could not be written since the last that could.
    failed: u64,
    /// Since it was full: nothing is taken until half of it is written.
    full: bool,
    /// Whether the thread has an item in its hands.
    writing: bool,
    /// Nobody will ever read again: nothing is kept.
    gone: bool,
    /// A flush has waited in vain, when so much had been written.
    given_up: Option<u64>,
    closed: bool,
}

#[derive(Debug)]
enum Item {
    Line(Vec<u8>),
    /// So many lines have no room here.
    LeftOut(u64),
}

/// Hands on the program's two streams as ones that never hold it, and waits in the end for whoever reads them.
pub(super) fn never_held<T>(
    left_out: LeftOut,
    run: impl FnOnce(&mut dyn Write, &mut dyn Write) -> T,
) -> T {
    let (out, err) = (io::stdout(), io::stderr());
    match (Outlet::of(&out, left_out), Outlet::of(&err, left_out)) {
        (Ok(mut out), Ok(mut err)) => {
            err.take_what_cannot_wait();
            run(&mut out, &mut err)
        }
        // No descriptor or thread is to be had: then it is printed as ever.
        _ => run(&mut io::stdout(), &mut io::stderr()),
    }
}

impl Outlet {
    fn of(stream: impl AsFd, left_out: LeftOut) -> io::Result<Outlet> {
        // Not through std's handle: its lock, held while a reader sleeps, would hold a panic, too.
        let file = File::from(stream.as_fd().try_clone_to_owned()?);
        Outlet::to(file, left_out, ROOM, PATIENCE)
    }

    fn to(
        stream: impl Write + Send + 'static,
        left_out: LeftOut,
        room: usize,
        patience: Duration,
    ) -> io::Result<Outlet> {
        let queue = Arc::new(Queue {
            state: Mutex::default(),
            changed: Condvar::new(),
            room,
            patience,
        });
        let of_thread = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("outlet".to_owned())
            .spawn(move || of_thread.write_all(stream, left_out))?;
        Ok(Outlet {
            queue,
            line: Vec::new(),
        })
    }

    /// Has a panic printed here, and not by std, which would wait for a reader that does not read; and what is said
    /// at once.
    fn take_what_cannot_wait(&self) {
        // The first stays: a program has one standard error.
        let queue = AT_ONCE.get_or_init(|| Arc::clone(&self.queue));
        std::panic::set_hook(Box::new(|panic| {
            let trace = Backtrace::capture();
            let trace = match trace.status() {
                BacktraceStatus::Captured => format!("\n{trace}"),
                _ => String::new(),
            };
            queue.put(format!("{panic}{trace}\n").into_bytes());
            let _ = queue.settle();
        }));
    }
}

/// Standard error, for what is said from elsewhere than the line of events.
static AT_ONCE: OnceLock<Arc<Queue>> = OnceLock::new();

/// Says something on standard error at once.
pub(super) fn say_now(text: &str) {
    if let Some(queue) = AT_ONCE.get() {
        queue.put(format!("veri: {text}\n").into_bytes());
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|b| *b == b'\n') {
            let rest = self.line.split_off(end + 1);
            self.queue.put(std::mem::replace(&mut self.line, rest));
        }
        Ok(bytes.len())
    }

    /// Waits until everything is written, at most as long as the reader reads.
    fn flush(&mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            self.queue.put(std::mem::take(&mut self.line));
        }
        self.queue.settle()
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let _ = self.flush();
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
        // The thread is not joined: it may sleep in a write for ever, and ends with the program.
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens under the lock, and a broken count would be better than no line.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes whole lines, or counts them where there is no room.
    fn put(&self, text: Vec<u8>) {
        let mut state = self.lock();
        if state.gone {
            return;
        }
        state.full &= state.bytes > self.room / 2;
        // What is larger than all the room is taken by an empty queue, so that it is ever shown.
        state.full |= state.bytes > 0 && state.bytes + text.len() > self.room;
        if state.full {
            let lines = count_lines(&text);
            match state.items.back_mut() {
                Some(Item::LeftOut(count)) => *count += lines,
                _ => state.items.push_back(Item::LeftOut(lines)),
            }
        } else {
            state.bytes += text.len();
            state.items.push_back(Item::Line(text));
        }
        self.changed.notify_all();
    }

    /// Waits until nothing is left to write, or nothing was written for as long as our patience is.
    fn settle(&self) -> io::Result<()> {
        let mut state = self.lock();
        let mut seen = (state.progress, Instant::now());
        loop {
            if state.gone {
                return Err(ErrorKind::BrokenPipe.into());
            }
            if state.items.is_empty() && !state.writing {
                return match state.failed {
                    0 => Ok(()),
                    lines => Err(io::Error::other(format!("{lines} lines cannot be written"))),
                };
            }
            if state.progress != seen.0 {
                seen = (state.progress, Instant::now());
            }
            let left = self.patience.saturating_sub(seen.1.elapsed());
            // Whoever was waited for in vain has to read something before it is waited for again.
            if left.is_zero() || state.given_up == Some(state.progress) {
                state.given_up = Some(state.progress);
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    "nobody reads what is printed",
                ));
            }
            state = self.wait(state, left);
        }
    }

    /// The thread: writes what is queued until there is nothing more and never will be.
    fn write_all(&self, mut stream: impl Write, left_out: LeftOut) {
        never_stopped_for_writing();
        // Whether a line was broken off in its middle.
        let mut broken = false;
        loop {
            let mut state = self.lock();
            let item = loop {
                match state.items.pop_front() {
                    Some(item) => break item,
                    None if state.closed || state.gone => return,
                    None => state = self.wait(state, Duration::from_secs(3600)),
                }
            };
            state.writing = true;
            let before = state.failed;
            drop(state);
            let (lines, bytes, size) = match item {
                Item::Line(text) => (count_lines(&text), text, None),
                Item::LeftOut(count) => (count, Vec::new(), Some(count)),
            };
            let missing = before + size.unwrap_or(0);
            let mut text = Vec::new();
            if broken {
                text.push(b'\n');
            }
            if missing > 0 {
                text.extend(left_out(missing).into_bytes());
                text.push(b'\n');
            }
            text.extend_from_slice(&bytes);
            let result = self.write_pieces(&mut stream, &text);
            let mut state = self.lock();
            state.writing = false;
            state.bytes -= bytes.len();
            match result {
                Ok(()) => {
                    broken = false;
                    state.failed = 0;
                }
                Err((written, error)) => {
                    broken |= written > 0;
                    state.failed += lines;
                    // A full disk may have room again; these will not come back.
                    let code = error.raw_os_error().map(nix::errno::Errno::from_raw);
                    use nix::errno::Errno::{EBADF, EIO, EPIPE};
                    if matches!(code, Some(EPIPE | EIO | EBADF)) {
                        state.gone = true;
                        state.items.clear();
                        state.bytes = 0;
                    }
                }
            }
            self.changed.notify_all();
        }
    }

    fn write_pieces(&self, stream: &mut impl Write, text: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut written = 0;
        while let Some(rest) = text.get(written..).filter(|rest| !rest.is_empty()) {
            match stream.write(&rest[..rest.len().min(PIECE)]) {
                Ok(0) => return Err((written, ErrorKind::WriteZero.into())),
                Ok(count) => {
                    written += count;
                    self.lock().progress += 1;
                    self.changed.notify_all();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
                Err(error) => return Err((written, error)),
            }
        }
        Ok(())
    }
}

fn count_lines(text: &[u8]) -> u64 {
    let breaks = text.iter().filter(|b| **b == b'\n').count() as u64;
    breaks + u64::from(text.last().is_some_and(|b| *b != b'\n'))
}

/// A run in the background of a terminal with `stty tostop` would be stopped as a whole by its first line: with the
/// signal blocked in the thread that writes, the line is written instead (termios(3)).
fn never_stopped_for_writing() {
    use nix::sys::signal::{SigSet, Signal};
    let _ = SigSet::from_iter([Signal::SIGTTOU]).thread_block();
}

#[cfg(test)]
mod tests;
