//! Titles, paths and ledgers that people and planners really write, and those that somebody writes on purpose.

use crate::scene::{Agent, Scene, VERI, finish};
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// An agent for any plan: the n-th red tests a function that the n-th green adds.
fn counting_agent(scene: &Scene, titles: &[&str]) -> Agent {
    let steps: Vec<_> = titles
        .iter()
        .map(|t| json!({"title": t, "criteria": ["AC1"]}))
        .collect();
    let plan = json!({
        "nonce": "NONCE",
        "criteria": [{"id": "AC1", "text": "greet takes a name", "quote": "prints `hello Ann`"}],
        "steps": steps,
    });
    let file = scene.path("plan.json");
    fs::write(&file, plan.to_string()).unwrap();
    Agent {
        plan: format!("sed \"s/NONCE/$VERI_NONCE/\" '{}'", file.display()),
        red:
            "n=$(ls tests | wc -l); echo \". src/lib.sh; [ \\\"\\$(f$n)\\\" = $n ]\" > tests/t$n.sh"
                .to_owned(),
        green: "n=$(($(ls tests | wc -l) - 1)); echo \"f$n() { echo $n; }\" >> src/lib.sh"
            .to_owned(),
        ..Agent::default()
    }
}

#[test]
fn titles_are_data_wherever_they_go() {
    let scene = Scene::new();
    let trace = scene.path("trace");
    let trace = trace.display();
    let first = format!("$(touch {trace}) `touch {trace}` \"q\" 'q'; touch {trace} #");
    let long: String = "é🦀 "
        .chars()
        .chain("x".repeat(200).chars())
        .take(120)
        .collect();
    let titles = [
        first.as_str(),
        "# leading, *bold* | cell <!-- veri --> <b>x</b> [a](b) @someone closes #7 ...",
        &long,
        "-m (AC1) {{ 7*7 }} %s%n \\n ${HOME} [no test: x] ..",
    ];
    let quoted = json!(format!("# {first} | {} …", "t".repeat(120))).to_string();
    scene.issue(
        &format!("title: {quoted}"),
        "`greet Ann` prints `hello Ann`.\n",
    );
    scene.write(".veri.toml", "[cycle]\nrefactor = \"off\"\n");
    scene.agent(&counting_agent(&scene, &titles));
    scene.tdd(&[]).expect(0);
    let mut wanted = vec!["plan: issue 42 in 4 steps"];
    wanted.extend(titles);
    assert_eq!(scene.subjects(), wanted);
    assert!(!scene.path("trace").exists(), "a title was run");
    // The ledger says them back.
    let ledger = scene.worktree().join(".tdd/issue-42.md");
    let shown = scene
        .veri(&["ledger", "show", ledger.to_str().unwrap(), "--json"])
        .expect(0);
    let shown: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    let steps: Vec<&str> = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["title"].as_str().unwrap())
        .collect();
    assert_eq!(steps, titles);
    scene
        .veri(&["ledger", "current", ledger.to_str().unwrap()])
        .expect(3);
    // In the thread and the pull request nobody is called, and nothing else is closed.
    let pull = scene.pull().unwrap();
    let all = format!("{pull}\n{}", scene.comments().join("\n"));
    assert!(
        !all.contains("@someone") && !all.contains("closes #7"),
        "{all}"
    );
    assert!(pull.contains("Closes #42"), "{pull}");
    scene.nothing_is_left_running();
}

/// A name with everything that a folder or file may have in it, and that few programs expect.
const ODD: &[u8] = b"- o'dd \"\xff\xe9 $(touch trace) [a] {b}\n";

#[test]
fn folders_and_files_may_have_any_name() {
    let mut scene = Scene::new();
    let file = |name: &[u8]| scene.repo().join(OsStr::from_bytes(name));
    fs::write(file(b"-n"), "leading dash\n").unwrap();
    fs::write(file(b"caf\xe9 \"x\"\n.txt"), "one\n").unwrap();
    fs::write(file(b":(top)x"), "pathspec magic\n").unwrap();
    fs::create_dir(file(b"d\xff r")).unwrap();
    fs::write(file(b"d\xff r/--help"), "x\n").unwrap();
    scene.commit_all("odd names");
    let repo = scene.path("").join(OsStr::from_bytes(ODD));
    fs::rename(scene.repo(), &repo).unwrap();
    let state = scene.path("").join(OsStr::from_bytes(b"-state \xfe"));
    scene.env.push(("VERI_HOME".into(), state.clone().into()));
    let good = Agent::default();
    scene.agent(&Agent {
        // Changed, removed, renamed and new files with such names.
        green: format!(
            "{}\ncase \"$VERI_STEP\" in greet*) for f in caf*; do echo two > \"$f\"; done; rm -- -n; mv d*/--help ./-x; printf new > \"$(printf '\\351\\377 new')\";; esac",
            good.green
        ),
        ..good
    });
    let run = |more: &[&str]| {
        let mut command = scene.command(VERI);
        command
            .args(scene.arguments())
            .args(more)
            .current_dir(&repo);
        finish(command)
    };
    run(&["--plan-only"]).expect(0);
    run(&[]).expect(0).says("done: ");
    let mut git = scene.command("git");
    let out = git
        .current_dir(&repo)
        .args(["ls-tree", "-r", "-z", "--name-only", "tdd/issue-42"])
        .output()
        .unwrap();
    let files: Vec<&[u8]> = out.stdout.split(|b| *b == 0).collect();
    for there in [
        &b"-x"[..],
        b"caf\xe9 \"x\"\n.txt",
        b":(top)x",
        b"\xe9\xff new",
    ] {
        assert!(
            files.contains(&there),
            "{:?}",
            String::from_utf8_lossy(there)
        );
    }
    assert!(!files.contains(&&b"-n"[..]) && !files.contains(&&b"d\xff r/--help"[..]));
    for args in [
        &["status", "42"][..],
        &["log", "--issue", "42"],
        &["discarded", "42"],
        &["clean", "42"],
    ] {
        let mut command = scene.command(VERI);
        command.args(args).current_dir(&repo);
        finish(command).expect(0);
    }
    assert!(!scene.path("trace").exists() && !repo.join("trace").exists());
    scene.nothing_is_left_running();
}

