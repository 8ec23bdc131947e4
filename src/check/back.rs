//! What is left when test lines are put back, by example and by property.

use super::bench::{Bench, Files, Node};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn back(bench: &Bench, from: &Files, to: &Files) -> BTreeMap<String, String> {
    let tree =
        put_test_lines_back(&bench.repo, bench.tree(from), bench.tree(to), &bench.paths).unwrap();
    let files = tree::flatten(&bench.repo, tree).unwrap();
    let text =
        |entry| String::from_utf8_lossy(&tree::content(&bench.repo, entry).unwrap()).into_owned();
    files
        .into_iter()
        .map(|(path, entry)| (show(&path), text(entry)))
        .collect()
}

#[test]
fn test_items_go_and_stubs_stay() {
    let bench = Bench::new("cargo test");
    let from = Files::of(&[("src/lib.rs", "fn a() {}\n"), ("tests/old.rs", "old\n")]);
    let to = Files::of(&[
        (
            "src/lib.rs",
            "fn a() {}\nfn stub() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn é() {}\n}\n// end\n",
        ),
        ("src/new.rs", "#[test] fn a() {} fn b() {}\n"),
        ("tests/new.rs", "new\n"),
    ]);
    let left = back(&bench, &from, &to);
    assert_eq!(left["src/lib.rs"], "fn a() {}\nfn stub() {}\n\n// end\n");
    assert_eq!(left["src/new.rs"], " fn b() {}\n");
    assert_eq!(left["tests/old.rs"], "old\n");
    assert!(!left.contains_key("tests/new.rs"), "{left:?}");
}

#[test]
fn a_declared_module_goes_with_its_declaration() {
    let bench = Bench::new("cargo test");
    let from = Files::of(&[("src/lib.rs", "fn a() {}\n")]);
    let to = Files::of(&[
        (
            "src/lib.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\n#[path = \"odd/place.rs\"]\nmod odd;\n",
        ),
        ("src/tests.rs", "mod deeper;\n"),
        ("src/tests/deeper.rs", "#[test] fn a() {}\n"),
        ("src/odd/place.rs", "#[test] fn a() {}\n"),
    ]);
    assert_eq!(
        back(&bench, &from, &to),
        BTreeMap::from([("src/lib.rs".to_owned(), "fn a() {}\n".to_owned())])
    );
}

#[test]
fn what_stood_in_the_way_of_a_test_file_goes() {
    let bench = Bench::new("cargo test");
    let from = Files::of(&[("tests/a.rs", "a\n"), ("test.py", "b\n")]);
    let to = Files::of(&[("tests", "no folder\n"), ("test.py/x", "no file\n")]);
    let left = back(&bench, &from, &to);
    assert_eq!(
        left.into_keys().collect::<Vec<_>>(),
        ["test.py", "tests/a.rs"]
    );
}

#[test]
fn the_manifest_keeps_its_dependencies() {
    let bench = Bench::new("npm test");
    let from = Files::of(&[
        (
            "package.json",
            r#"{"scripts":{"test":"jest"},"dependencies":{}}"#,
        ),
        ("Cargo.toml", "[package]\nname = \"a\"\n"),
        ("tox.ini", "a\n"),
    ]);
    let to = Files::of(&[
        (
            "package.json",
            r#"{"scripts":{"test":"true","posttest":"x","build":"b"},"dependencies":{"x":"1"},"jest":{}}"#,
        ),
        (
            "Cargo.toml",
            "[package]\nname = \"a\"\nautotests = false\n[lib]\ntest = false\n[dependencies]\nx = \"1\"\n",
        ),
        ("tox.ini", "b\n"),
    ]);
    let left = back(&bench, &from, &to);
    let json: serde_json::Value = serde_json::from_str(&left["package.json"]).unwrap();
    assert_eq!(
        json.to_string(),
        r#"{"scripts":{"test":"jest","build":"b"},"dependencies":{"x":"1"}}"#
    );
    let cargo: toml::Table = left["Cargo.toml"].parse().unwrap();
    assert_eq!(
        cargo,
        "[package]\nname = \"a\"\n[dependencies]\nx = \"1\"\n"
            .parse()
            .unwrap()
    );
    assert_eq!(left["tox.ini"], "a\n");
}

