//! The terminal and whoever reads what a run prints: gone, full, slow, closed from the start.

use crate::scene::{Agent, PATIENCE, Scene, VERI};
use crate::watching::{noting, until};
use nix::fcntl::{FcntlArg, fcntl};
use nix::pty::{OpenptyResult, openpty};
use std::fs::{self, File, OpenOptions};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::{Child, Stdio};
use std::time::Instant;
use veri::event::{Kind, Line};

/// A pipe that holds as little as a pipe can.
fn small_pipe() -> (PipeReader, PipeWriter) {
    let (from, to) = std::io::pipe().unwrap();
    #[cfg(target_os = "linux")]
    fcntl(&to, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    (from, to)
}

/// `veri tdd 42` with these streams.
fn tdd(scene: &Scene, more: &[&str], out: impl Into<Stdio>, err: impl Into<Stdio>) -> Child {
    let mut command = scene.command(VERI);
    command
        .args(scene.arguments())
        .args(more)
        .stdout(out)
        .stderr(err)
        .spawn()
        .unwrap()
}

/// The exit code of a child, in time.
#[track_caller]
pub fn ends(mut child: Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it did not end within {PATIENCE:?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

impl Scene {
    /// Asserts that the run is finished and the journal says so.
    #[track_caller]
    pub fn is_done(&self) {
        let last = self.lines().pop().expect("a journal");
        assert_eq!((last.event, last.text("ending")), (Kind::RunEnd, "done"));
        assert!(self.pull().is_some());
        self.nothing_is_left_running();
    }
}

/// What `veri tdd --json` has printed.
fn lines_of(text: &str) -> Vec<Line> {
    let line = |text: &str| serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    text.lines().map(line).collect()
}

#[test]
fn a_reader_that_never_reads_holds_no_run() {
    let scene = Scene::new();
    let ((mut out, to_out), (err, to_err)) = (small_pipe(), small_pipe());
    // Another program of ours has filled standard error before.
    let mut other = to_err.try_clone().unwrap();
    other.write_all(&[b'x'; 4096]).unwrap();
    assert_eq!(ends(tdd(&scene, &["--json"], to_out, to_err)), Some(0));
    drop((other, err));
    scene.is_done();
    // As much as the pipe has taken is there, and in its order.
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = lines_of(whole);
    assert!(!lines.is_empty());
    for (got, expected) in lines.iter().zip(scene.lines()) {
        assert_eq!(got.seq, expected.seq);
    }
}

#[test]
fn a_reader_that_comes_late_gets_every_line_and_the_last_words_come_last() {
    let scene = Scene::new();
    let (mut out, to_out) = small_pipe();
    let (mut err, to_err) = small_pipe();
    let child = tdd(&scene, &["--json"], to_out, to_err);
    let over = |line: &Line| line.event == Kind::RunEnd;
    until("the end", || scene.lines().last().is_some_and(over));
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    let printed: Vec<u64> = lines_of(&text).iter().map(|l| l.seq).collect();
    let written: Vec<u64> = scene.lines().iter().map(|l| l.seq).collect();
    assert_eq!(printed, written);
    let mut last = String::new();
    err.read_to_string(&mut last).unwrap();
    assert!(last.starts_with("done: "), "{last}");
    assert_eq!(ends(child), Some(0));

    // Both streams into one file: as on a terminal, how it ended stands at the end.
    let both = File::create(scene.path("both")).unwrap();
    let child = tdd(&scene, &["-v"], both.try_clone().unwrap(), both);
    assert_eq!(ends(child), Some(0));
    let text = fs::read_to_string(scene.path("both")).unwrap();
    assert!(text.lines().last().unwrap().starts_with("done: "), "{text}");
}

#[test]
fn a_full_disk_under_standard_output_ends_no_run() {
    let scene = Scene::new();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let said = File::create(scene.path("said")).unwrap();
    assert_eq!(ends(tdd(&scene, &[], full(), said)), Some(0));
    let said = fs::read_to_string(scene.path("said")).unwrap();
    assert!(said.contains("standard output ends too early"), "{said}");
    assert!(said.lines().last().unwrap().starts_with("done: "), "{said}");
    scene.is_done();

    let scene = Scene::new();
    assert_eq!(ends(tdd(&scene, &[], full(), full())), Some(0));
    scene.is_done();
}

#[test]
fn streams_that_were_closed_from_the_start_are_no_files_of_the_run() {
    let scene = Scene::new();
    let script = "exec \"$@\" <&- >&- 2>&-";
    let mut command = scene.command("sh");
    command
        .args(["-c", script, "sh", VERI])
        .args(scene.arguments());
    assert_eq!(ends(command.spawn().unwrap()), Some(0));
    // What was printed is in no journal, lock or record.
    scene.is_done();
    let journal = scene.worktree().join(".tdd/events.jsonl");
    let text = fs::read_to_string(journal).unwrap();
    assert_eq!(lines_of(&text).len(), scene.lines().len());
    scene.worktree_is_clean();
}

/// A run on a terminal of its own: started by a shell with job control, as a person's is.
pub struct OnTerminal {
    master: Option<File>,
    shell: Child,
}

impl OnTerminal {
    /// Starts `veri tdd 42`; `after` is what the shell does when it has ended or is stopped.
    pub fn start(scene: &Scene, before: &str, after: &str) -> OnTerminal {
        let OpenptyResult { master, slave } = openpty(None, None).unwrap();
        let script = format!("set -m; {before}\n\"$@\"\n{after}");
        let mut command = scene.command("setsid");
        command
            .args(["--ctty", "--wait", "sh", "-c", &script, "sh", VERI])
            .args(scene.arguments())
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave);
        let shell = command.spawn().unwrap();
        OnTerminal {
            master: Some(File::from(master)),
            shell,
        }
    }

    /// Types something.
    pub fn types(&mut self, keys: &[u8]) {
        let master = self.master.as_mut().expect("an open terminal");
        master.write_all(keys).unwrap();
    }

    /// Closes the terminal.
    pub fn close(&mut self) {
        self.master = None;
    }

    /// Reads what is shown until it holds these words.
    #[track_caller]
    pub fn shows(&mut self, words: &str) -> String {
        let mut shown = String::new();
        let mut bytes = [0; 4096];
        while !shown.contains(words) {
            // Ended by the test's own patience in `until` elsewhere; a terminal that is gone gives an error.
            match self
                .master
                .as_mut()
                .expect("an open terminal")
                .read(&mut bytes)
            {
                Ok(count) if count > 0 => shown += &String::from_utf8_lossy(&bytes[..count]),
                end => panic!("{words:?} is not shown ({end:?}):\n{shown}"),
            }
        }
        shown
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        self.master = None;
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn a_closed_terminal_ends_no_run() {
    let scene = Scene::new();
    scene.agent(&noting(Agent::default()));
    scene.hold("developer-red");
    let mut terminal = OnTerminal::start(&scene, "", "");
    scene.begun("developer-red");
    terminal.close();
    scene.let_go("developer-red");
    let over = |line: &Line| line.event == Kind::RunEnd;
    until("the end", || scene.lines().last().is_some_and(over));
    scene.is_done();
}

#[test]
fn a_terminal_that_was_stopped_with_ctrl_s_stops_no_run_and_shows_all_in_the_end() {
    let scene = Scene::new();
    scene.agent(&noting(Agent::default()));
    scene.hold("planner-plan");
    let mut terminal = OnTerminal::start(&scene, "", "echo code $?");
    scene.begun("planner-plan");
    terminal.types(b"\x13");
    scene.let_go("planner-plan");
    let over = |line: &Line| line.event == Kind::RunEnd;
    until("the end", || scene.lines().last().is_some_and(over));
    terminal.types(b"\x11");
    let shown = terminal.shows("code 0");
    assert!(shown.contains("step 2 is done"), "{shown}");
    let last = shown.trim_end().lines().rev().nth(1).unwrap();
    assert!(last.starts_with("done: "), "{shown}");
}