/// The ledger in the run's worktree.
fn ledger(scene: &Scene) -> PathBuf {
    scene.worktree().join(".tdd/issue-42.md")
}

#[test]
fn a_ledger_with_windows_line_ends_and_notes_keeps_every_byte_but_the_ticks() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let text = fs::read_to_string(ledger(&scene)).unwrap();
    let edited =
        format!("\u{feff}{text}\n## Notes\n\nBy me:  \n\n```\n- [ ] 3. not a step (AC1)\n```\n")
            .replace('\n', "\r\n");
    fs::write(ledger(&scene), &edited).unwrap();
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "ledger: edited by hand",
            "greet takes a name",
            "bye says bye"
        ]
    );
    let ticked = edited
        .replace("- [ ] 1.", "- [x] 1.")
        .replace("- [ ] 2.", "- [x] 2.");
    assert_eq!(fs::read_to_string(ledger(&scene)).unwrap(), ticked);
    let committed = scene
        .command("git")
        .args(["show", "tdd/issue-42:.tdd/issue-42.md"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(committed.stdout).unwrap(), ticked);
}

#[test]
fn a_hand_made_tick_is_honoured_and_an_untick_has_the_step_done_again() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let edit = |from: &str, to: &str| {
        let text = fs::read_to_string(ledger(&scene)).unwrap();
        assert!(text.contains(from), "{from:?} is not in\n{text}");
        fs::write(ledger(&scene), text.replace(from, to)).unwrap();
    };
    edit("- [ ] 1.", "- [X] 1.");
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "ledger: edited by hand",
            "bye says bye"
        ]
    );
    let pull = scene.pull().unwrap();
    assert!(pull.to_lowercase().contains("by hand"), "{pull}");
    edit("- [X] 1.", "- [ ] 1.");
    scene.tdd(&[]).expect(0);
    assert_eq!(
        scene.subjects()[3..],
        ["ledger: edited by hand", "greet takes a name"]
    );
}

#[test]
fn a_step_renamed_by_hand_makes_its_approved_test_stale() {
    let scene = Scene::new();
    let good = Agent::default();
    // Stuck in green, once red is approved.
    scene.agent(&Agent {
        green: "exit 1".to_owned(),
        ..Agent::default()
    });
    scene.write(".veri.toml", "[limits]\nrevisions = 0\n");
    scene.tdd(&[]).bails("revise-exhausted");
    let text = fs::read_to_string(ledger(&scene)).unwrap();
    fs::write(
        ledger(&scene),
        text.replace("1. greet takes a name", "1. greet takes any name"),
    )
    .unwrap();
    let prompts = scene.agent_keeping_prompts(&good);
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out
            .contains("the approved test no longer fits the ledger"),
        "{}",
        ran.out
    );
    assert_eq!(
        scene.subjects(),
        [
            "plan: issue 42 in 2 steps",
            "ledger: edited by hand",
            "greet takes any name",
            "bye says bye"
        ]
    );
    let first = fs::read_to_string(prompts.join("developer-1")).unwrap();
    assert!(first.contains("greet takes any name"), "{first}");
    let kept = scene.veri(&["discarded", "42"]).expect(0);
    assert!(kept.out.contains("changed by hand"), "{}", kept.out);
}

#[test]
fn a_ledger_that_cannot_be_read_is_named_by_line_and_column_and_never_rewritten() {
    let scene = Scene::new();
    scene.tdd(&["--plan-only"]).expect(0);
    let good = fs::read_to_string(ledger(&scene)).unwrap();
    let line = 1 + good
        .lines()
        .position(|l| l.starts_with("- [ ] 2."))
        .unwrap();
    let prompts = scene.agent_keeping_prompts(&Agent::default());
    for (from, to, place) in [
        ("- [ ] 2. ", "- [ ] ", format!("line {line}, column 7")),
        ("- [ ] 2. ", "- [?] 2. ", format!("line {line}, column 4")),
        ("- [ ] 2. ", "- [ ] 1. ", format!("line {line}, column 7")),
        (
            "bye says bye (AC2)",
            "bye says bye (AC9)",
            format!("line {line}, column "),
        ),
        ("<!-- veri ledger v1 -->", "", "line ".to_owned()),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        fs::write(ledger(&scene), &bad).unwrap();
        let ran = scene
            .tdd(&[])
            .bails("plan-invalid")
            .says("issue-42.md")
            .says("run again");
        assert!(ran.err.contains(&place), "{place:?} is not in\n{}", ran.err);
        assert_eq!(
            fs::read_to_string(ledger(&scene)).unwrap(),
            bad,
            "the ledger was rewritten"
        );
    }
    fs::write(ledger(&scene), b"\xff\xfe").unwrap();
    scene
        .tdd(&[])
        .bails("plan-invalid")
        .says("line 1, column 1");
    assert_eq!(fs::read(ledger(&scene)).unwrap(), b"\xff\xfe");
    assert_eq!(
        fs::read_dir(prompts).unwrap().count(),
        0,
        "a leaf was launched"
    );
    // Mended, it goes on.
    fs::write(ledger(&scene), good).unwrap();
    scene.tdd(&[]).expect(0);
}
