//! Short tool calls (git, hooks, probes): a process group of their own, a deadline, and a sweep.
//!
//! Leaves, suites and setup run under `leaf/` instead, which outlives the conductor.

mod ear;
mod stream;

pub use self::ear::{Listening, listen};
use self::ear::{Spent, asked_to_end};
use self::stream::Stream;
use crate::leaf::{self, LaunchId};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a tool call may take unless the caller says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// How long a call that is asked to end has until it is made to.
const GRACE: Duration = Duration::from_secs(2);

/// How long pipes that a background child of an ended tool holds open are still read.
const LINGER: Duration = Duration::from_millis(50);

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEnd {
    /// It exited with this code.
    Code(i32),
    /// A signal that was not ours ended it.
    Signal(i32),
    /// It was ended because its deadline passed.
    TimedOut,
}

/// What a tool call gave back.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    /// How it ended.
    pub end: ToolEnd,
    /// All of its standard output; with [`Tool::keep_at_most`] its beginning and its end.
    pub stdout: Vec<u8>,
    /// All of its standard error; with [`Tool::keep_at_most`] its beginning and its end.
    pub stderr: Vec<u8>,
}

impl ToolOutput {
    /// Whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.end == ToolEnd::Code(0)
    }

    fn is_its_own_end(&self) -> bool {
        matches!(self.end, ToolEnd::Code(_))
    }

    /// Standard output as text, without the last newline; bytes that are not UTF-8 are replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout)
            .trim_end_matches('\n')
            .to_owned()
    }

    /// Standard error as text, without the last newline; bytes that are not UTF-8 are replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr)
            .trim_end_matches('\n')
            .to_owned()
    }
}

/// A tool call to be made. Standard input is empty unless given.
pub struct Tool {
    command: Command,
    stdin: Option<Vec<u8>>,
    deadline: Duration,
    kept: Option<usize>,
    sweeping: bool,
    cut_off: Option<Box<dyn FnOnce() -> String>>,
}

impl Tool {
    /// A call of a program, by name on PATH or by path.
    pub fn new(program: impl AsRef<OsStr>) -> Tool {
        #[allow(clippy::disallowed_methods)] // this is the one place for short tool calls
        let mut command = Command::new(program);
        command.process_group(0);
        // A conductor that is killed leaves no git behind that goes on while the next one looks around.
        crate::leaf::unblocked_and_dying_with_parent(&mut command);
        Tool {
            command,
            stdin: None,
            deadline: DEFAULT_DEADLINE,
            kept: None,
            sweeping: false,
            cut_off: None,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Tool {
        self.command.arg(arg);
        self
    }

    /// Adds several arguments.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Tool {
        self.command.args(args);
        self
    }

    /// Sets the working folder.
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Tool {
        self.command.current_dir(dir);
        self
    }

    /// Sets one environment variable.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Tool {
        self.command.env(key, value);
        self
    }

