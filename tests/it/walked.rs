//! What somebody who has just found the program trips over: advice that has to work when it is followed to the letter.

use crate::scene::{Agent, REJECT, Scene, VERI, finish};
use crate::watching::{ONE_STEP, plain};
use std::fs;

/// A pull request without the numbers of the run, which grow with every start.
fn without_figures(pull: &str) -> &str {
    pull.split("<details><summary>Cost and time")
        .next()
        .unwrap()
}

#[test]
fn the_log_that_status_points_to_says_why_a_run_ended() {
    let scene = plain();
    scene.write("tests/broken.sh", "echo the moon is missing; false\n");
    scene.commit_all("broken");
    scene.tdd(&[]).bails("baseline-red");
    let status = scene.veri(&["status"]).expect(0).out;
    assert!(
        status.contains("see why with veri log --issue 42"),
        "{status}"
    );
    let log = scene.veri(&["log", "--issue", "42"]).expect(0).out;
    assert!(
        log.contains("bail: baseline-red (process)") && log.contains("the moon is missing"),
        "{log}"
    );
}

#[test]
fn a_finished_run_that_is_cleaned_and_started_again_keeps_its_proof() {
    let scene = plain();
    scene.tdd(&[]).expect(0);
    let (pull, comments) = (scene.pull().unwrap(), scene.comments());
    assert!(pull.contains("Nothing out of the ordinary"), "{pull}");
    let ran = scene.veri(&["clean"]).expect(0);
    assert!(ran.out.contains("removed  issue 42"), "{}", ran.out);
    scene.tdd(&[]).expect(0);
    let again = scene.pull().unwrap();
    assert_eq!(without_figures(&again), without_figures(&pull));
    let story = |comments: &[String]| comments[0].split_once("updated_at").unwrap().1.to_owned();
    let claims = |comments: &[String]| story(comments).matches("**Claim:").count();
    assert!(claims(&comments) > 1, "{comments:?}");
    assert_eq!(claims(&scene.comments()), claims(&comments));
    assert_eq!(scene.comments().len(), comments.len());
    assert!(!scene.comments()[0].contains("To go on"), "it is done");
    // And once more: the journal that is kept is the whole one.
    scene.veri(&["clean"]).expect(0);
    let log = scene.veri(&["log", "--issue", "42"]).expect(0).out;
    assert_eq!(log.matches("issue 42: starting").count(), 1, "{log}");
    assert_eq!(log.matches("issue 42: going on").count(), 1, "{log}");
}

