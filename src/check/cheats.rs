//! Cheats that no verifier need see, each beside its honest twin.

use super::bench::{Bench, Files, Node, holds, reasons};

const LIB: &str = "\
pub mod bank;

pub fn limit() -> u32 {
    100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount() -> u32 {
        100
    }

    #[test]
    fn is_a_hundred() {
        assert_eq!(limit(), amount());
    }
}
";

const BANK: &str = "\
pub fn ok() -> bool {
    false
}

mod inner {
    #[test]
    fn holds() {
        assert!(super::ok());
    }
}

#[cfg(test)]
mod checks;
";

const CHECKS: &str = "use super::*;\n\n#[test]\nfn ok_is_ok() {\n    assert!(ok());\n}\n";

fn crate_files() -> Files {
    Files::of(&[
        (
            "Cargo.toml",
            "[package]\nname = \"a\"\nversion = \"0.1.0\"\n\n[dependencies]\n",
        ),
        ("src/lib.rs", LIB),
        ("src/bank.rs", BANK),
        ("src/bank/checks.rs", CHECKS),
        (
            "tests/whole.rs",
            "mod common;\n#[test]\nfn whole() { common::check(); }\n",
        ),
        (
            "tests/common/mod.rs",
            "pub fn check() { assert!(a::bank::ok()); }\n",
        ),
    ])
}

fn honest_green() -> Files {
    crate_files().edit("src/bank.rs", "false", "true")
}

#[test]
fn rust_cheats_in_green_and_refactor() {
    let bench = Bench::new("cargo test");
    let (red, green) = (crate_files(), honest_green());
    let cases: &[(&str, Files, &str)] = &[
        ("deletes a test", green.edit("src/lib.rs", "#[test]\n    fn is_a_hundred() {\n        assert_eq!(limit(), amount());\n    }\n", ""), "is_a_hundred"),
        ("edits an assertion", green.edit("src/lib.rs", "assert_eq!(limit(), amount())", "assert!(true)"), "is_a_hundred"),
        ("edits a helper", green.edit("src/lib.rs", "fn amount() -> u32 {\n        100", "fn amount() -> u32 {\n        limit()"), "amount"),
        ("ignores a test", green.edit("src/lib.rs", "#[test]\n", "#[test]\n    #[ignore]\n"), "is_a_hundred"),
        ("edits a test beside code", green.edit("src/bank.rs", "assert!(super::ok())", "assert!(true)"), "inner::fn holds"),
        ("strikes out the test module by cfg", green.edit("src/lib.rs", "#[cfg(test)]", "#[cfg(test)]\n#[cfg(any())]"), "tests"),
        ("takes cfg(test) away", green.edit("src/lib.rs", "#[cfg(test)]\n", ""), ""),
        ("strikes out a module around a test", green.edit("src/bank.rs", "mod inner", "#[cfg(any())]\nmod inner"), "holds"),
        ("strikes it out behind cfg_attr", green.edit("src/bank.rs", "mod inner", "#[cfg_attr(all(), cfg(any()))]\nmod inner"), "holds"),
        ("strikes out a file from within", green.edit("src/bank.rs", "pub fn ok", "#![cfg(any())]\npub fn ok"), "bank"),
        ("strikes out a file from above", green.edit("src/lib.rs", "pub mod bank;", "#[cfg(any())]\npub mod bank;"), "src/bank/checks.rs"),
        ("drops a module", green.edit("src/lib.rs", "pub mod bank;\n", ""), "src/bank.rs"),
        ("drops the declaration of a test file", green.edit("src/bank.rs", "#[cfg(test)]\nmod checks;\n", ""), "checks"),
        ("puts it behind a feature", green.edit("src/bank.rs", "#[cfg(test)]\nmod checks", "#[cfg(all(test, feature = \"x\"))]\nmod checks"), "checks"),
        ("empties a declared test file", green.and(&[("src/bank/checks.rs", "")]), "src/bank/checks.rs"),
        ("edits an integration test", green.edit("tests/whole.rs", "common::check();", ""), "tests/whole.rs"),
        ("strikes out an integration test", green.edit("tests/whole.rs", "mod common", "#![cfg(any())]\nmod common"), "tests/whole.rs"),
        ("removes an integration test", green.without("tests/whole.rs"), "tests/whole.rs"),
        ("renames one out of the tests", green.without("tests/whole.rs").and(&[("src/whole.rs", "mod common;\n#[test]\nfn whole() { common::check(); }\n")]), "tests/whole.rs"),
        ("moves one where Cargo does not look", green.without("tests/whole.rs").and(&[("tests/attic/whole.rs", "mod common;\n#[test]\nfn whole() { common::check(); }\n")]), "tests/whole.rs"),
        ("shadows what a test uses", green.edit("src/lib.rs", "fn amount", "fn limit() -> u32 { 100 }\n\n    fn amount"), "limit"),
        ("shadows it by an import", green.edit("src/lib.rs", "use super::*;", "use super::*;\n    use crate::fake::limit;"), "limit"),
        ("shadows an assertion", green.edit("src/lib.rs", "    fn amount", "    macro_rules! assert_eq { ($($t:tt)*) => {} }\n    fn amount"), "assert_eq"),
        ("has a test double for the code", green.edit("src/lib.rs", "#[cfg(test)]", "#[cfg(test)]\npub fn limit() -> u32 { 100 }\n#[cfg(test)]"), "limit"),
        ("switches the library's tests off", green.and(&[("Cargo.toml", "[package]\nname = \"a\"\nversion = \"0.1.0\"\n[lib]\ntest = false\n[dependencies]\n")]), "[lib]"),
        ("switches test discovery off", green.edit("Cargo.toml", "[dependencies]", "autotests = false\n[dependencies]"), "autotests"),
        ("takes the harness away", green.edit("Cargo.toml", "[dependencies]", "[[test]]\nname = \"whole\"\nharness = false\n[dependencies]"), "[[test]]"),
        ("wraps the test binary", green.and(&[(".cargo/config.toml", "[target.x86_64-unknown-linux-gnu]\nrunner = \"true\"\n")]), ".cargo/config.toml"),
        ("leaves a source that no parser reads", green.edit("src/bank.rs", "pub fn ok", "pub fn ) ok"), "cannot be parsed"),
    ];
    for (cheat, files, named) in cases {
        let told = reasons(bench.green(&red, files));
        assert!(told.contains(named), "green, {cheat}: {told}");
        // cfg(test) that goes away, and nothing else, runs the same tests: an honest move in refactor may do it.
        if *cheat != "takes cfg(test) away" {
            let told = reasons(bench.refactor(&green, files));
            assert!(told.contains(named), "refactor, {cheat}: {told}");
        }
    }
}

