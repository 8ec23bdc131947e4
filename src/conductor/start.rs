//! A start of the conductor: find everything, take the lock, replay the journal, settle an open launch.

use super::again::quoted;
use super::failures::{by_the_storage, known_cause, of_the_world};
use super::pick_up::Left;
use super::run::{Run, Seen};
use super::settings::Settings;
use super::snapshot::{self, Snapshot};
use super::standing::Standing;
use super::stopping::signals::Asked;
use super::whose::{NAMED, listed};
use super::{Ask, Ended, IssueArg};
use crate::cause::{Bail, Cause};
use crate::config::{self, Config};
use crate::event::{Kind, Line};
use crate::exit;
use crate::forge::{self, Forge, ForgeSpec};
use crate::git::{Repo, WorkTree, issue_branch_name, tree};
use crate::journal::{self, Journal, Source};
use crate::leaf::{LAUNCH_VAR, LaunchId};
use crate::lock::{Lock, LockInfo};
use crate::machine::{Effect, Event, State, next};
use crate::plan::{self, Plan};
use crate::untrusted::given;
use anyhow::{Context, Result, anyhow};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Opens a run, or says why there is none. `listen` begins to listen to the terminal's signals.
pub(super) fn open<'a>(
    ask: &'a Ask,
    watch: &'a mut dyn FnMut(&Line),
    listen: &dyn Fn() -> Asked,
) -> Result<Run<'a>, Ended> {
    let mut folders = Vec::new();
    match try_open(ask, watch, listen, &mut folders) {
        Ok(Ok(run)) => Ok(run),
        Ok(Err(ended)) => Err(ended),
        Err(error) => Err(refused(&error, &folders)),
    }
}

/// The end of a start that found no run to open, and had these folders to write in.
fn refused(error: &anyhow::Error, folders: &[PathBuf]) -> Ended {
    let cause = known_cause(error).or_else(|| of_the_world(error));
    match cause.map(|bail| by_the_storage(bail, folders)) {
        Some(Bail { cause, detail }) => Ended {
            exit: cause.class().exit_code(),
            last_words: vec![
                detail,
                format!("bail: {cause} ({})", cause.class().as_str()),
            ],
        },
        None => Ended {
            exit: exit::INTERNAL,
            last_words: vec![
                format!("internal error: {error:#}"),
                "this is a bug in veri: please report it".into(),
            ],
        },
    }
}

