use super::super::facts::{Commit, Eye, EyeKind, FileChange, Tests};
use super::*;

/// A run of three steps as it may well go: one reject, one assumption, one step of documentation.
fn three_steps() -> PullFacts {
    let verdict = |claim, attempt, answer, reasons: &[&str]| Verdict {
        claim,
        attempt,
        answer,
        reasons: reasons.iter().map(|r| (*r).to_owned()).collect(),
    };
    let step = |number, title: &str, criteria: &[&str], kind| Step {
        number,
        title: title.into(),
        criteria: criteria.iter().map(|c| (*c).to_owned()).collect(),
        kind,
        commits: vec![],
        tests: vec![],
        files_changed: vec![],
        verdicts: vec![],
        revisions: 0,
        stuck_retries: 0,
        refactor: Refactor::Nothing,
    };
    let commit = |short: &str, subject: &str, phase| Commit {
        short: short.into(),
        subject: subject.into(),
        phase,
    };
    let file = |path: &str, added, removed| FileChange {
        path: path.into(),
        added,
        removed,
    };
    let tests = |path: &str, names: &[&str]| Tests {
        path: path.into(),
        names: names.iter().map(|n| (*n).to_owned()).collect(),
    };
    PullFacts {
        issue_number: 42,
        issue_ref: "#42".into(),
        issue_title: "Reject transfers above the daily limit".into(),
        branch: "tdd/issue-42".into(),
        base: "main".into(),
        test_command: "cargo test --no-fail-fast".into(),
        checks: vec!["cargo clippy -- -D warnings".into()],
        criteria: vec![
            Criterion {
                id: "AC1".into(),
                text: "A transfer that would pass the daily limit is refused".into(),
                inferred: None,
                steps: vec![1, 3],
            },
            Criterion {
                id: "AC2".into(),
                text: "The refusal names the remaining allowance".into(),
                inferred: Some("the issue says \"clear message\"".into()),
                steps: vec![2],
            },
        ],
        steps: vec![
            Step {
                commits: vec![
                    commit("1a2b3c4", "A transfer above the limit is refused", Phase::Green),
                    commit("2b3c4d5", "refactor: A transfer above the limit is refused", Phase::Refactor),
                ],
                tests: vec![tests("tests/limit.rs", &["refuses_above_the_limit", "accepts_the_limit_itself"])],
                files_changed: vec![file("src/bank.rs", 14, 2), file("tests/limit.rs", 25, 0)],
                verdicts: vec![
                    verdict(Claim::Red, 1, Answer::Reject, &["would pass if every transfer were refused"]),
                    verdict(Claim::Red, 2, Answer::Approve, &["the limit itself is now accepted"]),
                    verdict(Claim::Green, 1, Answer::Approve, &[]),
                    verdict(Claim::Refactor, 1, Answer::Approve, &["`check_limit` only moved"]),
                ],
                revisions: 1,
                stuck_retries: 1,
                refactor: Refactor::Done,
                ..step(1, "A transfer above the limit is refused", &["AC1"], StepKind::Tested)
            },
            Step {
                commits: vec![commit("3c4d5e6", "The refusal names the remaining allowance", Phase::Green)],
                tests: vec![tests("tests/limit.rs", &["names_the_allowance"])],
                files_changed: vec![file("src/bank.rs", 6, 1), file("tests/limit.rs", 12, 0)],
                verdicts: vec![
                    verdict(Claim::Red, 1, Answer::Approve, &[]),
                    verdict(Claim::Green, 1, Answer::Approve, &[]),
                ],
                ..step(2, "The refusal names the remaining allowance", &["AC2"], StepKind::Tested)
            },
            Step {
                commits: vec![commit("4d5e6f7", "The limits page explains the rule", Phase::Green)],
                files_changed: vec![file("docs/limits.md", 9, 0)],
                verdicts: vec![verdict(Claim::NoTest, 1, Answer::Approve, &["prose only"])],
                refactor: Refactor::Off,
                ..step(
                    3,
                    "The limits page explains the rule",
                    &["AC1"],
                    StepKind::NoTest("documentation only".into()),
                )
            },
        ],
        eye: vec![
            Eye {
                what: EyeKind::Stub,
                step: Some(1),
                detail: "src/bank.rs: an empty `daily_limit`, 3 lines".into(),
            },
            Eye {
                what: EyeKind::Dependencies,
                step: Some(2),
                detail: "Cargo.toml: `rust_decimal` added".into(),
            },
        ],
        merge: Merge::Clean { suite_passed: true },
        evidence_command: "git fetch origin tdd/issue-42 && git worktree add /tmp/issue-42 FETCH_HEAD && \
                           cd /tmp/issue-42 && cargo test --no-fail-fast"
            .into(),
        red_half: Some(crate::forge::facts::RedHalf {
            step: 1,
            command: "git worktree add --detach ../issue-42-step-1 1a2b3c4~1".into(),
        }),
        ledger_text: "# Issue 42: Reject transfers above the daily limit\n\n<!-- veri ledger v1 -->\n\n\
                      ## Steps\n\n- [x] 1. A transfer above the limit is refused (AC1)\n\
                      - [x] 2. The refusal names the remaining allowance (AC2)\n\
                      - [x] 3. The limits page explains the rule (AC1) [no test: documentation only]\n"
            .into(),
        cost_usd: Some(1.234),
        wall_seconds: 4_355,
        leaves: 14,
        suite_runs: 19,
    }
}

