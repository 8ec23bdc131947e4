//! Whether the suite tests the ground's code, and what leads out of the ground when it does not.

use crate::project::{Project, env, git, has_python, launch};
use git2::Oid;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use veri::ground::project::Language;
use veri::ground::{Ground, Isolation, IsolationAsk, Kind, isolation};

struct Case<'a> {
    project: &'a Project,
    tree: Oid,
    command: &'a str,
    languages: &'a [Language],
    env: Vec<(OsString, OsString)>,
}

fn is_test(path: &[u8]) -> bool {
    path.starts_with(b"tests/")
}

impl Case<'_> {
    /// Proves isolation after `prepare` did what a setup would do.
    fn isolation(&self, prepare: impl FnOnce(&Path)) -> Isolation {
        let mut ground = Ground::acquire(&self.project.home(), Kind::Check).unwrap();
        ground.bring_to(&self.project.repo, self.tree).unwrap();
        prepare(ground.path());
        let checkouts = [self.project.checkout()];
        let ask = IsolationAsk {
            languages: self.languages,
            is_test: &is_test,
            commands: &[self.command],
            checkouts: &checkouts,
            env: &self.env,
        };
        let shown = ground
            .isolation(&ask, &mut |ground| {
                let env = ground.environment(&self.env);
                let ended = launch(&veri::ground::Launch {
                    name: "suite".into(),
                    argv: veri::ground::command::shell(self.command),
                    cwd: ground.path().to_owned(),
                    env,
                    output: ground.records().join("isolation.log"),
                    wall: Duration::from_secs(60),
                    records: ground.records().to_owned(),
                })?;
                Ok(veri::suite::SuiteEnd::of(&ended, Duration::from_secs(60)).trial())
            })
            .unwrap();
        assert!(ground.verify_exact(self.tree).unwrap().is_empty());
        assert_eq!(git(ground.path(), &["diff", "HEAD", "--stat"]), "");
        shown
    }
}

