//! A disk that is full: at whatever moment, under whatever folder. The run says so; with room made, the same command
//! comes to what an undisturbed run comes to.

use crate::alone::{Disk, alone};
use crate::lanes::each;
use crate::scene::{Agent, Scene};
use crate::watching::{Came, ONE_STEP, noting, plain};

/// How many cases run side by side.
const LANES: usize = 6;

/// The folders of a scene that a disk may be full under: veri's home (journal, copy, worktree, grounds), the person's
/// repository (objects, refs, indexes), the forge, and what is temporary.
const FOLDERS: [&str; 4] = ["state", "repo", "forge", "tmp"];

/// Where a disk fills up, when, and how much is left on it then.
#[derive(Debug, Clone)]
enum Case {
    /// From the start there is so much room, in KiB.
    Size(&'static str, u64),
    /// From the start there is room for so many more files.
    Files(&'static str, u64),
    /// An agent or the suite fills it at its first launch, and leaves so many KiB.
    Filled(&'static str, &'static str, u64),
}

/// Everybody who can fill a disk.
const WHO: [&str; 7] = [
    "planner-plan",
    "developer-red",
    "verifier-red",
    "developer-green",
    "verifier-green",
    "developer-refactor",
    "suite",
];

/// One step with a refactor that is committed; whoever is told to fills a disk first.
fn story() -> Scene {
    let mut scene = plain();
    // Verifiers, too, fill disks that are none of theirs.
    scene.configure_alone("sandbox = \"off\"\n");
    let d = scene.path("notes").display().to_string();
    let fill = |me: &str| {
        format!(
            "d='{d}'; if [ -e \"$d/fill-{me}\" ]; then read -r at left < \"$d/fill-{me}\"; rm \"$d/fill-{me}\"\n\
             dd if=/dev/zero of=\"$at/filler\" bs=4k 2>/dev/null; truncate -s \"-${{left}}K\" \"$at/filler\"; fi\n"
        )
    };
    let agent = Agent {
        plan: ONE_STEP.to_owned(),
        refactor: r#"echo 'greet() { echo "hello${1:+ $1}"; }' > src/lib.sh"#.to_owned(),
        ..Agent::default()
    };
    let with = |me: &str, moves: String| format!("{}{moves}", fill(me));
    scene.agent(&noting(Agent {
        plan: with("planner-plan", agent.plan),
        red: with("developer-red", agent.red),
        green: with("developer-green", agent.green),
        refactor: with("developer-refactor", agent.refactor),
        verify: format!(
            "me=$VERI_ROLE-$VERI_PHASE\n{}{}",
            fill("$me").replace("$me", "${me}"),
            agent.verify
        ),
    }));
    let tests = std::fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    // The same text in every scene: the folder is told to it by the environment.
    scene.env.push(("SCENE".into(), d.clone().into()));
    let fill = fill("suite").replacen(
        &format!("d='{}'", scene.path("notes").display()),
        "d=\"$SCENE\"",
        1,
    );
    scene.write("run-tests.sh", format!("{fill}{tests}"));
    scene.commit_all("the suite can fill a disk");
    scene
}

/// A comparison of what is the same however often anybody was asked.
fn essence(scene: &Scene) -> (String, String, Vec<String>, usize, String) {
    let came = Came::of(scene);
    let pull = came.pull.unwrap_or_default();
    let pull = pull.lines().filter(|l| !l.contains("agents started"));
    let pull: Vec<&str> = pull.collect();
    (
        came.branch,
        came.ledger,
        came.refs,
        came.pulls,
        pull.join("\n"),
    )
}

fn disturb(case: &Case, reference: &(String, String, Vec<String>, usize, String)) -> bool {
    let scene = story();
    let (folder, options) = match case {
        Case::Size(folder, kib) => (*folder, Some(("size", *kib))),
        Case::Files(folder, files) => (*folder, Some(("nr_inodes", *files))),
        Case::Filled(folder, who, left) => {
            let text = format!("{} {left}\n", scene.path(folder).display());
            std::fs::write(scene.note(&format!("fill-{who}")), text).unwrap();
            (*folder, None)
        }
    };
    let disk = Disk::over(&scene, folder, "size=64m,nr_inodes=100000");
    match options {
        Some(("size", kib)) => disk.again(&format!("size={}k", disk.used().0 + kib)),
        Some((what, files)) => disk.again(&format!("{what}={}", disk.used().1 + files)),
        None => {}
    }
    let ran = scene.tdd(&[]);
    let struck = ran.code != Some(0);
    if struck {
        let ran = ran.bails("storage-failed");
        assert!(ran.err.contains("make room"), "{}", ran.err);
    }
    scene.nothing_is_left_running();
    let _ = std::fs::remove_file(scene.path(folder).join("filler"));
    disk.again("size=256m,nr_inodes=100000");
    if struck {
        scene.tdd(&[]).expect(0);
    }
    assert_eq!(essence(&scene), *reference);
    struck
}

#[allow(clippy::print_stdout)] // how many struck is for whoever looks
fn all(cases: &[Case]) {
    let scene = story();
    scene.tdd(&[]).expect(0);
    let reference = essence(&scene);
    let name = |case: &Case| format!("{case:?}");
    let struck = each("full disks", LANES, cases, name, |case| {
        disturb(case, &reference)
    });
    let (struck, all) = (
        struck.into_iter().filter(|struck| *struck).count(),
        cases.len(),
    );
    println!("{struck} of {all} full disks ended a run");
    assert!(struck * 2 > all, "{struck} of {all} struck");
}

/// Every case there is: sizes in steps of a page at first, then wider.
fn every() -> Vec<Case> {
    let mut cases = Vec::new();
    for folder in FOLDERS {
        for kib in [
            4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 288, 320,
            400, 480,
        ] {
            cases.push(Case::Size(folder, kib));
        }
        for files in [
            0, 1, 2, 3, 4, 5, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96,
        ] {
            cases.push(Case::Files(folder, files));
        }
        for who in WHO {
            for left in [0, 4, 8, 16, 40] {
                cases.push(Case::Filled(folder, who, left));
            }
        }
    }
    cases
}

#[test]
fn a_disk_that_is_full_at_whatever_moment_costs_nothing_but_the_time_until_there_is_room() {
    if !alone(
        "full_disk::a_disk_that_is_full_at_whatever_moment_costs_nothing_but_the_time_until_there_is_room",
    ) {
        return;
    }
    let cases: Vec<Case> = every().into_iter().step_by(9).collect();
    all(&cases);
}

#[test]
#[ignore = "the whole matrix takes minutes: cargo test --test it -- --ignored every_full_disk"]
fn every_full_disk() {
    if alone("full_disk::every_full_disk") {
        all(&every());
    }
}
