//! What must hold of every finished branch, whoever worked on it: a walk over its commits.

use crate::scene::Scene;
use std::collections::BTreeSet;
use std::fs;
use veri::ledger::Ledger;
use veri::role::Phase;

/// One commit as the walk sees it.
struct Commit {
    id: String,
    subject: String,
    trailers: Vec<(String, String)>,
    paths: Vec<String>,
}

impl Commit {
    fn read(scene: &Scene, id: &str) -> Commit {
        let message = scene.git(&["log", "-1", "--format=%B", id]);
        let (subject, rest) = message.split_once("\n\n").unwrap_or((&message, ""));
        let trailers = rest
            .trim_end()
            .lines()
            .map(|line| {
                let (key, value) = line
                    .split_once(": ")
                    .unwrap_or_else(|| panic!("more than trailers in {message:?}"));
                (key.to_owned(), value.to_owned())
            })
            .collect();
        let paths = scene.git(&["show", "--format=", "--name-only", "-z", id]);
        Commit {
            id: id.to_owned(),
            subject: subject.to_owned(),
            trailers,
            paths: paths
                .split('\0')
                .filter(|p| !p.is_empty())
                .map(str::to_owned)
                .collect(),
        }
    }

    fn trailer(&self, key: &str) -> Option<&str> {
        let found = self.trailers.iter().find(|(k, _)| k == key);
        found.map(|(_, value)| value.as_str())
    }

    fn touches(&self, folder: &str) -> bool {
        self.paths.iter().any(|p| p.starts_with(folder))
    }
}

/// Walks the branch of issue 42 from its base to its tip. Every commit passes the suite; each tick is in the
/// commit with its test and its code; messages are the ledger's and veri's, so that no word of a leaf is in
/// one; the worktree is clean and on the branch; the person's checkout is as it was.
///
/// Commits whose subject is in `by_hand` are a person's: of these only the suite is asked.
#[track_caller]
pub fn walk_with(scene: &Scene, by_hand: &[&str]) {
    let ids = scene.git(&["log", "--reverse", "--format=%H", "main..tdd/issue-42"]);
    let mut ticked = BTreeSet::new();
    let tip = ledger_at(scene, "tdd/issue-42").expect("a ledger at the tip");
    let titles: Vec<&str> = tip.steps().iter().map(|s| s.title.as_str()).collect();
    let mut planned = false;
    for id in ids.lines() {
        passes(scene, id);
        let subject = scene.git(&["log", "-1", "--format=%s", id]);
        if by_hand.contains(&subject.as_str()) {
            ticked = ticks(scene, id);
            continue;
        }
        let commit = Commit::read(scene, id);
        let now = ticks(scene, id);
        let gained: Vec<u32> = now.difference(&ticked).copied().collect();
        assert!(ticked.is_subset(&now), "a tick was taken back in {id}");
        message_is_veris(scene, &commit, &titles);
        let step = commit.trailer("Veri-Step").and_then(|s| s.parse().ok());
        match commit.trailer("Veri-Phase").and_then(phase) {
            Some(Phase::Plan) => {
                assert!(gained.is_empty(), "a tick in {:?}", commit.subject);
                assert_eq!(commit.paths, [".tdd/issue-42.md"], "{}", commit.subject);
                planned = true;
            }
            Some(Phase::Green) => {
                assert_eq!(
                    gained,
                    Vec::from_iter(step),
                    "the tick of {:?}",
                    commit.subject
                );
                let no_test = tip
                    .steps()
                    .iter()
                    .any(|s| Some(s.number) == step && s.no_test.is_some());
                assert!(
                    no_test || commit.touches("tests/"),
                    "no test in {:?}",
                    commit.subject
                );
                assert!(
                    commit
                        .paths
                        .iter()
                        .any(|p| !p.starts_with("tests/") && !p.starts_with(".tdd/")),
                    "no code in {:?}",
                    commit.subject
                );
            }
            // Already there: the test alone.
            Some(Phase::Red) => {
                assert_eq!(
                    gained,
                    Vec::from_iter(step),
                    "the tick of {:?}",
                    commit.subject
                );
                assert!(
                    commit
                        .paths
                        .iter()
                        .all(|p| p.starts_with("tests/") || p.starts_with(".tdd/")),
                    "{:?}",
                    commit.paths
                );
            }
            Some(Phase::Refactor) => {
                assert!(
                    gained.is_empty() && !commit.touches(".tdd/"),
                    "{:?}",
                    commit.paths
                );
            }
            None => panic!("no phase in {:?} ({})", commit.subject, commit.id),
        }
        assert!(planned, "work before the plan");
        assert!(
            commit
                .paths
                .iter()
                .all(|p| !p.starts_with(".tdd/") || p == ".tdd/issue-42.md"),
            "runtime files in {:?}: {:?}",
            commit.subject,
            commit.paths
        );
        ticked = now;
    }
    assert_eq!(ticked.len(), titles.len(), "every step is ticked");
    let tree = scene.worktree();
    assert_eq!(scene.git_in(&tree, &["status", "--porcelain"]), "");
    assert_eq!(
        scene.git_in(&tree, &["symbolic-ref", "HEAD"]),
        "refs/heads/tdd/issue-42"
    );
}

