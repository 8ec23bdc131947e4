//! The scripted agents of the scenes: a few lines of shell for each role.

/// The agent's moves, each a piece of shell; the environment is the leaf's.
pub struct Agent {
    /// The planner; prints its answer.
    pub plan: String,
    /// The developer in red, green and refactor.
    pub red: String,
    /// See `red`.
    pub green: String,
    /// See `red`.
    pub refactor: String,
    /// The verifier; prints its verdict.
    pub verify: String,
}

/// The plan of the two-step issue that every scene begins with.
pub const PLAN: &str = r#"cat <<J
{"nonce":"$VERI_NONCE",
 "criteria":[{"id":"AC1","text":"greet takes a name","quote":"prints \`hello Ann\`"},
             {"id":"AC2","text":"bye says bye","quote":"\`bye\` prints \`bye\`"}],
 "steps":[{"title":"greet takes a name","criteria":["AC1"]},
          {"title":"bye says bye","criteria":["AC2"]}]}
J"#;

/// A verdict that approves.
pub const APPROVE: &str =
    r#"echo "{\"nonce\":\"$VERI_NONCE\",\"verdict\":\"approve\",\"reasons\":[]}""#;

/// A verdict that rejects.
pub const REJECT: &str =
    r#"echo "{\"nonce\":\"$VERI_NONCE\",\"verdict\":\"reject\",\"reasons\":[\"too weak\"]}""#;

impl Default for Agent {
    /// An agent that does everything right.
    fn default() -> Agent {
        Agent {
            plan: PLAN.to_owned(),
            red: r#"case "$VERI_STEP" in
                greet*) echo '. src/lib.sh; [ "$(greet Ann)" = "hello Ann" ]' > tests/name.sh;;
                bye*) echo '. src/lib.sh; [ "$(bye)" = "bye" ]' > tests/bye.sh;;
            esac"#
                .to_owned(),
            green: r#"case "$VERI_STEP" in
                greet*) echo 'greet() { if [ $# -gt 0 ]; then echo "hello $1"; else echo hello; fi; }' > src/lib.sh;;
                bye*) echo 'bye() { echo bye; }' >> src/lib.sh;;
            esac"#
                .to_owned(),
            refactor: ":".to_owned(),
            verify: APPROVE.to_owned(),
        }
    }
}

/// Kills the conductor: in a leaf, whose parent is its shim, or in a hook, whose parent is git.
pub const KILL_CONDUCTOR: &str = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)";
