//! Short tool calls (git, hooks, probes): a process group of their own, a deadline, and a sweep.
//!
//! Leaves, suites and setup run under `leaf/` instead, which outlives the conductor.
//!
//! - `call`: one call while it runs
//! - `group`: its processes
//! - `pipes`, `stream`: what it is given, and what it says
//! - `ear`: how long it has run, and whether it shall end

mod call;
mod ear;
mod group;
mod pipes;
mod stream;

pub use self::ear::{Listening, listen};
use crate::leaf::{self, LaunchId};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long a tool call may take unless the caller says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// What a shell's or git's exit code has above 128 when what it waited for was ended by a signal (signal(7)).
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

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

    /// Whether nobody killed it, or what it waited for: git and shells then end with 128 and the signal's number.
    fn is_its_own_end(&self) -> bool {
        matches!(self.end, ToolEnd::Code(code) if !SIGNALS.contains(&(code - 128)))
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
    afterwards: Option<Box<dyn FnOnce(bool) -> String>>,
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
            afterwards: None,
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

    /// Does this when nothing of the call's group lives any more; `act` is told whether it, or what it waited for, was
    /// killed, by its deadline or by anybody. What it says is added to the call's standard error.
    pub fn afterwards(mut self, act: impl FnOnce(bool) -> String + 'static) -> Tool {
        self.afterwards = Some(Box::new(act));
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
        let afterwards = self.afterwards.take();
        let stdin = self.stdin.take();
        let mut result = call::run(&mut self.command, stdin, self.deadline, self.kept);
        if let Some(launch) = &launch {
            leaf::sweep_launch(launch);
        }
        // What is not to be ended may still have in hand what this would remove.
        let lives = matches!(&result, Err(e) if e.kind() == io::ErrorKind::TimedOut);
        if let Some(act) = afterwards.filter(|_| !lives) {
            let said = act(!result.as_ref().is_ok_and(|o| o.is_its_own_end()));
            if let Ok(out) = &mut result {
                out.stderr.extend_from_slice(said.as_bytes());
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

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
                "echo begin; yes | head -c 20000000; echo end; yes | head -c 20000000 >&2",
            ])
            .keep_at_most(1000)
            .run()
            .unwrap();
        assert_eq!(out.end, ToolEnd::Code(0));
        let text = out.stdout_text();
        assert!(
            text.starts_with("begin\ny\n") && text.ends_with("y\nend"),
            "{text}"
        );
        assert!(text.contains("… 19999010 bytes left out …"), "{text}");
        assert!(out.stdout.len() < 1100 && out.stderr.len() < 1100);
        let tool = Tool::new("sh").args(["-c", "yes >&2"]).keep_at_most(1000);
        let out = tool.deadline(Duration::from_secs(1)).run().unwrap();
        assert_eq!(out.end, ToolEnd::TimedOut);
        assert!(out.stderr.len() < 1100);
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
    fn a_background_child_that_writes_without_end_does_not_hold_the_call() {
        let out = Tool::new("sh")
            .args(["-c", "yes & echo done >&2"])
            .keep_at_most(1000)
            .deadline(Duration::from_secs(30))
            .run()
            .unwrap();
        assert_eq!(
            (out.end, out.stderr_text().as_str()),
            (ToolEnd::Code(0), "done")
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn input_that_a_daemon_holds_and_does_not_read_does_not_hold_the_call() {
        let started = Instant::now();
        let out = Tool::new("sh")
            .args([
                "-c",
                "exec 3<&0; setsid sleep 60 <&3 >&- 2>&- 3<&- & echo done",
            ])
            .stdin(vec![b'x'; 1 << 20])
            .sweeping()
            .run()
            .unwrap();
        assert_eq!(out.stdout_text(), "done");
        assert!(started.elapsed() < Duration::from_secs(50));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_call_that_cannot_be_heard_to_its_end_leaves_no_process_that_nobody_reaps() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let text = "echo $$ >\"$PID\"; exec yes";
        let heard = Tool::new("sh").args(["-c", text]).env("PID", &pid).run();
        assert!(heard.is_err(), "more than is held");
        let pid = std::fs::read_to_string(&pid).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists());
    }

    #[test]
    fn input_that_nobody_reads_does_not_hold_the_call() {
        let out = Tool::new("true").stdin(vec![b'x'; 1 << 20]).run().unwrap();
        assert!(out.success());
    }
}
