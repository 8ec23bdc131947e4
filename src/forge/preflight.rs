//! Preflight 4, as far as the issue alone decides it.

use super::issue::Issue;
use super::visible::visible;
use crate::cause::Bail;

/// Whether a run may work on an issue: it is no pull request, is open, and says something.
///
/// That it exists is [`super::Forge::issue`]'s to say, and whose words are taken
/// [`super::trust::trusted`]'s. A locked one is fine: whoever may write can still comment.
///
/// # Errors
/// `Bail` needs-user with what to do.
pub fn preflight4(issue: &Issue) -> Result<(), Bail> {
    let number = issue.number();
    if issue.is_pull() {
        return Err(Bail::needs_user(format!(
            "{number} is a pull request, and a run needs an issue to start from. Name the issue that \
             the pull request is about, or write one that says what should change."
        )));
    }
    if !issue.is_open() {
        return Err(Bail::needs_user(format!(
            "Issue {number} is closed, so a run would do work that nobody waits for. Reopen it, then \
             run `veri tdd {number}` again."
        )));
    }
    if visible(issue.body()).text.trim().is_empty() {
        return Err(Bail::needs_user(format!(
            "The body of issue {number} is blank (what a reader cannot see aside), so there is nothing \
             to derive tests from. Write what should be different, and how one can tell, then run \
             `veri tdd {number}` again."
        )));
    }
    Ok(())
}
