//! A developer whose first attempts are bad and whose next is good: many refusals in one run.

use crate::branch::{walk, was_sent_back};
use crate::scene::{Agent, Scene};
use veri::role::Phase;

/// What the developer's moves begin with: the tree as its phase began, whatever attempt came before.
pub const FRESH: &str = "git checkout -q HEAD -- . && git clean -fdq -e .tdd";

/// The good test of the first step, written by any phase.
pub const NAME_TEST: &str =
    r#"echo '. src/lib.sh; [ "$(greet Ann)" = "hello Ann" ]' > tests/name.sh"#;

/// The good code of the first step.
pub const NAME_CODE: &str = r#"echo 'greet() { if [ $# -gt 0 ]; then echo "hello $1"; else echo hello; fi; }' > src/lib.sh"#;

/// A developer whose first attempts at the first step are bad, one after the other, and whose next is good.
pub fn attempts(before: &str, bad: &[&str], good: &str) -> String {
    let mut text = "case \"$VERI_STEP-$VERI_ATTEMPT\" in\n".to_owned();
    for (number, script) in (1..).zip(bad) {
        text.push_str(&format!("greet*-{number})\n{before}\n{script}\n;;\n"));
    }
    text.push_str(&format!(
        "*)\ncase \"$VERI_STEP\" in greet*) {before};; esac\n{good}\n;;\nesac"
    ));
    text
}

/// A run whose developer makes these moves one after the other in a phase of the first step, and then the good one: each
/// is sent back for what stands beside it, and the branch that comes out is as good as any.
#[track_caller]
pub fn each_is_sent_back<S: AsRef<str>>(
    scene: &Scene,
    phase: Phase,
    before: &str,
    moves: &[(S, &str)],
) {
    let bad: Vec<&str> = moves.iter().map(|(script, _)| script.as_ref()).collect();
    let why: Vec<&str> = moves.iter().map(|(_, why)| *why).collect();
    let mut agent = Agent::default();
    let script = match phase {
        Phase::Red => &mut agent.red,
        Phase::Green => &mut agent.green,
        other => panic!("no moves of {other}"),
    };
    *script = attempts(before, &bad, script);
    scene.agent(&agent);
    scene.tdd(&[]).expect(0);
    was_sent_back(scene, 1, phase, &why);
    walk(scene);
}

/// Room for as many attempts as a scene has.
pub fn patient(scene: &Scene) {
    scene.write(".veri.toml", "[limits]\nrevisions = 40\n");
}
