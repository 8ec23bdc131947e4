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
mod tests {
    use super::*;
    use std::io::{Read, pipe};

    fn left_out(lines: u64) -> String {
        format!("<{lines}>")
    }

    fn outlet(stream: impl Write + Send + 'static, room: usize, patience: u64) -> Outlet {
        Outlet::to(stream, left_out, room, Duration::from_millis(patience)).unwrap()
    }

    fn print(out: &mut Outlet, lines: std::ops::Range<usize>) {
        for number in lines {
            writeln!(out, "line {number} {}", "x".repeat(1000)).unwrap();
        }
    }

    fn read(mut from: impl Read) -> Vec<String> {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        let first = |line: &str| line.split(" x").next().unwrap_or_default().to_owned();
        text.lines().map(first).collect()
    }

    fn numbered(lines: std::ops::Range<usize>) -> Vec<String> {
        lines.map(|number| format!("line {number}")).collect()
    }

    #[test]
    fn a_slow_reader_gets_every_line_in_its_order_and_nobody_waits_for_it_before_the_end() {
        let (from, to) = pipe().unwrap();
        let mut out = outlet(to, ROOM, 60_000);
        // Far more than a pipe holds, before anybody reads.
        print(&mut out, 0..3000);
        write!(out, "no line break").unwrap();
        let reader = std::thread::spawn(move || read(from));
        out.flush().unwrap();
        drop(out);
        let mut expected = numbered(0..3000);
        expected.push("no line break".to_owned());
        assert_eq!(reader.join().unwrap(), expected);
    }

    #[test]
    fn a_reader_that_reads_nothing_is_given_up_once_and_costs_no_more_than_the_room() {
        let (from, to) = pipe().unwrap();
        let mut out = outlet(to, 100_000, 50);
        print(&mut out, 0..5000);
        assert!(out.queue.lock().bytes <= 100_000);
        assert_eq!(out.flush().unwrap_err().kind(), ErrorKind::TimedOut);
        let began = Instant::now();
        assert!(out.flush().is_err());
        assert!(began.elapsed() < Duration::from_millis(40));
        drop(from);
    }

    #[test]
    fn what_had_no_room_is_counted_where_it_would_have_stood() {
        let (from, to) = pipe().unwrap();
        let mut out = outlet(to, 100_000, 60_000);
        print(&mut out, 0..5000);
        let reader = std::thread::spawn(move || read(from));
        out.flush().unwrap();
        print(&mut out, 5000..5003);
        drop(out);
        let lines = reader.join().unwrap();
        assert_eq!(lines[lines.len() - 3..], numbered(5000..5003));
        let mut expected = 0;
        for line in &lines {
            match line.strip_prefix('<').and_then(|l| l.strip_suffix('>')) {
                Some(count) => expected += count.parse::<usize>().unwrap(),
                None => {
                    assert_eq!(*line, format!("line {expected}"));
                    expected += 1;
                }
            }
        }
        assert_eq!(expected, 5003);
        assert!(lines.len() < 1000);
    }

    #[test]
    fn a_reader_that_is_gone_is_never_waited_for() {
        let (from, to) = pipe().unwrap();
        drop(from);
        let mut out = outlet(to, ROOM, 3_600_000);
        print(&mut out, 0..10);
        assert_eq!(out.flush().unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    /// Takes a few bytes at a time, and nothing while its disk is full.
    struct Disk {
        full: Arc<Mutex<bool>>,
        holds: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if *self.full.lock().unwrap() {
                return Err(io::Error::from_raw_os_error(nix::libc::ENOSPC));
            }
            let some = &bytes[..bytes.len().min(7)];
            self.holds.lock().unwrap().extend_from_slice(some);
            Ok(some.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_did_not_take_is_counted_in_the_next_line_that_it_takes() {
        let (full, holds) = <(Arc<Mutex<bool>>, Arc<Mutex<Vec<u8>>>)>::default();
        let disk = Disk {
            full: Arc::clone(&full),
            holds: Arc::clone(&holds),
        };
        let mut out = outlet(disk, ROOM, 60_000);
        writeln!(out, "first of all").unwrap();
        out.flush().unwrap();
        *full.lock().unwrap() = true;
        writeln!(out, "second").unwrap();
        writeln!(out, "third").unwrap();
        let error = out.flush().unwrap_err().to_string();
        assert_eq!(error, "2 lines cannot be written");
        *full.lock().unwrap() = false;
        writeln!(out, "fourth").unwrap();
        out.flush().unwrap();
        let text = String::from_utf8(holds.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "first of all\n<2>\nfourth\n");
    }
}
