//! What the files may say, and how they are refused.

use super::*;

fn load_text(text: &str) -> Result<Config> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".veri.toml");
    std::fs::write(&path, text).unwrap();
    load(Some(&path), None)
}

#[test]
fn an_unknown_key_is_an_error_with_the_nearest_known_one() {
    let error = format!("{:#}", load_text("[tests]\ncomand = 'x'").unwrap_err());
    assert!(
        error.contains("`comand` is not known") && error.contains("`command`"),
        "{error}"
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_said_in_the_words_of_the_file() {
    for (text, said) in [
        (
            "limits.timeout = '5m'",
            "string \"5m\", expected a whole number (at limits.timeout)",
        ),
        (
            "agents.command = 'a'",
            "agents.command.argv = [\"../agent\"]",
        ),
        ("tests = 1", "expected a table (at tests)"),
        ("checks = 'a'", "expected a list (at checks)"),
    ] {
        let error = format!("{:#}", load_text(text).unwrap_err());
        assert!(
            error.contains(said) && error.lines().count() == 1,
            "{error}"
        );
    }
}

#[test]
fn a_word_outside_its_set_is_an_error_with_the_set() {
    let error = format!(
        "{:#}",
        load_text("[cycle]\nrefactor = 'always'").unwrap_err()
    );
    assert!(error.contains("step, end, off"), "{error}");
}

#[test]
fn a_glob_that_cannot_be_read_is_an_error_at_once() {
    for glob in ["a[", "!b{"] {
        let error = load_text(&format!("[tests]\npaths = ['{glob}']")).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("tests.paths") && text.contains(glob),
            "{text}"
        );
    }
}

#[test]
fn a_limit_that_nothing_can_be_measured_with_is_refused_and_not_multiplied() {
    for text in [
        "[limits]\ntail_kib = 9223372036854775807",
        "[limits]\noutput_mib = 9223372036854775807",
        "[limits]\nmax_file_mib = 9223372036854775807",
        "[limits]\nwall_minutes = 9223372036854775807",
        "[limits]\ntimeout = 9223372036854775807",
        "[limits]\nhook_timeout = 0",
        "[tests]\ntimeout = 0",
    ] {
        let key = text
            .split(' ')
            .next()
            .unwrap_or_default()
            .replace("]\n", ".");
        let error = format!("{:#}", load_text(text).unwrap_err());
        assert!(
            error.contains(key.trim_start_matches('[')) && error.contains("it may be"),
            "{error}"
        );
    }
}

#[test]
fn the_repository_stands_above_the_user_key_by_key() {
    let dir = tempfile::tempdir().unwrap();
    let (user, repository) = (dir.path().join("u.toml"), dir.path().join("r.toml"));
    std::fs::write(
        &user,
        "base = 'dev'\n[limits]\nrevisions = 1\nmalformed = 5",
    )
    .unwrap();
    std::fs::write(&repository, "[limits]\nrevisions = 7").unwrap();
    let config = load(Some(&repository), Some(&user)).unwrap();
    assert_eq!(config.base.as_deref(), Some("dev"));
    assert_eq!(
        (config.limits.revisions, config.limits.malformed),
        (Some(7), Some(5))
    );
}

#[test]
fn a_forge_is_an_address_or_a_table() {
    assert_eq!(
        load_text("forge = 'dir:f'").unwrap().forge_address(),
        Some("dir:f")
    );
    let config = load_text("[forge]\nat = 'dir:f'\ntrusted_authors = ['ann']").unwrap();
    assert_eq!(config.forge_address(), Some("dir:f"));
    assert_eq!(config.forge_table().trusted_authors, ["ann"]);
}

#[test]
fn absent_files_are_the_defaults() {
    let missing = Path::new("/nonexistent/config.toml");
    assert_eq!(
        load(Some(missing), Some(missing)).unwrap(),
        Config::default()
    );
}
