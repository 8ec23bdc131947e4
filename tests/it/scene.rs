//! A scene for whole-program tests: a repository, a directory forge, a scripted agent, and `veri` itself.
//!
//! Everything is real: git, processes, the binary. Everything is the test's own: HOME, git configuration,
//! VERI_HOME, time zone, temporary folder. A test reads as a story: what the agent does differs in a line
//! or two of shell from an agent that does everything right.

#![allow(clippy::disallowed_methods)] // the door of the tests: it starts the program as a person's shell would

pub use crate::scripted::{APPROVE, Agent, PLAN, REJECT};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The path of the program under test.
pub const VERI: &str = env!("CARGO_BIN_EXE_veri");

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A test's own world.
pub struct Scene {
    pub(crate) dir: TempDir,
    /// Variables on top of the scene's own.
    pub env: Vec<(OsString, OsString)>,
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; None when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// The last line of standard error: how it ended.
    pub fn last(&self) -> &str {
        self.err.trim_end().lines().last().unwrap_or_default()
    }

    /// Asserts the exit code, showing everything when it is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(
            self.code,
            Some(code),
            "\n--- out\n{}\n--- err\n{}",
            self.out,
            self.err
        );
        self
    }

    /// Asserts a bail by its cause; the class and the exit code follow from it.
    #[track_caller]
    pub fn bails(self, cause: &str) -> Ran {
        let cause = veri::cause::Cause::parse(cause).expect("a cause");
        let class = cause.class();
        let ran = self.expect(i32::from(class.exit_code()));
        assert_eq!(
            ran.last(),
            format!("bail: {cause} ({})", class.as_str()),
            "\n{}",
            ran.err
        );
        ran
    }

    /// Asserts that standard error says something.
    #[track_caller]
    pub fn says(self, words: &str) -> Ran {
        assert!(
            self.err.contains(words),
            "{words:?} is not in\n{}",
            self.err
        );
        self
    }
}

impl Scene {
    /// A repository with a shell library, one test, and issue 42 of two criteria; the good agent. Verifiers are
    /// confined as they are by default, where the kernel can.
    pub fn new() -> Scene {
        Scene::new_in(&std::env::temp_dir())
    }

    /// The same without a sandbox: each call says why.
    pub fn unconfined() -> Scene {
        let scene = Scene::new();
        scene.configure_alone("sandbox = \"off\"\n");
        scene
    }

    /// The same with everything of it below a folder.
    pub fn new_in(folder: &Path) -> Scene {
        let scene = Scene::bare_in(folder);
        scene.git(&["init", "-q", "-b", "main", "."]);
        scene.write("src/lib.sh", "greet() { echo hello; }\n");
        scene.write("tests/greet.sh", ". src/lib.sh; [ \"$(greet)\" = hello ]\n");
        scene.write(
            "run-tests.sh",
            "set -u\n. src/lib.sh\nfail=0\nfor t in tests/*.sh; do sh -eu \"$t\" || { echo \"FAIL $t\"; fail=1; }; done\nexit $fail\n",
        );
        scene.commit_all("base");
        scene.issue(
            "title: Greet people by name",
            "The greeting should take a name: `greet Ann` prints `hello Ann`.\nThere should be a farewell: `bye` prints `bye`.\n",
        );
        scene.agent(&Agent::default());
        scene
    }

    /// Folders and nothing else: no repository yet.
    pub fn bare() -> Scene {
        Scene::bare_in(&std::env::temp_dir())
    }

    fn bare_in(folder: &Path) -> Scene {
        crate::dispositions::default_for_children();
        let dir = tempfile::Builder::new()
            .prefix("veri-scene-")
            .tempdir_in(folder)
            .expect("a folder");
        for name in ["repo", "home", "state", "forge", "tmp", "notes"] {
            fs::create_dir(dir.path().join(name)).expect("a folder");
        }
        fs::write(
            dir.path().join("home/.gitconfig"),
            "[user]\nname = Pat Person\nemail = pat@example.com\n",
        )
        .expect("a file");
        let scene = Scene {
            dir,
            env: Vec::new(),
        };
        scene.configure("");
        scene
    }

    /// The user's own configuration, in the place of the one before: the sandbox as it is shipped, which also opens the
    /// folder where agents of every role keep their notes.
    pub fn configure(&self, text: &str) {
        let notes = self.path("notes");
        self.configure_alone(&format!(
            "sandbox_write = [\"{}\"]\n{text}",
            notes.display()
        ));
    }

