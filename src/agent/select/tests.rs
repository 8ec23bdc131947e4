use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

struct House {
    dir: TempDir,
    repository: Vec<PathBuf>,
}

impl House {
    fn new() -> House {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["repo/bin dir", "bin", "elsewhere"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let repository = vec![dir.path().join("repo")];
        House { dir, repository }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn program(&self, path: &str, mode: u32) -> PathBuf {
        let path = self.path(path);
        fs::write(&path, "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn select(&self, wanted: &Wanted) -> anyhow::Result<Selected> {
        let path = self.path("bin");
        let origin = Origin {
            relative_to: &self.path("repo"),
            repository: &self.repository,
            path: path.as_os_str(),
            aside: &self.path("aside/agents"),
        };
        Agent::select(wanted, origin)
    }

    fn named(&self, name: &str) -> anyhow::Result<Selected> {
        self.select(&Wanted {
            name: name.into(),
            ..Wanted::default()
        })
    }

    fn refusal(&self, wanted: &Wanted) -> String {
        let error = self.select(wanted).unwrap_err();
        let bail = error.downcast_ref::<Bail>().expect("a bail");
        assert_eq!(bail.cause, Cause::AgentUnavailable);
        bail.detail.clone()
    }
}

fn command(argv: &[&str]) -> Wanted {
    let command_argv = argv.iter().map(|arg| (*arg).to_owned()).collect();
    Wanted {
        name: "command".into(),
        command_argv,
        ..Wanted::default()
    }
}

#[test]
fn a_program_outside_the_repository_is_run_where_it_is() {
    let house = House::new();
    let agent = house.program("elsewhere/agent", 0o755);
    for name in [
        "command:../elsewhere/agent".to_owned(),
        format!("command:{}", agent.display()),
    ] {
        let selected = house.named(&name).unwrap();
        assert_eq!(
            fs::canonicalize(&selected.agent.argv()[0]).unwrap(),
            agent.canonicalize().unwrap()
        );
        assert_eq!(selected.said, Vec::<String>::new());
    }
}

#[test]
fn a_bare_name_is_found_on_path_and_arguments_follow() {
    let house = House::new();
    let agent = house.program("bin/my-agent", 0o755);
    let mut wanted = command(&["my-agent", "--fast", "repo"]);
    wanted.args = vec!["-v".into()];
    wanted.credentials = vec!["KEY".into()];
    let selected = house.select(&wanted).unwrap();
    assert_eq!(
        selected.agent.argv(),
        [
            agent.as_os_str(),
            "--fast".as_ref(),
            "repo".as_ref(),
            "-v".as_ref()
        ]
    );
    assert_eq!(selected.agent.credentials(), ["KEY"]);
}

#[test]
fn a_program_in_the_repository_is_copied_aside_and_a_leaf_cannot_change_what_runs() {
    let house = House::new();
    let agent = house.program("repo/bin dir/my agent", 0o755);
    let selected = house.named("command:./bin dir/my agent").unwrap();
    let copy = PathBuf::from(&selected.agent.argv()[0]);
    assert!(copy.starts_with(house.path("aside/agents")), "{copy:?}");
    fs::write(&agent, "evil").unwrap();
    assert_eq!(fs::read(&copy).unwrap(), b"#!/bin/sh\nexit 0\n");
    assert_eq!(
        fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
        0o755
    );
    assert!(
        selected.said[0].contains("lies in the repository"),
        "{:?}",
        selected.said
    );
    assert!(selected.said[0].contains("files beside it are not copied"));
}

#[test]
fn a_copy_that_was_tampered_with_is_put_right_at_the_next_start() {
    let house = House::new();
    house.program("repo/agent", 0o755);
    let copy = house.named("command:./agent").unwrap().agent.argv()[0].clone();
    fs::write(&copy, "evil").unwrap();
    assert_eq!(
        house.named("command:./agent").unwrap().agent.argv()[0],
        copy
    );
    assert_eq!(fs::read(&copy).unwrap(), b"#!/bin/sh\nexit 0\n");
}

#[test]
fn a_script_given_to_an_interpreter_is_copied_aside_too() {
    let house = House::new();
    house.program("bin/python3", 0o755);
    house.program("repo/agent.py", 0o644);
    let selected = house
        .select(&command(&["python3", "./agent.py", "./no-such-file"]))
        .unwrap();
    let argv = selected.agent.argv();
    assert!(
        Path::new(&argv[1]).starts_with(house.path("aside")),
        "{argv:?}"
    );
    assert_eq!(argv[2], "./no-such-file");
}

#[test]
fn links_in_the_repository_are_resolved_and_links_into_it_are_copied() {
    let house = House::new();
    let outside = house.program("elsewhere/agent", 0o755);
    symlink(&outside, house.path("repo/out")).unwrap();
    let selected = house.named("command:./out").unwrap();
    assert_eq!(
        Path::new(&selected.agent.argv()[0]),
        outside.canonicalize().unwrap()
    );

    symlink(house.program("repo/agent", 0o755), house.path("bin/in")).unwrap();
    let selected = house.select(&command(&["in"])).unwrap();
    assert!(Path::new(&selected.agent.argv()[0]).starts_with(house.path("aside")));
}

#[test]
fn what_cannot_be_run_is_unavailable_and_says_what_to_do() {
    let house = House::new();
    house.program("repo/plain", 0o644);
    for (wanted, part) in [
        (
            Wanted {
                name: "command:./plain".into(),
                ..Wanted::default()
            },
            "not executable: chmod +x",
        ),
        (
            Wanted {
                name: "command:./none".into(),
                ..Wanted::default()
            },
            "No such file",
        ),
        (
            Wanted {
                name: "command:./bin dir".into(),
                ..Wanted::default()
            },
            "is not a file",
        ),
        (
            Wanted {
                name: "command:".into(),
                ..Wanted::default()
            },
            "names no program",
        ),
        (
            Wanted {
                name: "command:missing".into(),
                ..Wanted::default()
            },
            "not on PATH",
        ),
        (command(&[]), "[agents.command]"),
        (
            Wanted {
                name: "claude".into(),
                ..Wanted::default()
            },
            "through `command`",
        ),
        (
            Wanted {
                name: "codex".into(),
                ..Wanted::default()
            },
            "make that executable",
        ),
        (Wanted::default(), "no agent is chosen"),
    ] {
        let detail = house.refusal(&wanted);
        assert!(detail.contains(part), "{wanted:?} gave {detail}");
    }
}
