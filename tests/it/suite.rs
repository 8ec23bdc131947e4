//! Running suites in a ground, with real processes.

use crate::project::{Project, env, has_python, launch};
use std::fs;
use std::time::Duration;
use veri::ground::{Ended, Ground, Kind};
use veri::suite::SuiteEnd;
use veri::suite::run::{Ran, SuiteAsk, run};

const MINUTE: Duration = Duration::from_secs(60);

fn suite(ground: &mut Ground, command: &str) -> Ran {
    let tree = ground.tree().unwrap();
    let env = env();
    let mut ask = SuiteAsk {
        ground,
        tree,
        name: "suite",
        command,
        before: None,
        env: &env,
        timeout: MINUTE,
    };
    run(&mut ask, &mut launch).unwrap()
}

#[test]
fn a_suite_runs_on_exactly_its_tree_and_what_it_changes_is_said() {
    let project = Project::new();
    let tree = project.tree(&[("a.txt", "1"), (".gitignore", "*.log\n")]);
    let mut ground = Ground::acquire(&project.home(), Kind::Check).unwrap();
    ground.bring_to(&project.repo, tree).unwrap();
    let mut env = env();
    env.push(("CARGO_TARGET_DIR".into(), "/elsewhere".into()));
    let command = "echo out; echo err >&2; echo \"$VERI_SLOT ${CARGO_TARGET_DIR-unset} $(cat)\"; echo 2 > a.txt; touch x.log left; exit 3";
    let mut ask = SuiteAsk {
        ground: &mut ground,
        tree,
        name: "suite",
        command,
        before: Some("echo ready > before"),
        env: &env,
        timeout: MINUTE,
    };
    let ran = run(&mut ask, &mut launch).unwrap();
    assert_eq!(ran.run.end, SuiteEnd::Failed { code: 3 });
    assert_eq!(
        fs::read_to_string(&ran.run.log).unwrap(),
        "out\nerr\n0 unset \n"
    );
    assert!(
        !ran.run.log.starts_with(ask.ground.path()),
        "the log is outside the tree under test"
    );
    assert_eq!(ran.altered, [b"a.txt"]);
    assert_eq!(ran.debris, [&b"before"[..], b"left"]);
    let error = run(&mut ask, &mut launch).unwrap_err();
    assert!(error.to_string().contains("a.txt differs"), "{error}");
    ask.ground.bring_to(&project.repo, tree).unwrap();
    ask.before = Some("echo no database; exit 9");
    let error = run(&mut ask, &mut launch).unwrap_err().to_string();
    assert!(
        error.contains("no database") && error.contains("exit code 9"),
        "{error}"
    );
}

#[test]
fn stale_byte_code_of_a_same_size_edit_is_never_what_is_tested() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let tree = |value| {
        let code = format!("VALUE = {value}\n");
        project.tree(&[
            ("pkg.py", &code),
            ("check.py", "import pkg\nprint(pkg.VALUE)\n"),
            (".gitignore", "__pycache__/\n"),
        ])
    };
    let mut ground = Ground::acquire(&project.home(), Kind::Check).unwrap();
    for value in [1, 2, 3] {
        ground.bring_to(&project.repo, tree(value)).unwrap();
        let ran = suite(&mut ground, "python3 check.py");
        let said = fs::read_to_string(&ran.run.log).unwrap();
        assert_eq!(said, format!("{value}\n"));
        assert!(
            ground.path().join("__pycache__").is_dir(),
            "byte code was kept"
        );
    }
}

#[test]
fn a_cargo_suite_tests_the_tree_it_was_brought_to_with_a_warm_build() {
    if !crate::installed::cargo() {
        return;
    }
    let project = Project::new();
    let tree = |sum: &str| {
        let code = format!(
            "pub fn add(a: u8, b: u8) -> u8 {{ {sum} }}\n#[test]\nfn adds() {{ assert_eq!(add(1, 2), 3); }}\n"
        );
        project.tree(&[
            (
                "Cargo.toml",
                "[package]\nname = \"sum\"\nedition = \"2021\"\n[workspace]\n",
            ),
            (
                "Cargo.lock",
                "version = 4\n[[package]]\nname = \"sum\"\nversion = \"0.0.0\"\n",
            ),
            ("src/lib.rs", &code),
            (".gitignore", "/target\n"),
        ])
    };
    let cargo = |ground: &mut Ground| {
        let home: Vec<_> = std::env::vars_os()
            .filter(|(name, _)| {
                ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"]
                    .iter()
                    .any(|k| name == k)
            })
            .collect();
        let tree = ground.tree().unwrap();
        let mut ask = SuiteAsk {
            ground,
            tree,
            name: "suite",
            command: "cargo test --offline --lib --no-fail-fast",
            before: None,
            env: &home,
            timeout: MINUTE,
        };
        run(&mut ask, &mut launch).unwrap().run.end
    };
    let mut ground = Ground::acquire(&project.home(), Kind::Check).unwrap();
    for (sum, expected) in [
        ("a + b", SuiteEnd::Passed),
        ("a - b", SuiteEnd::Failed { code: 101 }),
        ("a + b", SuiteEnd::Passed),
        ("a * b", SuiteEnd::Failed { code: 101 }),
    ] {
        ground.bring_to(&project.repo, tree(sum)).unwrap();
        assert_eq!(cargo(&mut ground), expected, "{sum}");
    }
}

#[test]
fn a_stop_while_the_database_is_reset_ends_the_suite_before_it_begins() {
    let project = Project::new();
    let tree = project.tree(&[("a", "1")]);
    let mut ground = Ground::acquire(&project.home(), Kind::Check).unwrap();
    ground.bring_to(&project.repo, tree).unwrap();
    let mut launched = Vec::new();
    let mut ask = SuiteAsk {
        ground: &mut ground,
        tree,
        name: "suite",
        command: "true",
        before: Some("reset"),
        env: &[],
        timeout: MINUTE,
    };
    let ran = run(&mut ask, &mut |launch| {
        launched.push(launch.name.clone());
        Ok(Ended::Stopped)
    })
    .unwrap();
    assert_eq!(ran.run.end, SuiteEnd::Stopped);
    assert_eq!(launched, ["before"]);
}

#[test]
fn a_pipe_that_a_suite_leaves_where_git_looks_for_rules_holds_nobody() {
    let project = Project::new();
    let tree = project.tree(&[("a", "1"), (".gitignore", "target/\n")]);
    let mut ground = Ground::acquire(&project.home(), Kind::Check).unwrap();
    ground.bring_to(&project.repo, tree).unwrap();
    let ran = suite(
        &mut ground,
        "rm .gitignore; mkdir -p new/er; mkfifo .gitignore new/.gitignore new/er/.gitignore; ln -s ../.gitignore new/link",
    );
    assert_eq!(ran.run.end, SuiteEnd::Passed);
    assert!(ran.altered.contains(&b".gitignore".to_vec()), "{ran:?}");
    ground.bring_to(&project.repo, tree).unwrap();
    assert!(!ground.path().join("new").exists());
}