    /// Removes one environment variable.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Tool {
        self.command.env_remove(key);
        self
    }

    /// Removes the whole inherited environment.
    pub fn env_clear(mut self) -> Tool {
        self.command.env_clear();
        self
    }

    /// Gives standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Tool {
        self.stdin = Some(bytes.into());
        self
    }

    /// Sets the deadline.
    pub fn deadline(mut self, deadline: Duration) -> Tool {
        self.deadline = deadline;
        self
    }

    /// Keeps of each stream at most so many bytes, its beginning and its end, with a line between them that says
    /// how much is left out. For output that is for people; without it, output that is larger than 256 MiB is an
    /// error, and never cut.
    pub fn keep_at_most(mut self, bytes: usize) -> Tool {
        self.kept = Some(bytes);
        self
    }

    /// Ends, after the call, also what it started in sessions of their own: everything that carries the call's
    /// mark in its environment (`VERI_LAUNCH`). For calls that run programs of the person's, such as hooks.
    pub fn sweeping(mut self) -> Tool {
        self.sweeping = true;
        self
    }

    /// Does this when the call was killed, by its deadline or by anybody, and nothing of its group lives any more; what
    /// it says is added to the call's standard error.
    pub fn if_cut_off(mut self, act: impl FnOnce() -> String + 'static) -> Tool {
        self.cut_off = Some(Box::new(act));
        self
    }

    /// Runs the call to its end or its deadline; whatever it left in its process group is ended.
    ///
    /// # Errors
    /// When the program cannot be started (`NotFound`, `PermissionDenied`), its pipes cannot be read, or it writes
    /// more than can be held.
    pub fn run(mut self) -> io::Result<ToolOutput> {
        let launch = match self.sweeping {
            true => Some(LaunchId::random().map_err(io::Error::other)?),
            false => None,
        };
        if let Some(launch) = &launch {
            self.command.env(leaf::LAUNCH_VAR, launch.as_str());
        }
        let cut_off = self.cut_off.take();
        let mut result = self.run_in_group();
        if let Some(launch) = &launch {
            leaf::sweep_launch(launch);
        }
        if let Some(act) = cut_off.filter(|_| !result.as_ref().is_ok_and(|o| o.is_its_own_end())) {
            let said = act();
            if let Ok(out) = &mut result {
                out.stderr.extend_from_slice(said.as_bytes());
            }
        }
        result
    }

    fn run_in_group(mut self) -> io::Result<ToolOutput> {
        let stdin = if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        self.command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn()?;
        let group = Group(Pid::from_raw(child.id() as i32));
        let writer = match (self.stdin.take(), child.stdin.take()) {
            (Some(bytes), Some(pipe)) => Some(stream::feed(pipe, bytes)?),
            _ => None,
        };
        let result = collect(&mut child, &group, self.deadline, self.kept);
        drop(group);
        if let Some(writer) = writer {
            // The group is gone, so the pipe is broken and the writer ends.
            drop(writer.join());
        }
        result
    }
}

/// A process group that is ended when this goes away.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // ESRCH: nothing was left. The leader may be reaped already, but a group id is not reused while
        // any member lives, and with no member the call fails.
        let _ = killpg(self.0, Signal::SIGKILL);
    }
}

/// Keeps a call's deadline, and ends it when that is asked for.
struct Watch<'a> {
    group: &'a Group,
    spent: Spent,
    limit: Duration,
    timed_out: bool,
    /// When it is made to end that was asked to.
    killed_at: Option<Duration>,
}

impl Watch<'_> {
    fn new(group: &Group, limit: Duration) -> Watch<'_> {
        Watch {
            group,
            spent: Spent::from_now(),
            limit,
            timed_out: false,
            killed_at: None,
        }
    }

    fn look(&mut self) {
        let spent = self.spent.by_now();
        if !self.timed_out && spent > self.limit {
            self.timed_out = true;
            let _ = killpg(self.group.0, Signal::SIGKILL);
        }
        if self.killed_at.is_some_and(|at| spent > at) {
            let _ = killpg(self.group.0, Signal::SIGKILL);
        }
        if asked_to_end() {
            self.killed_at = Some(spent + GRACE);
            let _ = killpg(self.group.0, Signal::SIGTERM);
        }
    }
}

