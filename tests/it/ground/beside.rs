//! What is in a ground beside the tree: the declared file, what setup made, what a suite leaves.

use super::{ground, read};
use crate::project::{Project, env, launch};
use std::fs;
use std::path::Path;
use std::time::Duration;
use veri::ground::{Setup, SetupAsk};

#[test]
fn the_declared_file_is_copied_kept_and_never_hides_a_tracked_one() {
    let project = Project::new();
    let tree = project.tree(&[("a", "1")]);
    let tracked = project.tree(&[(".env", "tracked")]);
    let env = project.beside("my.env");
    fs::write(&env, "PORT=1").unwrap();
    let mut ground = ground(&project);
    let one = ground.declare_env_file(&env, Path::new(".env")).unwrap();
    ground.bring_to(&project.repo, tree).unwrap();
    assert_eq!(read(&ground, ".env"), "PORT=1");
    fs::write(ground.path().join(".env"), "changed by a suite").unwrap();
    ground.bring_to(&project.repo, tree).unwrap();
    assert_eq!(read(&ground, ".env"), "PORT=1");
    assert!(ground.debris().unwrap().is_empty());
    fs::write(&env, "PORT=2").unwrap();
    assert_ne!(
        ground.declare_env_file(&env, Path::new(".env")).unwrap(),
        one
    );
    let error = ground.bring_to(&project.repo, tracked).unwrap_err();
    assert!(error.to_string().contains(".env"), "{error}");
    for place in ["/etc/x", "../x", ".git/config", ""] {
        assert!(
            ground.declare_env_file(&env, Path::new(place)).is_err(),
            "{place}"
        );
    }
}

#[test]
fn debris_is_what_a_run_leaves_and_git_does_not_ignore() {
    let project = Project::new();
    let tree = project.tree(&[(".gitignore", "*.log\n"), ("tests/a", "1")]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    for path in [
        "x.log",
        "tests/a.snap.new",
        "report/one.xml",
        "target/debug/y",
    ] {
        let path = ground.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let debris: Vec<String> = ground
        .debris()
        .unwrap()
        .into_iter()
        .map(|path| String::from_utf8(path).unwrap())
        .collect();
    assert_eq!(debris, ["report/one.xml", "target/", "tests/a.snap.new"]);
}

#[test]
fn setup_runs_again_only_when_a_lock_file_changes_and_what_it_made_is_kept() {
    let project = Project::new();
    let tree =
        |lock: &str, code: &str| project.tree(&[("package-lock.json", lock), ("src/a.js", code)]);
    let commands = ["cat package-lock.json > deps.txt; mkdir -p node_modules; echo x >> node_modules/n; echo r >> runs; echo broken >> src/a.js".to_owned()];
    let env = env();
    let ask = SetupAsk {
        commands: &commands,
        env: &env,
        timeout: Duration::from_secs(60),
    };
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree("1", "a")).unwrap();
    assert_eq!(ground.setup(&ask, &mut launch).unwrap(), Setup::Done);
    let key = ground.setup_key().to_owned();
    assert_eq!(read(&ground, "src/a.js"), "a", "put right after the setup");
    assert!(ground.debris().unwrap().is_empty());
    ground.bring_to(&project.repo, tree("1", "b")).unwrap();
    assert_eq!(ground.setup(&ask, &mut launch).unwrap(), Setup::Current);
    assert_eq!(read(&ground, "deps.txt"), "1");
    drop(ground);
    let mut ground = self::ground(&project);
    ground.bring_to(&project.repo, tree("2", "b")).unwrap();
    assert_eq!(ground.setup(&ask, &mut launch).unwrap(), Setup::Done);
    assert_ne!(ground.setup_key(), key);
    assert_eq!(read(&ground, "deps.txt"), "2");
    assert_eq!(
        read(&ground, "node_modules/n"),
        "x\n",
        "made anew, not added to"
    );
    assert_eq!(read(&ground, "runs"), "r\n");
}

#[test]
fn a_failing_setup_says_which_command_and_is_not_taken_for_done() {
    let project = Project::new();
    let tree = project.tree(&[("package-lock.json", "1")]);
    let commands = ["true".to_owned(), "echo no network; exit 7".to_owned()];
    let env = env();
    let ask = SetupAsk {
        commands: &commands,
        env: &env,
        timeout: Duration::from_secs(60),
    };
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    let Setup::Failed { command, log, .. } = ground.setup(&ask, &mut launch).unwrap() else {
        panic!("it failed");
    };
    assert_eq!(command, commands[1]);
    assert_eq!(fs::read_to_string(log).unwrap(), "no network\n");
    assert_eq!(ground.setup_key(), "");
}

#[test]
fn a_vendored_dependency_folder_is_part_of_the_tree_and_survives_a_setup() {
    let project = Project::new();
    let tree = project.tree(&[
        ("node_modules/dep/index.js", "1"),
        ("package-lock.json", "1"),
    ]);
    let commands = ["test -f node_modules/dep/index.js".to_owned()];
    let env = env();
    let ask = SetupAsk {
        commands: &commands,
        env: &env,
        timeout: Duration::from_secs(60),
    };
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    assert_eq!(ground.setup(&ask, &mut launch).unwrap(), Setup::Done);
    assert!(ground.verify_exact(tree).unwrap().is_empty());
}
