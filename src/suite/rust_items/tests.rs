use super::*;

fn items(source: &str) -> Vec<(String, String)> {
    let file = read(source, false).unwrap();
    let text = |item: &TestItem| source[item.span.clone()].to_owned();
    file.items
        .iter()
        .map(|item| (item.name.clone(), text(item)))
        .collect()
}

fn item_names(source: &str) -> Vec<String> {
    items(source).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn what_is_a_test_item() {
    for (source, want) in [
        ("fn a() {}", vec![]),
        ("#[test] fn a() {}", vec!["fn a"]),
        (
            "#[tokio::test(flavor = \"x\")] async fn a() {}",
            vec!["fn a"],
        ),
        ("#[rstest] #[case(1)] fn a(#[case] n: u8) {}", vec!["fn a"]),
        ("#[cfg_attr(not(miri), test)] fn a() {}", vec!["fn a"]),
        ("#[cfg_attr(test, derive(Debug))] struct A;", vec![]),
        ("#[cfg(test)] use x::y;", vec!["use x ::y"]),
        ("#[cfg(all(test, unix))] mod tests {}", vec!["mod tests"]),
        (
            "#[cfg(any(test, feature = \"f\"))] struct A;",
            vec!["struct A"],
        ),
        ("#[cfg(not(test))] fn a() {}", vec![]),
        ("#[cfg(not(not(test)))] fn a() {}", vec!["fn a"]),
        ("#[cfg(feature = \"test\")] fn a() {}", vec![]),
        ("mod m { #![cfg(test)] fn a() {} }", vec!["mod m"]),
        ("#[cfg(test)] mod tests;", vec!["mod tests"]),
        (
            "mod outer { mod inner { #[test] fn a() {} } }",
            vec!["fn a"],
        ),
        ("impl A { #[cfg(test)] fn a() {} fn b() {} }", vec!["fn a"]),
        ("trait A { #[cfg(test)] fn a() {} }", vec!["fn a"]),
        (
            "proptest! { #[test] fn a(n in 0..9) {} }",
            vec!["proptest!"],
        ),
        (
            "macro_rules! t { ($n:ident) => { #[test] fn $n() {} } } t!(a);",
            vec!["macro t", "t!"],
        ),
        ("println!(\"#[test]\");", vec![]),
        ("fn a() { let s = \"#[cfg(test)] mod x;\"; }", vec![]),
    ] {
        assert_eq!(item_names(source), want, "{source}");
    }
}

#[test]
fn spans_hold_attributes_and_doc_comments_and_nothing_else() {
    let source = "fn ü() {}\r\n\r\n    /// Döc\r\n    #[test]\r\n    fn a() { \"é\"; } // after\r\nfn b() {}\r\n";
    let (_, text) = &items(source)[0];
    assert_eq!(text, "/// Döc\r\n    #[test]\r\n    fn a() { \"é\"; }");
}

#[test]
fn a_byte_order_mark_and_a_shebang_do_not_shift_spans() {
    for before in [
        "\u{feff}",
        "#!/usr/bin/env run\n",
        "\u{feff}#!/usr/bin/env run\n",
        "#![allow(x)]\n",
    ] {
        let source = format!("{before}fn a() {{}}\n#[test]\nfn b() {{}}\n");
        assert_eq!(items(&source)[0].1, "#[test]\nfn b() {}", "{before:?}");
    }
}

#[test]
fn forms_forget_layout_and_nothing_more() {
    let form = |source: &str| read(source, true).unwrap().items[0].leaves[0].form.clone();
    let one = form("#[test]\nfn a() {\n    assert_eq!(f(1, 2), \"x\n  y\");\n}");
    let other = form(
        "    #[test]\n    fn a() { // why\n        assert_eq!(\n            f(1, 2),\n            \"x\n  y\",\n        );\n    }",
    );
    assert_eq!(one, other);
    assert_ne!(
        one,
        form("#[test] fn a() { assert_eq!(f(1, 2), \"x\n    y\"); }")
    );
    assert_ne!(
        one,
        form("#[test] #[ignore] fn a() { assert_eq!(f(1, 2), \"x\n  y\"); }")
    );
}

#[test]
fn imports_are_known_by_the_names_they_bring_in() {
    let form = |source: &str| read(source, true).unwrap().items[0].leaves[0].form.clone();
    assert_eq!(form("use super::*;"), form("use crate::bank::*;"));
    assert_eq!(form("use super::{a, b};"), form("use crate::x::{b, y::a};"));
    assert_ne!(form("use super::a;"), form("use fake::a;"));
    assert_ne!(form("use super::a;"), form("use super::b as a;"));
}

#[test]
fn gates_are_what_stands_around_a_test() {
    let source = "#![cfg(any())]\n#[cfg(unix)] mod outer { #[allow(x)] #[cfg_attr(all(), cfg(windows))] mod inner { #[test] fn a() {} } }";
    let file = read(source, false).unwrap();
    assert_eq!(file.gates.len(), 1);
    let gates = &file.items[0].leaves[0].gates;
    assert_eq!(gates.len(), 2, "{gates:?}");
    let plain = read("#[cfg(test)] mod tests { #[test] fn a() {} }", false).unwrap();
    assert!(plain.items[0].leaves[1].gates.is_empty());
}

#[test]
fn declarations_of_modules_elsewhere() {
    let source = "mod a; #[cfg(test)] mod b; #[path = \"x/y.rs\"] mod c; mod d { mod e; }";
    let file = read(source, false).unwrap();
    let told: Vec<_> = file
        .declares
        .iter()
        .map(|d| (d.name.as_str(), d.test, d.path.as_deref(), d.inline.len()))
        .collect();
    assert_eq!(
        told,
        [
            ("a", false, None, 0),
            ("b", true, None, 0),
            ("c", false, Some("x/y.rs"), 0),
            ("e", false, None, 1)
        ]
    );
}

#[test]
fn what_cannot_be_parsed_is_said_with_its_place() {
    let error = read("fn a() {}\nfn b( {}\n", false).unwrap_err();
    assert_eq!(error.line, 2, "{error}");
}

#[test]
fn hostile_nesting_is_refused_and_not_followed() {
    for source in [
        format!(
            "fn a() {{ {}1{} }}",
            "(".repeat(100_000),
            ")".repeat(100_000)
        ),
        format!("fn a() {{ {}true; }}", "!".repeat(100_000)),
        format!("fn a() {{ {}1; }}", "& ".repeat(100_000)),
    ] {
        assert!(read(&source, false).is_err());
    }
    let terms = format!("fn a() {{ 1{}; }}", "+1".repeat(20_000));
    assert!(read(&terms, false).is_ok());
}

#[test]
fn ten_thousand_lines_are_read() {
    let mut source = String::from("#[cfg(test)]\nmod tests {\n");
    for n in 0..5_000 {
        source.push_str(&format!(
            "    #[test]\n    fn t{n}() {{ assert_eq!({n}, {n}); }}\n"
        ));
    }
    source.push_str("}\n");
    let file = read(&source, false).unwrap();
    assert_eq!(file.items[0].leaves.len(), 5_001);
}
