//! Smaller matrices: before and after each effect of stories in which other things happen.

use super::{Case, Story, each, outcomes, singles};
use crate::lanes::quick_folder;
use crate::scene::{APPROVE, Agent, Scene};
use crate::watching::{ONE_STEP, eventful_in, noting};
use std::collections::BTreeSet;

/// A story of three steps: behaviour that is already there, an old test that must change first, documentation; and a
/// pull request that is there when it is published.
fn varied() -> Scene {
    let scene = eventful_in(&quick_folder());
    let plan = r#"cat <<J
{"nonce":"$VERI_NONCE","criteria":[{"id":"AC1","text":"greet takes a name","quote":"The greeting should take a name"}],
 "steps":[{"title":"already there","criteria":["AC1"]},{"title":"greet takes a name","criteria":["AC1"]},
          {"title":"say so","criteria":["AC1"],"no_test":"documentation only"}]}
J"#;
    let patch = "diff --git a/src/lib.sh b/src/lib.sh\n--- a/src/lib.sh\n+++ b/src/lib.sh\n@@ -1 +1 @@\n-greet() { echo hello; }\n+greet() { echo broken; }\n";
    let answer = format!(
        r#"{{"nonce":"NONCE","verdict":"approve","reasons":[],"breaks_with":{}}}"#,
        serde_json::to_string(patch).unwrap()
    );
    let reopen = "echo '{\"reopen_red\":[{\"test\":\"tests/greet.sh\",\"why\":\"it pins the old greeting\"}]}'";
    scene.agent(&noting(Agent {
        plan: plan.to_owned(),
        red: r#"case "$VERI_STEP" in
            already*) [ $VERI_ATTEMPT != 1 ] || echo '. src/lib.sh; greet | grep -q hello' > tests/again.sh;;
            *) if [ -e tests/name.sh ]; then echo '. src/lib.sh; [ "$(greet)" = "hello you" ]' > tests/greet.sh
               else echo '. src/lib.sh; [ "$(greet Ann)" = "hello Ann" ]' > tests/name.sh; fi;;
            esac"#
            .to_owned(),
        green: format!(
            "case \"$VERI_STEP\" in greet*) if grep -q you src/lib.sh; then echo '# done' >> src/lib.sh; else echo 'greet() {{ echo \"hello ${{1-you}}\"; }}' > src/lib.sh; {reopen}; fi;; *) echo 'It greets.' > notes.md;; esac"
        ),
        verify: format!(
            "if [ -e tests/again.sh ] && [ ! -e tests/name.sh ]; then sed \"s/NONCE/$VERI_NONCE/\" <<'J'\n{answer}\nJ\nelse {APPROVE}; fi"
        ),
        ..Agent::default()
    }));
    let pulls = scene.path("forge/pulls");
    std::fs::create_dir_all(&pulls).unwrap();
    let pull = "---\ntitle: Somebody's draft\nhead: tdd/issue-42\nbase: main\ndraft: true\nstate: open\nissue: 42\n---\n\nIt was opened by hand.\n";
    std::fs::write(pulls.join("1.md"), pull).unwrap();
    scene
}

/// In the checkout itself: a stop while a developer works, and a verifier that cannot be understood until a person has
/// mended it, so that the command is given three times.
fn here() -> Scene {
    let scene = eventful_in(&quick_folder());
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: format!(
            "if [ ! -e \"$d/stopped\" ]; then touch \"$d/stopped\"; echo at-leaf > .tdd/stop; fi\n{}",
            Agent::default().red
        ),
        verify: format!(
            "n=$(cat \"$d/prose\" 2>/dev/null || echo 0); if [ $n -lt 2 ]; then echo $((n + 1)) > \"$d/prose\"; echo prose; exit 0; fi\n{APPROVE}"
        ),
        ..Agent::default()
    }));
    scene
}

const VARIED: Story = Story {
    scene: varied,
    flags: &[],
    starts: 1,
};

const HERE: Story = Story {
    scene: here,
    flags: &["--here"],
    starts: 3,
};

/// Before and after each effect of each start, of those that do the same the first.
fn before_and_after(story: &Story) {
    let reference = story.reference();
    let (mut seen, mut cases): (_, Vec<Case>) = (BTreeSet::new(), Vec::new());
    for start in 0..story.starts {
        for mut case in singles(&outcomes(&reference.lines, start)) {
            let point = case.crashes[0].split(':').nth(1).unwrap().to_owned();
            let effect = case.name.split_once('(').unwrap().1.to_owned();
            if matches!(point.as_str(), "before" | "after") && seen.insert((effect, point)) {
                case.crashes.splice(0..0, vec![String::new(); start]);
                case.name = format!("start {start}: {}", case.name);
                cases.push(case);
            }
        }
    }
    let crashed = each("crashes", &cases, |case| story.disturb(case, &reference));
    for one in &crashed {
        assert_eq!(one.crashed.last(), Some(&true), "{}", one.case.name);
    }
}

#[test]
fn already_there_reopened_untested_and_published_over_a_draft_survive_a_crash_at_each_effect() {
    before_and_after(&VARIED);
}

#[test]
fn a_run_in_the_checkout_with_a_stop_and_a_bail_survives_a_crash_at_each_effect() {
    before_and_after(&HERE);
}