fn collect(
    child: &mut Child,
    group: &Group,
    limit: Duration,
    kept: Option<usize>,
) -> io::Result<ToolOutput> {
    let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("a child without pipes"));
    };
    let mut watch = Watch::new(group, limit);
    let (mut stdout, mut stderr) = (Stream::new(kept), Stream::new(kept));
    let (mut out_open, mut err_open) = (true, true);
    let mut ended_at: Option<Instant> = None;
    while out_open || err_open {
        let mut fds = Vec::with_capacity(2);
        if out_open {
            fds.push(PollFd::new(out.as_fd(), PollFlags::POLLIN));
        }
        if err_open {
            fds.push(PollFd::new(err.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut fds, PollTimeout::from(20u8)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready: Vec<bool> = fds
            .iter()
            .map(|f| f.revents().is_some_and(|r| !r.is_empty()))
            .collect();
        drop(fds);
        let mut ready = ready.into_iter();
        let mut read_any = false;
        if out_open && ready.next() == Some(true) {
            out_open = read_some(&mut out, &mut stdout)?;
            read_any = true;
        }
        if err_open && ready.next() == Some(true) {
            err_open = read_some(&mut err, &mut stderr)?;
            read_any = true;
        }
        watch.look();
        if !read_any {
            if ended_at.is_none() && child.try_wait()?.is_some() {
                ended_at = Some(Instant::now());
            }
            if ended_at.is_some_and(|at| at.elapsed() > LINGER) {
                break;
            }
        }
    }
    // Both pipes may be closed by a program that goes on: the deadline still holds.
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        watch.look();
        std::thread::sleep(Duration::from_micros(200));
    };
    let end = match (watch.timed_out, status.code(), status.signal()) {
        (true, _, _) => ToolEnd::TimedOut,
        (_, Some(code), _) => ToolEnd::Code(code),
        (_, _, Some(signal)) => ToolEnd::Signal(signal),
        _ => ToolEnd::Signal(0),
    };
    Ok(ToolOutput {
        end,
        stdout: stdout.into_bytes(),
        stderr: stderr.into_bytes(),
    })
}

fn read_some(from: &mut impl Read, to: &mut Stream) -> io::Result<bool> {
    let mut buffer = [0u8; 16 * 1024];
    match from.read(&mut buffer) {
        Ok(0) => Ok(false),
        Ok(n) => {
            to.take(&buffer[..n])?;
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_both_streams_and_the_code_come_back() {
        let out = Tool::new("sh")
            .args(["-c", "cat; echo err >&2; exit 3"])
            .stdin("in")
            .run()
            .unwrap();
        assert_eq!(out.end, ToolEnd::Code(3));
        assert_eq!(out.stdout, b"in");
        assert_eq!(out.stderr_text(), "err");
    }

    #[test]
    fn a_tool_that_hangs_is_ended_at_its_deadline() {
        let out = Tool::new("sh")
            .args(["-c", "sleep 1000"])
            .deadline(Duration::from_millis(50))
            .run()
            .unwrap();
        assert_eq!(out.end, ToolEnd::TimedOut);
    }

    #[test]
    fn endless_output_is_kept_at_both_ends_and_costs_no_more() {
        let out = Tool::new("sh")
            .args([
                "-c",
                "echo begin; yes | head -c 20000000; echo end; yes >&2",
            ])
            .keep_at_most(1000)
            .deadline(Duration::from_secs(2))
            .run()
            .unwrap();
        assert_eq!(out.end, ToolEnd::TimedOut);
        let text = out.stdout_text();
        assert!(
            text.starts_with("begin\ny\n") && text.ends_with("y\nend"),
            "{text}"
        );
        assert!(text.contains("… 19999010 bytes left out …"), "{text}");
        assert!(out.stdout.len() < 1100 && out.stderr.len() < 1100);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_swept_call_left_in_a_session_of_its_own_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let text = "setsid sh -c 'echo $$ > \"$PID.new\"; mv \"$PID.new\" \"$PID\"; exec sleep 1000' >&- 2>&- & \
                    while [ ! -e \"$PID\" ]; do sleep 0.01; done";
        let out = Tool::new("sh")
            .args(["-c", text])
            .env("PID", &pid)
            .sweeping()
            .run()
            .unwrap();
        assert!(out.success());
        let pid = std::fs::read_to_string(&pid).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // Gone, or dead and not yet reaped by whoever inherited it.
        assert!(
            stat.as_ref().map_or(true, |stat| stat.contains(") Z ")),
            "{stat:?}"
        );
    }

    #[test]
    fn a_background_child_that_holds_the_pipes_does_not_hold_the_call() {
        let started = Instant::now();
        let out = Tool::new("sh")
            .args(["-c", "sleep 1000 & echo done"])
            .run()
            .unwrap();
        assert_eq!(out.stdout_text(), "done");
        assert!(started.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn input_that_nobody_reads_does_not_hold_the_call() {
        let out = Tool::new("true").stdin(vec![b'x'; 1 << 20]).run().unwrap();
        assert!(out.success());
    }
}
