//! What the scripted agent knows: the plan of the demo's issue, and for each of its steps the test, the code, and
//! how a verifier puts them to the test.

/// One of the demo's steps.
pub(super) struct Step {
    pub(super) title: &'static str,
    pub(super) criterion: &'static str,
    /// Words of the issue.
    pub(super) quote: &'static str,
    /// What the developer first writes where that is not yet good enough.
    pub(super) weak_test: Option<&'static str>,
    pub(super) test: &'static str,
    pub(super) green: &'static [Edit],
    /// As far as the developer gets who then hangs.
    pub(super) hangs_after: Option<Edit>,
    pub(super) refactor: &'static [Edit],
    /// A wrong implementation, which a good test refuses, and why it is wrong.
    pub(super) wrong: Wrong,
    /// A test of what the step's own test does not try.
    pub(super) probe: &'static str,
}

/// A piece of the source replaced by another.
pub(super) struct Edit {
    pub(super) old: &'static str,
    pub(super) new: &'static str,
}

/// A wrong implementation.
pub(super) struct Wrong {
    pub(super) edits: &'static [Edit],
    pub(super) reason: &'static str,
}

/// The file that all steps change.
pub(super) const SOURCE: &str = "src/lib.rs";
/// The file of the tests that the steps bring.
pub(super) const TESTS: &str = "tests/daily_limit.rs";
/// The file of a verifier's own test, in its own checkout.
pub(super) const PROBE: &str = "tests/probe.rs";

/// What the tests of all steps stand on.
pub(super) const TESTS_HEAD: &str = "\
use bank::Account;

const EUR: u64 = 100;
const MONDAY: u32 = 1;
const TUESDAY: u32 = 2;

/// Ann, who may send 500.00 a day, and Bob.
fn ann_and_bob() -> (Account, Account) {
    (Account::new(2_000 * EUR, 500 * EUR), Account::new(0, 0))
}
";

pub(super) const STEPS: [Step; 3] = [
    Step {
        title: "A transfer above the daily limit is refused",
        criterion: "A transfer that would take the day's total above the limit is refused, and no money moves",
        quote: "A transfer that would take the day's total above the limit is refused, and no money moves.",
        weak_test: Some(
            r#"
#[test]
fn a_transfer_above_the_daily_limit_is_refused() {
    let (mut ann, mut bob) = ann_and_bob();
    assert!(ann.transfer(500 * EUR + 1, &mut bob, MONDAY).is_err());
    assert_eq!(bob.balance(), 0);
}
"#,
        ),
        test: r#"
#[test]
fn a_transfer_that_takes_the_day_above_the_limit_is_refused() {
    let (mut ann, mut bob) = ann_and_bob();
    ann.transfer(300 * EUR, &mut bob, MONDAY).unwrap();

    assert!(ann.transfer(200 * EUR + 1, &mut bob, MONDAY).is_err());
    assert_eq!((ann.balance(), bob.balance()), (1_700 * EUR, 300 * EUR));

    let reached = ann.transfer(200 * EUR, &mut bob, MONDAY);
    assert!(reached.is_ok(), "the limit itself may be reached");
}
"#,
        green: &[
            Edit {
                old: "    NotCovered,\n}",
                new: "    NotCovered,\n    /// More than the daily limit would have left the account.\n    AboveLimit,\n}",
            },
            Edit {
                old: "does not hold that much\"),\n",
                new: "does not hold that much\"),\n            Refused::AboveLimit => write!(f, \"above the daily limit\"),\n",
            },
            Edit {
                old: "        self.balance -= cents;",
                new: "        let sent: u64 = self.sent.iter().map(|sent| sent.cents).sum();
        if sent + cents > self.daily_limit {
            return Err(Refused::AboveLimit);
        }
        self.balance -= cents;",
            },
        ],
        hangs_after: None,
        refactor: &[],
        wrong: Wrong {
            edits: &[Edit {
                old: "        self.balance -= cents;",
                new: "        if cents > self.daily_limit {
            return Err(Refused::NotCovered);
        }
        self.balance -= cents;",
            }],
            reason: "The test is too weak: it passes for code that compares each transfer with the limit by itself, so \
                     that many small ones still empty the account. The issue speaks of the day's total.",
        },
        probe: r#"
#[test]
fn three_transfers_count_together_and_what_is_received_does_not() {
    let (mut ann, mut bob) = (Account::new(900, 300), Account::new(900, 300));
    bob.transfer(300, &mut ann, 1).unwrap();
    for cents in [100, 1, 199] {
        ann.transfer(cents, &mut bob, 1).unwrap();
    }
    assert!(ann.transfer(1, &mut bob, 1).is_err());
    assert_eq!((ann.balance(), bob.balance()), (900, 900));
}
"#,
    },
    Step {
        title: "The refusal says how much can still be sent today",
        criterion: "The refusal says how much can still be sent",
        quote: "The refusal says how much can still be sent, so that the app can show it",
        weak_test: None,
        test: r#"
#[test]
fn the_refusal_says_how_much_can_still_be_sent_today() {
    let (mut ann, mut bob) = ann_and_bob();
    ann.transfer(300 * EUR, &mut bob, MONDAY).unwrap();
    let refused = ann.transfer(250 * EUR, &mut bob, MONDAY).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "above the daily limit: 200.00 can still be sent today"
    );

    ann.transfer(199 * EUR + 95, &mut bob, MONDAY).unwrap();
    let refused = ann.transfer(EUR, &mut bob, MONDAY).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "above the daily limit: 0.05 can still be sent today"
    );
}
"#,
        green: &[
            Edit {
                old: "    AboveLimit,\n",
                new: "    AboveLimit {\n        /// What can still be sent today.\n        left: u64,\n    },\n",
            },
            Edit {
                old: "            Refused::AboveLimit => write!(f, \"above the daily limit\"),\n",
                new: "            Refused::AboveLimit { left } => write!(
                f,
                \"above the daily limit: {}.{:02} can still be sent today\",
                left / 100,
                left % 100
            ),
",
            },
            Edit {
                old: "            return Err(Refused::AboveLimit);\n",
                new: "            return Err(Refused::AboveLimit {\n                left: self.daily_limit - sent,\n            });\n",
            },
        ],
        hangs_after: None,
        refactor: &[
            Edit {
                old: "        let sent: u64 = self.sent.iter().map(|sent| sent.cents).sum();
        if sent + cents > self.daily_limit {
            return Err(Refused::AboveLimit {
                left: self.daily_limit - sent,
            });
        }
",
                new: "        let left = self.left_to_send();
        if cents > left {
            return Err(Refused::AboveLimit { left });
        }
",
            },
            Edit {
                old: "    /// Sends money to another account.\n",
                new: "    fn left_to_send(&self) -> u64 {
        let sent: u64 = self.sent.iter().map(|sent| sent.cents).sum();
        self.daily_limit - sent
    }

    /// Sends money to another account.
",
            },
        ],
        wrong: Wrong {
            edits: &[Edit {
                old: "write!(f, \"above the daily limit\")",
                new: "write!(f, \"above the daily limit: 200.00 can still be sent today\")",
            }],
            reason: "The test passes for code that always answers with the example of the issue.",
        },
        probe: r#"
