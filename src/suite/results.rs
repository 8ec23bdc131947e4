//! Results that are kept, so that nothing is run twice on the same tree with the same command and dependencies.

use super::run::Ran;
use super::{SuiteEnd, SuiteRun};
use crate::ground::TreePath;
use crate::ground::files::{remove, sha256, write_atomic};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How many results are kept: those of about a hundred steps.
const KEPT: usize = 400;

/// What a result depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultKey<'a> {
    /// The tree under test (hexadecimal object id).
    pub tree: &'a str,
    /// The command, as given to `sh -c`.
    pub command: &'a str,
    /// What ran before it; empty for nothing.
    pub before: &'a str,
    /// The key of the dependencies: [`crate::ground::Ground::setup_key`].
    pub setup: &'a str,
    /// The hash of the declared environment file; empty for none.
    pub env_file: &'a str,
    /// The hash of the declared variables; empty for none.
    pub env: &'a str,
}

/// A result as it is stored: what later runs must know of it beside the run itself.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    run: SuiteRun,
    /// As arrays of bytes: a path need not be text.
    debris: Vec<TreePath>,
    fresh: bool,
}

impl ResultKey<'_> {
    fn name(&self) -> String {
        sha256(&[
            self.tree.as_bytes(),
            self.command.as_bytes(),
            self.before.as_bytes(),
            self.setup.as_bytes(),
            self.env_file.as_bytes(),
            self.env.as_bytes(),
        ])
    }
}

/// The results of one repository.
#[derive(Debug, Clone)]
pub struct Results {
    folder: PathBuf,
}

impl Results {
    /// The results below a repository's home.
    pub fn below(home: &Path) -> Results {
        Results {
            folder: home.join("results"),
        }
    }

    /// An earlier result for the same key, marked as remembered, with the files that it left behind; its log lies
    /// beside it.
    ///
    /// None also for one that cannot be read: it is then simply run again.
    pub fn get(&self, key: &ResultKey<'_>) -> Option<Ran> {
        let name = key.name();
        let bytes = fs::read(self.folder.join(format!("{name}.json"))).ok()?;
        let Stored {
            mut run,
            debris,
            fresh,
        } = serde_json::from_slice(&bytes).ok()?;
        run.log = self.folder.join(format!("{name}.log"));
        run.remembered = true;
        let same = run.tree == key.tree && run.command == key.command;
        (same && run.log.is_file()).then_some(Ran {
            run,
            altered: Vec::new(),
            debris,
            fresh,
        })
    }

