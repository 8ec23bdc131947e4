//! The snapshot: the templates and the configuration that a run was started with, as a git tree.

use crate::config::Config;
use crate::prompt::Templates;
use anyhow::{Context, Result};
use git2::{FileMode, ObjectType, Oid, Repository};
use serde::{Deserialize, Serialize};

const CONFIG: &str = "config.json";
const TEMPLATES: &str = "templates";

fn refname(issue: u64) -> String {
    format!("refs/veri/issue-{issue}/snapshot")
}

fn in_force_name(issue: u64) -> String {
    format!("refs/veri/issue-{issue}/configuration")
}

/// What is in force beside the templates: the flags of every start so far are in it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InForce {
    pub(super) config: Config,
    /// veri's own files in the checkout, from its top, in raw bytes.
    pub(super) own: Vec<Vec<u8>>,
    /// What the files said when the run began, without any flag: to tell whether they have changed since.
    #[serde(default)]
    pub(super) files: Option<Config>,
}

impl InForce {
    /// What is to be said of the files as they are now: what the run began with stays in force.
    pub(super) fn changed_since(&self, now: &Result<Config>) -> Option<String> {
        let what = match now {
            Ok(now) if self.files.as_ref().is_none_or(|then| then == now) => return None,
            Ok(_) => "the settings in .veri.toml or config.toml have changed since this run began."
                .to_owned(),
            Err(error) => format!("{error:#}"),
        };
        Some(format!(
            "{what} What this run began with stays in force; `--new-templates` takes the files as they are now"
        ))
    }
}

/// A stored snapshot. Flags of later starts are in `in_force` and leave its id as it is.
pub(super) struct Snapshot {
    pub(super) id: Oid,
    pub(super) in_force: InForce,
    pub(super) templates: Templates,
}

/// The snapshot of an issue's run, if one was taken here.
pub(super) fn load(repo: &Repository, issue: u64) -> Result<Option<Snapshot>> {
    let Ok(reference) = repo.find_reference(&refname(issue)) else {
        return Ok(None);
    };
    let what = || format!("cannot read the snapshot {}", refname(issue));
    let tree = reference.peel_to_tree().with_context(what)?;
    let blob = |name: &str| -> Result<Vec<u8>> {
        let entry = tree
            .get_path(std::path::Path::new(name))
            .with_context(what)?;
        Ok(repo
            .find_blob(entry.id())
            .with_context(what)?
            .content()
            .to_vec())
    };
    let in_force = match repo.find_reference(&in_force_name(issue)) {
        Ok(reference) => {
            let blob = reference.peel_to_blob().with_context(what)?;
            serde_json::from_slice(blob.content()).with_context(what)?
        }
        Err(_) => InForce {
            config: serde_json::from_slice(&blob(CONFIG)?).with_context(what)?,
            own: Vec::new(),
            files: None,
        },
    };
    let folder = tree.get_name(TEMPLATES).map(|e| e.id());
    let mut files = Vec::new();
    if let Some(folder) = folder {
        for entry in repo.find_tree(folder).with_context(what)?.iter() {
            let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
            files.push((
                name,
                repo.find_blob(entry.id())
                    .with_context(what)?
                    .content()
                    .to_vec(),
            ));
        }
    }
    let templates = Templates::from_files(files).with_context(what)?;
    Ok(Some(Snapshot {
        id: tree.id(),
        in_force,
        templates,
    }))
}

/// Writes a snapshot's tree, without putting it in force.
pub(super) fn write(repo: &Repository, config: &Config, templates: &Templates) -> Result<Oid> {
    let mut folder = repo.treebuilder(None)?;
    for (name, text) in templates.files() {
        let blob = repo.blob(text.as_bytes())?;
        folder.insert(name, blob, FileMode::Blob.into())?;
    }
    let mut top = repo.treebuilder(None)?;
    top.insert(TEMPLATES, folder.write()?, FileMode::Tree.into())?;
    let config = repo.blob(&serde_json::to_vec_pretty(config)?)?;
    top.insert(CONFIG, config, FileMode::Blob.into())?;
    Ok(top.write()?)
}

/// Whether a snapshot is stored here.
pub(super) fn is_kept(repo: &Repository, issue: u64) -> bool {
    repo.find_reference(&refname(issue)).is_ok()
}

/// Puts a snapshot in force. Commits name the one that it replaces, which stays reachable.
pub(super) fn keep(repo: &Repository, issue: u64, id: Oid, in_force: &InForce) -> Result<()> {
    let what = || format!("cannot store the snapshot {}", refname(issue));
    let blob = repo.blob(&serde_json::to_vec_pretty(in_force)?)?;
    repo.reference(&in_force_name(issue), blob, true, "veri: configuration")
        .with_context(what)?;
    let before = repo.refname_to_id(&refname(issue)).ok();
    if let Some(before) = before.filter(|before| *before != id) {
        let name = format!("refs/veri/issue-{issue}/snapshots/{before}");
        repo.reference(&name, before, true, "veri: an earlier snapshot")
            .with_context(what)?;
    }
    repo.reference(&refname(issue), id, true, "veri: snapshot")
        .with_context(what)?;
    Ok(())
}

/// The repository's own templates: the files of `.veri/templates/` in the base, name and bytes.
pub(super) fn of_base(repo: &Repository, commit: Oid) -> Result<Vec<(String, Vec<u8>)>> {
    let tree = repo.find_commit(commit)?.tree()?;
    let Ok(entry) = tree.get_path(std::path::Path::new(".veri/templates")) else {
        return Ok(Vec::new());
    };
    let Ok(folder) = repo.find_tree(entry.id()) else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    for entry in folder.iter().filter(|e| e.kind() == Some(ObjectType::Blob)) {
        let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
        files.push((name, repo.find_blob(entry.id())?.content().to_vec()));
    }
    Ok(files)
}
