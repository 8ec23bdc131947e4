//! Readers that are slow, still, gone or full.

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

/// Else a slow reader would see one line, a gap, one line, a gap.
#[test]
fn what_was_full_once_takes_nothing_until_half_of_it_is_written() {
    let (mut from, to) = pipe().unwrap();
    let mut out = outlet(to, 200_000, 60_000);
    print(&mut out, 0..1000);
    let (room, full) = (out.queue.room, |out: &Outlet| out.queue.lock().full);
    assert!(full(&out));
    // A reader takes so much that more lines would fit, and not half.
    let mut piece = vec![0; 40_000];
    from.read_exact(&mut piece).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while out.queue.lock().bytes > room - 20_000 {
        assert!(Instant::now() < until, "nothing is written");
        std::thread::yield_now();
    }
    assert!(out.queue.lock().bytes > room / 2);
    let before = out.queue.lock().items.len();
    print(&mut out, 1000..1001);
    assert!(full(&out));
    assert!(
        out.queue.lock().items.len() <= before,
        "it counts as left out"
    );
    drop(from);
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

/// Takes so many bytes, then none.
struct Room(Arc<Mutex<usize>>, Arc<Mutex<Vec<u8>>>);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut left = self.0.lock().unwrap();
        let some = &bytes[..bytes.len().min(*left)];
        if some.is_empty() {
            return Err(io::Error::from_raw_os_error(nix::libc::ENOSPC));
        }
        *left -= some.len();
        self.1.lock().unwrap().extend_from_slice(some);
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_that_was_broken_off_does_not_run_into_the_next() {
    let (left, holds) = (Arc::new(Mutex::new(9)), Arc::default());
    let mut out = outlet(Room(Arc::clone(&left), Arc::clone(&holds)), ROOM, 60_000);
    writeln!(out, "first").unwrap();
    writeln!(out, "second").unwrap();
    assert!(out.flush().is_err());
    *left.lock().unwrap() = 1000;
    writeln!(out, "third").unwrap();
    out.flush().unwrap();
    let text = String::from_utf8(holds.lock().unwrap().clone()).unwrap();
    assert_eq!(text, "first\nsec\n<1>\nthird\n");
}
