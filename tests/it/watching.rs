//! Runs in the background: waited for by what they have done, signalled, killed; and what a run came to, in a
//! form in which two runs can be compared.

use crate::scene::{Agent, PATIENCE, Scene, VERI};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use veri::event::{Kind, Line};

/// Waits for a condition, looking every few milliseconds.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    found(what, || condition().then_some(()));
}

/// Waits for something to be there, looking every few milliseconds.
#[track_caller]
pub fn found<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// `veri tdd 42` in the background.
pub fn start(scene: &Scene, more: &[&str]) -> Child {
    let mut command = scene.command(VERI);
    command
        .args(scene.arguments())
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// Signals one process.
pub fn signal(pid: u32, signal: nix::sys::signal::Signal) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal);
}

/// Kills a child with SIGKILL and takes its end.
pub fn kill(mut child: Child) {
    signal(child.id(), nix::sys::signal::Signal::SIGKILL);
    child.wait().expect("a child");
}

/// What an agent does first in each launch: it notes who it is and its process, and waits while it is held.
const FIRST: &str = r#"d="$(dirname "$0")/notes"; me="$VERI_ROLE-$VERI_PHASE"
echo "$VERI_ROLE $VERI_PHASE $VERI_ATTEMPT" >> "$d/launches"
echo $$ > "$d/pid.new"; mv "$d/pid.new" "$d/pid-$me"
while [ -e "$d/hold-$me" ]; do sleep 0.03; done"#;

/// An agent that notes each launch and can be held ([`Scene::hold`]).
pub fn noting(agent: Agent) -> Agent {
    let with = |moves: String| format!("{FIRST}\n{moves}");
    Agent {
        plan: with(agent.plan),
        red: with(agent.red),
        green: with(agent.green),
        refactor: with(agent.refactor),
        verify: with(agent.verify),
    }
}