#[test]
fn names_that_are_no_text_and_links_stay_what_they_are() {
    let bench = Bench::new("cargo test");
    let from = Files::of(&[]).node(b"tests/\xff", Node::File(vec![0, 159]));
    let to = Files::of(&[("-rf", "x")]).node(b"tests/\xff", Node::Link(b"x".to_vec()));
    let left = back(&bench, &from, &to);
    assert_eq!(left.into_keys().collect::<Vec<_>>(), ["-rf", "tests/\\xff"]);
}

/// One source, from a choice for each of its places.
fn source(choices: &[(u8, u8)], crlf: bool) -> String {
    let mut top = String::new();
    let mut outer = String::new();
    let mut block = String::new();
    for (n, (what, place)) in choices.iter().enumerate() {
        let item = match what % 7 {
            0 => continue,
            1 => format!("/// Döc €\n#[test]\nfn t{n}() {{ \"é\"; }}\n"),
            2 => format!("#[test] fn t{n}() {{}} // beside\n"),
            3 => format!(
                "#[cfg(test)]\nmod t{n} {{\n    use super::*;\n    #[test]\n    fn ü() {{}}\n}}\n"
            ),
            4 => format!("fn code{n}() {{}}\n"),
            5 => "#[cfg(test)] use std::fmt;\n".to_owned(),
            _ => format!("const C{n}: &str = \"#[test] {{ ß\";\n"),
        };
        match place % 3 {
            0 => top.push_str(&item),
            1 => outer.push_str(&item),
            _ if what % 7 == 4 => block.push_str(&item),
            _ if what % 7 == 1 => block.push_str(&format!("#[cfg(test)] fn m{n}() {{}}\n")),
            _ => {}
        }
    }
    let mut all = top;
    if !outer.is_empty() {
        all.push_str(&format!("pub mod outer {{\n{outer}}}\n"));
    }
    if !block.is_empty() {
        all.push_str(&format!("impl Ä {{\n{block}}}\n"));
    }
    if crlf { all.replace('\n', "\r\n") } else { all }
}

/// A tree's Rust tests, so that they can be compared: by file, place and text.
fn tests_of(bench: &Bench, tree: git2::Oid) -> Vec<(String, String)> {
    let lines = TestLines::of(&bench.repo, tree, &bench.paths).unwrap();
    assert!(lines.unparsable.is_empty(), "{:?}", lines.unparsable);
    let mut all: Vec<(String, String)> = lines
        .rust
        .values()
        .flat_map(|file| &file.items)
        .flat_map(|item| &item.leaves)
        .map(|leaf| (format!("{}::{}", leaf.module, leaf.name), leaf.text.clone()))
        .collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn put_back_the_tests_are_the_base_s_and_the_code_is_the_candidate_s(
        old in proptest::collection::vec((0u8..7, 0u8..3), 0..9),
        new in proptest::collection::vec((0u8..7, 0u8..3), 0..9),
        crlf in any::<bool>(),
    ) {
        let bench = Bench::new("cargo test");
        let files = |text: String| bench.tree(&Files::of(&[("src/lib.rs", &text)]));
        let (base, candidate) = (files(source(&old, crlf)), files(source(&new, false)));
        let left = put_test_lines_back(&bench.repo, base, candidate, &bench.paths).unwrap();
        prop_assert_eq!(tests_of(&bench, left), tests_of(&bench, base));
        let none = files(String::new());
        let code = |tree| {
            let bare = put_test_lines_back(&bench.repo, none, tree, &bench.paths).unwrap();
            let entry = tree::flatten(&bench.repo, bare).unwrap()[b"src/lib.rs".as_slice()];
            let text = tree::content(&bench.repo, entry).unwrap();
            let text = String::from_utf8(text).unwrap();
            let lines: Vec<String> = text.lines().filter(|l| l.contains("code") || l.contains("const")).map(str::to_owned).collect();
            lines
        };
        prop_assert_eq!(code(left), code(candidate));
        // And nothing of it counts as a change of tests.
        let (before, after) = (
            TestLines::of(&bench.repo, base, &bench.paths).unwrap(),
            TestLines::of(&bench.repo, left, &bench.paths).unwrap(),
        );
        let change = changed(&bench.repo, &before, &after).unwrap();
        prop_assert!(change.test_items_added.is_empty() && change.test_items_removed.is_empty(), "{:?}", change);
    }
}
