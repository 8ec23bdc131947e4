//! What docs/journal.md promises of lines and records, held to those of real runs.

use super::{document, table};
use crate::scene::{Agent, REJECT, Scene};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use veri::event;
use veri::leaf::KillWhy;

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
    let scene = Scene::unconfined();
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
    let help = scene.veri(&["help", "files"]).expect(0).out;
    for folder in std::fs::read_dir(home).unwrap() {
        let folder = folder.unwrap().file_name().into_string().unwrap();
        assert!(help.contains(&format!("<repo-id>/{folder}/")), "{folder}");
    }
    let refs = scene.git(&["for-each-ref", "--format=%(refname)", "refs/veri/issue-42"]);
    assert!(refs.contains("refs/veri/issue-42/snapshot"), "{refs}");
}

#[test]
fn the_records_of_a_launch_have_the_documented_fields_and_reasons() {
    let scene = Scene::bare();
    scene
        .veri(&[
            "leaf",
            "run",
            "late",
            "--timeout",
            "1",
            "--",
            "sleep",
            "1000",
        ])
        .expect(2);
    for never in ["--timeout", "--first-sign", "--idle"] {
        let ran = scene.veri(&["leaf", "run", "never", never, "0", "--", "true"]);
        ran.expect(64).says("0 is not in 1..=");
    }
    let rows = table(&document("docs/journal.md"), "record");
    let written = |file: &str| -> BTreeSet<String> {
        let of = rows
            .iter()
            .filter(|row| row[0] == "all" || row[0].contains(file));
        let names = of.flat_map(|row| row[1].split('`').step_by(2));
        names
            .filter(|name| !name.contains(", "))
            .map(str::to_owned)
            .collect()
    };
    let launch = scene.repo().join(".tdd/runs");
    let mut seen = BTreeSet::new();
    for file in std::fs::read_dir(launch).unwrap() {
        let path = file.unwrap().path();
        let kind = path.extension().unwrap().to_str().unwrap().to_owned();
        if ["pid", "exit", "kill"].contains(&kind.as_str()) {
            let record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let has: BTreeSet<String> = record.as_object().unwrap().keys().cloned().collect();
            let mut promised = written(&kind);
            // Of a leaf that is not confined, nothing is said.
            promised.remove("sandbox");
            // Nor of those that could not be ended, when there are none.
            promised.remove("left");
            assert_eq!(has, promised, "{kind}");
            seen.insert(kind);
        }
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    // A reason more does not compile here, so that it cannot be left out below.
    let all = [
        KillWhy::Stop,
        KillWhy::Wall,
        KillWhy::FirstSign,
        KillWhy::Idle,
        KillWhy::Lingering,
        KillWhy::Stuck,
        KillWhy::Waits,
    ];
    for why in all {
        match why {
            KillWhy::Stop | KillWhy::Wall | KillWhy::FirstSign | KillWhy::Idle => {}
            KillWhy::Lingering | KillWhy::Stuck | KillWhy::Waits => {}
        }
    }
    let row = rows.iter().find(|r| r[0] == ".kill" && r[1] == "why");
    let words = row.unwrap()[2].split('`').map(str::to_owned);
    let words: BTreeSet<String> = words
        .filter(|w| !w.is_empty() && !w.contains([' ', ':', ';', ',']))
        .collect();
    let known: BTreeSet<String> = all.map(|why| why.as_str().to_owned()).into();
    assert_eq!(words, known);
}
