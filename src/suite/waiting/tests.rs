//! The ends of outputs as the tools were seen to print them, and moments in which nobody may be ended.

use super::*;
use crate::leaf::Used;
use std::fs;
use tempfile::TempDir;

/// A suite in the hands of a test: its output, its processes, and the time.
struct Suite {
    _dir: TempDir,
    log: PathBuf,
    waiting: Waiting,
    now: Instant,
    seen: Option<Seen>,
    looks: usize,
}

impl Suite {
    fn new(arguments: &[&str]) -> Suite {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let now = Instant::now();
        Suite {
            waiting: Waiting::on(&log, now),
            _dir: dir,
            log,
            now,
            seen: Some(Seen {
                arguments: vec![arguments.iter().map(|a| (*a).to_owned()).collect()],
                used: Used::of(&[(7, 70)], 100),
            }),
            looks: 0,
        }
    }

    fn prints(&mut self, text: &str) -> &mut Suite {
        use std::io::Write;
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.log)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
        self
    }

    /// So many seconds pass, in which it is looked at as often as a conductor does; `work` happens to it each time.
    fn after(&mut self, seconds: f64, mut work: impl FnMut(&mut Seen)) -> Option<&'static str> {
        for _ in 0..(seconds * 20.0) as usize {
            self.now += Duration::from_millis(50);
            if let Some(seen) = &mut self.seen {
                work(seen);
            }
            let (seen, looks) = (self.seen.clone(), &mut self.looks);
            let mut below = || {
                *looks += 1;
                seen.clone()
            };
            if let Some(waits) = self.waiting.look(self.now, &mut below) {
                return Some(waits.tool);
            }
        }
        None
    }
}

const VITEST: &str = "\x1b[2m   Duration \x1b[22m 571ms\n\n\x1b[1m\x1b[30m\x1b[42m PASS \x1b[49m\x1b[39m\x1b[22m \
                      \x1b[32mWaiting for file changes...\x1b[39m\n       \x1b[2mpress \x1b[22m\x1b[1mh\x1b[22m\x1b[2m to \
                      show help\x1b[22m, press q to quit\n";

/// What was recorded, and as what it was run.
const RECORDED: &[(&str, &[&str], &str)] = &[
    ("vitest", &["vitest", "--watch"], VITEST),
    (
        "jest",
        &["node", "/p/node_modules/.bin/jest", "--watch"],
        "No tests found related to files changed since last commit.\n\n",
    ),
    (
        "jest",
        &["node", "/p/node_modules/.bin/jest", "--watchAll=true"],
        "Snapshots:   0 total\nTime:        1.244 s\nRan all test suites.\n",
    ),
    (
        "mocha",
        &["node", "mocha", "--watch"],
        "\x1b[?25l\n  1 passing (1ms)\n\n\x1b[34mℹ\x1b[39m [mocha] waiting for changes...\n",
    ),
    (
        "node --test",
        &["node", "--test", "--watch"],
        "# skipped 0\n# todo 0\n# duration_ms 477.942095\n",
    ),
    (
        "node --watch",
        &["node", "--watch", "test.js"],
        "Completed running 'test.js'\n",
    ),
    (
        "nodemon",
        &["nodemon"],
        "\x1b[32m[nodemon] clean exit - waiting for changes before restart\x1b[39m\n",
    ),
    (
        "tsc",
        &["tsc", "-w"],
        "\x1b[2J\x1b[3J\x1b[H11:11:47 PM - Starting compilation in watch mode...\r\n\r\n11:11:48 PM - Found 0 errors. \
         Watching for file changes.\r\n\r\n",
    ),
    (
        "cargo watch",
        &["cargo", "watch"],
        "test result: ok. 0 passed\n\n[Finished running. Exit status: 0]\n",
    ),
    (
        "pytest-watch",
        &["python3", "/v/bin/ptw"],
        "test_a.py .      [100%]\n\n============================== 1 passed in 0.01s ===============================\n",
    ),
    (
        "pytest-watcher",
        &["python3", "/v/bin/pytest-watcher", "."],
        "Runner command: pytest\nWaiting for file changes in /p\n",
    ),
    (
        "deno",
        &["deno", "test", "--watch"],
        "\x1b[0m\x1b[38;5;12mWatcher\x1b[0m Test finished. Restarting on file change...\n",
    ),
    (
        "bun",
        &["bun", "test", "--watch"],
        " 1 expect() calls\nRan 1 test across 1 file. [7.00ms]\n",
    ),
    (
        "gradle",
        &["java"],
        "BUILD SUCCESSFUL in 1s\n\nWaiting for changes to input files... (ctrl-d to exit)\n",
    ),
    (
        "sbt",
        &["java"],
        "[info] 1. Monitoring source files for root/test...\n[info]    Press <enter> to interrupt or '?' for more options.\n",
    ),
    (
        "dotnet watch",
        &["dotnet"],
        "dotnet watch ⏳ Waiting for a file to change before restarting dotnet...\n",
    ),
    (
        "guard",
        &["ruby"],
        "10:00:00 - INFO - Guard is now watching at '/p'\n[1] guard(main)> ",
    ),
    (
        "watchexec",
        &["watchexec", "make"],
        "[Command was successful]\n",
    ),
];

