//! What no phase allows, what is listed, and what the verifier is shown of tests.

use super::bench::{Bench, Files, Node, holds, reasons};
use super::*;
use std::collections::BTreeMap;

fn base() -> Files {
    Files::of(&[("app.sh", "run\n"), ("tests/add.sh", "true\n")])
}

#[test]
fn findings_of_any_phase() {
    let bench = Bench::new("sh run.sh");
    let conflict = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n";
    let link = |target: &str| Node::Link(target.as_bytes().to_vec());
    let base = base().node(b"old", link("/etc"));
    let cases: Vec<(&str, Files, Option<FindingKind>)> = vec![
        (
            "markers",
            base.and(&[("a.txt", conflict)]),
            Some(FindingKind::ConflictMarkers),
        ),
        (
            "markers, CRLF",
            base.and(&[("a.txt", &conflict.replace('\n', "\r\n"))]),
            Some(FindingKind::ConflictMarkers),
        ),
        (
            "markers in a fixture",
            base.and(&[("tests/fixtures/a.txt", conflict)]),
            None,
        ),
        ("a heading", base.and(&[("a.md", "Title\n=======\n")]), None),
        (
            "too large",
            base.and(&[("a.bin", &"x".repeat(10_001))]),
            Some(FindingKind::TooLarge),
        ),
        (
            "a submodule",
            base.node(b"sub", Node::Submodule),
            Some(FindingKind::Submodule),
        ),
        (
            "absolute link",
            base.node(b"l", link("/etc/passwd")),
            Some(FindingKind::Link),
        ),
        (
            "link up and out",
            base.node(b"d/l", link("../../x")),
            Some(FindingKind::Link),
        ),
        ("link within", base.node(b"d/l", link("../app.sh")), None),
        (
            "link into .git",
            base.node(b"l", link(".git/config")),
            Some(FindingKind::Link),
        ),
        (
            "link through a link",
            base.node(b"a/b", link("../c"))
                .node(b"c", link("d/e"))
                .node(b"l", link("a/b/../../../x")),
            Some(FindingKind::Link),
        ),
        ("link to itself", base.node(b"l", link("l")), None),
        (".tdd", base.and(&[(".tdd/x", "")]), Some(FindingKind::Tdd)),
        (
            "strange names",
            base.node(b"-rf\n\xff", Node::File(b"x".to_vec())),
            None,
        ),
    ];
    for (what, files, want) in cases {
        let ask = AnyAsk {
            base_tree: bench.tree(&base),
            candidate: bench.tree(&files),
            max_file_bytes: 10_000,
            paths: &bench.paths,
        };
        let found = any_phase(&bench.repo, &ask).unwrap();
        assert_eq!(
            found.iter().map(|f| f.kind).collect::<Vec<_>>(),
            want.into_iter().collect::<Vec<_>>(),
            "{what}: {found:?}"
        );
    }
}

#[test]
fn what_is_listed() {
    let bench = Bench::new("sh run.sh");
    let to = base().and(&[
        (".github/workflows/ci.yml", ""),
        (".husky/pre-commit", ""),
        (".veri.toml", ""),
        ("requirements.txt", ""),
        ("app.sh", ""),
        ("tests/new.sh", ""),
    ]);
    let listed = holds(bench.green(&base(), &to)).change.listed;
    let json = serde_json::to_string(&listed).unwrap();
    assert_eq!(
        json,
        r#"{"ci":[".github/workflows/ci.yml"],"hooks":[".husky/pre-commit"],"veri_files":[".veri.toml"],"dependencies":["requirements.txt"],"stubs":["app.sh"],"new_tests":["tests/new.sh"]}"#
    );
    assert_eq!(serde_json::from_str::<Listed>(&json).unwrap(), listed);
}

#[test]
fn added_test_lines_are_the_tests_alone() {
    let bench = Bench::new("cargo test");
    let from = Files::of(&[("src/lib.rs", "pub fn a() {}\r\n"), ("tests/bin", "a\0b")]);
    let to = from
        .and(&[("src/lib.rs", "pub fn a() {}\r\npub fn stub() {}\r\n#[cfg(test)]\r\nmod tests {\r\n    #[test]\r\n    fn é() {}\r\n}\r\n"), ("tests/bin", "a\0c")])
        .node(b"tests/\xff.txt", Node::File(b"line\n".to_vec()));
    let added = added_test_lines(
        &bench.repo,
        bench.tree(&from),
        bench.tree(&to),
        &bench.paths,
    )
    .unwrap();
    let added: BTreeMap<Vec<u8>, Vec<String>> = added.into_iter().collect();
    assert_eq!(
        added[b"src/lib.rs".as_slice()],
        [
            "#[cfg(test)]",
            "mod tests {",
            "    #[test]",
            "    fn é() {}",
            "}"
        ]
    );
    assert_eq!(added[b"tests/\xff.txt".as_slice()], ["line"]);
    assert!(added[b"tests/bin".as_slice()].is_empty());
    let all = added_lines(&bench.repo, bench.tree(&from), bench.tree(&to), &|path| {
        path == b"src/lib.rs"
    })
    .unwrap();
    assert_eq!(all[0].1.len(), 6);
}

#[test]
fn paths_are_shown_so_that_none_breaks_a_line() {
    assert_eq!(show(b"a\nb\\\xffc\xc3\xa9"), "a\\x0ab\\\\\\xffc\u{e9}");
}

/// Rust 2015 allowed `type A = Fn();`, which syn does not read.
#[test]
fn a_source_of_an_old_edition_keeps_its_tests_all_the_same() {
    let bench = Bench::new("cargo test");
    let from = Files::of(&[(
        "src/lib.rs",
        "type A = Fn(u8) + Send;\nfn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n",
    )]);
    holds(bench.green(
        &from,
        &from.edit("src/lib.rs", "fn a() {}", "fn a() { b() }"),
    ));
    let cheat = from.edit("src/lib.rs", "#[test]", "#[test] #[ignore]");
    assert!(reasons(bench.green(&from, &cheat)).contains("first test"));
    assert!(reasons(bench.refactor(&from, &cheat)).contains("first test"));
    let ask = bench.ask(bench.tree(&from), bench.tree(&cheat));
    assert!(
        changed(
            &bench.repo,
            &TestLines::of(&bench.repo, ask.from, ask.paths).unwrap(),
            &TestLines::of(&bench.repo, ask.candidate, ask.paths).unwrap()
        )
        .unwrap()
        .adds_test_lines()
    );
}

#[test]
fn modules_of_one_name_for_two_platforms_get_their_own_tests_back() {
    let bench = Bench::new("cargo test");
    let from = Files::of(&[(
        "src/lib.rs",
        "#[cfg(unix)]\nmod a {\n    #[cfg(test)]\n    fn u() {}\n}\n#[cfg(windows)]\nmod a {\n    #[cfg(test)]\n    fn w() {}\n}\n",
    )]);
    let to = from
        .edit("src/lib.rs", "    #[cfg(test)]\n    fn u() {}\n", "")
        .edit("src/lib.rs", "    #[cfg(test)]\n    fn w() {}\n", "");
    let (from, to) = (bench.tree(&from), bench.tree(&to));
    let left = put_test_lines_back(&bench.repo, from, to, &bench.paths).unwrap();
    let lines = |tree| TestLines::of(&bench.repo, tree, &bench.paths).unwrap();
    assert_eq!(
        protect::in_place(&lines(from), &lines(left)),
        Vec::<String>::new()
    );
}
