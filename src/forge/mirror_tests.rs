use super::super::carries_marker;
use super::super::facts::{Check, Verdict};
use super::*;

fn ledger() -> Vec<LedgerLine> {
    let line = |number, title: &str, ticked| LedgerLine {
        number,
        title: title.into(),
        criteria: vec![format!("AC{number}")],
        ticked,
        no_test: None,
    };
    vec![
        line(1, "A transfer above the limit is refused", true),
        line(2, "The refusal names the remaining allowance", false),
        LedgerLine {
            no_test: Some("documentation only".into()),
            ..line(3, "The limits page explains the rule", false)
        },
    ]
}

fn attempt(number: u32, answer: Answer) -> Attempt {
    Attempt {
        number,
        claim: Claim::Red,
        ended: None,
        checks: vec![Check {
            passed: true,
            what: "the suite fails with the new test, twice, and passes without it".into(),
            evidence: None,
        }],
        verdicts: vec![Verdict {
            claim: Claim::Red,
            attempt: number,
            answer,
            reasons: vec!["would pass if every transfer were refused".into()],
        }],
    }
}

fn facts() -> MirrorFacts {
    MirrorFacts {
        issue: 42,
        state: "working on step 2 of 3".into(),
        ledger: ledger(),
        steps: vec![
            StepStory {
                number: 1,
                title: "A transfer above the limit is refused".into(),
                phases: vec![
                    PhaseStory {
                        phase: Phase::Red,
                        attempts: vec![attempt(1, Answer::Reject), attempt(2, Answer::Approve)],
                        outcome: Some("approved".into()),
                    },
                    PhaseStory {
                        phase: Phase::Green,
                        attempts: vec![Attempt {
                            claim: Claim::Green,
                            ..attempt(1, Answer::Approve)
                        }],
                        outcome: Some("committed as `1a2b3c4`".into()),
                    },
                ],
                outcome: "finished".into(),
            },
            StepStory {
                number: 2,
                title: "The refusal names the <b>remaining</b> allowance".into(),
                phases: vec![PhaseStory {
                    phase: Phase::Red,
                    attempts: vec![Attempt {
                        ended: Some("killed as stuck after 900 s".into()),
                        checks: vec![Check {
                            passed: false,
                            what: "the suite fails with the new test".into(),
                            evidence: Some("```\nerror: @octocat closes #9\n```".into()),
                        }],
                        verdicts: vec![],
                        ..attempt(1, Answer::Reject)
                    }],
                    outcome: None,
                }],
                outcome: "under way".into(),
            },
        ],
        resume: "veri tdd 42".into(),
        full_text: "veri log --issue 42".into(),
        posted: 0,
        later: None,
    }
}

#[test]
fn one_comment_tells_the_run() {
    let posts = run(&facts());
    assert_eq!(posts.len(), 1);
    assert_eq!(posts[0].marker, "<!-- veri:issue-42:run -->");
    insta::assert_snapshot!(posts[0].body);
}

#[test]
fn a_bail_asks_its_whole_question() {
    let facts = BailFacts {
        issue: 42,
        cause: Cause::NeedsUser,
        in_preflight: false,
        detail:
            "Is the limit per account or per customer? The issue says \"daily limit\" @ann.\n\n\
                 Choices:\n  - per account\n  - per customer (closes #7)"
                .into(),
        evidence: Some("thread 'main' panicked\nBearer abcdefghij0123456789".into()),
        ledger: ledger(),
        discarded: Some("veri discarded 42".into()),
        resume: "veri tdd 42 --forge 'dir:/a @b'".into(),
        full_text: "veri log --issue 42".into(),
    };
    let post = bail(&facts);
    insta::assert_snapshot!(post.body);
    assert_eq!(
        bail(&facts).marker,
        post.marker,
        "the same question edits its comment"
    );
    let other = BailFacts {
        detail: "Something else?".into(),
        ..facts.clone()
    };
    assert_ne!(bail(&other).marker, post.marker);
    let early = |detail: &str| BailFacts {
        in_preflight: true,
        detail: detail.into(),
        ..facts.clone()
    };
    assert_eq!(
        bail(&early("no ./agnet")).marker,
        bail(&early("no ./agemt")).marker,
        "what is mended in preflight shares a comment"
    );
    let system = BailFacts {
        cause: Cause::StorageFailed,
        ledger: vec![],
        ..facts
    };
    assert!(
        bail(&system).body.contains("not the work")
            && bail(&system).body.contains("No step was begun")
    );
}

#[test]
fn a_stop_says_how_to_go_on() {
    let facts = StopFacts {
        issue: 42,
        mode: StopMode::Now,
        ledger: ledger(),
        resume: "veri tdd 42".into(),
    };
    let post = stop(&facts);
    assert!(post.body.contains("`veri tdd 42`") && post.body.contains("1 of 3 steps"));
}

#[test]
fn what_does_not_fit_goes_on_in_a_second_comment_and_never_further() {
    let mut facts = facts();
    let long = "reason é @octocat ".repeat(110);
    for story in &mut facts.steps {
        for attempt in story.phases.iter_mut().flat_map(|p| &mut p.attempts) {
            for verdict in &mut attempt.verdicts {
                verdict.reasons = vec![long.clone(); 14];
            }
            for check in &mut attempt.checks {
                check.evidence = Some(long.clone());
                check.passed = false;
            }
        }
    }
    let pool = facts.steps.clone();
    for steps in [2usize, 4, 12, 60] {
        facts.steps = (1..=steps)
            .map(|n| StepStory {
                number: n as u32,
                ..pool[n % 2].clone()
            })
            .collect();
        facts.ledger = facts.ledger.iter().cycle().take(steps).cloned().collect();
        let posts = run(&facts);
        assert!(posts.len() <= 2);
        for post in &posts {
            assert!(
                post.body.len() <= COMMENT_MAX_BYTES,
                "{steps}: {}",
                post.body.len()
            );
            assert!(carries_marker(&post.body, &post.marker));
            assert!(!post.body.contains("@octocat"));
            let (open, close) = ("<details>", "</details>");
            assert_eq!(
                post.body.matches(open).count(),
                post.body.matches(close).count()
            );
        }
        let all: String = posts.iter().map(|post| post.body.as_str()).collect();
        assert!(
            all.contains(&format!("Step {steps}:")),
            "the newest step is always told"
        );
        assert_eq!(posts.len(), if steps >= 60 { 2 } else { 1 });
        if steps >= 12 {
            assert!(
                all.contains("`veri log --issue 42`"),
                "what is left out is pointed to"
            );
        }
    }
}

#[test]
fn a_surplus_second_comment_is_emptied() {
    let posts = run(&MirrorFacts {
        posted: 2,
        later: None,
        ..facts()
    });
    assert_eq!(posts.len(), 2);
    assert!(posts[1].body.contains("Nothing more to tell"));
}