#[test]
fn nothing_left_and_all_left_are_said_in_full() {
    let (mut ann, mut bob) = (Account::new(90_000, 12_345), Account::new(0, 0));
    let all = ann.transfer(12_346, &mut bob, 1).unwrap_err().to_string();
    assert!(all.contains(" 123.45 can still be sent"), "{all}");
    ann.transfer(12_345, &mut bob, 1).unwrap();
    let none = ann.transfer(1, &mut bob, 1).unwrap_err().to_string();
    assert!(none.contains(" 0.00 can still be sent"), "{none}");
}
"#,
    },
    Step {
        title: "At midnight the allowance is whole again",
        criterion: "At midnight the allowance is whole again",
        quote: "At midnight the allowance is whole again, whatever was sent the day before.",
        weak_test: None,
        test: r#"
#[test]
fn at_midnight_the_allowance_is_whole_again() {
    let (mut ann, mut bob) = ann_and_bob();
    ann.transfer(500 * EUR, &mut bob, MONDAY).unwrap();

    let next_day = ann.transfer(500 * EUR, &mut bob, TUESDAY);
    assert!(next_day.is_ok(), "{next_day:?}");
    let and_no_more = ann.transfer(1, &mut bob, TUESDAY);
    assert!(and_no_more.is_err(), "the limit holds on every day");
}
"#,
        green: &[
            Edit {
                old: "    fn left_to_send(&self) -> u64 {
        let sent: u64 = self.sent.iter().map(|sent| sent.cents).sum();
        self.daily_limit - sent
",
                new: "    fn left_to_send(&self, today: Day) -> u64 {
        let of_today = self.sent.iter().filter(|sent| sent.day == today);
        let sent: u64 = of_today.map(|sent| sent.cents).sum();
        self.daily_limit - sent
",
            },
            Edit {
                old: "self.left_to_send();",
                new: "self.left_to_send(today);",
            },
        ],
        hangs_after: Some(Edit {
            old: "self.left_to_send();",
            new: "self.left_to_send(today);",
        }),
        refactor: &[],
        wrong: Wrong {
            edits: &[
                Edit {
                    old: "        if cents > left {",
                    new: "        if cents > left && self.sent.iter().all(|sent| sent.day == today) {",
                },
                Edit {
                    old: "self.daily_limit - sent",
                    new: "self.daily_limit.saturating_sub(sent)",
                },
            ],
            reason: "The test passes for code that holds to the limit on the first day only.",
        },
        probe: r#"
#[test]
fn what_was_sent_on_other_days_does_not_count() {
    let (mut ann, mut bob) = (Account::new(90_000, 500), Account::new(0, 0));
    for day in 1..=3 {
        ann.transfer(200, &mut bob, day).unwrap();
        ann.transfer(300, &mut bob, day).unwrap();
        assert!(ann.transfer(1, &mut bob, day).is_err());
    }
}
"#,
    },
];