#[test]
fn every_waiter_is_known_by_what_it_was_seen_to_print_and_within_six_seconds() {
    for (tool, arguments, output) in RECORDED {
        let mut suite = Suite::new(arguments);
        suite.prints("1 passed\n").prints(output);
        assert_eq!(suite.after(5.4, |_| ()), None, "{output}: too early");
        assert_eq!(suite.after(0.6, |_| ()), Some(*tool), "{output}");
    }
    let recorded = |waiter: &Waiter| RECORDED.iter().any(|(tool, ..)| *tool == waiter.tool);
    assert!(WAITERS.iter().all(recorded));
    assert!(
        WAITERS
            .iter()
            .all(|w| !w.instead.is_empty() && !w.source.is_empty())
    );
}

#[test]
fn a_suite_that_prints_on_is_never_ended_and_the_end_is_looked_at_anew() {
    let mut suite = Suite::new(&["vitest"]);
    for _ in 0..20 {
        suite.prints(VITEST);
        assert_eq!(suite.after(5.3, |_| ()), None);
    }
    suite.prints("and now\nthe other\ntests\nof it\n");
    assert_eq!(suite.after(60.0, |_| ()), None);
    suite.prints(VITEST);
    assert_eq!(suite.after(6.0, |_| ()), Some("vitest"));
}

#[test]
fn a_suite_that_works_silently_is_never_ended_until_it_rests() {
    // A thirtieth of one processor, or a process that begins or ends now and then.
    let mut suite = Suite::new(&["vitest"]);
    suite.prints(VITEST);
    let mut turn = 0;
    let works = |seen: &mut Seen| {
        turn += 1;
        seen.used = Used::of(&[(7, 70)], 100 + turn / 6);
    };
    assert_eq!(suite.after(60.0, works), None);
    let mut pid = 7;
    let changes = |seen: &mut Seen| {
        pid += 1;
        seen.used = Used::of(&[(pid, 70)], 100);
    };
    assert_eq!(suite.after(60.0, changes), None);
    assert_eq!(suite.after(10.5, |_| ()), Some("vitest"));
}

#[test]
fn words_that_any_run_ends_with_count_only_of_a_process_that_was_told_to_watch() {
    for (arguments, output) in [
        // A global teardown may take its time.
        (&["node", "jest"][..], "Ran all test suites.\n"),
        (
            &["node", "jest", "--watchAll=false"],
            "Ran all test suites.\n",
        ),
        (&["node", "--test"], "# duration_ms 12\n"),
        (&["bun", "test"], "Ran 1 test across 1 file. [7.00ms]\n"),
        (&["python3", "pytest"], "==== 1 passed in 0.01s ====\n"),
        (&["make"], "[Command was successful]\n"),
        // Another program, that watches beside it.
        (
            &["node", "/p/node_modules/.bin/webpack", "--watch"],
            "Ran all test suites.\n",
        ),
        (&["tsc", "--watch"], "# duration_ms 12\n"),
        (
            &["python3", "/usr/bin/pytest", "/p/pytest-watch"],
            "==== 1 passed in 0.01s ====\n",
        ),
    ] {
        let mut suite = Suite::new(arguments);
        suite.prints(output);
        assert_eq!(suite.after(60.0, |_| ()), None, "{arguments:?}");
        assert_eq!(suite.looks, 1, "processes are looked at only for a reason");
    }
}

#[test]
fn words_in_the_middle_of_a_line_or_of_the_output_mean_nothing() {
    for output in [
        "expected \"PASS  Waiting for file changes...\"\n",
        "see: [mocha] waiting for changes...\n",
        "the last line was [Finished running. Exit status: 0]\n",
        "PASS  Waiting for file changes...\none\ntwo\nthree\nfour\n",
        "Waiting for the database\n",
        "",
    ] {
        let mut suite = Suite::new(&["vitest", "--watch"]);
        suite.prints(output);
        assert_eq!(suite.after(60.0, |_| ()), None, "{output}");
        assert_eq!(suite.looks, 0);
    }
}

#[test]
fn where_processes_cannot_be_seen_only_plain_words_count_and_the_quiet_is_longer() {
    let mut suite = Suite::new(&[]);
    suite.seen = None;
    suite.prints(VITEST);
    assert_eq!(suite.after(14.0, |_| ()), None);
    assert_eq!(suite.after(2.0, |_| ()), Some("vitest"));
    let mut suite = Suite::new(&[]);
    suite.seen = None;
    suite.prints("Ran all test suites.\n");
    assert_eq!(suite.after(60.0, |_| ()), None);
}
