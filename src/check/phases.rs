//! Red, green, refactor and no-test from end to end, with suites that are told what to say, and with a real one.

use super::bench::{Bench, Files, always, failed, holds, reasons, seen};
use super::*;
use crate::cause::Cause;
use crate::role::Claim;
use crate::suite::{SuiteEnd, SuiteRun};
use std::process::Stdio;

fn base() -> Files {
    Files::of(&[
        (
            "run.sh",
            "set -e\nfor t in tests/*.sh; do sh \"$t\"; done\n",
        ),
        ("app.sh", "add() { echo $(($1 + $2)); }\n"),
        ("tests/add.sh", ". ./app.sh; test \"$(add 1 2)\" = 3\n"),
    ])
}

fn test_of_sub() -> (&'static str, &'static str) {
    ("tests/sub.sh", ". ./app.sh; test \"$(sub 3 2)\" = 1\n")
}

/// A suite that is really run, on the files of the tree.
fn really(bench: &Bench) -> impl FnMut(Run) -> anyhow::Result<SuiteRun> + '_ {
    move |run| {
        let folder = tempfile::tempdir()?;
        for (path, entry) in tree::flatten(&bench.repo, run.tree)? {
            let path = folder.path().join(String::from_utf8(path)?);
            std::fs::create_dir_all(path.parent().unwrap())?;
            std::fs::write(path, tree::content(&bench.repo, entry)?)?;
        }
        #[allow(clippy::disallowed_methods)] // a test's own suite
        let code = std::process::Command::new("sh")
            .arg("run.sh")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()?
            .code()
            .unwrap();
        let end = if code == 0 {
            SuiteEnd::Passed
        } else {
            SuiteEnd::Failed { code: 1 }
        };
        Ok(seen(run, end))
    }
}

#[test]
fn a_step_with_a_real_suite() {
    let bench = Bench::new("sh run.sh");
    let (from, with_test) = (base(), base().and(&[test_of_sub()]));
    let done = with_test.edit("app.sh", "\n", "\nsub() { echo $(($1 - $2)); }\n");
    let (from, at_red, at_green) = (bench.tree(&from), bench.tree(&with_test), bench.tree(&done));
    let run = &mut really(&bench);
    let outcome = red(&bench.ask(from, at_red), RedRules::default(), run).unwrap();
    let Outcome::Holds { claim, evidence } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(claim, Claim::Red);
    assert_eq!(evidence.change.listed.new_tests, ["tests/sub.sh"]);
    // Nothing else changed, so what is left without the test is the base: its result is remembered.
    assert_eq!(evidence.runs[2].tree, from.to_string());
    let outcome = green(&bench.ask(at_red, at_green), run).unwrap();
    assert!(
        matches!(
            outcome,
            Outcome::Holds {
                claim: Claim::Green,
                ..
            }
        ),
        "{outcome:?}"
    );
    let tidy = done.edit("app.sh", "sub() {", "# Subtracts.\nsub() {");
    let outcome = refactor(&bench.ask(at_green, bench.tree(&tidy)), run).unwrap();
    assert!(
        matches!(
            outcome,
            Outcome::Holds {
                claim: Claim::Refactor,
                ..
            }
        ),
        "{outcome:?}"
    );
    let outcome = refactor(&bench.ask(at_green, at_green), run).unwrap();
    assert!(matches!(outcome, Outcome::Unchanged), "{outcome:?}");
}

#[test]
fn breakage_beside_the_test_is_no_red() {
    let bench = Bench::new("sh run.sh");
    let broken = base().and(&[test_of_sub()]).edit("app.sh", "+", "-");
    let ask = bench.ask(bench.tree(&base()), bench.tree(&broken));
    let told = reasons(red(&ask, RedRules::default(), &mut really(&bench)).unwrap());
    assert!(
        told.contains("put back") && told.contains("app.sh"),
        "{told}"
    );
}

