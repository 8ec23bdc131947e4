//! Suites that wait for changes of files: ended at once, with the hint, wherever they are run; and those that only
//! seem to.

use crate::scene::{Agent, Ran, Scene, VERI, finish};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// Prints what vitest 4 printed when it was recorded, and waits as it does.
const WAITS: &str = r#"printf '\033[1m\033[42m PASS \033[49m\033[22m \033[32mWaiting for file changes...\033[39m\n'
printf '       \033[2mpress \033[22mh\033[2m to show help\033[22m, press q to quit\n'
sleep 1000"#;

impl Scene {
    /// `veri tdd 42` with another test command.
    fn tests_with(&self, test_command: &str, more: &[&str]) -> Ran {
        let mut arguments = self.arguments();
        *arguments.last_mut().expect("a test command") = test_command.to_owned();
        let mut command = self.command(VERI);
        command.args(arguments).args(more);
        finish(command)
    }

    /// What the journal says has waited for changes.
    fn waited(&self) -> Vec<Value> {
        let lines = self.lines();
        let fields = lines
            .iter()
            .filter_map(|l| l.fields.get("waits_for_changes"));
        fields.cloned().collect()
    }
}

#[test]
fn a_suite_that_waits_for_changes_is_ended_at_once_wherever_it_runs() {
    let scene = Scene::new();
    scene.write("watch.sh", WAITS);
    scene.write(
        "package.json",
        r#"{"scripts":{"test":"vitest --watch\u001b[31m"}}"#,
    );
    scene.commit_all("a suite that watches");
    let soon = |ran: Ran, began: Instant| {
        assert!(began.elapsed() < Duration::from_secs(60));
        scene.nothing_is_left_running();
        ran.bails("needs-user").says("vitest run")
    };

    // The test command itself.
    let began = Instant::now();
    let ran = scene.tests_with("sh watch.sh", &[]);
    let ran = soon(ran, began)
        .says("The suite `sh watch.sh` (from --test-cmd or VERI_TEST_CMD")
        .says("the script `test` of package.json is `vitest --watch[31m`")
        .says("waited for changes of files (vitest)");
    assert!(ran.out.contains("it waits for changes of files"), "{ran:?}");
    assert_eq!(scene.waited()[0]["tool"], "vitest");
    assert_eq!(scene.waited()[0]["instead"], "vitest run");

    // An extra check, what runs before a suite, and a setup.
    let began = Instant::now();
    let ran = scene.tdd(&["--check", "sh watch.sh"]);
    soon(ran, began).says("The extra check `sh watch.sh`");
    for (config, said) in [
        (
            "[ground]\nbefore_suite = \"sh watch.sh\"\n",
            "ground.before_suite, `sh watch.sh`",
        ),
        (
            "[ground]\nsetup = [\"sh watch.sh\"]\n",
            "could not be set up: `sh watch.sh`",
        ),
    ] {
        scene.write(".veri.toml", config);
        scene.commit_all("configured");
        let began = Instant::now();
        let ran = scene.tdd(&["--new-templates", "--check", "true"]);
        soon(ran, began).says(said);
    }
    assert_eq!(scene.git(&["branch", "--list", "tdd/*"]), "");
}

#[test]
fn a_developer_who_makes_the_suite_wait_for_changes_is_told_so_and_puts_it_right() {
    let scene = Scene::new();
    let green = Agent::default().green;
    let prompts = scene.agent_keeping_prompts(&Agent {
        green: format!(
            "{green}\necho : > src/script.sh\n\
             [ \"$VERI_ATTEMPT\" != 1 ] || cat > src/script.sh <<'W'\n{WAITS}\nW\n"
        ),
        ..Agent::default()
    });
    // The script behind the test command, as package.json has one.
    let suite = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    let suite = suite.replace("exit $fail", ". src/script.sh; exit $fail");
    scene.write("run-tests.sh", suite);
    scene.write("src/script.sh", ":\n");
    scene.commit_all("a script");
    let began = Instant::now();
    scene.tdd(&[]).expect(0);
    assert!(began.elapsed() < Duration::from_secs(100));
    assert_eq!(scene.waited().len(), 2, "once a step");
    let told = fs::read_dir(prompts)
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter(|prompt| prompt.contains("vitest run") && prompt.contains("waited for changes"))
        .count();
    assert_eq!(told, 2);
}

#[test]
fn a_suite_that_prints_that_it_waits_and_goes_on_or_works_is_left_alone() {
    let scene = Scene::new();
    let waits = WAITS.replace("sleep 1000", "");
    // It prints on in time; it works, silently, for longer than anybody waits; its processes come and go.
    scene.write(
        "seems.sh",
        format!(
            "{waits}\nsleep 1.5\n{waits}\nsleep 1.5\n{waits}\n\
             timeout 5 sh -c 'while :; do :; done'\n{waits}\n\
             for i in 1 2 3 4 5; do sleep 1; done\n"
        ),
    );
    scene.commit_all("a suite that tests a watcher");
    scene.tests_with("sh seems.sh", &["--plan-only"]).expect(0);
    assert_eq!(scene.waited(), Vec::<Value>::new());
}
