//! Whether what a build tool made of an older version can come under test.

use crate::ground::ground;
use crate::project::{Project, env, has_python, launch};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use veri::ground::{Ended, Ground, Launch};

/// Runs a command in a ground as a suite is run; gives what it printed.
fn suite(ground: &Ground, command: &str) -> String {
    let output = ground.records().join("said");
    ground.settle_clock();
    let ended = launch(&Launch {
        name: "suite".to_owned(),
        argv: ["sh", "-c", command].map(OsString::from).to_vec(),
        cwd: ground.path().to_owned(),
        env: env(),
        output: output.clone(),
        wall: Duration::from_secs(60),
        records: ground.records().to_owned(),
    })
    .unwrap();
    let said = fs::read_to_string(output).unwrap();
    assert_eq!(ended, Ended::Code(0), "{said}");
    said
}

fn modified(path: &Path) -> SystemTime {
    path.metadata().unwrap().modified().unwrap()
}

#[test]
fn python_runs_what_is_laid_after_edits_of_the_same_size_within_a_second() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let tree = |x: &str| {
        let code = format!("x = {x}\n");
        project.tree(&[(".gitignore", "__pycache__/\n"), ("d/m.py", &code)])
    };
    let without = project.tree(&[(".gitignore", "__pycache__/\n"), ("d/k", "")]);
    let mut ground = ground(&project);
    let mut cached = 0;
    // There and back, twice on end without a suite between, and once by way of a tree that does not have it.
    for steps in [
        &[tree("1")][..],
        &[tree("2")],
        &[tree("1")],
        &[tree("2"), tree("3")],
        &[without, tree("4")],
        &[tree("1"), without, tree("5")],
    ] {
        for step in steps {
            ground.bring_to(&project.repo, *step).unwrap();
        }
        let laid = fs::read_to_string(ground.path().join("d/m.py")).unwrap();
        cached += usize::from(ground.path().join("d/__pycache__").exists());
        let said = suite(
            &ground,
            "cd d && python3 -c 'import m; print(\"x =\", m.x)'",
        );
        assert_eq!(said, laid);
    }
    assert!(cached >= 3, "byte code outlived the laying: {cached}");
}

#[test]
fn what_a_suite_wrote_and_built_from_is_told_from_what_is_laid_in_its_place() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let tree = project.tree(&[(".gitignore", "__pycache__/\n"), ("m.py", "x = 1\n")]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    // It puts the old time back, as snapshot tools do, or takes the file away altogether.
    for end in ["touch -d @7 m.py", "rm m.py", "true"] {
        let wrote = "rm -rf __pycache__; echo 'x = 9' > m.py; python3 -c 'import m; print(m.x)'";
        assert_eq!(suite(&ground, &format!("{wrote}; {end}")), "9\n");
        ground.bring_to(&project.repo, tree).unwrap();
        assert_eq!(suite(&ground, "python3 -c 'import m; print(m.x)'"), "1\n");
    }
}

#[test]
fn a_source_is_newer_than_what_was_built_before_it_and_older_than_what_is_built_from_it() {
    let project = Project::new();
    let tree = |text: &str| project.tree(&[(".gitignore", "target\n"), ("a.c", text), ("b.c", "")]);
    let mut ground = ground(&project);
    let [source, output] = ["a.c", "target/a.o"].map(|path| ground.path().join(path));
    for (text, before) in [("1", false), ("2", true), ("1", true)] {
        ground.bring_to(&project.repo, tree(text)).unwrap();
        if before {
            assert!(modified(&source) > modified(&output));
        }
        suite(&ground, "mkdir -p target; cat a.c b.c > target/a.o");
        assert!(modified(&output) > modified(&source));
    }
}

#[test]
fn one_file_that_is_edited_twice_within_a_second_does_not_hold_up_the_others() {
    let project = Project::new();
    let tree = |n: u32| project.tree(&[("same", &n.to_string()), (&format!("new{n}"), "")]);
    let mut ground = ground(&project);
    let now = || {
        let probe = project.beside("probe");
        fs::write(&probe, "").unwrap();
        modified(&probe)
    };
    // A file that no other stood at the place of never gets a time ahead of the clock.
    for n in 0..4 {
        ground.bring_to(&project.repo, tree(n)).unwrap();
        let ahead = modified(&ground.path().join(format!("new{n}"))).duration_since(now());
        // File systems stamp with the kernel's tick, which lags the clock by up to 10 ms.
        assert!(ahead.unwrap_or_default() < Duration::from_millis(20));
    }
}

#[test]
fn another_process_that_takes_the_ground_over_knows_what_was_removed_from_it() {
    let project = Project::new();
    let with = |text: &str| project.tree(&[("d/m.py", text), ("k", "")]);
    let without = project.tree(&[("k", "")]);
    let mut ground = self::ground(&project);
    ground.bring_to(&project.repo, with("1")).unwrap();
    let file = ground.path().join("d/m.py");
    for text in ["2", "1", "2"] {
        ground.settle_clock();
        let before = file.metadata().unwrap().mtime();
        ground.bring_to(&project.repo, without).unwrap();
        drop(ground);
        ground = self::ground(&project);
        ground.bring_to(&project.repo, with(text)).unwrap();
        assert!(file.metadata().unwrap().mtime() > before);
    }
}