/// The same run with everything that a leaf or an issue has a say in turned against its reader.
fn hostile() -> PullFacts {
    let evil = "@octocat closes #967 ghp_aaaabbbbccccddddeeeeffff </details><!-- `$(rm -rf /)` **b** \
                ![x](https://evil.example/p.png) & &#64;octocat\0\u{202e}";
    let mut facts = three_steps();
    facts.issue_title = "Fix `$(touch x)` in \"<b>\"\n# @octocat fixes #1".into();
    facts.issue_ref = "evil\nCloses #1 and #42".into();
    facts.branch = "tdd/issue-42`".into();
    facts.criteria[0].text = evil.into();
    facts.criteria[1].inferred = Some(evil.into());
    facts.steps[0].title = evil.into();
    facts.steps[0].tests[0].path = "tests/a`b|c\n.rs".into();
    facts.steps[0].tests[0].names = vec![evil.into()];
    facts.steps[0].verdicts[0].reasons = vec![evil.into(), "```\n</details>".into()];
    facts.steps[2].kind = StepKind::NoTest(evil.into());
    facts.eye[0].detail = evil.into();
    facts.merge = Merge::Conflict(vec!["src/@x.rs".into(), evil.into()]);
    facts.ledger_text = format!("````\n</details>\n{evil}");
    facts
}

#[test]
fn a_body_for_a_review_in_ten_minutes() {
    let facts = three_steps();
    assert_eq!(
        title(&facts),
        "Reject transfers above the daily limit (#42)"
    );
    insta::assert_snapshot!(render(&facts));
}

#[test]
fn a_hostile_run_cannot_make_the_body_act() {
    let facts = hostile();
    let body = render(&facts);
    insta::assert_snapshot!(body);
    for text in [&body, &title(&facts)] {
        assert!(!text.contains("@octocat") && !text.contains("ghp_aaaa"));
        assert!(
            !text.contains("https://evil") && !text.contains('\0') && !text.contains('\u{202e}')
        );
    }
    let acting: Vec<&str> = body
        .split("#")
        .skip(1)
        .filter(|t| t.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    assert_eq!(acting.len(), 1, "only the issue itself is referred to");
    assert!(body.contains("\nCloses #42\n"));
}

#[test]
fn a_quiet_run_says_that_nothing_needs_an_eye() {
    let mut facts = three_steps();
    facts.eye.clear();
    facts.steps.pop();
    facts.criteria[1].inferred = None;
    assert!(render(&facts).contains("Nothing out of the ordinary"));
    facts.merge = Merge::Clean {
        suite_passed: false,
    };
    assert!(render(&facts).contains("The suite fails once the newest base is merged in"));
}

#[test]
fn another_repositorys_issue_is_closed_by_its_whole_reference() {
    let mut facts = three_steps();
    facts.issue_ref = "acme/bank#42".into();
    assert!(render(&facts).contains("\nCloses acme/bank#42\n"));
    assert!(title(&facts).ends_with("(acme/bank#42)"));
}

#[test]
fn the_largest_run_fits() {
    let mut facts = three_steps();
    let long = "é`*@#1 ".repeat(300);
    for step in &mut facts.steps {
        step.title = long.clone();
        step.tests = vec![
            Tests {
                path: long.clone(),
                names: vec![long.clone(); 20]
            };
            12
        ];
        step.files_changed = vec![
            FileChange {
                path: long.clone(),
                added: 1,
                removed: 1
            };
            20
        ];
        step.verdicts = vec![
            Verdict {
                claim: Claim::Green,
                attempt: 3,
                answer: Answer::Reject,
                reasons: vec![long.clone(); 9],
            };
            12
        ];
    }
    facts.steps = facts.steps.iter().cycle().take(40).cloned().collect();
    facts.criteria = facts.criteria.iter().cycle().take(40).cloned().collect();
    facts.eye = facts.eye.iter().cycle().take(40).cloned().collect();
    facts
        .eye
        .iter_mut()
        .for_each(|eye| eye.detail = long.clone());
    facts.ledger_text = long.clone();
    facts.evidence_command = long.clone();
    facts.issue_title = long;
    let body = render(&facts);
    assert!(body.len() <= 60_000, "{}", body.len());
    assert!(body.contains("more points, not shown here"));
    assert!(title(&facts).len() < 256);
}
