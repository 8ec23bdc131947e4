//! Properties of the ledger: what holds for every plan, every file and every tick.

use super::*;
use crate::plan::{self, Plan, Rules};
use proptest::prelude::*;
use proptest::sample::select;

const GOOD: &str = "\u{feff}# Issue 42: Limits\r\n\r\n<!-- veri ledger v1 -->\r\n\r\n| | |\n| --- | --- |\n\
    | issue | acme/bank#42 |\n| base | main @ 3f2c |\n| tests | `cargo test \\| tail` |\n\n\
    ## Acceptance criteria\n\n- AC1: Refused\n  over two lines\n- AC2: Named (inferred: clear)\n\nNotes.\n\n\
    ## Steps\n\n- [x] 1. Refuse it (AC1)  \n  - [ ] 9. detail\n- [ ] 3. Name (AC1) it (AC1, AC2)\n\n\
    ```\n- [ ] 1. no step\n```\n<!--\n- [ ] 3. none\n-->\n\n- [X] 2. Say (AC2) [no test: words]\n\n## More\n\n- [ ] call Bob";

/// Texts that a careless reader or writer would trip over.
fn nasty(max: usize) -> impl Strategy<Value = String> {
    let pieces = vec![
        " (AC1)",
        "(AC1",
        ")",
        "[no test: x]",
        " [no test:",
        "]",
        "[",
        "(inferred: y)",
        " (inferred:",
        "$(rm -rf .)",
        "`",
        "``",
        "\"",
        "'",
        "#",
        " #",
        "😀",
        "é",
        "|",
        "\\|",
        "\\",
        "<!--",
        "-->",
        "```",
        "~~~",
        "- [ ] 3. ",
        "1. ",
        "> ",
        ":",
        "a",
        "word",
        " ",
        "  ",
        "*",
        "_",
        "<b>",
        "&amp;",
        "{{ x }}",
        "%s",
        "\u{200b}",
        "\u{feff}",
    ];
    prop::collection::vec(select(pieces), 1..max).prop_map(|pieces| pieces.concat())
}

/// The same with what a text may hold and a title may not.
fn many_lines(max: usize) -> impl Strategy<Value = String> {
    (
        nasty(max),
        select(vec![
            "\n",
            "\r\n- AC1: ",
            "\n\n## Steps\n",
            "\t",
            "\u{2028}",
            "\u{0}",
            "",
        ]),
        nasty(max),
    )
        .prop_map(|(a, b, c)| format!("{a}{b}{c}"))
}

fn plans() -> impl Strategy<Value = Plan> {
    let criterion = (many_lines(6), proptest::option::of(many_lines(4)));
    let step = (nasty(8), proptest::option::of(many_lines(4)), 0usize..9);
    (
        prop::collection::vec(criterion, 1..4),
        prop::collection::vec(step, 3..6),
    )
        .prop_map(|(criteria, steps)| {
            let count = criteria.len();
            let criteria = criteria
                .into_iter()
                .enumerate()
                .map(|(index, (text, inferred))| plan::Criterion {
                    id: format!("AC{}", index + 1),
                    text,
                    quote: inferred.is_none().then(|| "quoted words".to_owned()),
                    inferred,
                });
            let steps = steps
                .into_iter()
                .enumerate()
                .map(|(index, (title, no_test, pick))| plan::Step {
                    title: title.trim().to_owned(),
                    criteria: if index == 0 {
                        (1..=count).map(|n| format!("AC{n}")).collect()
                    } else {
                        vec![format!("AC{}", 1 + pick % count)]
                    },
                    no_test,
                });
            Plan {
                criteria: criteria.collect(),
                steps: steps.collect(),
            }
        })
        .prop_filter("a valid plan", |plan| {
            let rules = Rules {
                max_steps: 12,
                no_test_forbidden: false,
            };
            match plan.validate("some quoted words", &rules) {
                Ok(()) => true,
                Err(error) => error.kind == plan::PlanErrorKind::NothingQuoted,
            }
        })
}

