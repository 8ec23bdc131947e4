//! How a reviewer sees for themselves what the pull request claims: commands to copy.

use super::facts::PullFacts;
use super::sanitize::command_fence;

/// The section of the pull request's body.
pub(super) fn see_for_yourself(facts: &PullFacts) -> String {
    let mut out = format!(
        "\n## See for yourself\n\nThis runs the suite on the finished branch, in your clone:\n\n{}\n",
        command_fence(&facts.evidence_command, 3_000)
    );
    if let Some(red) = &facts.red_half {
        out.push_str(&format!(
            "And then this shows the test of step {} failing, as it did before the code of that step was written, in a \
             folder beside your clone:\n\n{}\n",
            red.step,
            command_fence(&red.command, 3_000)
        ));
    }
    out
}
