//! The issue's thread: a comment for what is asked now, and nothing that is over still asks.

use crate::scene::Agent;
use crate::watching::{ONE_STEP, plain};

/// The whole thread, as far as it is not marked as over.
fn open_words(comments: &[String]) -> String {
    let open = comments.iter().filter(|c| !c.contains("**Over:**"));
    open.cloned().collect()
}

#[test]
fn a_question_that_was_answered_is_marked_as_over_in_a_finished_thread() {
    let scene = plain();
    scene.agent(&Agent {
        plan: r#"echo "{\"nonce\":\"$VERI_NONCE\",\"needs_user\":\"red or blue?\"}""#.to_owned(),
        ..Agent::default()
    });
    scene.tdd(&[]).bails("needs-user");
    // Asked again, it is the same comment, and it is open again.
    scene.tdd(&[]).bails("needs-user");
    let asked = scene.comments();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(open_words(&asked).contains("needs an answer"), "{asked:?}");
    scene.agent(&Agent {
        plan: ONE_STEP.to_owned(),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    let thread = scene.comments();
    assert_eq!(thread.len(), 2, "{thread:?}");
    assert!(!open_words(&thread).contains("needs an answer"));
    assert!(thread[1].contains("red or blue?"), "what was asked stays");
    // And once more, with nothing to mark: it is left as it is.
    scene.tdd(&[]).expect(0);
    assert_eq!(scene.comments()[1], thread[1]);
}

#[test]
fn what_is_mistyped_again_and_again_is_one_comment_until_the_run_begins() {
    let scene = plain();
    for typo in ["command:./agnet", "command:./gaent", "agent"] {
        scene.tdd(&["--planner", typo]).bails("agent-unavailable");
    }
    let told = scene.comments();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(open_words(&told).contains("the agent `agent` is not one"));
    scene.tdd(&[]).expect(0);
    assert!(!open_words(&scene.comments()).contains("agent-unavailable"));
}