fn try_open<'a>(
    ask: &'a Ask,
    watch: &'a mut dyn FnMut(&Line),
    listen: &dyn Fn() -> Asked,
    folders: &mut Vec<PathBuf>,
) -> Result<Result<Run<'a>, Ended>> {
    let given_plan = ask.plan.as_deref().map(read_plan).transpose()?;
    let run = LaunchId::random()?;
    let mut env: Vec<_> = ask
        .env
        .all()
        .iter()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    // What a hook leaves running after this program was killed is found by it.
    env.push((LAUNCH_VAR.into(), run.as_str().into()));
    let repo = Repo::discover_with(&ask.folder, &env)?;
    if ask.here
        && let Some(what) = repo.in_progress()
    {
        return Err(Bail::needs_user(format!(
            "--here works in the checkout {}, where a {what} is under way. Finish or abort it, then run again.",
            repo.checkout().display()
        ))
        .into());
    }
    let home = ask.env.veri_home().ok_or_else(|| {
        anyhow!(Bail::needs_user(
            "veri has no folder to work in: set VERI_HOME, XDG_STATE_HOME or HOME."
        ))
    })?;
    let home = home.join(repo.id());
    folders.push(repo.git2().commondir().to_owned());

    // The issue's number may come from the forge, and the stored configuration needs the number.
    let files = || -> Result<Config> {
        config::load(
            Some(&repo.checkout().join(".veri.toml")),
            ask.env.user_config().as_deref(),
        )
        .map_err(|e| {
            let said = format!("{e:#}");
            let said = said.trim();
            let end = if said.ends_with('?') { "" } else { "." };
            anyhow!(Bail::needs_user(format!(
                "The configuration cannot be used: {said}{end}"
            )))
        })
    };
    let issue_number = match &ask.issue {
        IssueArg::Number(number) => *number,
        IssueArg::File(path) => {
            let settings = Settings::of(ask, files()?);
            let forge = open_forge(&settings, &repo)?;
            let markdown = given(path, GIVEN).map_err(|e| {
                Bail::needs_user(format!(
                    "The issue file {} cannot be read: {e}.",
                    path.display()
                ))
            })?;
            forge.file_issue(path, &markdown)?
        }
    };
    let stored = snapshot::load(repo.git2(), issue_number)?;
    let known_own = stored
        .as_ref()
        .map_or(Vec::new(), |s| s.in_force.own.clone());
    let stored = stored.filter(|_| !ask.new_templates);
    let now = files();
    let (settings, files, changed) = match &stored {
        Some(Snapshot { in_force, .. }) => (
            Settings::of(ask, in_force.config.clone()),
            in_force.files.clone(),
            in_force.changed_since(&now),
        ),
        None => {
            let now = now?;
            (Settings::of(ask, now.clone()), Some(now), None)
        }
    };
    let forge = open_forge(&settings, &repo)?;

    let (lock_path, tree_path) = if ask.here {
        (
            repo.checkout().join(".tdd/lock"),
            repo.checkout().to_owned(),
        )
    } else {
        let work = home.join("work");
        (
            work.join(format!("issue-{issue_number}.lock")),
            work.join(format!("issue-{issue_number}")),
        )
    };
    let head = repo.git2().head()?.peel_to_commit()?.id();
    if ask.here || !tree_path.exists() {
        has_no_runtime_files(repo.git2(), head)?;
    }
    if let Some(folder) = lock_path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let lock = match Lock::try_acquire(
        &lock_path,
        &LockInfo::new(&format!("veri tdd {issue_number}")),
    )? {
        Ok(lock) => lock,
        Err(holder) => {
            return Ok(Err(Ended {
                exit: exit::ALREADY_RUNNING,
                last_words: vec![format!(
                    "already running: {} (`veri status {issue_number}`, `veri stop {issue_number}`)",
                    holder.describe()
                )],
            }));
        }
    };
    let made = !ask.here && !tree_path.exists();
    let tree = if ask.here {
        WorkTree::here(&repo)?
    } else {
        WorkTree::linked(&repo, &tree_path, head)?
    };
    // Where a folder cannot be locked, the file alone has to do.
    let held = tree.hold();
    if let Ok(None) = held {
        return Ok(Err(Ended {
            exit: exit::ALREADY_RUNNING,
            last_words: vec![format!(
                "already running: another process works in {}, and the file of its lock was removed (`veri status \
                 {issue_number}`, `veri stop {issue_number}`)",
                tree.path().display()
            )],
        }));
    }
    has_no_runtime_files(tree.git2(), tree.head()?)?;
    let tree = tree
        .with_own_files(known_own)
        .with_own_files(own_files(&repo, &settings, ask))
        .with_remote(settings.remote())
        .with_max_file(settings.max_file_bytes())
        .with_kept(kept_stem(&home, &tree_path, issue_number, ask.here));
    std::fs::create_dir_all(home.join("work"))
        .with_context(|| format!("cannot make the folder {}", home.join("work").display()))?;
    folders.push(home.clone());
    let journal_path = tree.tdd().join("events.jsonl");
    std::fs::create_dir_all(tree.tdd().join("runs"))
        .with_context(|| format!("cannot make the folder {}", tree.tdd().display()))?;
    tree.exclude_runtime_files()?;

    if !ask.here {
        take_up_finished(&repo, &home, issue_number, &journal_path)?;
    }
    // A developer that outlived its conductor had the journal within its reach.
    let (journal, all, vouched) = Journal::open_kept(&journal_path, &tree.journal_copy())?;
    let torn = journal.torn().map(Path::to_owned);
    let (lines, others): (Vec<Line>, Vec<Line>) =
        all.into_iter().partition(|l| l.issue == issue_number);
    let (state, owed) = replay(&lines)?;
    let source = Source {
        run: run.as_str().to_owned(),
        issue: issue_number,
        skill_commit: stored.map(|s| s.id.to_string()),
    };
    let mut run = Run {
        ask,
        issue_number,
        repo,
        tree,
        home,
        settings,
        files,
        forge,
        journal,
        source,
        lines,
        state,
        watch,
        signals: listen(),
        started: Instant::now(),
        last_words: Vec::new(),
        ready: None,
        services: None,
        issue: None,
        effects: 0,
        guard: None,
        seen: Seen::default(),
        standing: Standing::default(),
        told_stop: None,
        thread_in_order: false,
        made,
        others: others.len(),
        _locks: (lock, held.ok().flatten()),
    };
    let left = Left {
        torn,
        vouched,
        others,
        owed,
        changed,
    };
    run.begin(&left, given_plan)?;
    Ok(Ok(run))
}

/// Files of `.tdd/` that somebody committed would be taken for what a run has recorded, and come back whenever the tree
/// is put back.
pub(super) fn has_no_runtime_files(repo: &git2::Repository, commit: git2::Oid) -> Result<()> {
    let files = tree::runtime_files(repo, tree::of_commit(repo, commit)?)?;
    if files.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = files.iter().take(NAMED).map(|f| quoted(f)).collect();
    Err(Bail::needs_user(format!(
        "The commit {commit} holds what only a run may write, and what no commit ever holds:\n{}\nTake it out (`git rm -r \
         --cached {}`, then commit), and run again.",
        listed(&files),
        named.join(" ")
    ))
    .into())
}

