//! Wall 2: a verifier's checkout, a repository of its own without any history of the person's.

use super::hold::Ground;
use super::neutral;
use super::slot::Kind;
use super::source::Source;
use anyhow::{Context, Result};
use git2::{Oid, Repository};
use std::path::Path;

/// A ground made fresh for one verifier: its repository holds the candidate (and base), and no other object.
///
/// Build and dependency folders are fresh as well: what one verifier leaves cannot reach the next.
#[derive(Debug)]
pub struct Verify {
    ground: Ground,
    head: Oid,
    base: Option<Oid>,
}

impl Verify {
    /// Makes the checkout: one neutral commit of `candidate`, on top of one of `base` where that is given.
    ///
    /// # Errors
    /// git-failed when objects are missing or a filter fails, and I/O errors.
    pub fn make(
        home: &Path,
        repo: &Repository,
        candidate: Oid,
        base: Option<Oid>,
    ) -> Result<Verify> {
        Verify::make_in(Ground::acquire(home, Kind::Verify)?, repo, candidate, base)
    }

    /// The same in a ground of kind `Verify` that is held already: what a killed conductor left running in it
    /// can be ended before.
    ///
    /// # Errors
    /// As `make`.
    pub fn make_in(
        mut ground: Ground,
        repo: &Repository,
        candidate: Oid,
        base: Option<Oid>,
    ) -> Result<Verify> {
        ground.wipe()?;
        ground.bring_to(repo, candidate)?;
        let source = Source::of(repo)?;
        neutral::make(ground.path())?;
        let trees: Vec<Oid> = base.into_iter().chain([candidate]).collect();
        source
            .pack(&trees, &ground.path().join(".git/objects/pack"))
            .context("making the verifier's repository")?;
        let base = match base {
            Some(tree) => Some(neutral::commit(ground.path(), tree, None)?),
            None => None,
        };
        let head = neutral::commit(ground.path(), candidate, base)?;
        ground.take_index()?;
        Ok(Verify { ground, head, base })
    }

    /// The root of the checkout.
    pub fn path(&self) -> &Path {
        self.ground.path()
    }

    /// The ground itself: for setup, the declared environment and the slot's number.
    pub fn ground(&mut self) -> &mut Ground {
        &mut self.ground
    }

    /// The name of the commit that is checked out.
    pub fn head(&self) -> Oid {
        self.head
    }

    /// The name of the base's commit, for a refactor's claim.
    pub fn base(&self) -> Option<Oid> {
        self.base
    }
}
