//! What one whole cycle costs that is veri's own: instant leaves, an instant suite, a repository of 30 files;
//! beside it `floor.sh`, which starts the same processes and makes the same commits and does nothing else.
//!
//! Prints processor and wall time a step and their ratio, fails nothing: `cargo bench --bench cycle`.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)] // a measurement, not a program

mod cost;

use cost::{Cost, measured, middle};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const FILES: usize = 30;

/// A short run and a long one: what the difference costs, divided by the steps between, is the cost of a step
/// without what a run costs once (preflight, plan, pull request).
const SHORT: usize = 1;
const LONG: usize = 6;

/// How often both are measured; the middle one counts.
const ROUNDS: usize = 3;

/// The stretch in which a verifier is started, works and ends.
const VERIFIER: &str = "launch verifier";

/// Wall time by what was being done.
type Spent = BTreeMap<String, Duration>;

fn a_step(long: Cost, short: Cost, steps: u32) -> Cost {
    Cost {
        cpu: long.cpu.saturating_sub(short.cpu) / steps,
        wall: long.wall.saturating_sub(short.wall) / steps,
    }
}

fn main() {
    let steps = (LONG - SHORT) as u32;
    let mut ours = Vec::new();
    let mut floors = Vec::new();
    let mut once = Vec::new();
    let mut stretches = (Spent::new(), Spent::new());
    let mut verifiers = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (short, few) = veri(SHORT, "auto");
        let (long, many) = veri(LONG, "auto");
        verifiers.0.push(many.get(VERIFIER).copied());
        verifiers.1.push(veri(LONG, "off").1.get(VERIFIER).copied());
        ours.push(a_step(long, short, steps));
        stretches = (few, many);
        let floor = Floor::new();
        let few = floor.run(SHORT);
        floors.push(a_step(floor.run(LONG), few, steps));
        once.push(short);
    }
    let (ours, floor, once) = (middle(&ours), middle(&floors), middle(&once));
    println!("one step, {FILES} files, instant leaves and tests (the middle one of {ROUNDS})");
    show("veri", ours);
    show("floor", floor);
    println!(
        "ratio  {:>8.2} × cpu  {:>8.2} × wall",
        ours.cpu.as_secs_f64() / floor.cpu.as_secs_f64(),
        ours.wall.as_secs_f64() / floor.wall.as_secs_f64()
    );
    println!("where the wall time of a step goes (the last round):");
    for (what, many) in &stretches.1 {
        let few = stretches.0.get(what).copied().unwrap_or_default();
        let a_step = many.saturating_sub(few) / steps;
        println!("{:>15.1} ms  {what}", a_step.as_secs_f64() * 1e3);
    }
    // Each verifier has the same to do: red, green and refactor of each step.
    let each = |all: &mut Vec<Option<Duration>>| {
        all.sort();
        all[ROUNDS / 2].unwrap().as_secs_f64() * 1e3 / (3 * LONG) as f64
    };
    let (auto, off) = (each(&mut verifiers.0), each(&mut verifiers.1));
    println!(
        "a verifier, from its launch to its end: {auto:.1} ms in the sandbox, {off:.1} ms without: {:.2} ×",
        auto / off
    );
    println!("a whole run of {SHORT} step, with preflight, plan and pull request:");
    show("veri", once);
}

fn show(what: &str, cost: Cost) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{what:<6} {:>8.1} ms cpu {:>8.1} ms wall",
        ms(cost.cpu),
        ms(cost.wall)
    );
}

/// The floor script on a repository of its own.
struct Floor {
    dir: tempfile::TempDir,
}

impl Floor {
    fn new() -> Floor {
        let dir = tempfile::tempdir().unwrap();
        let status = Floor::script("setup", dir.path(), FILES).status().unwrap();
        assert!(status.success());
        Floor { dir }
    }

    fn script(command: &str, dir: &Path, count: usize) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/floor.sh");
        let mut sh = Command::new("sh");
        sh.arg(script).arg(command).arg(dir).arg(count.to_string());
        sh
    }

    /// Runs steps, syncing each event before the script goes on, as a journal must be.
    fn run(&self, steps: usize) -> Cost {
        measured(|| {
            let mut events = File::create(self.dir.path().join("events.jsonl")).unwrap();
            let mut child = Floor::script("run", self.dir.path(), steps)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut answer = child.stdin.take().unwrap();
            for line in BufReader::new(child.stdout.take().unwrap()).lines() {
                writeln!(events, "{}", line.unwrap()).unwrap();
                events.sync_data().unwrap();
                writeln!(answer).unwrap();
            }
            assert!(child.wait().unwrap().success());
        })
    }
}

