//! The written contracts, held to the program both ways: what it can say is written, and what is written it
//! says. BAIL.md, STOPPING.md, README.md, docs/journal.md and `veri help`.

use crate::scene::Scene;
use crate::sources::read_sources;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use veri::cause::Cause;
use veri::leaf::DEFAULT_GRACE;
use veri::machine::Limits;
use veri::role::StopMode;
use veri::{config, event, exit};

mod journal;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The rows of the table whose first heading is `first`, cells without their backticks.
fn table(text: &str, first: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim()
            .trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect()
    };
    let mut lines = text.lines();
    lines
        .by_ref()
        .find(|l| l.starts_with('|') && cells(l)[0] == first)
        .unwrap_or_else(|| panic!("no table begins with {first:?}"));
    lines
        .skip(1)
        .take_while(|l| l.starts_with('|'))
        .map(cells)
        .collect()
}

/// The headings of one level.
fn headings(text: &str, level: &str) -> Vec<String> {
    let found = text.lines().filter_map(|l| l.strip_prefix(level));
    found
        .map(|h| h.trim().trim_matches('`').to_owned())
        .collect()
}

#[test]
fn bail_md_lists_every_cause_as_the_program_has_it() {
    let text = document("BAIL.md");
    let written = table(&text, "cause");
    let known: Vec<Vec<String>> = Cause::ALL
        .iter()
        .map(|cause| {
            let class = cause.class();
            vec![
                cause.as_str().to_owned(),
                class.as_str().to_owned(),
                class.exit_code().to_string(),
                cause.meaning().to_owned(),
            ]
        })
        .collect();
    assert_eq!(written, known);
    let words: Vec<&str> = Cause::ALL.iter().map(|c| c.as_str()).collect();
    assert_eq!(headings(&text, "### "), words);
    for section in text.split("\n### ").skip(1) {
        for part in ["**Means.**", "**Kept.**", "**Do.**"] {
            let name = section.lines().next().unwrap_or_default();
            assert!(section.contains(part), "{name} does not say {part}");
        }
    }
}

#[test]
fn stopping_md_lists_every_mode() {
    let text = document("STOPPING.md");
    let written: Vec<String> = table(&text, "mode")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    // A mode more does not compile here, so that it cannot be left out below.
    let all = [StopMode::AtLedger, StopMode::AtLeaf, StopMode::Now];
    for mode in all {
        match mode {
            StopMode::AtLedger | StopMode::AtLeaf | StopMode::Now => {}
        }
    }
    assert_eq!(written, all.map(|mode| mode.as_str().to_owned()));
    assert!(written.iter().all(|word| StopMode::parse(word).is_some()));
    assert!(text.contains(&format!("exit code {}", exit::STOPPED)));
}

#[test]
fn exit_codes_are_those_of_the_program_in_help_and_readme() {
    let scene = Scene::bare();
    let help = scene.veri(&["help", "exit-codes"]).expect(0).out;
    let said: BTreeMap<u8, String> = help
        .lines()
        .map(|line| {
            let (code, meaning) = line.trim().split_once("  ").unwrap();
            (code.parse().unwrap(), meaning.to_owned())
        })
        .collect();
    let readme: BTreeMap<u8, String> = table(&document("README.md"), "exit")
        .into_iter()
        .map(|row| (row[0].parse().unwrap(), row[1].clone()))
        .collect();
    assert_eq!(said, readme);
    let source = document("src/exit.rs");
    let constants: BTreeSet<u8> = source
        .lines()
        .filter_map(|l| {
            l.strip_prefix("pub const ")?
                .trim_end_matches(';')
                .rsplit_once("= ")
        })
        .map(|(_, code)| code.parse().unwrap())
        .collect();
    assert_eq!(said.keys().copied().collect::<BTreeSet<u8>>(), constants);
}

#[test]
fn help_on_causes_is_the_table_of_bail_md() {
    let help = Scene::bare().veri(&["help", "causes"]).expect(0).out;
    let said: Vec<Vec<&str>> = help
        .lines()
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    let written = table(&document("BAIL.md"), "cause");
    let written: Vec<Vec<&str>> = written
        .iter()
        .map(|row| vec![row[2].as_str(), row[0].as_str(), row[1].as_str()])
        .collect();
    assert_eq!(said, written);
}

