use super::*;

fn step() -> StepText {
    StepText {
        number: 2,
        title: "The refusal names the `rest`; $(touch x) # not a heading".into(),
        criteria: vec![("AC2".into(), "It names the remaining allowance".into())],
        no_test: None,
    }
}

struct Case {
    task: Task,
    attempt: u32,
    reopened: Vec<Reopen>,
    setback: Option<Setback>,
    start: Start,
    kept: Option<Kept>,
    cut_short: Option<CutShort>,
}

impl Case {
    fn first(task: Task) -> Case {
        Case {
            task,
            attempt: 1,
            reopened: vec![],
            setback: None,
            start: Start::FromCandidate,
            kept: None,
            cut_short: None,
        }
    }

    fn again(task: Task, setback: Setback) -> Case {
        Case {
            attempt: 2,
            setback: Some(setback),
            ..Case::first(task)
        }
    }

    fn render(&self) -> String {
        let issue = IssueText {
            title: "Refuse transfers".into(),
            body: "ISSUE-BODY".into(),
            comments: vec![],
        };
        let inputs = DeveloperInputs {
            task: self.task,
            issue: &issue,
            ledger: "# Issue 42: LEDGER\n",
            step: &step(),
            test_command: "cargo test --no-fail-fast",
            checks: &["cargo clippy".to_owned()],
            attempt: self.attempt,
            reopened: &self.reopened,
            setback: self.setback.as_ref(),
            start: self.start,
            kept: self.kept.as_ref(),
            cut_short: self.cut_short,
        };
        let prompt = DeveloperPrompt::render(&Templates::bundled(), &inputs).unwrap();
        assert_eq!(prompt.phase(), self.task.phase());
        assert_eq!(prompt.attempt(), self.attempt);
        assert_eq!(prompt.step_title(), step().title);
        prompt.text().to_owned()
    }
}

const TASKS: [Task; 4] = [Task::Red, Task::Green, Task::Refactor, Task::NoTest];

#[test]
fn every_task_gives_its_rules_first_and_then_the_data() {
    for task in TASKS {
        let text = Case::first(task).render();
        let rules = text.find("## Rules").unwrap();
        for data in [
            "ISSUE-BODY",
            "# Issue 42: LEDGER",
            "AC2: It names",
            "cargo test --no-fail-fast",
        ] {
            let at = text
                .find(data)
                .unwrap_or_else(|| panic!("{task:?} lacks {data}:\n{text}"));
            assert!(rules < at, "{task:?}: {data} before the rules");
        }
        for rule in ["Do not commit, stage", "`.tdd/`", "needs_user"] {
            assert!(text.contains(rule), "{task:?} does not say {rule}");
        }
        assert!(!text.contains("What came of the work so far"), "{task:?}");
        assert!(!text.contains("\n\n\n"), "{task:?} has holes:\n{text}");
    }
}

#[test]
fn each_task_forbids_what_its_phase_forbids() {
    for (task, rule) in [
        (Task::Red, "Do not implement the behaviour"),
        (Task::Green, "Tests stay byte for byte as they are"),
        (Task::Refactor, "Behaviour stays the same for every input"),
        (Task::NoTest, "Change no behaviour"),
    ] {
        assert!(Case::first(task).render().contains(rule), "{task:?}");
    }
    assert!(Case::first(Task::Green).render().contains("reopen_red"));
    assert!(!Case::first(Task::Refactor).render().contains("reopen_red"));
}

