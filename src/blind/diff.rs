//! What differs between two trees, as a verifier is shown it: paths, and the lines that were added.

use crate::prompt::escaped_line;
use anyhow::Context;
use git2::{Delta, DiffOptions, Oid, Patch, Repository};
use std::fmt::Write as _;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is new.
    Added,
    /// It was there and its content, mode or type is another.
    Changed,
    /// It is gone.
    Deleted,
}

/// One path that differs between base and candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The path in the tree, as bytes.
    pub path: Vec<u8>,
    /// What became of it.
    pub fate: Fate,
}

/// A path with what was added to it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) touched: Touched,
    added: Vec<(u32, Vec<u8>)>,
    removed: usize,
    binary: bool,
}

/// How many bytes of added lines one block of a prompt shows; the rest can be read in the checkout.
const BLOCK_BYTES: usize = 128 * 1024;

/// How many bytes of one line are shown: generated and minified files have lines of megabytes.
const LINE_BYTES: usize = 1000;

/// The paths that `keep` chooses among those that differ, with their added lines.
pub(super) fn between(
    repo: &Repository,
    base: Oid,
    candidate: Oid,
    keep: &dyn Fn(&Touched) -> bool,
) -> anyhow::Result<Vec<Shown>> {
    let tree = |id: Oid| -> anyhow::Result<git2::Tree<'_>> {
        let object = repo.find_object(id, None).with_context(|| format!("reading tree {id}"))?;
        object.peel_to_tree().with_context(|| format!("reading tree {id}"))
    };
    let (base, candidate) = (tree(base)?, tree(candidate)?);
    let mut options = DiffOptions::new();
    options.context_lines(0).include_typechange(true);
    let diff = repo
        .diff_tree_to_tree(Some(&base), Some(&candidate), Some(&mut options))
        .with_context(|| format!("comparing trees {} and {}", base.id(), candidate.id()))?;
    let mut shown = Vec::new();
    for (index, delta) in diff.deltas().enumerate() {
        let fate = match delta.status() {
            Delta::Added => Fate::Added,
            Delta::Deleted => Fate::Deleted,
            _ => Fate::Changed,
        };
        let file = if fate == Fate::Deleted { delta.old_file() } else { delta.new_file() };
        let touched = Touched { path: file.path_bytes().unwrap_or_default().to_vec(), fate };
        if !keep(&touched) {
            continue;
        }
        shown.push(show(&diff, index, touched)?);
    }
    Ok(shown)
}

fn show(diff: &git2::Diff<'_>, index: usize, touched: Touched) -> anyhow::Result<Shown> {
    let mut shown = Shown { touched, added: Vec::new(), removed: 0, binary: false };
    let Some(patch) = Patch::from_diff(diff, index)? else {
        shown.binary = true;
        return Ok(shown);
    };
    shown.binary = patch.delta().flags().is_binary();
    for hunk in 0..patch.num_hunks() {
        for line in 0..patch.num_lines_in_hunk(hunk)? {
            let line = patch.line_in_hunk(hunk, line)?;
            match line.origin() {
                '+' => shown.added.push((line.new_lineno().unwrap_or(0), line.content().to_vec())),
                '-' => shown.removed += 1,
                _ => {}
            }
        }
    }
    Ok(shown)
}

/// Writes paths and added lines for a data block; `label` says what each path is listed as.
pub(super) fn write_block(shown: &[Shown], label: &dyn Fn(usize) -> &'static str) -> String {
    let mut block = String::new();
    let mut left = BLOCK_BYTES;
    for (index, file) in shown.iter().enumerate() {
        let path = escaped_line(&String::from_utf8_lossy(&file.touched.path));
        let fate = match file.touched.fate {
            Fate::Added => "new",
            Fate::Changed => "changed",
            Fate::Deleted => "deleted",
        };
        let _ = write!(block, "{path} ({}{fate}", label(index));
        if file.touched.fate == Fate::Changed && file.removed > 0 {
            let _ = write!(block, ", {} lines removed or replaced", file.removed);
        }
        block.push_str(if file.binary { ", binary)\n" } else { ")\n" });
        if file.touched.fate == Fate::Deleted {
            continue;
        }
        for (number, content) in &file.added {
            let cut = &content[..content.len().min(LINE_BYTES)];
            let more = if cut.len() < content.len() { " … (line cut)" } else { "" };
            if left < cut.len() {
                block.push_str("    (the other added lines are not shown here: read the file)\n");
                left = 0;
                break;
            }
            left -= cut.len();
            let _ = writeln!(block, "{number:>6} + {}{more}", source_line(cut));
        }
    }
    block
}

/// A line of source, with tabs kept and what hides or moves text written as escapes.
fn source_line(content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.split('\t').map(escaped_line).collect::<Vec<_>>().join("\t")
}
