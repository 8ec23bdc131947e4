//! What a planner may answer, and what becomes of each: asked again once with the precise error, or a question
//! for a person, whole.

use crate::scene::{Agent, PLAN, Ran, Scene};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The good plan, to be made worse.
fn plan() -> Value {
    json!({
        "nonce": "NONCE",
        "criteria": [
            {"id": "AC1", "text": "greet takes a name", "quote": "prints `hello Ann`"},
            {"id": "AC2", "text": "bye says bye", "quote": "`bye` prints `bye`"}
        ],
        "steps": [
            {"title": "greet takes a name", "criteria": ["AC1"]},
            {"title": "bye says bye", "criteria": ["AC2"]}
        ]
    })
}

/// Shell that prints a text with the launch's nonce for NONCE.
fn answer(scene: &Scene, text: &str) -> String {
    let file = scene.path("answer");
    fs::write(&file, text).unwrap();
    format!("sed \"s/NONCE/$VERI_NONCE/g\" '{}'", file.display())
}

fn launches(prompts: &Path, role: &str) -> usize {
    let names = fs::read_dir(prompts).unwrap().flatten();
    names
        .filter(|e| e.file_name().to_string_lossy().starts_with(role))
        .count()
}

/// A run whose planner always gives this answer: asked twice, then plan-invalid; the second prompt says why.
#[track_caller]
fn asked_again(scene: &Scene, planner: &str, why: &[&str]) -> Ran {
    let prompts = scene.agent_keeping_prompts(&Agent {
        plan: planner.to_owned(),
        ..Agent::default()
    });
    let mut ran = scene.tdd(&[]).bails("plan-invalid");
    assert_eq!(launches(&prompts, ""), 2, "{planner}");
    let second = fs::read_to_string(prompts.join("planner-2")).unwrap();
    for word in why {
        assert!(
            second.contains(word),
            "{word:?} is not in the second prompt:\n{second}"
        );
        ran = ran.says(word);
    }
    assert_eq!(scene.subjects(), [""; 0]);
    ran
}

#[test]
fn an_answer_that_is_no_plan_is_asked_again_once_with_the_precise_error() {
    let scene = Scene::new();
    let good = plan().to_string();
    let other = good.replace("bye says bye", "bye is said");
    for (planner, why) in [
        (
            "First the tests, then the code.".to_owned(),
            "no JSON object",
        ),
        (String::new(), "no JSON object"),
        (good.replace("\"NONCE\"", "null"), "nonce"),
        (good.replace("NONCE", "0123456789abcdef"), "nonce"),
        (
            format!("{good}\nor better:\n{other}"),
            "two JSON objects that differ",
        ),
        (
            good.replace("\"steps\"", "\"phases\""),
            "the answer has no `steps`",
        ),
    ] {
        asked_again(&scene, &answer(&scene, &planner), &[why]);
    }
    asked_again(
        &scene,
        &format!("{}\nexit 3", answer(&scene, &good)),
        &["exited with code 3"],
    );
    let comments = scene.comments();
    assert!(
        comments.iter().any(|c| c.contains("plan-invalid")),
        "{comments:?}"
    );

    // The same plan twice is one plan, prose and code fences around it are nothing; and a spent budget is new.
    let twice = format!("My plan:\n```json\n{good}\n```\nAgain, on one line: {good}\n");
    scene.agent(&Agent {
        plan: answer(&scene, &twice),
        ..Agent::default()
    });
    scene.tdd(&["--plan-only"]).expect(0);
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
}

#[test]
fn a_plan_that_does_not_hold_is_asked_again_once_with_every_fault_of_it() {
    let scene = Scene::new();
    let worse = |change: &dyn Fn(&mut Value)| {
        let mut plan = plan();
        change(&mut plan);
        answer(&scene, &plan.to_string())
    };
    asked_again(
        &scene,
        &worse(&|p| {
            p["steps"][1]["criteria"] = json!(["AC2", "AC9"]);
            p["steps"][0]["title"] = json!("bye says bye");
            p["criteria"][0]["quote"] = json!("prints `hello World`");
        }),
        &[
            "\"AC9\", which the plan does not have",
            "steps 1 and 2 have the same title",
            "the quote of AC1 does not stand in the issue",
        ],
    );
    asked_again(
        &scene,
        &worse(&|p| {
            let step = |n| json!({"title": format!("step {n}"), "criteria": ["AC1", "AC2"]});
            p["steps"] = (1..=13).map(step).collect();
        }),
        &["the plan has 13 steps, the limit is 12: split this issue"],
    );
    asked_again(
        &scene,
        &worse(&|p| p["steps"] = json!([])),
        &["the plan has no step"],
    );
    asked_again(
        &scene,
        &worse(&|p| p["steps"][0]["title"] = json!("two\nlines")),
        &["a control character (U+000A)"],
    );
}

#[test]
fn a_step_without_a_test_is_refused_where_that_is_forbidden() {
    let scene = Scene::new();
    scene.write(".veri.toml", "[plan]\nno_test = \"forbid\"\n");
    let mut untested = plan();
    untested["steps"][1]["no_test"] = json!("documentation only");
    asked_again(
        &scene,
        &answer(&scene, &untested.to_string()),
        &["plan.no_test forbids"],
    );
}