    /// The user's own configuration without anything that the scene adds.
    pub fn configure_alone(&self, text: &str) {
        let folder = self.path("home/.config/veri");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("config.toml"), text).expect("a file");
    }

    /// A path below the scene's folder.
    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// A file that agents of every role can write to, and the test reads.
    pub fn note(&self, name: &str) -> PathBuf {
        self.path("notes").join(name)
    }

    /// The person's checkout.
    pub fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    /// The run's own worktree; the checkout, for a run that works there.
    pub fn worktree(&self) -> PathBuf {
        let state = self.path("state");
        let homes = fs::read_dir(&state).expect("a state folder").flatten();
        let own = homes.map(|home| home.path().join("work/issue-42"));
        // A run in the checkout that was refused has left its journal there, too.
        let here = self.repo().join(".tdd/events.jsonl").exists();
        own.chain(here.then(|| self.repo()))
            .find(|tree| tree.exists())
            .unwrap_or_else(|| panic!("no worktree below {}", state.display()))
    }

    /// Writes a file of the checkout.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.repo().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Makes a file of the checkout executable.
    pub fn executable(&self, path: &str) {
        executable(&self.repo().join(path));
    }

    /// Commits everything in the checkout.
    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// Issue 42 of the directory forge.
    pub fn issue(&self, front: &str, body: &str) {
        let folder = self.path("forge/issues/42");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(
            folder.join("issue.md"),
            format!("---\n{front}\n---\n\n{body}"),
        )
        .expect("a file");
    }

    /// The agent of every role: a shell script outside the repository.
    pub fn agent(&self, agent: &Agent) {
        let text = format!(
            "#!/bin/sh\ncat > /dev/null\ncase \"$VERI_ROLE-$VERI_PHASE\" in\n\
             planner-plan)\n{}\n;;\ndeveloper-red)\n{}\n;;\ndeveloper-green)\n{}\n;;\n\
             developer-refactor)\n{}\n;;\nverifier-*)\n{}\n;;\nesac\n",
            agent.plan, agent.red, agent.green, agent.refactor, agent.verify
        );
        fs::write(self.path("agent"), text).expect("a file");
        executable(&self.path("agent"));
    }

    /// The same agent, which also keeps every prompt it is sent: gives their folder. The files are named by
    /// role and launch: `planner-1`, `planner-2`, `verifier-1`.
    pub fn agent_keeping_prompts(&self, agent: &Agent) -> PathBuf {
        self.agent(agent);
        let folder = self.path("notes/prompts");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        let keep = format!(
            "d='{}'; LAUNCHES=$(($(ls \"$d\" | grep -c \"^$VERI_ROLE-\") + 1)); cat > \"$d/$VERI_ROLE-$LAUNCHES\"",
            folder.display()
        );
        let text = fs::read_to_string(self.path("agent")).expect("an agent");
        let text = text.replacen("cat > /dev/null", &keep, 1);
        fs::write(self.path("agent"), text).expect("a file");
        folder
    }

    /// A command in the scene's environment, in the checkout.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("VERI_HOME", self.path("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TZ", "Pacific/Auckland")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        for name in ["RUSTUP_HOME", "CARGO_HOME"] {
            // The toolchain stays the machine's; without these it would be looked for below HOME.
            let value = std::env::var_os(name).or_else(|| {
                let home = std::env::var_os("HOME")?;
                let folder = if name == "CARGO_HOME" {
                    ".cargo"
                } else {
                    ".rustup"
                };
                Some(PathBuf::from(home).join(folder).into())
            });
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }

    /// git in the checkout; panics when it fails, and gives its output without the last newline.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo(), args)
    }

    /// git in a folder.
    #[track_caller]
    pub fn git_in(&self, folder: &Path, args: &[&str]) -> String {
        let out = self
            .command("git")
            .current_dir(folder)
            .args(args)
            .output()
            .expect("git runs");
        assert!(
            out.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8_lossy(&out.stdout)
            .trim_end_matches('\n')
            .to_owned()
    }

    /// The arguments of `veri tdd 42` on this scene.
    pub fn arguments(&self) -> Vec<String> {
        let forge = format!("dir:{}", self.path("forge").display());
        let agent = format!("command:{}", self.path("agent").display());
        [
            "tdd",
            "42",
            "--forge",
            &forge,
            "--agent",
            &agent,
            "--test-cmd",
            "sh run-tests.sh",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// `veri tdd 42`, with more arguments.
    pub fn tdd(&self, more: &[&str]) -> Ran {
        let mut command = self.command(VERI);
        command.args(self.arguments()).args(more);
        finish(command)
    }

    /// `veri` with these arguments.
    pub fn veri(&self, args: &[&str]) -> Ran {
        let mut command = self.command(VERI);
        command.args(args);
        finish(command)
    }

    /// The body and front matter of the pull request, if there is one.
    pub fn pull(&self) -> Option<String> {
        fs::read_to_string(self.path("forge/pulls/1.md")).ok()
    }

    /// All comments of the issue, in order.
    pub fn comments(&self) -> Vec<String> {
        let mut files: Vec<PathBuf> = fs::read_dir(self.path("forge/issues/42/comments"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|e| e == "md"))
            .collect();
        files.sort();
        files
            .iter()
            .map(|p| fs::read_to_string(p).expect("a comment"))
            .collect()
    }

    /// Subjects of the issue branch after main, oldest first.
    pub fn subjects(&self) -> Vec<String> {
        let log = self.git(&["log", "--reverse", "--format=%s", "main..tdd/issue-42"]);
        log.lines().map(str::to_owned).collect()
    }

    /// The journal's lines of the run's worktree.
    pub fn journal(&self) -> Vec<veri::event::Line> {
        veri::journal::read(&self.worktree().join(".tdd/events.jsonl")).expect("a journal")
    }
}

pub use crate::executable::executable;

/// Runs a command to its end, or fails the test after [`PATIENCE`].
pub fn finish(mut command: Command) -> Ran {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait(child)
}

/// Waits for a started program, or fails the test after [`PATIENCE`].
pub fn wait(mut child: std::process::Child) -> Ran {
    use std::io::Read;
    let mut out = child.stdout.take().expect("a pipe");
    let mut err = child.stderr.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = out.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = err.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Ran {
        code: status.code(),
        out: reader.join().expect("a reader"),
        err: errors.join().expect("a reader"),
    }
}
