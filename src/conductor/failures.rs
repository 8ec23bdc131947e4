//! How an effect can fail, and the cause that follows: from recorded facts, never from prose.

use crate::cause::{Bail, Cause};
use crate::machine::Effect;

/// A suite was ended by a stop request of mode now.
#[derive(Debug, thiserror::Error)]
#[error("a stop request of mode now ended a suite")]
pub(super) struct StoppedInSuite;

/// The ground's dependencies could not be made for a tree: on the base a question, on a candidate its fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct SetupFailed(pub(super) String);

/// The cause of a failure, from its recorded facts: a `Bail` in the chain, the kind of an io error, or
/// what the effect was about.
pub(super) fn classify(error: &anyhow::Error, effect: &Effect) -> Bail {
    if let Some(bail) = known_cause(error) {
        return bail;
    }
    let cause = match effect {
        Effect::Publish | Effect::Mirror => Cause::ForgeFailed,
        _ => Cause::GitFailed,
    };
    Bail::new(cause, format!("{error:#}"))
}

/// The cause that an error itself carries.
pub(super) fn known_cause(error: &anyhow::Error) -> Option<Bail> {
    // As an anyhow context it is found by the error itself, as a source by the chain.
    let bail = error.downcast_ref::<Bail>();
    if let Some(bail) = bail.or_else(|| error.chain().find_map(|e| e.downcast_ref::<Bail>())) {
        // The context above says what was attempted; the bail says the rest.
        return Some(bail.clone());
    }
    if let Some(failed) = error.downcast_ref::<SetupFailed>() {
        return Some(Bail::needs_user(failed.to_string()));
    }
    // libgit2 has no kind for it, only the system's words.
    let of_git = error.chain().find_map(|e| e.downcast_ref::<git2::Error>());
    let full = [
        "No space left on device",
        "Read-only file system",
        "Disk quota exceeded",
    ];
    if of_git.is_some_and(|e| full.iter().any(|words| e.message().contains(words))) {
        return Some(storage_failed(error));
    }
    use std::io::ErrorKind as K;
    let io = error
        .chain()
        .find_map(|e| e.downcast_ref::<std::io::Error>())?;
    let storage = matches!(
        io.kind(),
        K::StorageFull
            | K::QuotaExceeded
            | K::ReadOnlyFilesystem
            | K::PermissionDenied
            | K::NotFound
            | K::FileTooLarge
            | K::NotADirectory
    );
    storage.then(|| storage_failed(error))
}

fn storage_failed(error: &anyhow::Error) -> Bail {
    Bail::new(
        Cause::StorageFailed,
        format!("{error:#}. Nothing finished is lost: make room or give access, and run again."),
    )
}