/// The good ledger after a few edits that know nothing of its meaning.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let insert = prop_oneof![
        nasty(3).prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..4),
        select(vec![
            "\n",
            "\r",
            "\n\n",
            "\t",
            "    ",
            "- [ ] 7. new (AC1)\n",
            "## Steps\n",
            "---\n"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec((0..GOOD.len(), 0usize..12, insert), 1..4).prop_map(|edits| {
        let mut bytes = GOOD.as_bytes().to_vec();
        for (at, remove, insert) in edits {
            let at = at.min(bytes.len());
            let end = (at + remove).min(bytes.len());
            bytes.splice(at..end, insert);
        }
        bytes
    })
}

/// What must hold of a file that is a ledger.
fn check_ledger(bytes: &[u8]) -> Result<(), TestCaseError> {
    let ledger = match Ledger::parse(bytes) {
        Ok(ledger) => ledger,
        Err(error) => {
            let lines = 1 + bytes.iter().filter(|b| matches!(b, b'\n' | b'\r')).count();
            prop_assert!(
                (1..=lines).contains(&error.line) && error.column >= 1,
                "{error}"
            );
            return Ok(());
        }
    };
    prop_assert_eq!(ledger.as_bytes(), bytes);
    for step in ledger.steps() {
        let changed = if step.ticked {
            ledger.untick(step.number)
        } else {
            ledger.tick(step.number)
        };
        let changed = changed.unwrap();
        let differ = bytes.iter().zip(changed.as_bytes()).filter(|(a, b)| a != b);
        prop_assert_eq!(changed.as_bytes().len(), bytes.len());
        prop_assert_eq!(differ.count(), 1);
        // What the changed text says is what the changed ledger says, and all else is as it was.
        prop_assert_eq!(&Ledger::parse(changed.as_bytes()).unwrap(), &changed);
        let mut expected = ledger.content.clone();
        for other in &mut expected.steps {
            other.ticked ^= other.number == step.number;
        }
        prop_assert_eq!(&changed.content, &expected);
        if step.ticked {
            prop_assert!(changed.tick(step.number).unwrap().says_the_same(&ledger));
        } else {
            prop_assert_eq!(&changed.untick(step.number).unwrap(), &ledger);
        }
    }
    Ok(())
}

#[test]
fn the_good_ledger_of_these_tests_is_one() {
    let ledger = Ledger::parse(GOOD.as_bytes()).unwrap();
    assert_eq!(ledger.criteria()[0].text, "Refused over two lines");
    assert_eq!(ledger.tests(), "cargo test | tail");
    let numbers: Vec<u32> = ledger.steps().iter().map(|step| step.number).collect();
    assert_eq!(numbers, [1, 3, 2]);
    assert_eq!(
        ledger.current().map(|step| step.title.as_str()),
        Some("Name (AC1) it")
    );
    check_ledger(GOOD.as_bytes()).unwrap();
}

#[test]
fn ticks_are_idempotent_and_need_a_step() {
    let ledger = Ledger::parse(GOOD.as_bytes()).unwrap();
    assert_eq!(ledger.tick(1).unwrap(), ledger);
    assert_eq!(ledger.tick(2).unwrap(), ledger, "an X stays an X");
    assert_eq!(ledger.untick(3).unwrap(), ledger);
    let error = ledger.tick(4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no step 4 in the ledger of issue 42"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_valid_plan_comes_back_from_its_ledger(
        plan in plans(),
        title in many_lines(6),
        command in nasty(8),
        base in "[a-z|/.-]{1,12}",
    ) {
        let created = Ledger::create(&NewLedger {
            issue_number: 42,
            issue_ref: "acme/bank#42",
            issue_title: &title,
            base_name: &base,
            base_commit: "3f2c9e1b",
            test_command: &command,
            plan: &plan,
        });
        prop_assume!(!created.tests().is_empty());
        let read = Ledger::parse(created.as_bytes());
        prop_assert_eq!(read.as_ref(), Ok(&created), "{}", created.as_str());
        prop_assert_eq!(created.base_name(), base);
        prop_assert_eq!(created.tests(), command.trim_matches(' '));
        for (step, planned) in created.steps().iter().zip(&plan.steps) {
            prop_assert_eq!(&step.title, &planned.title);
            prop_assert_eq!(&step.criteria, &planned.criteria);
        }
        check_ledger(created.as_bytes())?;
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_ledger(&bytes)?;
    }

    #[test]
    fn a_ledger_with_arbitrary_edits_never_panics_and_is_never_half_understood(bytes in mutated()) {
        check_ledger(&bytes)?;
    }
}
