//! How an effect can fail, and the cause that follows: from recorded facts, never from prose.

use crate::cause::{Bail, Cause};
use crate::leaf::AlreadyRunning;
use crate::machine::Effect;
use crate::storage;
use crate::suite::SuiteEnd;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A suite was ended by a stop request of mode now.
#[derive(Debug, thiserror::Error)]
#[error("a stop request of mode now ended a suite")]
pub(super) struct StoppedInSuite;

/// What ended a command that so has answered nothing: a stop request, or somebody else's signal.
pub(super) fn cut_off(command: &str, end: &SuiteEnd) -> Option<anyhow::Error> {
    match end {
        SuiteEnd::Stopped => Some(StoppedInSuite.into()),
        SuiteEnd::KilledExternal { signal } => Some(killed(command, *signal)),
        _ => None,
    }
}

/// The bail of a command that somebody else ended.
pub(super) fn killed(command: &str, signal: i32) -> anyhow::Error {
    let said = format!(
        "`{command}` was ended by signal {signal} that was not veri's; run again to go on."
    );
    Bail::new(Cause::KilledExternal, said).into()
}

/// The ground's dependencies could not be made for a tree: on the base a question, on a candidate its fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct SetupFailed(pub(super) String);

/// The cause of a failure, from its recorded facts: a `Bail` in the chain, the kind of an io error, one of veri's
/// own folders that is gone, or what the effect was about.
pub(super) fn classify(error: &anyhow::Error, effect: &Effect, own: &[PathBuf]) -> Bail {
    let unknown = || {
        let cause = match effect {
            Effect::Publish | Effect::Mirror => Cause::ForgeFailed,
            _ => Cause::GitFailed,
        };
        Bail::new(cause, format!("{error:#}"))
    };
    by_the_storage(known_cause(error).unwrap_or_else(unknown), own)
}

/// What git or a forge failed for when one of the folders that it works in is gone, or nothing can be written there:
/// neither always says.
pub(super) fn by_the_storage(bail: Bail, folders: &[PathBuf]) -> Bail {
    if !matches!(bail.cause, Cause::GitFailed | Cause::ForgeFailed) {
        return bail;
    }
    let gone = folders.iter().find(|folder| !folder.is_dir());
    let gone = gone.map(|folder| format!("the folder {} is gone", folder.display()));
    match gone.or_else(|| storage::what_fails(folders)) {
        Some(why) => Bail::new(
            Cause::StorageFailed,
            format!(
                "{}\nThe reason: {why}. {}",
                bail.detail.trim_end(),
                storage::ADVICE
            ),
        ),
        None => bail,
    }
}

/// The cause that an error itself carries.
pub(super) fn known_cause(error: &anyhow::Error) -> Option<Bail> {
    // As an anyhow context it is found by the error itself, as a source by the chain.
    let bail = error.downcast_ref::<Bail>();
    if let Some(bail) = bail.or_else(|| error.chain().find_map(|e| e.downcast_ref::<Bail>())) {
        // The context above says what was attempted; the bail says the rest.
        return Some(bail.clone());
    }
    let mut chain = error.chain();
    if let Some(running) = chain.find_map(|e| e.downcast_ref::<AlreadyRunning>()) {
        return Some(Bail::needs_user(running.to_string()));
    }
    if let Some(failed) = error.downcast_ref::<SetupFailed>() {
        return Some(Bail::needs_user(failed.to_string()));
    }
    // libgit2 has no kind for it, only the system's words.
    let of_git = error.chain().find_map(|e| e.downcast_ref::<git2::Error>());
    if of_git.is_some_and(|e| storage::is_named_in(e.message())) {
        return Some(storage_failed(error));
    }
    let io = io_of(error)?;
    if let Some(advice) = storage::has_no_more(io) {
        let said = format!("{error:#}. {advice}");
        return Some(Bail::new(Cause::StorageFailed, said));
    }
    let storage = storage::failed(io) || io.kind() == ErrorKind::NotADirectory;
    storage.then(|| storage_failed(error))
}

/// The cause of an error that no room has a cause for and that git or the system gave.
pub(super) fn of_the_world(error: &anyhow::Error) -> Option<Bail> {
    if error.chain().any(|e| e.is::<git2::Error>()) {
        return Some(Bail::new(Cause::GitFailed, format!("{error:#}")));
    }
    let io = io_of(error)?;
    io.raw_os_error().map(|_| storage_failed(error))
}

/// The cause of an error that something was not found, when what is gone is a folder of veri's own: any other thing
/// that is missing (a program, a file that somebody named) is no fault of the storage.
pub(super) fn vanished(error: &anyhow::Error, own: &[PathBuf]) -> Option<Bail> {
    if io_of(error)?.kind() != ErrorKind::NotFound {
        return None;
    }
    let gone = |folder: &&PathBuf| !Path::is_dir(folder);
    let folder = own.iter().find(gone)?;
    Some(storage_failed(&anyhow::anyhow!(
        "{error:#}. The folder {} is gone",
        folder.display()
    )))
}

fn io_of(error: &anyhow::Error) -> Option<&std::io::Error> {
    error.chain().find_map(|e| e.downcast_ref())
}

fn storage_failed(error: &anyhow::Error) -> Bail {
    Bail::new(
        Cause::StorageFailed,
        format!("{error:#}. {}", storage::ADVICE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    fn missing(what: &str) -> anyhow::Error {
        Err::<(), _>(std::io::Error::from(ErrorKind::NotFound))
            .context(format!("reading {what}"))
            .unwrap_err()
    }

    #[test]
    fn what_is_missing_is_the_storages_fault_only_when_a_folder_of_veris_own_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let own = [dir.path().to_owned(), dir.path().join("work")];
        std::fs::create_dir(&own[1]).unwrap();
        let error = missing("a program");
        let cause = |effect| classify(&error, &effect, &own).cause;
        assert_eq!(cause(Effect::ReadLedger), Cause::GitFailed);
        assert_eq!(cause(Effect::Publish), Cause::ForgeFailed);
        std::fs::remove_dir(&own[1]).unwrap();
        let bail = classify(&error, &Effect::ReadLedger, &own);
        assert_eq!(bail.cause, Cause::StorageFailed);
        assert!(bail.detail.contains("work is gone"), "{}", bail.detail);
    }

    #[test]
    fn a_leaf_that_somebody_else_has_started_is_for_a_person_to_end_and_no_fault_of_git() {
        let name = "develop-red".to_owned();
        let error = anyhow::Error::from(AlreadyRunning { name }).context("launching");
        let bail = classify(&error, &Effect::ReadLedger, &[]);
        assert_eq!(bail.cause, Cause::NeedsUser);
        assert!(bail.detail.contains("veri leaf wait develop-red"));
    }

    #[test]
    fn a_full_disk_is_the_storages_fault_wherever_it_shows() {
        let words = "could not write: No space left on device";
        for full in [
            std::io::Error::from(ErrorKind::StorageFull).into(),
            // A leaf has put a file in the place of a folder.
            std::io::Error::from(ErrorKind::NotADirectory).into(),
            anyhow::Error::from(git2::Error::from_str(words)),
        ] {
            let bail = classify(&full.context("writing"), &Effect::Publish, &[]);
            assert_eq!(bail.cause, Cause::StorageFailed, "{}", bail.detail);
        }
    }
}
