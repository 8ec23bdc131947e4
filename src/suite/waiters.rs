//! Programs that run tests and then wait for changes of files, and what each prints when it does.
//!
//! Measured means: run under Linux with `CI=true`, standard input /dev/null and both streams into one file, as suites are.

/// One program's way to wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter {
    /// Its name, for people.
    pub(super) tool: &'static str,
    /// Lines of which one stands among the last when it waits, each as pieces that follow one another; the first piece
    /// begins the line.
    pub(super) says: &'static [&'static [&'static str]],
    /// Where that is what it also prints when it does not wait: the command line of one living process must have one of
    /// these file names, `.js` aside; at its beginning, unless a flag is asked for.
    pub(super) program: &'static [&'static str],
    /// And one of these arguments, alone or before `=`, if there are any.
    pub(super) flags: &'static [&'static str],
    /// What to run instead.
    pub(super) instead: &'static str,
    /// Where the words are from. For whoever changes the table.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) source: &'static str,
}

/// All that are known.
///
/// Not here, since they end by themselves under `CI=true` or without a terminal: ava 7 (`--watch` is refused), vitest 4
/// without `--watch`, react-scripts, bacon, entr. Not here, since nothing tells that they wait: karma, tsx watch.
pub(super) const WAITERS: &[Waiter] = &[
    Waiter {
        tool: "jest",
        // Without a terminal its menu is not printed, and the summary is that of any run.
        says: &[
            &["Ran all test suites"],
            &["No tests found related to files changed since last commit."],
            &["Watch Usage"],
        ],
        program: &["jest", "jest-cli"],
        flags: &["--watch", "--watchAll"],
        instead: "jest --watchAll=false",
        source: "measured, jest 30.5.2",
    },
    Waiter {
        tool: "vitest",
        says: &[
            &["PASS ", "Waiting for file changes..."],
            &["FAIL ", "Watching for file changes..."],
        ],
        program: &[],
        flags: &[],
        instead: "vitest run",
        source: "measured, vitest 4.1.12 with --watch (a failure from its source)",
    },
    Waiter {
        tool: "mocha",
        says: &[
            &["ℹ [mocha] waiting for changes..."],
            &["[mocha] waiting for changes..."],
        ],
        program: &[],
        flags: &[],
        instead: "mocha, without --watch",
        source: "measured, mocha 12.0.3",
    },
    Waiter {
        tool: "node --test",
        says: &[&["# duration_ms "], &["ℹ duration_ms "]],
        program: &["node"],
        flags: &["--watch"],
        instead: "node --test, without --watch",
        source: "measured, node 20.20.2",
    },
    Waiter {
        tool: "node --watch",
        says: &[&["Completed running '"], &["Failed running '"]],
        program: &["node"],
        flags: &["--watch"],
        instead: "node, without --watch",
        source: "measured, node 20.20.2",
    },
    Waiter {
        tool: "nodemon",
        says: &[
            &["[nodemon] clean exit - waiting for changes before restart"],
            &["[nodemon] app crashed - waiting for file changes before starting"],
        ],
        program: &[],
        flags: &[],
        instead: "the command itself, without nodemon",
        source: "measured, nodemon 3.1.14 (the crash from its source)",
    },
    Waiter {
        tool: "tsc",
        says: &[&["", "Found ", " error", ". Watching for file changes."]],
        program: &[],
        flags: &[],
        instead: "tsc, without --watch",
        source: "measured, typescript 7.0.2",
    },
    Waiter {
        tool: "cargo watch",
        says: &[&["[Finished running. Exit status: "]],
        program: &[],
        flags: &[],
        instead: "cargo test",
        source: "measured, cargo-watch 8.5.3",
    },
    Waiter {
        tool: "watchexec",
        says: &[
            &["[Command was successful"],
            &["[Command exited with "],
            &["[Command killed by "],
        ],
        program: &["watchexec"],
        flags: &[],
        instead: "the command itself, without watchexec",
        source: "its source, watchexec 2",
    },
    Waiter {
        tool: "pytest-watch",
        says: &[&["==", " in ", "s ", "=="]],
        program: &["ptw", "pytest-watch"],
        flags: &[],
        instead: "pytest",
        source: "measured, pytest-watch 4.2",
    },
    Waiter {
        tool: "pytest-watcher",
        says: &[&["Waiting for file changes in "]],
        program: &[],
        flags: &[],
        instead: "pytest",
        source: "measured, pytest-watcher 0.6.3",
    },
    Waiter {
        tool: "deno",
        says: &[
            &["Watcher Test finished. Restarting on file change..."],
            &["Watcher Test failed. Restarting on file change..."],
        ],
        program: &[],
        flags: &[],
        instead: "deno test, without --watch",
        source: "measured, deno 2.9.6 (failed from its source)",
    },
    Waiter {
        tool: "bun",
        says: &[&["Ran ", " test", " across ", " file"]],
        program: &["bun"],
        flags: &["--watch"],
        instead: "bun test, without --watch",
        source: "measured, bun 1.4.5",
    },
    Waiter {
        tool: "gradle",
        says: &[&["Waiting for changes to input files"]],
        program: &[],
        flags: &[],
        instead: "gradle test, without --continuous",
        source: "its documentation",
    },
    Waiter {
        tool: "sbt",
        says: &[
            &["", ". Monitoring source files for "],
            &["", ". Waiting for source changes"],
        ],
        program: &[],
        flags: &[],
        instead: "sbt test, without ~",
        source: "its documentation",
    },
    Waiter {
        tool: "dotnet watch",
        says: &[
            &[
                "dotnet watch ",
                "Waiting for a file to change before restarting",
            ],
            &["watch : Waiting for a file to change before restarting"],
        ],
        program: &[],
        flags: &[],
        instead: "dotnet test",
        source: "its documentation",
    },
    Waiter {
        tool: "guard",
        says: &[&["", "Guard is now watching at "], &["[", "] guard(main)>"]],
        program: &[],
        flags: &[],
        instead: "the tests themselves, without guard",
        source: "its documentation",
    },
];

impl Waiter {
    /// Whether a line is one of those that it prints when it waits.
    pub(super) fn says(&self, line: &str) -> bool {
        self.says.iter().any(|pieces| follow_in(line, pieces))
    }

    /// Whether one of these command lines is that of the program, waiting.
    pub(super) fn is_run_as(&self, arguments: &[Vec<String>]) -> bool {
        let is_named = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or_default();
            self.program
                .contains(&name.strip_suffix(".js").unwrap_or(name))
        };
        let is_flag = |word: &String| {
            let flag = word.split('=').next().unwrap_or_default();
            self.flags.contains(&flag) && !word.ends_with("=false")
        };
        // Another program beside it may watch, and a folder may have its name.
        let is = |line: &Vec<String>| match self.flags.is_empty() {
            true => line.iter().take(2).any(is_named),
            false => line.iter().any(is_named) && line.iter().any(is_flag),
        };
        self.program.is_empty() || arguments.iter().any(is)
    }
}

/// Whether a line begins with the first of the pieces, and the others follow in their order.
fn follow_in(line: &str, pieces: &[&str]) -> bool {
    let Some((first, rest)) = pieces.split_first() else {
        return false;
    };
    let mut left = line.strip_prefix(first);
    for piece in rest {
        left = left.and_then(|left| left.split_once(piece).map(|(_, after)| after));
    }
    left.is_some()
}
