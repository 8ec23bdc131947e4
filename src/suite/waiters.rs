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
    /// Where that is what it also prints when it does not wait: arguments or program names of which a living process must
    /// have one, alone or before `=`.
    pub(super) run_as: &'static [&'static str],
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
        run_as: &["--watch", "--watchAll"],
        instead: "jest --watchAll=false",
        source: "measured, jest 30.5.2",
    },
    Waiter {
        tool: "vitest",
        says: &[
            &["PASS ", "Waiting for file changes..."],
            &["FAIL ", "Watching for file changes..."],
        ],
        run_as: &[],
        instead: "vitest run",
        source: "measured, vitest 4.1.12 with --watch (a failure from its source)",
    },
    Waiter {
        tool: "mocha",
        says: &[
            &["ℹ [mocha] waiting for changes..."],
            &["[mocha] waiting for changes..."],
        ],
        run_as: &[],
        instead: "mocha, without --watch",
        source: "measured, mocha 12.0.3",
    },
    Waiter {
        tool: "node --test",
        says: &[&["# duration_ms "], &["ℹ duration_ms "]],
        run_as: &["--watch"],
        instead: "node --test, without --watch",
        source: "measured, node 20.20.2",
    },
    Waiter {
        tool: "node --watch",
        says: &[&["Completed running '"], &["Failed running '"]],
        run_as: &["--watch"],
        instead: "node, without --watch",
        source: "measured, node 20.20.2",
    },
    Waiter {
        tool: "nodemon",
        says: &[
            &["[nodemon] clean exit - waiting for changes before restart"],
            &["[nodemon] app crashed - waiting for file changes before starting"],
        ],
        run_as: &[],
        instead: "the command itself, without nodemon",
        source: "measured, nodemon 3.1.14 (the crash from its source)",
    },
    Waiter {
        tool: "tsc",
        says: &[&["", "Found ", " error", ". Watching for file changes."]],
        run_as: &[],
        instead: "tsc, without --watch",
        source: "measured, typescript 7.0.2",
    },
    Waiter {
        tool: "cargo watch",
        says: &[&["[Finished running. Exit status: "]],
        run_as: &[],
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
        run_as: &["watchexec"],
        instead: "the command itself, without watchexec",
        source: "its source, watchexec 2",
    },
    Waiter {
        tool: "pytest-watch",
        says: &[&["==", " in ", "s ", "=="]],
        run_as: &["ptw", "pytest-watch"],
        instead: "pytest",
        source: "measured, pytest-watch 4.2",
    },
    Waiter {
        tool: "pytest-watcher",
        says: &[&["Waiting for file changes in "]],
        run_as: &[],
        instead: "pytest",
        source: "measured, pytest-watcher 0.6.3",
    },
    Waiter {
        tool: "deno",
        says: &[
            &["Watcher Test finished. Restarting on file change..."],
            &["Watcher Test failed. Restarting on file change..."],
        ],
        run_as: &[],
        instead: "deno test, without --watch",
        source: "measured, deno 2.9.6 (failed from its source)",
    },
    Waiter {
        tool: "bun",
        says: &[&["Ran ", " test", " across ", " file"]],
        run_as: &["--watch"],
        instead: "bun test, without --watch",
        source: "measured, bun 1.4.5",
    },
    Waiter {
        tool: "gradle",
        says: &[&["Waiting for changes to input files"]],
        run_as: &[],
        instead: "gradle test, without --continuous",
        source: "its documentation",
    },
    Waiter {
        tool: "sbt",
        says: &[
            &["", ". Monitoring source files for "],
            &["", ". Waiting for source changes"],
        ],
        run_as: &[],
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
        run_as: &[],
        instead: "dotnet test",
        source: "its documentation",
    },
    Waiter {
        tool: "guard",
        says: &[&["", "Guard is now watching at "], &["[", "] guard(main)>"]],
        run_as: &[],
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
        let is = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or_default();
            let flag = word.split('=').next().unwrap_or_default();
            (self.run_as.contains(&name) || self.run_as.contains(&flag))
                && !word.ends_with("=false")
        };
        self.run_as.is_empty() || arguments.iter().flatten().any(is)
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