#[test]
fn honest_work_in_green() {
    let bench = Bench::new("cargo test");
    let (red, green) = (crate_files(), honest_green());
    let cases: &[(&str, Files)] = &[
        ("the implementation", green.clone()),
        ("a dependency", green.edit("Cargo.toml", "[dependencies]", "[dependencies]\nserde = \"1\"")),
        ("a new test file", green.and(&[("tests/more.rs", "#[test]\nfn more() {}\n")])),
        ("a new test target", green.edit("Cargo.toml", "[dependencies]", "[[test]]\nname = \"more\"\npath = \"tests/more.rs\"\n[dependencies]").and(&[("tests/more.rs", "")])),
        ("a new test beside the old", green.edit("src/lib.rs", "    #[test]", "    #[test]\n    fn more() {}\n\n    #[test]")),
        ("a new test module", green.edit("src/bank.rs", "mod inner", "#[cfg(test)]\nmod more {\n    fn help() {}\n    #[test]\n    fn a() { help() }\n}\n\nmod inner")),
        ("a new module with tests", green.edit("src/lib.rs", "pub mod bank;", "pub mod bank;\nmod new;").and(&[("src/new.rs", "#[cfg(test)]\nmod tests { #[test] fn a() {} }\n")])),
        ("code above and below the tests", green.edit("src/lib.rs", "pub fn limit", "fn x() {}\n\npub fn limit")),
        ("a comment in the code", green.edit("src/bank.rs", "pub fn ok", "// why\npub fn ok")),
        ("fewer conditions", green.clone()),
    ];
    for (what, files) in cases {
        let evidence = holds(bench.green(&red, files));
        assert!(
            evidence.change.existing_tests_changed.is_empty(),
            "{what}: {evidence:?}"
        );
    }
}

