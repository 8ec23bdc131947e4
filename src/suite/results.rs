//! Results that are kept, so that nothing is run twice on the same tree with the same command and dependencies.
//!
//! They lie where any leaf can write. So whoever keeps one gets its hash, and whoever wants it back must bring that
//! along: a file says nothing by itself.

use super::run::Ran;
use super::{SuiteEnd, SuiteRun};
use crate::ground::TreePath;
use crate::ground::files::{remove, write_atomic};
use crate::hash;
use crate::untrusted;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How many results are kept: those of about a hundred steps.
const KEPT: usize = 400;

/// How much of a result's log is kept, in bytes: its end, and more of it than anybody is shown. A suite that prints a
/// gibibyte would else cost the disk one for each result, and the reading of it.
const LOG: u64 = 4 << 20;

/// Room for the line that says what of a log is not kept, in bytes.
const NOTE: u64 = 1024;

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

/// The largest result that is read, in bytes, without its log: a list of ten thousands of files left behind.
const LARGEST: u64 = 16 << 20;

/// A result that was kept: what its keeper must remember to have it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Which one, derived from its key.
    pub name: String,
    /// The SHA-256 of its content, which has that of its log.
    pub hash: String,
}

/// A result as it is stored: what later runs must know of it beside the run itself.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    run: SuiteRun,
    /// The SHA-256 of the log.
    log_hash: String,
    /// As arrays of bytes: a path need not be text.
    debris: Vec<TreePath>,
    fresh: bool,
}

