//! One start of the conductor, opened on a real repository and looked at from within: what no run of the program can
//! bring about from outside.

use super::run::Run;
use super::stopping::signals::Asked;
use super::{Ask, IssueArg, start, stop};
use crate::config::Env;
use crate::git::Repo;
use crate::machine::Event;
use crate::role::StopMode;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// A repository with one commit and an issue, and a run that begins in its checkout.
struct Opened {
    dir: tempfile::TempDir,
    ask: Ask,
}

impl Opened {
    fn new() -> Opened {
        let dir = tempfile::tempdir().unwrap();
        let path = Env::of_process()
            .get("PATH")
            .map(std::ffi::OsStr::to_owned)
            .unwrap_or_default();
        let folder = |below: &str| dir.path().join(below).into_os_string();
        let env = Env::of([
            ("PATH", path),
            ("HOME", folder("home")),
            ("VERI_HOME", folder("state")),
            ("GIT_CONFIG_GLOBAL", OsString::from("/dev/null")),
            ("GIT_CONFIG_NOSYSTEM", OsString::from("1")),
        ]);
        let repo = dir.path().join("repo");
        let git = git2::Repository::init(&repo).unwrap();
        let who = git2::Signature::now("Pat", "pat@example.com").unwrap();
        let tree = git.treebuilder(None).unwrap().write().unwrap();
        let tree = git.find_tree(tree).unwrap();
        git.commit(Some("HEAD"), &who, &who, "base", &tree, &[])
            .unwrap();
        let forge = format!("dir:{}", dir.path().join("forge").display());
        let ask = Ask {
            env,
            folder: repo,
            program: PathBuf::from("/bin/false"),
            issue: IssueArg::Number(42),
            forge: Some(forge),
            agent: Some("command:/bin/false".to_owned()),
            planner: None,
            developer: None,
            verifier: None,
            test_command: Some("true".to_owned()),
            checks: Vec::new(),
            base: None,
            remote: None,
            here: true,
            plan: None,
            plan_only: false,
            timeout: None,
            trust: None,
            reset_budgets: false,
            new_templates: false,
        };
        fs::create_dir_all(dir.path().join("forge/issues/42")).unwrap();
        Opened { dir, ask }
    }

    /// Where the run keeps what is no developer's business, the journal's copy included.
    fn work(&self) -> PathBuf {
        let repo = Repo::discover(&self.ask.folder).unwrap();
        self.dir.path().join("state").join(repo.id()).join("work")
    }

    fn journal(&self) -> Vec<u8> {
        fs::read(self.tdd().join("events.jsonl")).unwrap()
    }

    fn tdd(&self) -> PathBuf {
        self.ask.folder.join(".tdd")
    }

    /// Opens the run and hands it over, preflight still to come.
    fn with(&self, look: impl FnOnce(&mut Run<'_>)) {
        let mut watch = |_: &crate::event::Line| {};
        match start::open(&self.ask, &mut watch, &Asked::nothing) {
            Ok(mut run) => look(&mut run),
            Err(ended) => panic!("{ended:?}"),
        }
    }
}

/// While this goes on, nothing can be added to the journal: its copy has no folder to be in.
fn with_a_journal_that_cannot_be_written(work: &Path, meanwhile: impl FnOnce()) {
    let aside = work.with_extension("aside");
    fs::rename(work, &aside).unwrap();
    meanwhile();
    fs::rename(aside, work).unwrap();
}

#[test]
fn an_event_that_cannot_happen_is_not_journalled_and_one_that_cannot_be_journalled_does_not_count()
{
    let opened = Opened::new();
    opened.with(|run| {
        let (state, lines, journal) = (run.state.clone(), run.lines.len(), opened.journal());
        run.feed(Event::Accepted, None, Value::Null).unwrap_err();
        assert_eq!((&run.state, run.lines.len()), (&state, lines));
        assert_eq!(opened.journal(), journal, "a later start would replay it");
        let mode = StopMode::AtLeaf;
        with_a_journal_that_cannot_be_written(&opened.work(), || {
            run.feed(Event::StopAsked { mode }, None, Value::Null)
                .unwrap_err();
        });
        assert_eq!((&run.state, run.lines.len()), (&state, lines));
        run.feed(Event::StopAsked { mode }, None, Value::Null)
            .unwrap();
        assert_eq!(run.state.stop, Some(mode));
        assert_eq!(run.lines.len(), lines + 1);
    });
}

#[test]
fn a_stop_that_could_not_be_journalled_at_first_is_asked_for_again() {
    let opened = Opened::new();
    opened.with(|run| {
        stop::ask(&opened.tdd(), StopMode::AtLedger).unwrap();
        with_a_journal_that_cannot_be_written(&opened.work(), || {
            assert_eq!(run.glance(), None);
        });
        assert_eq!(run.state.stop, None);
        assert_eq!(run.glance(), None);
        assert_eq!(run.state.stop, Some(StopMode::AtLedger));
        let lines = run.lines.len();
        run.glance();
        assert_eq!(run.lines.len(), lines, "it is told once");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_a_test_opens_does_not_take_in_the_orphans_of_all_tests() {
    Opened::new().with(|_| ());
    assert!(!nix::sys::prctl::get_child_subreaper().unwrap());
}