impl Scene {
    /// The launches that the agent noted, in order.
    pub fn launches(&self) -> Vec<String> {
        let text = fs::read_to_string(self.note("launches")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Has the agent of a role and phase (`developer-green`), or the `suite`, wait when it begins.
    pub fn hold(&self, who: &str) {
        fs::write(self.note(&format!("hold-{who}")), "").expect("a file");
    }

    /// Lets it go on.
    pub fn let_go(&self, who: &str) {
        fs::remove_file(self.note(&format!("hold-{who}"))).expect("a held one");
    }

    /// Waits until one that is held has begun; gives its process.
    #[track_caller]
    pub fn begun(&self, who: &str) -> u32 {
        let read = || {
            fs::read_to_string(self.note(&format!("pid-{who}")))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        until(who, || read().is_some());
        read().expect("a process id")
    }

    /// Forgets that one has begun, so that its next launch can be waited for.
    pub fn forget(&self, who: &str) {
        let _ = fs::remove_file(self.note(&format!("pid-{who}")));
    }

    /// Makes the suite one that can be held: as `suite`, and as `merged` where notes.md says two.
    pub fn suite_can_be_held(&self) {
        let d = self.path("notes").display().to_string();
        let tests = fs::read_to_string(self.repo().join("run-tests.sh")).expect("a suite");
        let wait = format!(
            "d='{d}'; echo $$ > \"$d/pid-suite.new\"; mv \"$d/pid-suite.new\" \"$d/pid-suite\"; while [ -e \"$d/hold-suite\" ]; do sleep 0.03; done\n\
             if grep -qs two notes.md; then echo $$ > \"$d/pid-merged.new\"; mv \"$d/pid-merged.new\" \"$d/pid-merged\"; while [ -e \"$d/hold-merged\" ]; do sleep 0.03; done; fi\n"
        );
        self.write("run-tests.sh", format!("{wait}{tests}"));
        self.commit_all("the suite can be held");
    }

    /// The lines of the journal, as far as there is one.
    pub fn lines(&self) -> Vec<Line> {
        let homes = fs::read_dir(self.path("state"))
            .into_iter()
            .flatten()
            .flatten();
        homes
            .map(|home| home.path().join("work/issue-42"))
            .chain([self.repo()])
            .map(|tree| tree.join(".tdd/events.jsonl"))
            .find(|path| path.exists())
            .and_then(|path| veri::journal::read(&path).ok())
            .unwrap_or_default()
    }

    /// Whether the newest start has said this.
    pub fn said(&self, words: &str) -> bool {
        let lines = self.lines();
        let newest = lines.last().map(|l| l.run.clone()).unwrap_or_default();
        lines
            .iter()
            .any(|l| l.run == newest && l.text("said").contains(words))
    }

    /// Every ref of the issue beside its branch.
    pub fn own_refs(&self) -> Vec<String> {
        let refs = self.git(&["for-each-ref", "--format=%(refname)", "refs/veri"]);
        refs.lines().map(str::to_owned).collect()
    }

    /// Asserts that the run's worktree holds nothing but what is committed.
    #[track_caller]
    pub fn worktree_is_clean(&self) {
        assert_eq!(
            self.git_in(&self.worktree(), &["status", "--porcelain"]),
            ""
        );
    }
}

/// What a run came to. Times, ids and the scene's folder are taken out.
#[derive(Debug, PartialEq, Eq)]
pub struct Came {
    pub branch: String,
    pub ledger: String,
    pub comments: Vec<String>,
    pub pull: Option<String>,
    pub pulls: usize,
    pub launches: Vec<String>,
    pub notices: Vec<String>,
    pub refs: Vec<String>,
}

impl Came {
    /// Looks at a scene. Nothing of it may run any more, and the worktree must be clean.
    #[track_caller]
    pub fn of(scene: &Scene) -> Came {
        scene.nothing_is_left_running();
        scene.worktree_is_clean();
        let branch = scene.git(&["log", "--format=%T%n%B", "main..tdd/issue-42"]);
        let lines = scene.lines();
        let notices = lines
            .iter()
            .filter(|l| matches!(l.event, Kind::StepStart | Kind::StepDone | Kind::Revise));
        let refs = scene.own_refs();
        Came {
            branch: neutral(scene, &without_snapshot(&branch), false),
            ledger: scene.git(&["show", "tdd/issue-42:.tdd/issue-42.md"]),
            comments: scene
                .comments()
                .iter()
                .map(|c| neutral(scene, c, true))
                .collect(),
            pull: scene.pull().map(|p| neutral(scene, &p, true)),
            pulls: fs::read_dir(scene.path("forge/pulls")).map_or(0, Iterator::count),
            launches: scene.launches(),
            notices: notices
                .map(|l| format!("{} {:?} {:?}", l.event.as_str(), l.step, l.attempt))
                .collect(),
            refs: refs
                .into_iter()
                .filter(|r| !r.contains("/discarded/"))
                .collect(),
        }
    }

    /// Asserts that another run came to the same, naming the first thing that differs.
    #[track_caller]
    pub fn is_what(&self, other: &Came, case: &str) {
        let parts = [
            ("branch", &self.branch, &other.branch),
            ("ledger", &self.ledger, &other.ledger),
            (
                "comments",
                &self.comments.join("\n=====\n"),
                &other.comments.join("\n=====\n"),
            ),
            (
                "pull request",
                &self.pull.clone().unwrap_or_default(),
                &other.pull.clone().unwrap_or_default(),
            ),
            (
                "launches",
                &self.launches.join("\n"),
                &other.launches.join("\n"),
            ),
            (
                "notices",
                &self.notices.join("\n"),
                &other.notices.join("\n"),
            ),
            ("refs", &self.refs.join("\n"), &other.refs.join("\n")),
        ];
        for (what, ours, theirs) in parts {
            assert!(
                ours == theirs,
                "{case}: {what} differs\n--- disturbed\n{ours}\n--- undisturbed\n{theirs}"
            );
        }
        assert_eq!(self.pulls, other.pulls, "{case}: pull requests");
    }
}

fn without_snapshot(text: &str) -> String {
    // Its id covers the configuration, which names the scene's folder.
    let lines = text.lines().filter(|l| !l.starts_with("Veri-Snapshot: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// A text without what differs between two runs of one story: folders, times and (on request) ids.
fn neutral(scene: &Scene, text: &str, ids: bool) -> String {
    let folder = scene.path("").display().to_string();
    let text = text.replace(folder.trim_end_matches('/'), "SCENE");
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<String> = line
            .split(' ')
            .map(|word| {
                let core = word.trim_end_matches("~1");
                let core = core.trim_matches(|c: char| !c.is_ascii_alphanumeric());
                let hex = core.len() >= 9 && core.bytes().all(|b| b.is_ascii_hexdigit());
                let time = core.len() >= 19 && core.contains('T') && core.ends_with('Z');
                match (ids && hex, time) {
                    (true, _) => word.replace(core, "ID"),
                    (_, true) => word.replace(core, "TIME"),
                    _ => word.to_owned(),
                }
            })
            .collect();
        let line = words.join(" ");
        // Wall time and what was asked of the machine: a crash costs both.
        if let Some((_, counted)) = line
            .split_once(" s, ")
            .filter(|_| line.contains("agents started"))
        {
            out.push_str(counted.split(", ").next().unwrap_or_default());
        } else {
            out.push_str(&line);
        }
        out.push('\n');
    }
    out
}

/// A plan of one step.
pub const ONE_STEP: &str = r#"echo "{\"nonce\":\"$VERI_NONCE\",\"criteria\":[{\"id\":\"AC1\",\"text\":\"greet takes a name\",\"quote\":\"The greeting should take a name\"}],\"steps\":[{\"title\":\"greet takes a name\",\"criteria\":[\"AC1\"]}]}""#;

/// The story that crash tests disturb: one step with a test that is sent back, a leaf that hangs, and a
/// refactor that is committed.
pub fn eventful() -> Scene {
    eventful_in(&std::env::temp_dir())
}

/// The same, with everything of it below a folder.
pub fn eventful_in(folder: &Path) -> Scene {
    let mut scene = Scene::new_in(folder);
    for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        scene.env.push((name.into(), "2026-01-02T03:04:05Z".into()));
    }
    // The base is made anew with these dates, so that it has the same name in every scene.
    scene.git(&["commit", "-q", "--amend", "--no-edit", "--reset-author"]);
    scene.issue(
        "title: Greet people by name",
        "The greeting should take a name: `greet Ann` prints `hello Ann`.\n",
    );
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: r#"echo '. src/lib.sh; [ "$(greet Ann)" = "hello Ann" ]' > tests/name.sh
            [ "$VERI_ATTEMPT" = 1 ] || echo '[ "$(greet Bo)" = "hello Bo" ]' >> tests/name.sh"#.to_owned(),
        green: r#"echo 'greet() { if [ $# -gt 0 ]; then echo "hello $1"; else echo hello; fi; }' > src/lib.sh
            hung="$d/hung"
            if [ ! -e "$hung" ]; then touch "$hung"; echo partial > src/partial.sh; sleep 1000; fi"#.to_owned(),
        refactor: r#"echo 'greet() { echo "hello${1:+ $1}"; }' > src/lib.sh"#.to_owned(),
        verify: format!(
            "if [ \"$VERI_PHASE\" = red ] && ! grep -q Bo tests/name.sh; then {}; else {}; fi",
            crate::scene::REJECT,
            crate::scene::APPROVE
        ),
    }));
    scene
}

/// A run of one step in which nothing happens but what must.
pub fn plain() -> Scene {
    let scene = eventful();
    std::fs::write(scene.note("hung"), "").expect("a file");
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    scene
}

/// The flags of the eventful story: a leaf that hangs is given up after so many seconds.
pub const HANGS: [&str; 2] = ["--timeout", "5"];

/// Everything of a scene that runs, by process id: the conductor, shims, leaves, suites, git.
pub fn all_of(scene: &Scene) -> Vec<u32> {
    let folder = scene.path("");
    let needle = folder
        .to_string_lossy()
        .trim_end_matches('/')
        .as_bytes()
        .to_vec();
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        let proc: PathBuf = entry.path();
        // A child of this very program that is about to become another holds all of this program's files.
        let own = std::env::current_exe().ok();
        if fs::read_link(proc.join("exe")).ok() == own {
            continue;
        }
        let environment = fs::read(proc.join("environ")).unwrap_or_default();
        let has = environment.windows(needle.len()).any(|w| w == needle);
        // A shim has no environment: it is known by the files that it holds.
        let mut open = fs::read_dir(proc.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        if has || open.any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(&folder))) {
            pids.push(pid);
        }
    }
    pids
}

/// Kills everything of a scene with SIGKILL, again until nothing is left.
pub fn kill_everything(scene: &Scene, mut child: Child) {
    until("everything to be dead", || {
        let pids = all_of(scene);
        // All are stopped first: a power cut gives nobody the time to see the others die.
        use nix::sys::signal::Signal::{SIGKILL, SIGSTOP};
        for signal in [SIGSTOP, SIGKILL] {
            for pid in &pids {
                self::signal(*pid, signal);
            }
        }
        let ended = child.try_wait().expect("a child").is_some();
        ended && pids.is_empty()
    });
}

/// How often the agent was launched as this role and phase.
pub fn launches_of(scene: &Scene, who: &str) -> usize {
    scene
        .launches()
        .iter()
        .filter(|l| l.starts_with(who))
        .count()
}

/// Asserts that the run of one step is done and has left nothing.
#[track_caller]
pub fn is_finished(scene: &Scene) {
    let subjects = ["plan: issue 42 in 1 step", "greet takes a name"];
    assert_eq!(scene.subjects(), subjects);
    assert!(
        scene
            .pull()
            .expect("a pull request")
            .contains("draft: true")
    );
    scene.nothing_is_left_running();
    scene.worktree_is_clean();
}