    /// Keeps a result that says something about the tree, and gives it with its log in its lasting place.
    ///
    /// Ends that say something about the day are not kept: a deadline, a missing program, a kill, a stop. Whether
    /// a failure that is kept still holds is for the caller to doubt.
    ///
    /// # Errors
    /// When the result or its log cannot be written.
    pub fn put(&self, key: &ResultKey<'_>, ran: &Ran) -> Result<SuiteRun> {
        let run = &ran.run;
        let lasting = matches!(
            run.end,
            SuiteEnd::Passed | SuiteEnd::Failed { .. } | SuiteEnd::Crashed { .. }
        );
        if !lasting {
            return Ok(run.clone());
        }
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("making {}", self.folder.display()))?;
        let name = key.name();
        let log = self.folder.join(format!("{name}.log"));
        // The log first: a result without one is none.
        let part = self.folder.join(format!("{name}.part"));
        fs::copy(&run.log, &part)
            .and_then(|_| fs::rename(&part, &log))
            .with_context(|| format!("keeping the log {}", log.display()))?;
        let mut kept = run.clone();
        kept.log = log;
        let stored = Stored {
            run: kept,
            debris: ran.debris.clone(),
            fresh: ran.fresh,
        };
        let json = serde_json::to_vec(&stored)?;
        write_atomic(&self.folder.join(format!("{name}.json")), &json)?;
        self.forget_old()?;
        Ok(stored.run)
    }

    /// Forgets one result.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn forget(&self, key: &ResultKey<'_>) -> Result<()> {
        self.remove(&key.name())
    }

    fn remove(&self, name: &str) -> Result<()> {
        remove(&self.folder.join(format!("{name}.json")))?;
        remove(&self.folder.join(format!("{name}.log")))
    }

    fn forget_old(&self) -> Result<()> {
        let mut kept: Vec<(SystemTime, String)> = fs::read_dir(&self.folder)
            .with_context(|| format!("reading {}", self.folder.display()))?
            .flatten()
            .filter_map(|item| {
                let name = item.file_name().into_string().ok()?;
                let name = name.strip_suffix(".json")?.to_owned();
                Some((item.metadata().ok()?.modified().ok()?, name))
            })
            .collect();
        kept.sort();
        let excess = kept.len().saturating_sub(KEPT);
        for (_, name) in &kept[..excess] {
            self.remove(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tree: &str) -> ResultKey<'_> {
        ResultKey {
            tree,
            command: "make test",
            before: "",
            setup: "",
            env_file: "",
            env: "",
        }
    }

    fn run(home: &Path, end: SuiteEnd) -> Ran {
        let log = home.join("log");
        fs::write(&log, "1 failed\n").unwrap();
        let run = SuiteRun {
            tree: "t1".into(),
            command: "make test".into(),
            end,
            wall_ms: 5,
            log,
            remembered: false,
        };
        Ran {
            run,
            altered: Vec::new(),
            debris: vec![b"report \xff.xml".to_vec()],
            fresh: true,
        }
    }

    #[test]
    fn a_result_comes_back_for_its_key_alone_with_its_log() {
        let home = tempfile::tempdir().unwrap();
        let results = Results::below(home.path());
        assert_eq!(results.get(&key("t1")), None);
        let ran = run(home.path(), SuiteEnd::Failed { code: 1 });
        results.put(&key("t1"), &ran).unwrap();
        fs::remove_file(&ran.run.log).unwrap();
        let back = results.get(&key("t1")).unwrap();
        assert!(back.run.remembered && back.fresh);
        assert_eq!(back.run.end, ran.run.end);
        assert_eq!(back.debris, ran.debris, "what it left is not forgotten");
        assert_eq!(fs::read_to_string(&back.run.log).unwrap(), "1 failed\n");
        let others = [
            key("t2"),
            ResultKey {
                command: "make",
                ..key("t1")
            },
            ResultKey {
                before: "reset",
                ..key("t1")
            },
            ResultKey {
                setup: "k",
                ..key("t1")
            },
            ResultKey {
                env_file: "h",
                ..key("t1")
            },
            ResultKey {
                env: "h",
                ..key("t1")
            },
        ];
        for other in others {
            assert_eq!(results.get(&other), None, "{other:?}");
        }
        results.forget(&key("t1")).unwrap();
        assert_eq!(results.get(&key("t1")), None);
    }

    #[test]
    fn ends_that_say_nothing_about_the_tree_are_not_kept() {
        let home = tempfile::tempdir().unwrap();
        let results = Results::below(home.path());
        for end in [
            SuiteEnd::Stopped,
            SuiteEnd::TimedOut { seconds: 1 },
            SuiteEnd::KilledExternal { signal: 9 },
            SuiteEnd::Unrunnable { code: 127 },
        ] {
            let ran = run(home.path(), end);
            results.put(&key("t1"), &ran).unwrap();
            assert_eq!(results.get(&key("t1")), None, "{:?}", ran.run.end);
        }
    }

    #[test]
    fn a_torn_result_counts_as_none_and_old_ones_go() {
        let home = tempfile::tempdir().unwrap();
        let results = Results::below(home.path());
        let ran = run(home.path(), SuiteEnd::Passed);
        results.put(&key("t1"), &ran).unwrap();
        let file = home
            .path()
            .join("results")
            .join(format!("{}.json", key("t1").name()));
        fs::write(&file, "{\"tree\":").unwrap();
        assert_eq!(results.get(&key("t1")), None);
        for number in 0..KEPT + 3 {
            let tree = number.to_string();
            let mut ran = ran.clone();
            ran.run.tree.clone_from(&tree);
            results.put(&key(&tree), &ran).unwrap();
        }
        let json = fs::read_dir(home.path().join("results"))
            .unwrap()
            .flatten()
            .filter(|item| item.path().extension().is_some_and(|e| e == "json"))
            .count();
        assert_eq!(json, KEPT);
        assert!(results.get(&key(&(KEPT + 2).to_string())).is_some());
    }
}