/// A package whose code says 1 in the tree, and lies in the person's checkout too.
fn python(project: &Project) -> Oid {
    let files = [
        ("src/pkg/__init__.py", "VALUE = 1\n"),
        ("tests/check.py", "import pkg\nassert pkg.VALUE == 1\n"),
        ("pyproject.toml", "[project]\nname='pkg'\n"),
    ];
    for (path, text) in files {
        let path = project.checkout().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    project.tree(&files)
}

fn with(name: &str, value: impl Into<OsString>) -> Vec<(OsString, OsString)> {
    let mut env = env();
    env.push((name.into(), value.into()));
    env
}

fn leads(isolation: &Isolation) -> &str {
    match isolation {
        Isolation::Leads { what } => what,
        other => panic!("nothing leads out: {other:?}"),
    }
}

#[test]
fn a_suite_that_needs_the_grounds_code_is_shown_to_test_it_and_the_code_is_put_back_later() {
    let project = Project::new();
    let tree = project.tree(&[
        ("lib.sh", "add() { echo $(($1 + $2)); }\n"),
        ("tests/t.sh", ". ./lib.sh\ntest \"$(add 1 2)\" = 3\n"),
    ]);
    let mut before = 0;
    let case = Case {
        project: &project,
        tree,
        command: "sh tests/t.sh",
        languages: &[],
        env: env(),
    };
    let shown = case.isolation(|root| before = root.join("lib.sh").metadata().unwrap().mtime());
    assert_eq!(shown, Isolation::Shown);
    let ground = project.home().join("ground/check");
    let after = ground.join("lib.sh").metadata().unwrap().mtime();
    // The unusable one was a second later than the first, and the real one a second later than that.
    assert!(after >= before + 2, "{before} {after}");
    let mode = ground.join("lib.sh").metadata().unwrap().mode();
    assert_eq!(
        mode & 0o777,
        ground.join("tests/t.sh").metadata().unwrap().mode() & 0o777
    );
}

#[test]
fn a_suite_that_needs_no_code_is_said_and_a_script_that_the_command_names_stays_usable() {
    let project = Project::new();
    let tree = project.tree(&[("lib.sh", "x=1\n"), ("run.sh", "exit 0\n")]);
    let case = Case {
        project: &project,
        tree,
        command: "sh ./run.sh",
        languages: &[],
        env: env(),
    };
    let shown = case.isolation(|_| {});
    let Isolation::NotShown { why } = shown else {
        panic!("{shown:?}");
    };
    assert!(why.contains("1 program file"), "{why}");
    let only = Case {
        tree: project.tree(&[("run.sh", "exit 0\n"), ("tests/a.sh", "")]),
        ..case
    };
    assert!(matches!(only.isolation(|_| {}), Isolation::NotShown { .. }));
}

#[test]
fn an_editable_install_in_the_grounds_environment_is_named() {
    let project = Project::new();
    let tree = python(&project);
    let source = project.checkout().join("src");
    let site = "lib/python3.11/site-packages";
    let url = format!(
        "{{\"url\":\"file://{}\",\"dir_info\":{{\"editable\":true}}}}",
        project.checkout().display()
    );
    let installs = [
        ("pkg.pth".to_owned(), format!("{}\n", source.display())),
        (
            "pkg.egg-link".to_owned(),
            format!("{}\n.\n", source.display()),
        ),
        (
            "__editable___pkg_finder.py".to_owned(),
            format!("MAPPING = {{'pkg': '{}/pkg'}}\n", source.display()),
        ),
        ("pkg-1.dist-info/direct_url.json".to_owned(), url),
    ];
    for (name, text) in installs {
        let case = Case {
            project: &project,
            tree,
            command: "true",
            languages: &[Language::Python],
            env: env(),
        };
        let shown = case.isolation(|root| {
            let venv = root.join(".venv");
            let path = venv.join(site).join(&name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(venv.join("pyvenv.cfg"), "").unwrap();
            fs::write(path, text).unwrap();
        });
        assert!(leads(&shown).contains("editable"), "{name}: {shown:?}");
        fs::remove_dir_all(project.home()).unwrap();
    }
}

#[test]
fn a_python_path_into_the_checkout_is_named_with_real_python() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let tree = python(&project);
    let case = Case {
        project: &project,
        tree,
        command: "python3 tests/check.py",
        languages: &[Language::Python],
        env: with("PYTHONPATH", project.checkout().join("src")),
    };
    assert!(leads(&case.isolation(|_| {})).contains("search path"));
    // The same suite with the ground's own code on the path is shown to test it.
    let own = Case {
        command: "PYTHONPATH=src python3 tests/check.py",
        env: env(),
        ..case
    };
    assert_eq!(own.isolation(|_| {}), Isolation::Shown);
}

#[test]
fn an_editable_install_in_an_active_environment_elsewhere_is_named() {
    let project = Project::new();
    let tree = python(&project);
    let site = project.beside("elsewhere/site");
    fs::create_dir_all(&site).unwrap();
    let source = project.checkout().join("src");
    fs::write(site.join("pkg.pth"), format!("{}\n", source.display())).unwrap();
    let case = Case {
        project: &project,
        tree,
        command: "true",
        languages: &[Language::Python],
        env: with("PYTHONPATH", site),
    };
    assert!(leads(&case.isolation(|_| {})).contains("pkg.pth"));
}

#[test]
fn a_linked_package_and_a_variable_with_the_checkouts_path_are_named() {
    let project = Project::new();
    let tree = project.tree(&[("a.js", "1"), ("package.json", "{}")]);
    let checkout = project.checkout();
    fs::create_dir_all(checkout.join("packages/p")).unwrap();
    let case = |env| Case {
        project: &project,
        tree,
        command: "true",
        languages: &[Language::JavaScript],
        env,
    };
    let linked = case(env()).isolation(|root| {
        fs::create_dir_all(root.join("node_modules/@scope")).unwrap();
        // A workspace's link stays inside; the other one does not.
        symlink("../a.js", root.join("node_modules/a")).unwrap();
        symlink(
            checkout.join("packages/p"),
            root.join("node_modules/@scope/p"),
        )
        .unwrap();
    });
    assert!(leads(&linked).contains("@scope/p"), "{linked:?}");
    fs::remove_dir_all(project.home()).unwrap();
    let variable = case(with("NODE_PATH", checkout.join("packages"))).isolation(|root| {
        fs::create_dir_all(root.join("node_modules")).unwrap();
        symlink("../a.js", root.join("node_modules/a")).unwrap();
    });
    assert!(leads(&variable).contains("NODE_PATH"), "{variable:?}");
}

#[test]
fn what_was_shown_is_remembered_per_base_setup_and_command_and_a_lead_is_not() {
    let home = tempfile::tempdir().unwrap();
    let home: PathBuf = home.path().to_owned();
    let lead = Isolation::Leads { what: "x".into() };
    isolation::remember(&home, "b", "s", "c", &lead).unwrap();
    assert_eq!(isolation::recall(&home, "b", "s", "c"), None);
    isolation::remember(&home, "b", "s", "c", &Isolation::Shown).unwrap();
    assert_eq!(
        isolation::recall(&home, "b", "s", "c"),
        Some(Isolation::Shown)
    );
    assert_eq!(isolation::recall(&home, "b", "other", "c"), None);
}