#[test]
fn a_run_without_the_journal_of_the_first_leaves_the_comment_that_has_the_proof() {
    let scene = Scene::new();
    let good = Agent::default();
    scene.agent(&Agent {
        verify: format!(
            "case \"$VERI_STEP\" in bye*) {REJECT};; *) {};; esac",
            good.verify
        ),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("revise-exhausted");
    let first = scene.comments()[0].clone();
    assert!(first.contains("<summary>Step 1: greet"), "{first}");
    scene.veri(&["clean", "42", "--unfinished"]).expect(0);
    scene.agent(&good);
    // A start that ends before it has read the ledger does not take it for its own, either.
    fs::rename(scene.path("agent"), scene.path("gone")).unwrap();
    scene.tdd(&[]).bails("agent-unavailable");
    assert_eq!(scene.comments()[0], first);
    fs::rename(scene.path("gone"), scene.path("agent")).unwrap();
    scene.tdd(&[]).expect(0);
    assert_eq!(scene.comments()[0], first);
    let pull = scene.pull().unwrap();
    assert!(
        pull.contains("Step 1, committed by veri: proof in the issue's thread."),
        "{pull}"
    );
    let of_runs = |c: &String| c.contains("<!-- veri:issue-42:run");
    let later: Vec<String> = scene.comments().into_iter().filter(of_runs).collect();
    assert_eq!(later.len(), 2, "{later:?}");
    assert!(
        later[1].contains("<summary>Step 2: bye") && later[1].contains("in an earlier comment"),
        "{}",
        later[1]
    );
}

#[test]
fn in_the_checkout_the_same_command_goes_on_after_a_plan_that_was_none() {
    let scene = plain();
    scene.write("../bad.json", r#"{"criteria":[{"id":"AC1","text":"x","quote":"nobody said so"}],"steps":[{"title":"x","criteria":["AC1"]}]}"#);
    let bad = scene.path("bad.json");
    let bad = ["--here", "--plan", bad.to_str().unwrap()];
    scene
        .tdd(&bad)
        .bails("plan-invalid")
        .says("does not stand in the issue");
    let on = scene.git(&["rev-parse", "--abbrev-ref", "HEAD"]);
    assert_eq!(on, "tdd/issue-42", "the branch was taken before the plan");
    scene.tdd(&bad).bails("plan-invalid");
    scene.tdd(&["--here"]).expect(0);
    let pull = scene.pull().unwrap();
    assert!(pull.contains("\nbase: main\n"), "{pull}");
    // Back on main, where the ledger is not: what was done is known all the same, and there is nothing to clean.
    scene.git(&["switch", "-q", "main"]);
    let status = scene.veri(&["status"]).expect(0).out;
    assert!(
        status.contains("issue 42: done, 1 of 1 steps done"),
        "{status}"
    );
    assert!(!status.contains("veri clean"), "{status}");
    let clean = scene.veri(&["clean", "42"]).expect(0).out;
    assert!(clean.contains("it ran in this checkout"), "{clean}");
}

#[test]
fn here_beside_a_run_in_a_worktree_says_what_to_do_and_that_works() {
    let scene = plain();
    scene.tdd(&["--plan-only"]).expect(0).says("issue-42.md");
    scene
        .tdd(&["--here"])
        .bails("needs-user")
        .says("Leave --here out")
        .says("veri clean 42 --unfinished");
    scene.veri(&["clean", "42", "--unfinished"]).expect(0);
    scene.tdd(&["--here"]).expect(0);
    scene
        .tdd(&[])
        .bails("needs-user")
        .says("Check out another branch there, or add --here");
}

#[test]
fn a_question_on_the_terminal_says_where_it_is_answered() {
    let scene = plain();
    scene.agent(&Agent {
        plan: r#"echo "{\"nonce\":\"$VERI_NONCE\",\"needs_user\":\"red or blue?\"}""#.to_owned(),
        ..Agent::default()
    });
    let forge = scene.path("forge");
    scene
        .tdd(&[])
        .bails("needs-user")
        .says("red or blue?")
        .says(&format!(
            "Answer in a comment of issue 42 (the directory forge {})",
            forge.display()
        ));
    scene.write("../forge/issues/42/comments/3.md", "blue\n");
    scene.agent(&Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
}

#[test]
fn paths_in_the_file_mean_the_same_from_every_folder() {
    let scene = plain();
    scene.write(
        ".veri.toml",
        "forge = \"dir:../forge\"\nagents.command.argv = [\"../agent\"]\ntests.command = \"sh run-tests.sh\"\n",
    );
    scene.commit_all("veri");
    let mut command = scene.command(VERI);
    command.current_dir(scene.repo().join("tests"));
    command.args(["tdd", "42"]);
    finish(command).expect(0);
}

#[test]
fn an_agent_that_is_none_is_told_from_one_that_is_not_chosen_and_from_a_path() {
    let scene = plain();
    let forge = format!("dir:{}", scene.path("forge").display());
    let tdd = |more: &[&str]| {
        let mut arguments = vec!["tdd", "42", "--forge", &forge, "--test-cmd", "true"];
        arguments.extend(more);
        scene.veri(&arguments).bails("agent-unavailable")
    };
    tdd(&[]).says("no agent is chosen");
    tdd(&["--agent", "../agent"]).says("write `command:../agent`");
    tdd(&["--agent", "claude"]).says("the agent `claude` is not one that this version runs");
}

#[test]
fn outside_a_repository_every_command_says_so_and_none_calls_it_a_bug() {
    let scene = Scene::bare();
    for arguments in [
        &["tdd", "1"][..],
        &["status"],
        &["log"],
        &["stop"],
        &["clean"],
        &["discarded", "1"],
        &["doctor", "--test-cmd"],
    ] {
        let mut command = scene.command(VERI);
        command.current_dir(scene.path("tmp")).args(arguments);
        let ran = finish(command).expect(10);
        assert!(
            ran.err.contains("is not inside a git repository"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let scene = plain();
    scene.tdd(&["--plan-only"]).expect(0);
    scene.git(&["update-ref", "refs/veri/issue-42/discarded/x", "main"]);
    for arguments in [
        &["status"][..],
        &["log"],
        &["clean"],
        &["discarded", "42"],
        &["help", "files"],
        &["prompt", "schema", "events"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = scene.command(VERI);
        let out = command.args(arguments).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), &*said), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn help_on_a_command_is_its_help() {
    let scene = Scene::bare();
    for name in ["tdd", "clean", "ledger"] {
        let help = scene.veri(&["help", name]).expect(0).out;
        assert!(help.contains(&format!("Usage: veri {name}")), "{help}");
        assert_eq!(help, scene.veri(&[name, "--help"]).expect(0).out);
    }
}

#[test]
fn numbers_that_nobody_knows_are_told_from_nothing_at_all() {
    let scene = plain();
    scene.tdd(&["--plan-only"]).expect(0);
    let said = scene.veri(&["status", "7"]).expect(0).out;
    assert!(said.contains("no run of issue 7 is known here"), "{said}");
    let said = scene.veri(&["clean", "7"]).expect(0).out;
    assert!(said.contains("nothing  issue 7"), "{said}");
    assert!(said.contains("kept     ground"), "{said}");
    let said = scene.veri(&["clean", "7", "--grounds"]).expect(0).out;
    assert!(said.contains("removed  ground"), "{said}");
}

#[test]
fn a_mistyped_number_leaves_nothing_behind() {
    let scene = plain();
    scene.tdd(&["--plan-only"]).expect(0);
    let seven = |more: &[&str]| {
        let mut arguments = scene.arguments();
        arguments[1] = "7".to_owned();
        let mut command = scene.command(VERI);
        command.args(arguments).args(more);
        finish(command).bails("needs-user").says("is not there")
    };
    for _ in 0..2 {
        seven(&[]);
        let status = scene.veri(&["status"]).expect(0).out;
        assert!(!status.contains("issue 7"), "{status}");
        scene.veri(&["log"]).expect(0);
        let trees = scene.git(&["worktree", "list"]);
        assert_eq!(trees.lines().count(), 2, "{trees}");
        let work = fs::read_dir(scene.worktree().parent().unwrap()).unwrap();
        let left = work.flatten().map(|e| e.file_name().into_string().unwrap());
        let left: Vec<_> = left.filter(|n| n.contains("-7")).collect();
        assert_eq!(left, ["issue-7.lock"]);
    }
    seven(&["--here"]);
    scene.veri(&["log"]).expect(0);
    // An issue that was read and cannot be worked on is known, and so is why.
    scene.issue("title: Greet\nstate: closed", "Say hello.");
    scene.tdd(&[]).bails("needs-user");
    let status = scene.veri(&["status"]).expect(0).out;
    assert!(status.contains("issue 42: bailed (needs-user)"), "{status}");
}

#[test]
fn settings_that_change_under_a_run_are_said_to_come_too_late() {
    let scene = plain();
    let file = |text: &str| scene.write(".veri.toml", text);
    file("limits.revisions = 2\n");
    scene.tdd(&["--plan-only"]).expect(0);
    let late = "What this run began with stays in force; `--new-templates`";
    let same = scene.tdd(&["--plan-only"]).expect(0);
    assert!(!same.out.contains(late), "{}", same.out);
    for (text, said) in [
        (
            "limits.revisions = 1\n",
            ".veri.toml or config.toml have changed",
        ),
        ("limits.revisoins = 2\n", "did you mean `revisions`?"),
    ] {
        file(text);
        // Not finished, and finished.
        for _ in 0..2 {
            let ran = scene.tdd(&[]).expect(0);
            let line = ran.out.lines().find(|l| l.contains(late));
            assert!(line.expect(&ran.out).contains(said), "{}", ran.out);
        }
    }
    scene.tdd(&["--new-templates"]).bails("needs-user");
    file("limits.revisions = 1\n");
    scene.tdd(&["--new-templates"]).expect(0);
    let taken = scene.tdd(&[]).expect(0);
    assert!(!taken.out.contains(late), "{}", taken.out);
}

#[test]
fn what_the_setup_makes_is_said_and_is_nobodys_unfinished_work() {
    let scene = plain();
    scene.write(
        ".veri.toml",
        "ground.setup = [\"mkdir -p deps && for n in 1 2 3 4 5 6 7; do echo $n > deps/$n; done\"]\n",
    );
    scene.commit_all("setup");
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out
            .contains("clean checkouts are set up with: mkdir -p deps"),
        "{}",
        ran.out
    );
    // Each is said before the wait, not after it.
    let at = |words: &str| ran.out.find(words).expect(words);
    assert!(at("a clean checkout for the verifier is being set up") < at("verifier works"));
    assert!(at("the worktree for the developer is being set up") < at("developer works"));
    assert!(at("the clean checkout for the suite is being set up") < at("preflight passed"));
    let kept = scene.veri(&["discarded", "42"]).expect(0).out;
    assert!(kept.contains("nothing was put aside"), "{kept}");
}

#[test]
fn a_planner_that_answers_nonsense_is_named_and_its_words_are_found() {
    let scene = plain();
    scene.agent(&Agent {
        plan: "echo what a nice day".to_owned(),
        ..Agent::default()
    });
    let ran = scene
        .tdd(&[])
        .bails("plan-invalid")
        .says("the planner's answer could not be used 2 times in a row");
    let words = "What the planner printed last: ";
    let path = ran.err.split(words).nth(1).expect(words);
    let path = path.split(" (and .err)").next().unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "what a nice day\n");
    let told = &scene.comments()[0];
    assert!(told.contains("no step is planned yet"), "{told}");
}

#[test]
fn what_a_reviewer_is_told_to_run_shows_both_halves_of_a_step() {
    let scene = plain();
    scene.write(
        ".veri.toml",
        "ground.setup = [\"mkdir -p deps\", \"echo greet > deps/word\"]\n",
    );
    scene.write(
        "run-tests.sh",
        "grep -q greet deps/word || exit 99\nfor t in tests/*.sh; do sh -eu \"$t\" || exit 1; done\n",
    );
    scene.write(".gitignore", "/deps\n");
    scene.commit_all("dependencies");
    scene.tdd(&[]).expect(0);
    let pull = scene.pull().unwrap();
    let told = pull.split("## See for yourself").nth(1).unwrap();
    let commands: Vec<&str> = told.split("```").skip(1).step_by(2).take(2).collect();
    // A reviewer's own clone, where nothing was ever set up.
    scene.git(&["clone", "-q", ".", "../clone"]);
    for (told, code) in commands.iter().zip([0, 1]) {
        let told = told.strip_prefix("sh\n").expect("a shell's command");
        let mut command = scene.command("sh");
        command.current_dir(scene.path("clone"));
        let told = told.replace("--detach tdd/issue-42", "--detach origin/tdd/issue-42");
        let ran = finish({
            command.args(["-c", &told]);
            command
        });
        assert_eq!(ran.code, Some(code), "{told}\n{ran:?}");
    }
    assert_eq!(commands.len(), 2, "{told}");
}