/// A whole run of veri on an issue of so many steps, with or without a sandbox.
fn veri(steps: usize, sandbox: &str) -> (Cost, Spent) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { dir.path().join(name) };
    let repo = path("repo");
    for folder in ["repo/src", "repo/tests", "home", "forge/issues/1"] {
        fs::create_dir_all(path(folder)).unwrap();
    }
    for n in 0..FILES {
        fs::write(repo.join(format!("src/f{n}.txt")), format!("file {n}\n")).unwrap();
    }
    fs::write(repo.join("src/state.sh"), "n=0\n").unwrap();
    fs::write(repo.join("tests/t0.sh"), "[ $n -ge 0 ]\n").unwrap();
    fs::write(
        repo.join("suite.sh"),
        "set -e; . ./src/state.sh; for t in tests/*.sh; do [ ! -e \"$t\" ] || . \"./$t\"; done\n",
    )
    .unwrap();
    fs::write(
        path("home/.gitconfig"),
        "[user]\nname = f\nemail = f@x\n[gc]\nauto = 0\n[maintenance]\nauto = false\n",
    )
    .unwrap();
    fs::write(
        path("forge/issues/1/issue.md"),
        "---\ntitle: Count\n---\n\nThe state counts up.\n",
    )
    .unwrap();
    fs::create_dir_all(path("home/.config/veri")).unwrap();
    fs::write(
        path("home/.config/veri/config.toml"),
        format!("sandbox = \"{sandbox}\"\n"),
    )
    .unwrap();
    fs::write(path("agent"), agent(steps)).unwrap();
    fs::set_permissions(path("agent"), fs::Permissions::from_mode(0o755)).unwrap();
    let command = |program: &str| {
        let mut command = Command::new(program);
        command
            .current_dir(&repo)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", path("home"))
            .env("VERI_HOME", path("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null());
        command
    };
    for args in [
        &["init", "-q", "-b", "main", "."][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "base"],
    ] {
        assert!(command("git").args(args).status().unwrap().success());
    }
    let mut tdd = command(env!("CARGO_BIN_EXE_veri"));
    tdd.args(["tdd", "1", "--test-cmd", "sh suite.sh", "--forge"])
        .arg(format!("dir:{}", path("forge").display()))
        .arg("--agent")
        .arg(format!("command:{}", path("agent").display()));
    let mut said = None;
    let cost = measured(|| said = Some(tdd.output().unwrap()));
    let spent = spent(&path("state"));
    let said = said.unwrap();
    assert!(
        said.status.success(),
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
    (cost, spent)
}

/// Wall time by what was being done, from the journal's own clock: each stretch ends with the line that tells
/// the outcome of what an `intent` announced.
fn spent(state: &Path) -> Spent {
    let home = fs::read_dir(state).unwrap().next().unwrap().unwrap();
    let lines = veri::journal::read(&home.path().join("work/issue-1/.tdd/events.jsonl")).unwrap();
    let mut spent = Spent::new();
    let mut doing = "";
    for pair in lines.windows(2) {
        let [line, next] = pair else { continue };
        if line.fields.contains_key("intent") {
            doing = line.text("intent");
        } else if line.fields.contains_key("input") {
            doing = "between";
        }
        let at = |line: &veri::event::Line| -> jiff::Timestamp { line.ts.parse().unwrap() };
        let took = at(next).duration_since(at(line));
        let name = match (doing, line.actor.as_str()) {
            ("launch", actor) => format!("launch {actor}"),
            (doing, _) => doing.to_owned(),
        };
        *spent.entry(name).or_default() += took.unsigned_abs();
    }
    spent
}

/// An agent that needs no time: shell builtins alone, one process.
fn agent(steps: usize) -> String {
    let list: Vec<String> = (1..=steps)
        .map(|k| format!("{{\"title\":\"{k}\",\"criteria\":[\"AC1\"]}}"))
        .collect();
    format!(
        "#!/bin/sh\ncase $VERI_ROLE-$VERI_PHASE in\n\
         planner-*) echo '{{\"nonce\":\"'$VERI_NONCE'\",\"criteria\":[{{\"id\":\"AC1\",\"text\":\"it counts\",\
         \"quote\":\"The state counts up.\"}}],\"steps\":[{}]}}';;\n\
         developer-red) echo \"[ \\$n -ge $VERI_STEP ]\" > tests/t$VERI_STEP.sh;;\n\
         developer-green) echo \"n=$VERI_STEP\" > src/state.sh;;\n\
         developer-refactor) echo \"n=$VERI_STEP # plain\" > src/state.sh;;\n\
         verifier-*) echo '{{\"nonce\":\"'$VERI_NONCE'\",\"verdict\":\"approve\",\"reasons\":[]}}';;\nesac\n",
        list.join(",")
    )
}
