//! Leaves and suites that print a gibibyte as fast as they can: nobody's memory grows with it, and disk is bounded
//! while they do.
#![cfg(target_os = "linux")] // peak memory is read from /proc

use crate::scene::{APPROVE, Agent, PATIENCE, Scene, VERI};
use crate::watching::{ONE_STEP, plain};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const GIBIBYTE: u64 = 1 << 30;

/// What the conductor may take at most, in KiB; a shim must not take more either.
const PEAK: u64 = 40 << 10;

/// A gibibyte of lines.
const FLOOD: &str = "yes 'the quick brown fox jumps over the lazy dog' | head -c 1073741824";

/// The most of memory that each has taken, in KiB, and the most of disk that an output took, in bytes.
#[derive(Debug, Default)]
struct Peak {
    conductor: u64,
    shims: u64,
    disk: u64,
}

/// Looks at a running program and its shims until it has ended.
fn watched(child: &mut Child, outputs: &dyn Fn() -> u64) -> Peak {
    let began = Instant::now();
    let mut peak = Peak::default();
    while child.try_wait().unwrap().is_none() {
        // Gibibytes take what the disk and everybody else on the machine leave them.
        assert!(began.elapsed() < 5 * PATIENCE, "it never ends: {peak:?}");
        let pid = child.id();
        peak.conductor = peak.conductor.max(high_water(pid));
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        for shim in children.unwrap_or_default().split_whitespace() {
            let line = fs::read(format!("/proc/{shim}/cmdline")).unwrap_or_default();
            if line.split(|b| *b == 0).any(|word| word == b"__shim") {
                peak.shims = peak.shims.max(high_water(shim.parse().unwrap()));
            }
        }
        peak.disk = peak.disk.max(outputs());
        std::thread::sleep(Duration::from_millis(2));
    }
    peak
}

/// The largest resident size that a process has had, in KiB.
fn high_water(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.map_or(0, |l| {
        l.trim().trim_end_matches(" kB").trim().parse().unwrap()
    })
}

/// What the largest file of a folder takes on disk, in bytes.
fn largest(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let blocks = files.filter_map(|f| Some(f.metadata().ok()?.blocks()));
    blocks.max().unwrap_or_default() * 512
}

fn assert_small(peak: &Peak, cap: u64) {
    eprintln!("{peak:?}");
    assert!(peak.conductor > 0 && peak.conductor < PEAK, "{peak:?}");
    assert!(peak.shims > 0 && peak.shims < PEAK, "{peak:?}");
    // A shim looks every few milliseconds while output grows: what comes in between is on disk for so long.
    assert!(peak.disk > 0 && peak.disk < cap + GIBIBYTE / 2, "{peak:?}");
}

#[test]
fn a_leaf_that_prints_a_gibibyte_by_hand_takes_neither_memory_nor_disk() {
    let scene = Scene::bare();
    let mut command = scene.command(VERI);
    let script = format!("echo first; echo odd >&2; {FLOOD}; {FLOOD} >&2; echo last");
    command.args(["leaf", "run", "flood", "--output-mib", "64", "--"]);
    command.args(["sh", "-c", &script]).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let records = scene.repo().join(".tdd");
    let peak = watched(&mut child, &|| largest(&records));
    assert!(child.wait().unwrap().success());
    assert_small(&peak, 64 << 20);
    let exit = fs::read_to_string(records.join("flood.exit")).unwrap();
    let exit: serde_json::Value = serde_json::from_str(&exit).unwrap();
    assert_eq!(exit["truncated"], true);
    assert_eq!(exit["bytes"]["stdout"], GIBIBYTE + 11);
    assert_eq!(exit["bytes"]["stderr"], GIBIBYTE + 4);
    for (file, first, last) in [
        ("out", "first\nthe quick", "last\n"),
        ("err", "odd\nthe", ""),
    ] {
        let path = records.join(format!("flood.{file}"));
        // It ends within the bounds, however fast it came.
        assert!(fs::metadata(&path).unwrap().blocks() * 512 <= 64 << 20);
        let (head, tail) = ends(&path, 64);
        assert!(head.starts_with(first), "{head}");
        assert!(tail.ends_with(last) && tail.contains("fox"), "{tail}");
    }
}

/// The first and the last bytes of a file.
fn ends(path: &Path, bytes: u64) -> (String, String) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::open(path).unwrap();
    let mut both = [vec![0; bytes as usize], vec![0; bytes as usize]];
    file.read_exact_at(&mut both[0], 0).unwrap();
    let len = file.metadata().unwrap().len();
    file.read_exact_at(&mut both[1], len - bytes).unwrap();
    let [head, tail] = both.map(|b| String::from_utf8(b).unwrap());
    (head, tail)
}

#[test]
fn a_run_whose_leaves_and_suites_print_a_gibibyte_each_takes_no_memory() {
    let scene = plain();
    scene.write(".veri.toml", "[limits]\noutput_mib = 64\n");
    // One line without an end and with nothing in it that can be shown; once, so that the test does not take ages.
    let once = scene.note("flooded");
    let suite = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    let flood = format!(
        "[ -e '{0}' ] || {{ touch '{0}'; dd if=/dev/zero bs=1M count=1024 2>/dev/null; }}",
        once.display()
    );
    scene.write("run-tests.sh", format!("{flood}\n{suite}"));
    scene.commit_all("a suite that says a lot");
    let good = Agent::default();
    scene.agent(&Agent {
        plan: format!("{FLOOD}\n{ONE_STEP}"),
        green: format!("{FLOOD} >&2\n{}", good.green),
        verify: format!("[ $VERI_PHASE = green ] && {{ {FLOOD}; }}\n{APPROVE}"),
        ..good
    });
    let mut command = scene.command(VERI);
    command.args(scene.arguments());
    let said = scene.path("said");
    command.stderr(fs::File::create(&said).unwrap());
    command.stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let peak = watched(&mut child, &|| {
        let homes = fs::read_dir(scene.path("state")).into_iter().flatten();
        let runs = homes
            .flatten()
            .map(|home| home.path().join("work/issue-42/.tdd/runs"));
        runs.map(|runs| largest(&runs)).max().unwrap_or_default()
    });
    let said = fs::read_to_string(&said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert_small(&peak, 64 << 20);
    assert!(!said.contains("the quick brown fox"), "{said}");
    assert!(once.exists());
    scene.nothing_is_left_running();
}
