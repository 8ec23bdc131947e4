//! Wall 1 of blindness: what would let prose reach a verifier does not compile.
//!
//! Each file of tests/compile-fail/ marks the lines that must be refused with the compiler's error code. The codes are compared, not
//! the compiler's words, which differ from one version to the next; and an error that is not marked fails the test too, so
//! that no case is refused for a slip of its own.

#![allow(clippy::unwrap_used)] // a test may panic

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Set in the process that only writes down what the compiler says.
const IN_ITS_OWN_PROCESS: &str = "VERI_TEST_WRITE_DOWN";

/// A line of a case and the code of the error there.
type Refusals = BTreeSet<(usize, String)>;

#[test]
fn nothing_but_its_sources_can_reach_a_verifier() {
    let copies = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wall1");
    let _ = fs::remove_dir_all(&copies);
    fs::create_dir_all(&copies).unwrap();
    let mut cases: Vec<PathBuf> =
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile-fail"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
    cases.sort();
    assert_eq!(cases.len(), 7, "{cases:?}");
    for case in &cases {
        fs::copy(case, copies.join(case.file_name().unwrap())).unwrap();
    }

    // A process of its own, because trybuild is told by environment to write down what the compiler says.
    #[allow(clippy::disallowed_methods)] // the test program itself, which ends with trybuild
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "write_down_what_the_compiler_says",
            "--nocapture",
        ])
        .env("TRYBUILD", "overwrite")
        .env(IN_ITS_OWN_PROCESS, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.success(),
        "a case compiles, or could not be tried:\n{said}"
    );

    for case in &cases {
        let marked = marked(&fs::read_to_string(case).unwrap());
        let written = copies
            .join(case.file_name().unwrap())
            .with_extension("stderr");
        let compiler = fs::read_to_string(&written)
            .unwrap_or_else(|error| panic!("{written:?}: {error}\n{said}"));
        assert!(!marked.is_empty(), "{case:?} marks nothing");
        assert_eq!(refused(&compiler), marked, "{case:?}:\n{compiler}");
    }
}

/// Does something only where the test above asks for it.
#[test]
#[allow(clippy::disallowed_methods)] // the test above speaks to it by environment
fn write_down_what_the_compiler_says() {
    if std::env::var_os(IN_ITS_OWN_PROCESS).is_none() {
        return;
    }
    let cases = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wall1/*.rs");
    trybuild::TestCases::new().compile_fail(cases);
}

fn marked(case: &str) -> Refusals {
    (1..)
        .zip(case.lines())
        .filter_map(|(number, line)| Some((number, line.split_once("//~ ")?.1.trim().to_owned())))
        .collect()
}

/// Reads `error[E0308]: …` and the `--> file:line:column` below it.
fn refused(compiler: &str) -> Refusals {
    let mut refusals = Refusals::new();
    let mut lines = compiler.lines();
    while let Some(line) = lines.next() {
        assert!(
            !line.starts_with("error: "),
            "an error without a code: {line}"
        );
        let error = line
            .strip_prefix("error[")
            .and_then(|rest| rest.split_once(']'));
        if let Some((code, _)) = error {
            let place = lines.find_map(|line| line.trim_start().strip_prefix("--> "));
            let number = place.and_then(|place| place.rsplit(':').nth(1)?.parse().ok());
            refusals.insert((number.unwrap_or(0), code.to_owned()));
        }
    }
    refusals
}
