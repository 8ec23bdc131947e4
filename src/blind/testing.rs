//! A repository in a temporary folder and everything that a verifier's prompt is made of, for tests.

use super::*;
use crate::forge::trust::{self, Trust};
use crate::forge::{DirectoryForge, Forge};
use crate::prompt::{Nonce, Templates};
use crate::role;
use crate::suite::paths::TestPaths;
use crate::suite::{SuiteEnd, SuiteRun};
use git2::{Oid, Repository, Signature};
use tempfile::TempDir;

pub(crate) const CLAIMS: [role::Claim; 5] = [
    role::Claim::Red,
    role::Claim::AlreadyThere,
    role::Claim::Green,
    role::Claim::Refactor,
    role::Claim::NoTest,
];

/// The default rules of what is a test.
pub(crate) fn paths() -> TestPaths {
    TestPaths::new(&[], "cargo test").unwrap()
}

pub(crate) struct Repo {
    pub(crate) git: Repository,
    pub(crate) dir: TempDir,
}

impl Repo {
    pub(crate) fn new() -> Repo {
        let dir = tempfile::tempdir().unwrap();
        let git = Repository::init_bare(dir.path().join("git")).unwrap();
        Repo { git, dir }
    }

    pub(crate) fn tree(&self, files: &[(&str, &str)]) -> Oid {
        let files: Vec<(&[u8], &[u8])> = files
            .iter()
            .map(|(path, text)| (path.as_bytes(), text.as_bytes()))
            .collect();
        self.tree_of_bytes(&files)
    }

    /// Files at the top or one folder deep.
    pub(crate) fn tree_of_bytes(&self, files: &[(&[u8], &[u8])]) -> Oid {
        let mut top = self.git.treebuilder(None).unwrap();
        let mut folders: std::collections::BTreeMap<&[u8], git2::TreeBuilder<'_>> =
            Default::default();
        for (path, content) in files {
            let blob = self.git.blob(content).unwrap();
            match path.iter().position(|byte| *byte == b'/') {
                None => top.insert(*path, blob, 0o100_644).unwrap(),
                Some(slash) => folders
                    .entry(&path[..slash])
                    .or_insert_with(|| self.git.treebuilder(None).unwrap())
                    .insert(&path[slash + 1..], blob, 0o100_644)
                    .unwrap(),
            };
        }
        for (name, folder) in folders {
            top.insert(name, folder.write().unwrap(), 0o040_000)
                .unwrap();
        }
        top.write().unwrap()
    }
}

pub(crate) struct Scene {
    pub(crate) repo: Repo,
    pub(crate) issue_body: String,
    pub(crate) log: String,
    pub(crate) base_commit: Oid,
    base: Oid,
    candidate: Oid,
}

const LEDGER: &str = "# Issue 42: Reject transfers

<!-- veri ledger v1 -->

| | |
| --- | --- |
| issue | #42 |
| base | main @ 3f2c9e1b |
| tests | `cargo test` |

## Acceptance criteria

- AC1: Refused above the limit
- AC2: The refusal names the remaining allowance

## Steps

- [x] 1. A transfer above the limit is refused (AC1)
- [ ] 2. The refusal names the rest (AC2)
";

impl Scene {
    pub(crate) fn new() -> Scene {
        let repo = Repo::new();
        let base = repo.tree(&[
            ("src/lib.rs", "fn old() {}\n"),
            ("tests/limits.rs", "// one\n"),
        ]);
        let candidate = repo.tree(&[
            ("src/lib.rs", "fn implementation() { IMPLEMENTATION }\n"),
            ("tests/limits.rs", "// one\n// two\n"),
        ]);
        let who = Signature::now("veri", "ground@veri.invalid").unwrap();
        let tree = repo.git.find_tree(base).unwrap();
        let base_commit = repo
            .git
            .commit(None, &who, &who, "base", &tree, &[])
            .unwrap();
        drop(tree);
        Scene {
            repo,
            issue_body: "ISSUE-BODY".into(),
            log: "SUITE-OUTPUT".into(),
            base_commit,
            base,
            candidate,
        }
    }

    pub(crate) fn behaviour(&self, step: u32) -> anyhow::Result<BehaviourSpec> {
        let ledger = self.repo.git.blob(LEDGER.as_bytes()).unwrap();
        let issue = self.repo.dir.path().join("forge/issues/42");
        std::fs::create_dir_all(issue.join("comments"))?;
        let text = format!("---\ntitle: Reject transfers\n---\n\n{}\n", self.issue_body);
        std::fs::write(issue.join("issue.md"), text)?;
        let comment = "---\nauthor: ann\nauthor_association: owner\n---\n\nPlease.\n";
        std::fs::write(issue.join("comments/1.md"), comment)?;
        let forge = DirectoryForge::new(self.repo.dir.path().join("forge"));
        let (issue, comments) = (forge.issue(42)?, forge.comments(42)?);
        let issue = trust::trusted(&issue, &comments, Some(Trust::Run), &[], false)?;
        BehaviourSpec::of(&issue, &self.repo.git, ledger, step)
    }

    pub(crate) fn build(
        &self,
        claim: role::Claim,
        with_base: bool,
    ) -> anyhow::Result<VerifierPrompt> {
        let git = &self.repo.git;
        let log = self.repo.dir.path().join("suite.out");
        std::fs::write(&log, &self.log)?;
        let run = SuiteRun {
            tree: self.candidate.to_string(),
            command: "cargo test".into(),
            end: SuiteEnd::Failed { code: 101 },
            wall_ms: 900,
            log,
            remembered: false,
        };
        let base = with_base
            .then(|| BaseCommit::of(git, self.base_commit))
            .transpose()?;
        VerifierPrompt::new(
            self.behaviour(2)?,
            TestChange::of(git, self.base, self.candidate, &paths())?,
            Claim::of(claim, git, self.base, self.candidate, &paths())?,
            SuiteLog::of(&run, 4096)?,
            base,
        )
    }

    pub(crate) fn prompt(&self, claim: role::Claim) -> VerifierPrompt {
        self.build(claim, claim == role::Claim::Refactor).unwrap()
    }

    pub(crate) fn render(&self, claim: role::Claim, nonce: &Nonce) -> String {
        self.prompt(claim)
            .render(&Templates::bundled(), nonce, &Hidden::default())
            .unwrap()
    }
}
