//! Titles, paths and ledgers that people and planners really write, and those that somebody writes on purpose.

use crate::scene::{Agent, Scene, VERI, finish};
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

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
    // Short wherever the temporary folder is: a title has at most 120 characters.
    let first = "$(touch ~/trace) `touch ~/trace` \"q\" 'q'; touch ~/trace #";
    let long: String = "é🦀 "
        .chars()
        .chain("x".repeat(200).chars())
        .take(120)
        .collect();
    let titles = [
        first,
        "# leading, *bold* | cell <!-- veri --> <b>x</b> [a](b) @someone see #7 ...",
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
    assert!(!scene.path("home/trace").exists(), "a title was run");
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
        !all.contains("@someone") && !all.contains("see #7"),
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
