//! Every file of `ledger-examples/` is what its `.expected` says: a good one as JSON, a bad one by its error.
//!
//! `VERI_BLESS=1 cargo test --test ledger_examples` writes what is seen as what is expected, to be read before
//! it is committed.

use std::path::{Path, PathBuf};
use veri::ledger::Ledger;

/// The ledgers of a folder, and what is expected of each.
fn examples(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("ledger-examples")
        .join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    assert!(
        files.len() > 10,
        "the examples are missing in {}",
        folder.display()
    );
    files
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

fn check(path: &Path, seen: &str) {
    let file = path.with_extension("expected");
    #[allow(
        clippy::disallowed_methods,
        reason = "a test's own switch, and no part of the program"
    )]
    if std::env::var_os("VERI_BLESS").is_some() {
        std::fs::write(&file, format!("{seen}\n")).unwrap();
    }
    let expected = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(seen, expected.trim_end(), "{}", path.display());
}

#[test]
fn good_ledgers_are_read_as_expected_and_kept_byte_for_byte() {
    for (path, bytes) in examples("good") {
        let ledger = Ledger::parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(ledger.as_bytes(), bytes, "{}", path.display());
        check(
            &path,
            &serde_json::to_string_pretty(&ledger.to_json()).unwrap(),
        );
        for step in ledger.steps() {
            let turned = if step.ticked {
                ledger.untick(step.number)
            } else {
                ledger.tick(step.number)
            };
            let turned = turned.unwrap();
            let differ = bytes.iter().zip(turned.as_bytes()).filter(|(a, b)| a != b);
            assert_eq!(differ.count(), 1, "{}", path.display());
            assert_eq!(Ledger::parse(turned.as_bytes()).unwrap(), turned);
        }
    }
}

#[test]
fn bad_ledgers_are_refused_where_and_why_is_expected() {
    for (path, bytes) in examples("bad") {
        match Ledger::parse(&bytes) {
            Ok(_) => panic!("{} was read", path.display()),
            Err(error) => check(&path, &error.to_string()),
        }
    }
}

#[test]
fn no_expectation_has_lost_its_ledger() {
    for folder in ["good", "bad"] {
        let count = examples(folder).len();
        let all = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("ledger-examples")
            .join(folder);
        assert_eq!(all.read_dir().unwrap().count(), 2 * count, "{folder}");
    }
}
