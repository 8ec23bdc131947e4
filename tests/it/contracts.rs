//! The written contracts, held to the program both ways: what it can say is written, and what is written it
//! says. BAIL.md, STOPPING.md, README.md, docs/journal.md and `veri help`.

use crate::scene::{Agent, REJECT, Scene};
use crate::sources::read_sources;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use veri::cause::Cause;
use veri::role::StopMode;
use veri::{config, event, exit};

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

/// The words of the events, from the schema, and what docs/journal.md says of each: its own fields.
fn documented_fields() -> BTreeMap<String, BTreeSet<String>> {
    let text = document("docs/journal.md");
    let mut fields: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for section in text.split("\n### ").skip(1) {
        let name = section.lines().next().unwrap().trim().trim_matches('`');
        let of: BTreeSet<String> = section
            .lines()
            .filter(|l| l.starts_with("| `"))
            .filter_map(|l| l.split(" | ").next())
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .map(str::to_owned)
            .collect();
        fields.insert(name.to_owned(), of);
    }
    fields
}

#[test]
fn every_line_of_a_real_run_has_the_promised_keys_and_only_documented_fields() {
    let scene = Scene::new();
    scene.agent(&Agent {
        verify: format!(
            "if [ $VERI_PHASE = green ] && ! grep -q again src/lib.sh; then {REJECT}; else {}; fi",
            Agent::default().verify
        ),
        green: format!(
            "{}\n[ $VERI_ATTEMPT = 1 ] || echo '# again' >> src/lib.sh",
            Agent::default().green
        ),
        ..Agent::default()
    });
    // A bail first, so that its line is seen, too.
    scene
        .tdd(&["--verifier", "command:./nowhere"])
        .bails("agent-unavailable");
    scene.tdd(&[]).expect(0);

    let schema = event::schema();
    let words = |of: &Value| -> BTreeSet<String> {
        let list = of["oneOf"].as_array().or(of["enum"].as_array()).unwrap();
        list.iter()
            .map(|w| w["const"].as_str().or(w.as_str()).unwrap().to_owned())
            .collect()
    };
    let events = words(&schema["$defs"]["Kind"]);
    let promised: BTreeSet<String> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let always = [
        "actor",
        "attempt",
        "event",
        "issue",
        "phase",
        "run",
        "seq",
        "skill_commit",
        "step",
        "title",
        "ts",
        "v",
    ];
    assert_eq!(promised, always.map(str::to_owned).into());
    let documented = documented_fields();
    let every = documented.get("every event").unwrap();
    let described: BTreeSet<String> = documented
        .keys()
        .filter(|k| *k != "every event")
        .cloned()
        .collect();
    assert_eq!(described, events);

    let text = std::fs::read_to_string(scene.worktree().join(".tdd/events.jsonl")).unwrap();
    let mut seen = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let object = line.as_object().unwrap();
        for key in &promised {
            assert!(object.contains_key(key), "line {}: no {key}", index + 1);
        }
        assert_eq!(
            (line["v"].as_u64(), line["seq"].as_u64()),
            (Some(1), Some(index as u64 + 1))
        );
        let ts = line["ts"].as_str().unwrap();
        assert!(
            ts.len() == 24 && ts.ends_with('Z') && ts.as_bytes()[19] == b'.',
            "{ts}"
        );
        assert_eq!(line["issue"], 42);
        let kind = line["event"].as_str().unwrap().to_owned();
        assert!(events.contains(&kind), "{kind}");
        let own = &documented[&kind];
        for key in object.keys().filter(|k| !promised.contains(*k)) {
            assert!(
                own.contains(key) || every.contains(key),
                "{kind} has {key}: {line}"
            );
        }
        seen.insert(kind);
    }
    let unseen: Vec<&String> = events.difference(&seen).collect();
    assert_eq!(unseen, ["stop"], "a run like this shows every other event");

    // The files that `veri help files` names are where it says.
    let tdd = scene.worktree().join(".tdd");
    for name in [
        "issue-42.md",
        "events.jsonl",
        "issue-42-skill-commit",
        "runs",
        "verify-green.exit",
    ] {
        assert!(tdd.join(name).exists(), "{name}");
    }
    let home = scene.worktree();
    let home = home.parent().unwrap().parent().unwrap();
    for name in [
        "work/issue-42.lock",
        "ground/check",
        "ground/check.d",
        "results",
    ] {
        assert!(home.join(name).exists(), "{name}");
    }
    let refs = scene.git(&["for-each-ref", "--format=%(refname)", "refs/veri/issue-42"]);
    assert!(refs.contains("refs/veri/issue-42/snapshot"), "{refs}");
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