#[test]
fn a_plan_of_assumptions_alone_is_shown_to_a_person() {
    let scene = Scene::new();
    let mut assumed = plan();
    for criterion in assumed["criteria"].as_array_mut().unwrap() {
        criterion.as_object_mut().unwrap().remove("quote");
        criterion["inferred"] = json!("greetings are polite");
    }
    let prompts = scene.agent_keeping_prompts(&Agent {
        plan: answer(&scene, &assumed.to_string()),
        ..Agent::default()
    });
    scene
        .tdd(&[])
        .bails("needs-user")
        .says("bye says bye")
        .says("--plan FILE");
    assert_eq!(launches(&prompts, ""), 1);
    let comments = scene.comments().join("\n");
    assert!(
        comments.contains("greetings are polite") && comments.contains("bye says bye"),
        "{comments}"
    );
}

#[test]
fn a_planner_s_question_reaches_the_issue_whole_and_its_answer_the_planner() {
    let scene = Scene::new();
    let lines: Vec<String> = (1..=60)
        .map(|n| format!("{n}. Is the name of person {n} to be greeted, too?"))
        .collect();
    let question = format!("Which names?\n{}\nThat is all.", lines.join("\n"));
    let asks = json!({"nonce": "NONCE", "needs_user": question}).to_string();
    scene.agent(&Agent {
        plan: answer(&scene, &asks),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("needs-user").says(&question);
    let comments = scene.comments().join("\n");
    for line in question.lines() {
        // "1." would be a list to Markdown.
        let shown = line.replacen(". ", "\\. ", 1);
        assert!(comments.contains(&shown), "{shown:?} is not in\n{comments}");
    }
    assert!(comments.contains("veri tdd 42"), "{comments}");
    // The same question again does not fill the thread.
    let before = scene.comments().len();
    scene.tdd(&[]).bails("needs-user");
    assert_eq!(scene.comments().len(), before, "{:?}", scene.comments());

    let answered = scene.path("forge/issues/42/comments/900.md");
    fs::write(
        answered,
        "---\nauthor: pat\nauthor_association: OWNER\n---\n\nOnly Ann, never the others.\n",
    )
    .unwrap();
    let prompts = scene.agent_keeping_prompts(&Agent::default());
    scene.tdd(&["--plan-only"]).expect(0);
    let prompt = fs::read_to_string(prompts.join("planner-1")).unwrap();
    assert!(prompt.contains("Only Ann, never the others."), "{prompt}");
    assert!(
        !prompt.contains("That is all."),
        "veri's own comment is in the prompt:\n{prompt}"
    );
}

#[test]
fn a_person_s_plan_needs_no_planner_and_is_held_to_the_same_rules() {
    let scene = Scene::new();
    let prompts = scene.agent_keeping_prompts(&Agent {
        plan: "exit 1".to_owned(),
        ..Agent::default()
    });
    let file = scene.path("my plan.json");
    let file = file.to_str().unwrap();
    let tdd = |plan: &Value| {
        fs::write(file, plan.to_string()).unwrap();
        scene.tdd(&["--plan", file, "--plan-only"])
    };
    let mut bad = plan();
    bad["steps"][1]["criteria"] = json!(["AC9"]);
    tdd(&bad).bails("plan-invalid").says("\"AC9\"");
    let mut assumed = plan();
    assumed["criteria"] = json!([{"id": "AC1", "text": "x", "inferred": "y"}]);
    assumed["steps"] = json!([{"title": "x", "criteria": ["AC1"]}]);
    tdd(&assumed)
        .bails("needs-user")
        .says("Give one of them a `quote`");
    assert_eq!(scene.subjects(), [""; 0]);
    tdd(&plan()).expect(0);
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
    // Once there is a ledger it counts, and that is said.
    let ran = tdd(&bad).expect(0);
    assert!(
        ran.out.contains("the plan that was given is not used"),
        "{}",
        ran.out
    );
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
    assert_eq!(launches(&prompts, ""), 0, "a leaf was launched");
}

#[test]
fn a_run_that_was_only_planned_goes_on_from_its_plan() {
    let scene = Scene::new();
    let prompts = scene.agent_keeping_prompts(&Agent {
        plan: format!("[ $LAUNCHES = 1 ] || exit 1\n{PLAN}"),
        ..Agent::default()
    });
    scene
        .tdd(&["--plan-only"])
        .expect(0)
        .says("planned: `veri tdd 42` goes on");
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
    assert!(scene.pull().is_none());
    scene.tdd(&["--plan-only"]).expect(0);
    assert_eq!(scene.subjects(), ["plan: issue 42 in 2 steps"]);
    scene.tdd(&[]).expect(0).says("done: ");
    assert_eq!(launches(&prompts, "planner"), 1);
    assert_eq!(scene.subjects().len(), 3);
}

#[test]
fn a_plan_that_a_hook_kept_from_being_committed_is_not_made_again() {
    let scene = Scene::new();
    let prompts = scene.agent_keeping_prompts(&Agent::default());
    let file = crate::hooks::hook(
        &scene,
        "pre-commit",
        "git diff --cached --name-only | grep -q '^.tdd/' && { echo 'not .tdd/issue-42.md' >&2; exit 1; } || exit 0",
    );
    scene.tdd(&[]).bails("needs-user").says(".tdd/issue-42.md");
    assert_eq!(launches(&prompts, "planner"), 1);
    std::fs::remove_file(file).unwrap();
    scene.tdd(&[]).expect(0);
    assert_eq!(launches(&prompts, "planner"), 1);
    assert_eq!(scene.subjects()[0], "plan: issue 42 in 2 steps");
}