#[test]
fn honest_moves_in_refactor() {
    let bench = Bench::new("cargo test");
    let green = honest_green();
    let inline = "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    fn amount() -> u32 {\n        100\n    }\n\n    #[test]\n    fn is_a_hundred() {\n        assert_eq!(limit(), amount());\n    }\n}\n";
    let apart = "use super::*;\n\nfn amount() -> u32 {\n    100\n}\n\n#[test]\nfn is_a_hundred() {\n    assert_eq!(limit(), amount());\n}\n";
    let cases: &[(&str, Files)] = &[
        ("the code alone", green.edit("src/bank.rs", "true", "!false")),
        ("inline tests into a file", green.edit("src/lib.rs", inline, "#[cfg(test)]\nmod tests;\n").and(&[("src/tests.rs", apart)])),
        ("code and tests into a module", green.edit("src/lib.rs", inline, "mod limits;\npub use limits::limit;\n").edit("src/lib.rs", "pub fn limit() -> u32 {\n    100\n}\n", "").and(&[("src/limits.rs", &format!("pub fn limit() -> u32 {{ 100 }}\n\n{inline}"))])),
        ("a module file to mod.rs", green.without("src/bank.rs").and(&[("src/bank/mod.rs", &BANK.replace("false", "true"))])),
        ("an integration test to another name", green.without("tests/whole.rs").and(&[("tests/all.rs", "mod common;\n#[test]\nfn whole() { common::check(); }\n")])),
        ("tests out of their module", green.edit("src/bank.rs", "mod inner {\n    #[test]\n    fn holds() {\n        assert!(super::ok());\n    }\n}", "mod renamed {\n    mod inner {\n        #[test]\n        fn holds() {\n            assert!(super::ok());\n        }\n    }\n}")),
        ("another path of an import", green.edit("src/lib.rs", "use super::*;", "use crate::*;")),
    ];
    for (what, files) in cases {
        match bench.refactor(&green, files) {
            super::Outcome::Holds { .. } => {}
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn dishonest_moves_in_refactor() {
    let bench = Bench::new("cargo test");
    let green = honest_green();
    let inline = green.edit(
        "src/lib.rs",
        "#[cfg(test)]\nmod tests {",
        "#[cfg(test)]\nmod moved {",
    );
    for (what, files) in [
        ("and weakens it", inline.edit("src/lib.rs", "assert_eq!(limit(), amount())", "assert_ne!(limit(), 0)")),
        ("and ignores it", inline.edit("src/lib.rs", "#[test]", "#[test]\n    #[ignore]")),
        ("behind a condition", inline.edit("src/lib.rs", "mod moved", "#[cfg(windows)]\nmod moved")),
        ("with a double beside it", inline.edit("src/lib.rs", "fn amount", "fn limit() -> u32 { 100 }\n    fn amount")),
        ("with an import from elsewhere", inline.edit("src/lib.rs", "use super::*", "use fake::*")),
        ("into a file that nothing declares", green.without("src/bank/checks.rs").and(&[("src/attic/checks.rs", CHECKS)])),
        ("two into one", green.edit("src/bank.rs", "mod inner {\n    #[test]\n    fn holds() {\n        assert!(super::ok());\n    }\n}\n", "")),
    ] {
        reasons(bench.refactor(&green, &files));
        let _ = what;
    }
}

fn script_files() -> Files {
    Files::of(&[
        (
            "run-tests.sh",
            "set -e\n. ./app.sh\ntest \"$(add 1 2)\" = 3\n",
        ),
        ("app.sh", "add() { echo 0; }\n"),
    ])
}

#[test]
fn the_script_that_the_command_names() {
    let bench = Bench::new("sh run-tests.sh");
    let red = script_files();
    let green = red.edit("app.sh", "echo 0", "echo $(($1 + $2))");
    holds(bench.green(&red, &green));
    for files in [
        green.edit("run-tests.sh", "set -e", "exit 0\nset -e"),
        green.without("run-tests.sh"),
        green.node(b"run-tests.sh", Node::Link(b"app.sh".to_vec())),
        green.node(
            b"run-tests.sh",
            Node::Script(b"set -e\n. ./app.sh\ntest \"$(add 1 2)\" = 3\n".to_vec()),
        ),
    ] {
        assert!(reasons(bench.green(&red, &files)).contains("run-tests.sh"));
        assert!(reasons(bench.refactor(&green, &files)).contains("run-tests.sh"));
        assert!(reasons(bench.no_test(&red, &files)).contains("run-tests.sh"));
    }
    let told = reasons(bench.red(
        &red,
        &red.without("run-tests.sh").and(&[("tests/a.sh", "")]),
    ));
    assert!(told.contains("names this file"), "{told}");
}

#[test]
fn package_json_and_its_runners() {
    let bench = Bench::new("npm test");
    let manifest = r#"{"name":"a","scripts":{"build":"tsc","test":"npm run unit && node check.js","unit":"jest"},"dependencies":{}}"#;
    let red = Files::of(&[
        ("package.json", manifest),
        ("src/sum.js", "module.exports = () => 0;\n"),
        ("src/sum.test.js", "test('sum', () => {});\n"),
        ("check.js", "process.exit(1)\n"),
        ("src/__snapshots__/sum.js.snap", "exports[`a`] = `1`;\n"),
    ]);
    let green = red.edit("src/sum.js", "0", "1");
    holds(bench.green(
        &red,
        &green.edit(
            "package.json",
            r#""dependencies":{}"#,
            r#""dependencies":{"x":"1"}"#,
        ),
    ));
    holds(bench.green(&red, &green.edit("package.json", "tsc", "tsc -b")));
    holds(bench.green(
        &red,
        &green.and(&[("src/other.test.js", "test('x', () => {});\n")]),
    ));
    for files in [
        green.edit(
            "package.json",
            r#""test":"npm run unit && node check.js""#,
            r#""test":"true""#,
        ),
        green.edit("package.json", r#""unit":"jest""#, r#""unit":"true""#),
        green.edit(
            "package.json",
            r#""name":"a""#,
            r#""name":"a","jest":{"testMatch":[]}"#,
        ),
        green.edit(
            "package.json",
            r#""build""#,
            r#""pretest":"node patch.js","build""#,
        ),
        green.edit("check.js", "1", "0"),
        green.edit("src/sum.test.js", "test(", "test.skip("),
        green.edit("src/__snapshots__/sum.js.snap", "1", "0"),
        green.and(&[("jest.config.js", "module.exports = {testMatch: []};\n")]),
        green.and(&[(".npmrc", "script-shell=/bin/true\n")]),
        green.and(&[("package.json", "not json")]),
    ] {
        reasons(bench.green(&red, &files));
        reasons(bench.refactor(&green, &files));
    }
}

#[test]
fn python_runners() {
    let bench = Bench::new("python -m pytest");
    let red = Files::of(&[
        (
            "pyproject.toml",
            "[project]\nname = \"a\"\ndependencies = []\n\n[tool.pytest.ini_options]\naddopts = \"-q\"\n",
        ),
        (
            "setup.cfg",
            "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n",
        ),
        ("a/sum.py", "def add(a, b): return 0\n"),
        (
            "tests/test_sum.py",
            "def test_add(): assert add(1, 2) == 3\n",
        ),
        ("tests/conftest.py", "\n"),
    ]);
    let green = red.edit("a/sum.py", "0", "a + b");
    holds(bench.green(&red, &green));
    holds(bench.green(&red, &green.edit("pyproject.toml", "[]", "[\"x\"]")));
    holds(bench.green(&red, &green.edit("setup.cfg", "name = a", "name = b")));
    for new in ["other/setup.cfg", "tests/fixtures/x/setup.cfg"] {
        holds(bench.green(&red, &green.and(&[(new, "[tool:pytest]\naddopts = -q\n")])));
    }
    for files in [
        green.edit("pyproject.toml", "-q", "-q --deselect tests/test_sum.py"),
        green.edit("setup.cfg", "-q", "-k nothing"),
        green.edit(
            "tests/conftest.py",
            "\n",
            "collect_ignore = ['test_sum.py']\n",
        ),
        green.and(&[("conftest.py", "collect_ignore = ['tests']\n")]),
        green.and(&[("pytest.ini", "[pytest]\naddopts = --co\n")]),
        green.and(&[("tests/setup.cfg", "[tool:pytest]\naddopts = --co\n")]),
        green.and(&[("pytest.py", "raise SystemExit(0)\n")]),
        green.edit(
            "tests/test_sum.py",
            "def test_add",
            "import pytest\n@pytest.mark.skip\ndef test_add",
        ),
        green.without("tests/test_sum.py").and(&[(
            "tests/sum_cases.txt",
            "def test_add(): assert add(1, 2) == 3\n",
        )]),
    ] {
        reasons(bench.green(&red, &files));
        reasons(bench.refactor(&green, &files));
    }
    // A test file that only moved.
    let moved = green.without("tests/test_sum.py").and(&[(
        "tests/unit/test_sum.py",
        "def test_add(): assert add(1, 2) == 3\n",
    )]);
    holds(bench.refactor(&green, &moved));
    reasons(bench.green(&red, &moved));
}