#[test]
fn an_implementation_in_red_is_sent_back_and_a_test_that_passes_alone_is_asked_about() {
    let bench = Bench::new("sh run.sh");
    let with_test = base().and(&[test_of_sub()]);
    let done = with_test.edit("app.sh", "\n", "\nsub() { echo $(($1 - $2)); }\n");
    let ask = bench.ask(bench.tree(&base()), bench.tree(&done));
    let told = reasons(red(&ask, RedRules::default(), &mut really(&bench)).unwrap());
    assert!(told.contains("take the implementation out"), "{told}");
    let again = base().and(&[("tests/more.sh", ". ./app.sh; test \"$(add 2 2)\" = 4\n")]);
    let ask = bench.ask(bench.tree(&base()), bench.tree(&again));
    let outcome = red(&ask, RedRules::default(), &mut really(&bench)).unwrap();
    assert!(
        matches!(outcome, Outcome::PassesAtOnce { .. }),
        "{outcome:?}"
    );

    for (patch, shown) in [
        (
            "diff --git a/app.sh b/app.sh\n--- a/app.sh\n+++ b/app.sh\n@@ -1 +1 @@\n-add() { echo $(($1 + $2)); }\n+add() { echo $(($1 - $2)); }",
            true,
        ),
        (
            "--- a/app.sh\n+++ b/app.sh\n@@ -1 +1 @@\n-add() { echo $(($1 + $2)); }\n+add() { echo 0; }\n",
            true,
        ),
        (
            "diff --git a/app.sh b/app.sh\n--- a/app.sh\n+++ b/app.sh\n@@ -1 +1,2 @@\n add() { echo $(($1 + $2)); }\n+# nothing\n",
            false,
        ),
        (
            "diff --git a/tests/more.sh b/tests/more.sh\n--- a/tests/more.sh\n+++ b/tests/more.sh\n@@ -1 +1 @@\n-. ./app.sh; test \"$(add 2 2)\" = 4\n+false\n",
            false,
        ),
        (
            "diff --git a/run.sh b/run.sh\n--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,3 @@\n set -e\n+false\n for t in tests/*.sh; do sh \"$t\"; done\n",
            false,
        ),
        (
            "diff --git a/app.sh b/app.sh\n--- a/app.sh\n+++ b/app.sh\n@@ -1 +1 @@\n-not what stands there\n+x\n",
            false,
        ),
        (
            "diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
            false,
        ),
        ("please break it", false),
        ("", false),
    ] {
        let breaks = breaks_with(&ask, patch, &mut really(&bench)).unwrap();
        assert_eq!(
            matches!(breaks, Breaks::Shown { .. }),
            shown,
            "{patch}: {breaks:?}"
        );
    }
}

#[test]
fn a_patch_that_only_breaks_the_build_shows_nothing() {
    let bench = Bench::new("cargo test");
    let files = Files::of(&[("src/lib.rs", "pub fn a() {}\n")]);
    let tree = bench.tree(&files);
    let patch = "diff --git a/src/lib.rs b/src/lib.rs\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1 +1 @@\n-pub fn a() {}\n+pub fn a( {}\n";
    let breaks = breaks_with(&bench.ask(tree, tree), patch, &mut always(failed())).unwrap();
    assert!(
        matches!(&breaks, Breaks::Refused { why } if why.contains("parsed")),
        "{breaks:?}"
    );
}

#[test]
fn how_a_suite_ends_decides() {
    let bench = Bench::new("sh run.sh");
    let (from, to) = (
        bench.tree(&base()),
        bench.tree(&base().and(&[test_of_sub()])),
    );
    let ask = bench.ask(from, to);
    for end in [
        SuiteEnd::TimedOut { seconds: 9 },
        SuiteEnd::Crashed { signal: 11 },
    ] {
        let told = reasons(red(&ask, RedRules::default(), &mut always(end.clone())).unwrap());
        assert!(told.contains("no red"), "{told}");
        let told = reasons(green(&ask, &mut always(end)).unwrap());
        assert!(told.contains("the suite fails"), "{told}");
    }
    for (end, cause) in [
        (SuiteEnd::Unrunnable { code: 127 }, Cause::NeedsUser),
        (
            SuiteEnd::KilledExternal { signal: 9 },
            Cause::KilledExternal,
        ),
    ] {
        let outcome = red(&ask, RedRules::default(), &mut always(end)).unwrap();
        assert!(
            matches!(&outcome, Outcome::Bail(bail) if bail.cause == cause),
            "{outcome:?}"
        );
    }
    let outcome = green(&ask, &mut always(SuiteEnd::Stopped)).unwrap();
    assert!(matches!(outcome, Outcome::Stopped), "{outcome:?}");
}

