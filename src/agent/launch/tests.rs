use super::*;
use crate::blind::testing::{CLAIMS, Scene};
use crate::prompt::{DeveloperInputs, IssueText, PlannerInputs, Start, StepText, Task};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

struct Room {
    dir: TempDir,
    caller: Env,
    agent: Agent,
}

impl Room {
    fn new() -> Room {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("work/issue-42");
        fs::create_dir_all(&tree).unwrap();
        let caller = Env::from([
            ("PATH".into(), "/usr/bin".into()),
            ("NOTES".into(), tree.clone().into_os_string()),
            ("JAVA_HOME".into(), tree.into_os_string()),
        ]);
        let agent = Agent::Command {
            argv: vec!["/opt/agent".into(), "-x".into()],
            credentials: vec![],
        };
        Room { dir, caller, agent }
    }

    fn launch(&self, by: impl FnOnce(&Place<'_>) -> anyhow::Result<Launch>) -> Launch {
        let path = |name: &str| self.dir.path().join(name);
        by(&Place {
            caller: &self.caller,
            declared: &[],
            issue: 42,
            test_command: "cargo test",
            skill_commit: Oid::ZERO_SHA1,
            timeout: Duration::from_secs(900),
            cwd: &path("ground"),
            prompt: &path("prompt"),
            stdout: &path("out"),
            stderr: &path("err"),
        })
        .unwrap()
    }

    fn verifier(&self, scene: &Scene, claim: crate::role::Claim) -> Launch {
        let hidden = Hidden::new([self.dir.path().join("work/issue-42")]);
        let temp = self.dir.path().join("temp");
        let seclusion = Seclusion {
            hidden: &hidden,
            temp: &temp,
        };
        let (templates, nonce) = (Templates::bundled(), Nonce::from_bytes([1; 16]));
        let prompt = scene.prompt(claim);
        let launch = self.launch(|place| {
            verifier_launch(&self.agent, &prompt, &templates, &nonce, &seclusion, place)
        });
        for (name, value) in launch.env() {
            assert!(
                !hidden.named_in(&value.to_string_lossy()),
                "{name:?}={value:?}"
            );
        }
        assert!(!hidden.named_in(&fs::read_to_string(launch.stdin()).unwrap()));
        assert!(temp.is_dir());
        launch
    }
}

fn var(launch: &Launch, name: &str) -> Option<String> {
    launch
        .env
        .get(OsStr::new(name))
        .map(|value| value.to_string_lossy().into_owned())
}

#[test]
fn a_verifier_is_launched_with_its_prompt_its_nonce_and_no_attempt() {
    let room = Room::new();
    let mut scene = Scene::new();
    scene.issue_body = format!(
        "See {}/notes",
        room.dir.path().join("work/issue-42").display()
    );
    for claim in CLAIMS {
        let launch = room.verifier(&scene, claim);
        assert_eq!(launch.argv(), ["/opt/agent", "-x"].map(OsStr::new));
        assert_eq!(
            (launch.role(), launch.phase()),
            (Role::Verifier, claim.phase())
        );
        let nonce = "01".repeat(16);
        assert!(fs::read_to_string(launch.stdin()).unwrap().contains(&nonce));
        assert_eq!(var(&launch, "VERI_NONCE"), Some(nonce));
        assert_eq!(
            var(&launch, "VERI_STEP").as_deref(),
            Some("The refusal names the rest")
        );
        assert_eq!(var(&launch, "VERI_ATTEMPT"), None);
        assert_eq!(var(&launch, "NOTES"), None);
    }
}

#[test]
fn planner_and_developer_are_told_who_they_are() {
    let room = Room::new();
    let nonce = Nonce::from_bytes([2; 16]);
    let issue = IssueText {
        title: "T".into(),
        body: "B".into(),
        comments: vec![],
    };
    let templates = Templates::bundled();
    let plan = PlannerInputs {
        issue: &issue,
        test_command: "cargo test",
        max_steps: 12,
        no_test_forbidden: false,
        nonce: &nonce,
        schema: "{}",
        previous_error: None,
    };
    let plan = PlannerPrompt::render(&templates, &plan).unwrap();
    let launch = room.launch(|place| planner_launch(&room.agent, &plan, place));
    assert_eq!(var(&launch, "VERI_NONCE").as_deref(), Some(nonce.as_str()));
    assert_eq!(var(&launch, "VERI_PHASE").as_deref(), Some("plan"));
    assert_eq!(var(&launch, "VERI_STEP").as_deref(), Some(""));

    let step = StepText {
        number: 1,
        title: "It holds".into(),
        ..StepText::default()
    };
    let develop = DeveloperInputs {
        task: Task::NoTest,
        issue: &issue,
        ledger: "",
        step: &step,
        test_command: "cargo test",
        checks: &[],
        attempt: 2,
        reopened: &[],
        setback: None,
        start: Start::Fresh,
        kept: None,
        cut_short: None,
    };
    let develop = DeveloperPrompt::render(&templates, &develop).unwrap();
    let launch = room.launch(|place| developer_launch(&room.agent, &develop, place));
    assert_eq!(var(&launch, "VERI_ATTEMPT").as_deref(), Some("2"));
    assert_eq!(var(&launch, "VERI_PHASE").as_deref(), Some("green"));
    assert_eq!(var(&launch, "VERI_STEP").as_deref(), Some("It holds"));
    assert_eq!(var(&launch, "VERI_NONCE"), None);
    assert!(
        var(&launch, "NOTES").is_some(),
        "a developer keeps the caller's environment"
    );
    assert_eq!(fs::read_to_string(launch.stdin()).unwrap(), develop.text());
}

#[test]
fn a_prompt_is_for_this_user_alone_and_a_planted_link_is_not_followed() {
    let room = Room::new();
    let victim = room.dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let prompt = room.dir.path().join("prompt");
    std::os::unix::fs::symlink(&victim, &prompt).unwrap();
    write_private(&prompt, "text").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(
        fs::symlink_metadata(&prompt).unwrap().permissions().mode() & 0o777,
        0o600
    );
    write_private(&prompt, "other").unwrap();
    assert_eq!(fs::read_to_string(&prompt).unwrap(), "other");
}
