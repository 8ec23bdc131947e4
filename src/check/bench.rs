//! A small repository for the tests of this room: trees from text, and suites that are told what to say.

use super::outcome::{Ask, Outcome, Run, What};
use super::{RedRules, green, no_test, red, refactor};
use crate::suite::paths::TestPaths;
use crate::suite::{SuiteEnd, SuiteRun};
use git2::{Oid, Repository};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What one file of a tree is.
#[derive(Clone)]
pub enum Node {
    File(Vec<u8>),
    Script(Vec<u8>),
    Link(Vec<u8>),
    Submodule,
}

pub struct Bench {
    _folder: tempfile::TempDir,
    pub repo: Repository,
    pub paths: TestPaths,
}

/// A tree under construction.
#[derive(Clone, Default)]
pub struct Files(pub BTreeMap<Vec<u8>, Node>);

impl Files {
    pub fn of(files: &[(&str, &str)]) -> Files {
        Files::default().and(files)
    }

    pub fn and(&self, files: &[(&str, &str)]) -> Files {
        let mut all = self.clone();
        for (path, text) in files {
            all.0.insert(
                path.as_bytes().to_vec(),
                Node::File(text.as_bytes().to_vec()),
            );
        }
        all
    }

    pub fn node(&self, path: &[u8], node: Node) -> Files {
        let mut all = self.clone();
        all.0.insert(path.to_vec(), node);
        all
    }

    pub fn without(&self, path: &str) -> Files {
        let mut all = self.clone();
        assert!(all.0.remove(path.as_bytes()).is_some(), "{path} was there");
        all
    }

    /// Replaces text that must be there.
    pub fn edit(&self, path: &str, from: &str, to: &str) -> Files {
        let Some(Node::File(bytes)) = self.0.get(path.as_bytes()) else {
            panic!("{path} is a file");
        };
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.contains(from), "{path} holds {from:?}");
        self.and(&[(path, &text.replacen(from, to, 1))])
    }
}

impl Bench {
    pub fn new(command: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let repo = Repository::init_bare(folder.path()).unwrap();
        let paths = TestPaths::new(&[], command).unwrap();
        Bench {
            _folder: folder,
            repo,
            paths,
        }
    }

    pub fn tree(&self, files: &Files) -> Oid {
        let mut flat = super::tree::Flat::new();
        for (path, node) in &files.0 {
            let (bytes, mode) = match node {
                Node::File(bytes) => (bytes.as_slice(), 0o100_644),
                Node::Script(bytes) => (bytes.as_slice(), 0o100_755),
                Node::Link(target) => (target.as_slice(), 0o120_000),
                Node::Submodule => (&b""[..], 0o160_000),
            };
            let oid = match node {
                Node::Submodule => {
                    Oid::from_str("1234567890123456789012345678901234567890").unwrap()
                }
                _ => self.repo.blob(bytes).unwrap(),
            };
            flat.insert(path.clone(), super::tree::Entry { oid, mode });
        }
        super::tree::write(&self.repo, &flat).unwrap()
    }

    pub fn ask(&self, from: Oid, candidate: Oid) -> Ask<'_> {
        Ask {
            repo: &self.repo,
            paths: &self.paths,
            from,
            candidate,
            max_file_bytes: 10_000,
            extra_checks: 0,
            tail_bytes: 1_000,
        }
    }

    pub fn green(&self, from: &Files, to: &Files) -> Outcome {
        green(
            &self.ask(self.tree(from), self.tree(to)),
            &mut always(SuiteEnd::Passed),
        )
        .unwrap()
    }

    pub fn refactor(&self, from: &Files, to: &Files) -> Outcome {
        refactor(
            &self.ask(self.tree(from), self.tree(to)),
            &mut always(SuiteEnd::Passed),
        )
        .unwrap()
    }

    pub fn no_test(&self, from: &Files, to: &Files) -> Outcome {
        no_test(
            &self.ask(self.tree(from), self.tree(to)),
            &mut always(SuiteEnd::Passed),
        )
        .unwrap()
    }

    /// Red with a suite that fails on the candidate and passes on anything else.
    pub fn red(&self, from: &Files, to: &Files) -> Outcome {
        let candidate = self.tree(to);
        let mut run = |run: Run| {
            let end = if run.tree == candidate {
                failed()
            } else {
                SuiteEnd::Passed
            };
            Ok(seen(run, end))
        };
        red(
            &self.ask(self.tree(from), candidate),
            RedRules::default(),
            &mut run,
        )
        .unwrap()
    }
}

pub fn failed() -> SuiteEnd {
    SuiteEnd::Failed { code: 101 }
}

pub fn always(end: SuiteEnd) -> impl FnMut(Run) -> anyhow::Result<SuiteRun> {
    move |run| Ok(seen(run, end.clone()))
}

pub fn seen(run: Run, end: SuiteEnd) -> SuiteRun {
    SuiteRun {
        tree: run.tree.to_string(),
        command: match run.what {
            What::Suite => "the suite".to_owned(),
            What::Extra(index) => format!("check {index}"),
        },
        end,
        wall_ms: 1,
        log: PathBuf::from("/nowhere/log"),
        remembered: false,
    }
}

/// The reasons of a failed check; panics when it did not fail.
pub fn reasons(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed { reasons, .. } => reasons.join("\n"),
        other => panic!("should have failed: {other:?}"),
    }
}

pub fn holds(outcome: Outcome) -> super::Evidence {
    match outcome {
        Outcome::Holds { evidence, .. } => evidence,
        other => panic!("should hold: {other:?}"),
    }
}