#[test]
fn red_is_run_twice_and_the_second_time_for_certain() {
    let bench = Bench::new("sh run.sh");
    let (from, to) = (
        bench.tree(&base()),
        bench.tree(&base().and(&[test_of_sub()])),
    );
    let mut asked = Vec::new();
    let mut run = |run: Run| {
        asked.push((run.tree, run.again));
        let end = if asked.len() == 1 {
            failed()
        } else {
            SuiteEnd::Passed
        };
        Ok(seen(run, end))
    };
    let told = reasons(red(&bench.ask(from, to), RedRules::default(), &mut run).unwrap());
    assert!(told.contains("not reliable"), "{told}");
    assert_eq!(asked, [(to, false), (to, true)]);
}

#[test]
fn red_without_a_test_is_none() {
    let bench = Bench::new("sh run.sh");
    let told = reasons(bench.red(&base(), &base().edit("app.sh", "+", "-")));
    assert!(told.contains("no test was added"), "{told}");
    let told = reasons(bench.red(&base(), &base().without("tests/add.sh")));
    assert!(told.contains("only removed"), "{told}");
    let outcome = bench.red(&base(), &base());
    assert!(matches!(outcome, Outcome::Unchanged), "{outcome:?}");
}

#[test]
fn stubs_are_listed_or_refused() {
    let bench = Bench::new("sh run.sh");
    let stubbed = base().and(&[
        test_of_sub(),
        ("sub.sh", "sub() { :; }\n"),
        ("Cargo.lock", ""),
    ]);
    let evidence = holds(bench.red(&base(), &stubbed));
    assert_eq!(evidence.change.listed.stubs, ["sub.sh"]);
    assert_eq!(evidence.change.listed.dependencies, ["Cargo.lock"]);
    let ask = bench.ask(bench.tree(&base()), bench.tree(&stubbed));
    let rules = RedRules { forbid_stubs: true };
    let told = reasons(red(&ask, rules, &mut always(failed())).unwrap());
    assert!(
        told.contains("sub.sh") && told.contains("red_stubs"),
        "{told}"
    );
}

#[test]
fn a_red_that_changes_old_tests_says_which() {
    let bench = Bench::new("cargo test");
    let from = Files::of(&[
        (
            "src/lib.rs",
            "pub fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn old() {}\n    #[test]\n    fn kept() {}\n}\n",
        ),
        ("tests/x.py", "one\n"),
        ("tests/y.py", "one\n"),
        ("tests/z.rs", "#[test]\nfn kept() {}\n"),
        ("package.json", "{\"scripts\":{\"test\":\"a\"}}"),
    ]);
    let to = from
        .edit(
            "tests/z.rs",
            "{}\n",
            "{}\n#[test]\nfn new() {}\nfn helper() {}\n",
        )
        .edit(
            "src/lib.rs",
            "fn old() {}",
            "fn old() { panic!() }\n    #[test]\n    fn new() {}",
        )
        .edit("tests/x.py", "one", "two")
        .edit("tests/y.py", "one\n", "one\ntwo\n")
        .edit("package.json", "\"a\"", "\"b\"");
    let change = holds(bench.red(&from, &to)).change;
    assert_eq!(
        change.existing_tests_changed,
        [
            "package.json: scripts.test",
            "src/lib.rs: tests::fn old",
            "tests/x.py"
        ]
    );
    let name = |name: &str| TestName {
        file: "src/lib.rs".to_owned(),
        name: name.to_owned(),
    };
    assert_eq!(change.test_items_added, [name("tests::fn new")]);
    assert_eq!(change.test_items_changed, [name("tests::fn old")]);
    let in_test_file = TestName {
        file: "tests/z.rs".to_owned(),
        name: "fn new".to_owned(),
    };
    assert_eq!(change.test_functions, [in_test_file]);
    assert!(change.other_files_changed.is_empty(), "{change:?}");
}

#[test]
fn extra_checks_run_in_green_and_their_failures_are_told() {
    let bench = Bench::new("sh run.sh");
    let (from, to) = (
        bench.tree(&base()),
        bench.tree(&base().edit("app.sh", "+", "-")),
    );
    let mut ask = bench.ask(from, to);
    ask.extra_checks = 2;
    let mut run = |run: Run| {
        let end = if run.what == What::Extra(1) {
            failed()
        } else {
            SuiteEnd::Passed
        };
        Ok(seen(run, end))
    };
    let outcome = green(&ask, &mut run).unwrap();
    let Outcome::Failed { reasons, evidence } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(evidence.runs.len(), 3);
    assert!(reasons[0].contains("`check 1`"), "{reasons:?}");
}