impl ResultKey<'_> {
    /// The name of what is kept under this key.
    pub fn name(&self) -> String {
        hash::of_parts(&[
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
    /// beside it. `hash` is what was given when it was kept.
    ///
    /// None also for one that cannot be read or is another than that: it is then simply run again.
    pub fn get(&self, key: &ResultKey<'_>, hash: &str) -> Option<Ran> {
        let name = key.name();
        let json = self.folder.join(format!("{name}.json"));
        let bytes = untrusted::whole(&json, LARGEST).ok()??;
        if hash::of(&bytes) != hash {
            return None;
        }
        let Stored {
            mut run,
            log_hash,
            debris,
            fresh,
        } = serde_json::from_slice(&bytes).ok()?;
        run.log = self.folder.join(format!("{name}.log"));
        run.remembered = true;
        let same = run.tree == key.tree && run.command == key.command;
        (same && untrusted::hash(&run.log, LOG + NOTE).ok()?.as_ref() == Some(&log_hash)).then_some(
            Ran {
                run,
                altered: Vec::new(),
                debris,
                fresh,
            },
        )
    }

    /// Keeps a result that says something about the tree, and gives it with its log in its lasting place, and what
    /// to remember of it.
    ///
    /// Ends that say something about the day are not kept: a deadline, a missing program, a kill, a stop. Whether
    /// a failure that is kept still holds is for the caller to doubt.
    ///
    /// # Errors
    /// When the result or its log cannot be written.
    pub fn put(&self, key: &ResultKey<'_>, ran: &Ran) -> Result<(SuiteRun, Option<Kept>)> {
        let run = &ran.run;
        let lasting = matches!(
            run.end,
            SuiteEnd::Passed | SuiteEnd::Failed { .. } | SuiteEnd::Crashed { .. }
        );
        if !lasting {
            return Ok((run.clone(), None));
        }
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("making {}", self.folder.display()))?;
        let name = key.name();
        let log = self.folder.join(format!("{name}.log"));
        // The log first: a result without one is none.
        let part = self.folder.join(format!("{name}.part"));
        fs::File::create(&part)
            .and_then(|mut file| untrusted::copy_end(&run.log, LOG, &mut file))
            .and_then(|()| fs::rename(&part, &log))
            .with_context(|| format!("keeping the log {}", log.display()))?;
        let log_hash = untrusted::hash(&log, LOG + NOTE)?
            .with_context(|| format!("{} is not the log that was put there", log.display()))?;
        let mut kept = run.clone();
        kept.log = log;
        let stored = Stored {
            run: kept,
            log_hash,
            debris: ran.debris.clone(),
            fresh: ran.fresh,
        };
        let json = serde_json::to_vec(&stored)?;
        write_atomic(&self.folder.join(format!("{name}.json")), &json)?;
        self.forget_old()?;
        let hash = hash::of(&json);
        Ok((stored.run, Some(Kept { name, hash })))
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
    use std::io::{Seek, SeekFrom, Write};

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
    fn of_a_log_without_bounds_the_end_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let results = Results::below(home.path());
        let ran = run(home.path(), SuiteEnd::Passed);
        let mut log = fs::File::create(&ran.run.log).unwrap();
        // A hole: the file is as long as it says and takes nothing.
        log.set_len(1 << 40).unwrap();
        log.seek(SeekFrom::End(0)).unwrap();
        log.write_all(b"all passed\n").unwrap();
        let (run, _) = results.put(&key("t"), &ran).unwrap();
        assert!(fs::metadata(&run.log).unwrap().len() < LOG + 100);
        let kept = fs::read(&run.log).unwrap();
        let said = format!("[veri: {} bytes before", (1u64 << 40) + 11 - LOG);
        assert!(kept.starts_with(said.as_bytes()));
        assert!(kept.ends_with(b"\0all passed\n"));
    }

    #[test]
    fn a_result_comes_back_for_its_key_alone_with_its_log() {
        let home = tempfile::tempdir().unwrap();
        let results = Results::below(home.path());
        let ran = run(home.path(), SuiteEnd::Failed { code: 1 });
        let hash = put(&results, "t1", &ran);
        fs::remove_file(&ran.run.log).unwrap();
        let back = results.get(&key("t1"), &hash).unwrap();
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
            assert_eq!(results.get(&other, &hash), None, "{other:?}");
        }
        results.forget(&key("t1")).unwrap();
        assert_eq!(results.get(&key("t1"), &hash), None);
    }

    fn put(results: &Results, tree: &str, ran: &Ran) -> String {
        results.put(&key(tree), ran).unwrap().1.unwrap().hash
    }

    #[test]
    fn a_result_that_somebody_rewrote_is_none() {
        let home = tempfile::tempdir().unwrap();
        let results = Results::below(home.path());
        let hash = put(
            &results,
            "t1",
            &run(home.path(), SuiteEnd::Failed { code: 1 }),
        );
        let file = |ext: &str| {
            let name = format!("{}.{ext}", key("t1").name());
            home.path().join("results").join(name)
        };
        let (json, log) = (
            fs::read(file("json")).unwrap(),
            fs::read(file("log")).unwrap(),
        );
        let forged = put(&results, "t1", &run(home.path(), SuiteEnd::Passed));
        assert_ne!(forged, hash);
        assert_eq!(results.get(&key("t1"), &hash), None);
        fs::write(file("json"), &json).unwrap();
        assert!(results.get(&key("t1"), &hash).is_some());
        fs::write(file("log"), "all is well\n").unwrap();
        assert_eq!(
            results.get(&key("t1"), &hash),
            None,
            "nor one with another log"
        );
        fs::remove_file(file("log")).unwrap();
        assert_eq!(results.get(&key("t1"), &hash), None);
        fs::write(file("log"), &log).unwrap();
        assert!(results.get(&key("t1"), &hash).is_some());
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
            let (_, kept) = results.put(&key("t1"), &ran).unwrap();
            assert_eq!(kept, None, "{:?}", ran.run.end);
            assert!(!home.path().join("results").exists());
        }
    }

    #[test]
    fn a_torn_result_counts_as_none_and_old_ones_go() {
        let home = tempfile::tempdir().unwrap();
        let results = Results::below(home.path());
        let ran = run(home.path(), SuiteEnd::Passed);
        let hash = put(&results, "t1", &ran);
        let file = home
            .path()
            .join("results")
            .join(format!("{}.json", key("t1").name()));
        fs::write(&file, "{\"tree\":").unwrap();
        assert_eq!(results.get(&key("t1"), &hash), None);
        let mut last = hash;
        for number in 0..KEPT + 3 {
            let tree = number.to_string();
            let mut ran = ran.clone();
            ran.run.tree.clone_from(&tree);
            last = put(&results, &tree, &ran);
        }
        let json = fs::read_dir(home.path().join("results"))
            .unwrap()
            .flatten()
            .filter(|item| item.path().extension().is_some_and(|e| e == "json"))
            .count();
        assert_eq!(json, KEPT);
        assert!(results.get(&key(&(KEPT + 2).to_string()), &last).is_some());
    }
}