#[test]
fn every_variable_that_the_program_knows_is_in_its_help() {
    let help = Scene::bare().veri(&["help", "environment"]).expect(0).out;
    let names = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
            .filter(|word| word.len() > 5 && word.starts_with("VERI_") && !word.ends_with('_'))
            .map(str::to_owned)
            .collect()
    };
    let mut used = BTreeSet::new();
    for source in read_sources()
        .iter()
        .filter(|s| !s.test && s.name != "src/cli/help.rs")
    {
        for (_, text) in &source.literals {
            // A documentation comment is a text in quotes too; a variable's name stands alone.
            // `VERI_EDITMSG` is a file.
            if names(text)
                .iter()
                .any(|name| *text == format!("\"{name}\"") && name != "VERI_EDITMSG")
            {
                used.extend(names(text));
            }
        }
    }
    assert_eq!(names(&help), used);
}

#[test]
fn the_readme_lists_every_key_of_the_configuration() {
    fn flatten(prefix: &str, value: &Value, keys: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    let dot = if prefix.is_empty() { "" } else { "." };
                    flatten(&format!("{prefix}{dot}{key}"), value, keys);
                }
            }
            _ => {
                keys.insert(prefix.to_owned());
            }
        }
    }
    let mut known = BTreeSet::new();
    flatten(
        "",
        &serde_json::to_value(config::Config::default()).unwrap(),
        &mut known,
    );
    known.remove("forge");
    known.remove("agents.command");
    let table_of_forge = serde_json::to_value(config::ForgeTable::default()).unwrap();
    flatten("forge", &table_of_forge, &mut known);
    known.insert("agents.command.argv".to_owned());
    let written: BTreeSet<String> = table(&document("README.md"), "key")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(written, known);
    let limits = Limits::default();
    for (key, default) in [
        ("limits.stuck_retries", u64::from(limits.stuck_retries)),
        ("limits.revisions", u64::from(limits.revisions)),
        ("limits.malformed", u64::from(limits.malformed)),
        ("limits.grace", DEFAULT_GRACE.as_secs()),
    ] {
        let rows = table(&document("README.md"), "key");
        let row = rows.iter().find(|row| row[0] == key).unwrap();
        assert_eq!(row[1], default.to_string(), "{key}");
    }
}

#[test]
fn the_schema_of_the_journal_is_a_promise() {
    let printed = Scene::bare()
        .veri(&["prompt", "schema", "events"])
        .expect(0)
        .out;
    let schema: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(schema, event::schema());
    insta::assert_snapshot!("journal-schema", printed);
}

/// The shell blocks of README.md between two marks, one after the other.
fn commands_of_readme(begin: &str, end: &str) -> String {
    let text = document("README.md");
    let (_, after) = text.split_once(begin).expect("the first mark");
    let (part, _) = after.split_once(end).expect("the second mark");
    let blocks = part.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .collect()
}

#[test]
fn the_first_run_of_the_readme_goes_as_it_says() {
    let mut scene = Scene::bare();
    let path = std::env::var("PATH").unwrap();
    let program = Path::new(crate::scene::VERI).parent().unwrap();
    scene.env.push((
        "PATH".into(),
        format!("{}:{path}", program.display()).into(),
    ));
    let script = commands_of_readme("<!-- first run -->", "<!-- end of first run -->");
    let mut shell = scene.command("sh");
    shell.args(["-euc", &script]);
    let ran = crate::scene::finish(shell).expect(0);
    assert!(ran.last().starts_with("done: "), "{}", ran.err);
    let pull = std::fs::read_to_string(scene.path("repo/try-veri/forge/pulls/1.md")).unwrap();
    assert!(
        pull.contains("draft: true") && pull.contains("Closes #1"),
        "{pull}"
    );
    scene.nothing_is_left_running();
}

#[test]
fn an_issue_that_is_not_known_is_a_mistake_of_the_command_line_and_no_bug() {
    let scene = Scene::new();
    let said = scene
        .veri(&["log", "--issue", "99"])
        .expect(i32::from(exit::USAGE));
    assert!(said.err.contains("veri status"), "{}", said.err);
    scene.veri(&["log"]).expect(i32::from(exit::USAGE));
}