#[test]
fn the_green_prompt_reads_well() {
    let text = Case::again(
        Task::Green,
        Setback::CheckFailed("1 test failed: t::rest\n".into()),
    )
    .render();
    let from = text.find("## The step").unwrap();
    let tag = text
        .split("Text between `<")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    insta::assert_snapshot!(text[from..].replace(tag, "TAG"), @r"
    ## The step

    <TAG step>
    step 2: The refusal names the `rest`; $(touch x) # not a heading
    criteria:
    - AC2: It names the remaining allowance
    </TAG>

    ## How the tests are run

    <TAG test command>
    cargo test --no-fail-fast
    </TAG>

    Extra checks that must pass too:

    <TAG commands>
    cargo clippy
    </TAG>

    ## What came of the work so far (attempt 2)

    The change failed a check before anybody judged it. Its change is in your working folder: go on from there.

    What was seen:

    <TAG evidence>
    1 test failed: t::rest
    </TAG>

    ## The issue

    <TAG issue>
    title: Refuse transfers

    ISSUE-BODY
    </TAG>

    ## The ledger: all steps, done and to come

    <TAG ledger>
    # Issue 42: LEDGER
    </TAG>
    ");
}

#[test]
fn every_setback_says_what_happened() {
    for (setback, part) in [
        (Setback::Rejected(vec![]), "was rejected"),
        (Setback::CheckFailed("EVIDENCE".into()), "EVIDENCE"),
        (Setback::Refused("HOOK SAYS".into()), "HOOK SAYS"),
        (Setback::Failed("exit code 7".into()), "exit code 7"),
        (Setback::NothingChanged, "changed no file"),
    ] {
        for task in TASKS {
            let text = Case::again(task, setback.clone()).render();
            assert!(
                text.contains("(attempt 2)") && text.contains(part),
                "{task:?} {setback:?}:\n{text}"
            );
            assert!(
                !text.contains("\n\n\n"),
                "{task:?} {setback:?} has holes:\n{text}"
            );
        }
    }
}

#[test]
fn reasons_counterexamples_kept_work_and_the_last_words_reach_the_developer_as_data() {
    let reasons = vec![
        RejectReason {
            text: "Only 100 is refused".into(),
            counterexample: Some("--- a\n+++ b".into()),
        },
        RejectReason {
            text: "Message is empty".into(),
            counterexample: None,
        },
    ];
    let mut case = Case::again(Task::Green, Setback::Rejected(reasons));
    case.start = Start::Fresh;
    case.kept = Some(Kept {
        reference: "refs/veri/issue-42/discarded/1".into(),
    });
    let text = case.render();
    let tag = text
        .split("Text between `<")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    for (what, words) in [
        ("reasons", "1. Only 100 is refused"),
        ("reasons", "--- a\n+++ b"),
        ("reasons", "2. Message is empty"),
    ] {
        let open = text.find(&format!("<{tag} {what}>")).unwrap();
        let close = open + text[open..].find(&format!("</{tag}>")).unwrap();
        assert!(
            text[open..close].contains(words),
            "{words} is not in {what}"
        );
    }
    assert!(text.contains("git diff HEAD refs/veri/issue-42/discarded/1"));
    assert!(text.contains("nothing of that is in it"));
}

#[test]
fn a_launch_that_was_cut_short_is_told_beside_the_reasons_of_the_last_refusal() {
    for (cut_short, part) in [
        (CutShort::Stuck(900), "within 900 seconds"),
        (CutShort::Silent, "no sign of life"),
        (CutShort::CutOff, "cut off"),
    ] {
        for refused in [true, false] {
            let mut case = Case::first(Task::Green);
            case.setback = refused.then(|| Setback::CheckFailed("EVIDENCE".into()));
            case.cut_short = Some(cut_short);
            case.kept = Some(Kept {
                reference: "refs/veri/issue-42/discarded/1".into(),
            });
            let text = case.render();
            assert!(text.contains(part), "{text}");
            assert!(text.contains("discarded/1` shows it"), "{text}");
            assert_eq!(text.contains("EVIDENCE"), refused);
            assert_eq!(text.contains("go on from there"), refused);
            assert!(!text.contains("\n\n\n"), "holes:\n{text}");
        }
    }
}

#[test]
fn reopened_tests_are_told_in_red_alone() {
    for (task, told) in [(Task::Red, true), (Task::Green, false)] {
        let mut case = Case::first(task);
        case.reopened = vec![Reopen {
            test: "t::old".into(),
            why: "the limit is 5 now".into(),
        }];
        assert_eq!(
            case.render().contains("- t::old: the limit is 5 now"),
            told,
            "{task:?}"
        );
    }
}