/// [`walk_with`] for a branch on which nobody else has worked.
#[track_caller]
pub fn walk(scene: &Scene) {
    walk_with(scene, &[]);
}

fn phase(word: &str) -> Option<Phase> {
    [Phase::Plan, Phase::Red, Phase::Green, Phase::Refactor]
        .into_iter()
        .find(|p| p.as_str() == word)
}

fn ledger_at(scene: &Scene, commit: &str) -> Option<Ledger> {
    let path = format!("{commit}:.tdd/issue-42.md");
    let out = scene
        .command("git")
        .args(["cat-file", "blob", &path])
        .output()
        .unwrap();
    out.status
        .success()
        .then(|| Ledger::parse(&out.stdout).unwrap())
}

fn ticks(scene: &Scene, commit: &str) -> BTreeSet<u32> {
    let ledger = ledger_at(scene, commit);
    let steps = ledger.iter().flat_map(|l| l.steps());
    steps.filter(|s| s.ticked).map(|s| s.number).collect()
}

/// Subject and trailers are all there is, and all of it is the ledger's or veri's.
#[track_caller]
fn message_is_veris(scene: &Scene, commit: &Commit, titles: &[&str]) {
    let subject = &commit.subject;
    let known = subject.starts_with("plan: issue 42 in ")
        || subject == "ledger: edited by hand"
        || titles.iter().any(|t| subject.ends_with(t));
    assert!(known, "{subject:?} is not from the ledger");
    for (key, value) in &commit.trailers {
        let fits = match key.as_str() {
            "Veri-Issue" => value == "#42",
            "Veri-Step" => value.parse::<u32>().is_ok(),
            "Veri-Phase" => phase(value).is_some(),
            "Veri-Snapshot" => scene.git(&["cat-file", "-t", value]) == "tree",
            _ => false,
        };
        assert!(fits, "the trailer {key}: {value} in {subject:?}");
    }
    let who = scene.git(&["log", "-1", "--format=%an %ae %cn %ce", &commit.id]);
    assert_eq!(who, "Pat Person pat@example.com Pat Person pat@example.com");
}

/// The suite passes on exactly this commit, in a folder that has nothing else.
#[track_caller]
fn passes(scene: &Scene, commit: &str) {
    let folder = scene.path("tmp").join(format!("commit-{commit}"));
    fs::create_dir(&folder).unwrap();
    let tar = folder.join("tree.tar");
    scene.git(&["archive", "-o", tar.to_str().unwrap(), commit]);
    let ran = scene
        .command("sh")
        .args([
            "-c",
            "tar xf tree.tar && rm tree.tar && exec sh run-tests.sh",
        ])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "the suite fails on {commit}:\n{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    fs::remove_dir_all(&folder).unwrap();
}

/// Why attempts of a step's phase were sent back, in order, as the journal has it.
pub fn sent_back(scene: &Scene, step: u32, phase: Phase) -> Vec<String> {
    let lines = scene.journal();
    let revises = lines.iter().filter(|l| {
        l.event == veri::event::Kind::Revise
            && l.step == Some(step)
            && l.phase == Some(phase.into())
    });
    revises
        .map(|l| {
            let reasons = l.fields["reasons"].as_array().unwrap();
            let texts: Vec<&str> = reasons.iter().filter_map(|r| r.as_str()).collect();
            texts.join("\n")
        })
        .collect()
}

/// Asserts why each attempt of a step's phase was sent back, in order.
#[track_caller]
pub fn was_sent_back(scene: &Scene, step: u32, phase: Phase, why: &[&str]) {
    let got = sent_back(scene, step, phase);
    for (number, wanted) in why.iter().enumerate() {
        let reason = got.get(number).map_or("", String::as_str);
        assert!(
            reason.contains(wanted),
            "attempt {} of {phase} should be sent back for {wanted:?}; all reasons:\n{got:#?}",
            number + 1
        );
    }
    assert_eq!(
        got.len(),
        why.len(),
        "attempts of {phase} sent back:\n{got:#?}"
    );
}
