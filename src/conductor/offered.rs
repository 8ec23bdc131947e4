//! What the machine offers a run, looked at before anything is run.

use super::run::Run;
use crate::cause::Bail;
use crate::event::Kind;
use crate::leaf;
use crate::storage;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

impl Run<'_> {
    /// Agents, suites, hooks and git make files in it, each from a folder of its own.
    pub(super) fn find_temporary(&self) -> Result<()> {
        let folder = Path::new(self.ask.env.get("TMPDIR").unwrap_or(OsStr::new("/tmp")));
        let why = match tempfile::NamedTempFile::new_in(folder) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied => e.to_string(),
            Err(e) if storage::failed(&e) || storage::has_no_more(&e).is_some() => {
                let what = || format!("making a file in {} (TMPDIR)", folder.display());
                return Err(e).with_context(what);
            }
            Err(e) => e.to_string(),
            Ok(_) if folder.is_relative() => "it is not an absolute path".to_owned(),
            Ok(_) => return Ok(()),
        };
        Err(Bail::needs_user(format!(
            "The folder for temporary files, {} (TMPDIR), cannot be used: {why}. Make it, or name another, then run again.",
            folder.display()
        ))
        .into())
    }

    /// Says once in a run by what little the processes of its leaves are ended, where something is missing.
    pub(super) fn say_what_is_not_reached(&mut self) -> Result<()> {
        let reach = leaf::reach();
        let said = format!("what agents and suites start is ended by: {reach}");
        if !reach.is_whole() && !self.lines.iter().any(|l| l.text("said") == said) {
            self.say(Kind::Preflight, said)?;
        }
        Ok(())
    }
}