/// Where what is kept of a run outside its working tree begins. The journal of a checkout is of all its issues.
pub fn kept_stem(home: &Path, tree: &Path, issue: u64, here: bool) -> PathBuf {
    let work = home.join("work");
    if !here {
        return work.join(format!("issue-{issue}"));
    }
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(tree.as_os_str().as_encoded_bytes());
    let name: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
    work.join(format!("here-{name}"))
}

/// The journal that `veri clean` kept of a finished run goes on, as long as its branch is there: the proof of its steps
/// stands in no other, and pull request and thread would be written anew without it.
fn take_up_finished(repo: &Repo, home: &Path, issue: u64, journal: &Path) -> Result<()> {
    let kept = home.join("journals").join(format!("issue-{issue}.jsonl"));
    let branch = format!("refs/heads/{}", issue_branch_name(issue));
    if journal.exists() || !kept.exists() || repo.git2().find_reference(&branch).is_err() {
        return Ok(());
    }
    let lines = journal::read(&kept).unwrap_or_default();
    let last = lines.iter().rev().find(|l| l.issue == issue);
    if last.is_some_and(|l| l.event == Kind::RunEnd && l.text("ending") == "done") {
        std::fs::rename(&kept, journal)
            .with_context(|| format!("cannot take up the journal {}", kept.display()))?;
    }
    Ok(())
}

/// Folds the journal's inputs into the state that they led to; also what the last of them asked for.
fn replay(lines: &[Line]) -> Result<(State, Vec<Effect>)> {
    let (mut state, mut effects) = (State::new(), Vec::new());
    for line in lines {
        let Some(input) = line.fields.get("input") else {
            continue;
        };
        let unusable = |why: String| {
            Bail::new(
                Cause::StorageFailed,
                format!(
                    "line {} of the journal {why}. It is not skipped, since what it said would be forgotten; \
                     repair it, or move the journal away to go on from the ledger alone.",
                    line.seq
                ),
            )
        };
        let event: Event = serde_json::from_value(input.clone()).map_err(|e| {
            unusable(format!(
                "holds an input that this program does not know: {e}"
            ))
        })?;
        (state, effects) = next(state, event)
            .map_err(|e| unusable(format!("does not follow from those before it: {e}")))?;
    }
    Ok((state, effects))
}

/// The most that is read of an issue or a plan that a person names, in bytes.
const GIVEN: u64 = 16 << 20;

fn read_plan(path: &Path) -> Result<Plan> {
    let unreadable =
        |e: String| Bail::needs_user(format!("The plan {} cannot be read: {e}.", path.display()));
    let text = given(path, GIVEN).map_err(|e| unreadable(e.to_string()))?;
    let text = String::from_utf8(text).map_err(|e| unreadable(e.to_string()))?;
    plan::from_person(&text).map_err(|e| {
        anyhow!(Bail::new(
            Cause::PlanInvalid,
            format!(
                "The plan {} cannot be used: {e} (`veri prompt schema plan` shows the form).",
                path.display()
            )
        ))
    })
}

fn open_forge(settings: &Settings, repo: &Repo) -> Result<Box<dyn Forge>> {
    let spec = match settings.config.forge_address() {
        Some(address) => ForgeSpec::parse(address)
            .map_err(|e| Bail::needs_user(format!("The forge cannot be used: {e}.")))?
            .under(repo.checkout()),
        None => {
            let origin = repo.git2().find_remote(settings.remote()).ok();
            let url = origin
                .as_ref()
                .and_then(|r| r.url().ok())
                .map(str::to_owned);
            forge::default_for(url.as_deref())?
        }
    };
    forge::open(&spec)
}

/// veri's own files in the checkout: never dirt, never part of a candidate.
fn own_files(repo: &Repo, settings: &Settings, ask: &Ask) -> Vec<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let mut paths = Vec::new();
    if let Some(Ok(ForgeSpec::Directory(path))) =
        settings.config.forge_address().map(ForgeSpec::parse)
    {
        paths.push(repo.checkout().join(path));
    }
    if let IssueArg::File(path) = &ask.issue {
        paths.push(path.clone());
    }
    let top = repo.checkout();
    paths
        .iter()
        .filter_map(|p| p.canonicalize().ok())
        .filter_map(|p| {
            p.strip_prefix(top)
                .ok()
                .map(|p| p.as_os_str().as_bytes().to_vec())
        })
        .filter(|p| !p.is_empty())
        .collect()
}
