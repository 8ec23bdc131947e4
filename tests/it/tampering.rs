//! Leaves that lay hands on what is not theirs: git, `.tdd/`, processes, the file system itself. It is undone, sent
//! back, and never run.

use crate::attempts::{FRESH, NAME_TEST, attempts, each_is_sent_back, patient};
use crate::branch::{walk, was_sent_back};
use crate::scene::{Agent, Ran, Scene, VERI, finish};
use crate::scripted::KILL_CONDUCTOR;
use std::fs;
use veri::role::Phase;

#[test]
fn what_a_leaf_does_to_git_is_undone_and_sent_back() {
    let scene = Scene::new();
    patient(&scene);
    let config = fs::read_to_string(scene.repo().join(".git/config")).unwrap();
    let evil = "d=$(git rev-parse --git-common-dir); printf '#!/bin/sh\\ntouch \"$HOME/pwned\"\\n' > evil; chmod +x evil";
    let moves = [
        (
            format!("{evil}; cp evil $d/hooks/pre-commit"),
            "hooks/pre-commit",
        ),
        (
            format!("{evil}; git config core.hooksPath \"$PWD\"; cp evil pre-commit"),
            "core.hookspath",
        ),
        (
            format!("{evil}; git config core.fsmonitor \"$PWD/evil\""),
            "core.fsmonitor",
        ),
        (
            format!("{evil}; git config alias.status '!./evil'"),
            "alias.status",
        ),
        (
            format!(
                "{evil}; git config filter.x.clean ./evil; echo '*.sh filter=x' > .gitattributes"
            ),
            "filter.x.clean",
        ),
        (
            format!("{evil}; git config include.path \"$PWD/evil\""),
            "include.path",
        ),
        (
            format!("{evil}; git config --global core.pager ./evil"),
            "core.pager",
        ),
        (
            "d=$(git rev-parse --git-common-dir); echo 'tests/' >> $d/info/exclude".to_owned(),
            "info/exclude",
        ),
        ("rm .git".to_owned(), ".git"),
        (
            "rm .git; git init -q .; git add -A; git commit -qm mine".to_owned(),
            ".git",
        ),
    ];
    let before = format!("{FRESH}\n{NAME_TEST}");
    each_is_sent_back(&scene, Phase::Red, &before, &moves);
    assert!(
        !scene.path("home/pwned").exists(),
        "something that a leaf set up was run"
    );
    assert_eq!(
        fs::read_to_string(scene.repo().join(".git/config")).unwrap(),
        config
    );
    let kept = scene.veri(&["discarded", "42"]).expect(0);
    assert!(
        kept.out.contains("refs/veri/issue-42/discarded/"),
        "{}",
        kept.out
    );
}

#[test]
fn what_a_leaf_commits_stashes_branches_and_resets_is_folded_back_without_fuss() {
    let scene = Scene::new();
    scene.commit_all("another commit before");
    let good = Agent::default();
    scene.agent(&Agent {
        red: format!("{}\ngit add -A; git commit -qm 'LEAFWORD: my red'; git tag LEAFWORD; git branch LEAFWORD", good.red),
        green: format!(
            "{}\ncase \"$VERI_STEP\" in\ngreet*) cp src/lib.sh /dev/null; git stash -q; git stash apply -q; git checkout -q -b mine; git commit -qam 'LEAFWORD: mine';;\n\
             *) git reset -q --soft HEAD~1; git checkout -q --detach; git branch -D tdd/issue-42;;\nesac",
            good.green
        ),
        refactor: "echo '# tidy' >> src/lib.sh; git commit -qam 'LEAFWORD: tidy'; git reset -q HEAD~1".to_owned(),
        ..good
    });
    let refs = scene.git(&[
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        "refs/heads",
        "refs/tags",
    ]);
    scene.tdd(&[]).expect(0);
    walk(&scene);
    for step in [1, 2] {
        was_sent_back(&scene, step, Phase::Red, &[]);
        was_sent_back(&scene, step, Phase::Green, &[]);
    }
    let now = scene.git(&[
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        "refs/heads",
        "refs/tags",
    ]);
    let now: Vec<&str> = now
        .lines()
        .filter(|l| !l.contains("tdd/issue-42"))
        .collect();
    assert_eq!(now, refs.lines().collect::<Vec<_>>());
    assert_eq!(scene.git(&["stash", "list"]), "");
    assert_eq!(
        scene.subjects().len(),
        5,
        "two refactors: {:?}",
        scene.subjects()
    );
}

#[test]
fn a_hard_reset_and_a_switch_lose_the_change_and_nothing_else() {
    let scene = Scene::new();
    scene.agent(&Agent {
        red: attempts(
            ":",
            &[
                "git reset -q --hard HEAD~1",
                "git checkout -q --detach main; rm -rf src",
                "rm .git; rm -rf ./*",
            ],
            &format!("git checkout -q HEAD -- .; {}", Agent::default().red),
        ),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    walk(&scene);
}

#[test]
fn strange_names_pipes_and_sockets_do_no_harm() {
    let scene = Scene::new();
    let good = Agent::default();
    scene.agent(&Agent {
        red: attempts(
            FRESH,
            &["rm src/lib.sh; mkfifo src/lib.sh; echo : > tests/name.sh"],
            &format!(
                "{}\nmkfifo pipe tests/pipe.sh 2>/dev/null; mknod device c 1 3 2>/dev/null; \
                 printf : > \"$(printf 'tests/\\377.sh')\"; : > './-rf'; mkdir -p 'a b'; : > \"a b/\n\\\"\\$(touch pwned)\\\".txt\"",
                good.red
            ),
        ),
        ..good
    });
    scene.tdd(&[]).expect(0);
    was_sent_back(&scene, 1, Phase::Red, &["src/lib.sh"]);
    walk(&scene);
    let files = scene.git(&["ls-tree", "-r", "--name-only", "-z", "tdd/issue-42"]);
    assert!(
        !files
            .split('\0')
            .any(|f| f.ends_with("pwned") || f.contains("pipe")),
        "{files:?}"
    );
    let pull = scene.pull().unwrap();
    assert!(pull.contains("\\xff"), "{pull}");
}

#[test]
fn what_lies_in_tdd_is_not_the_leafs_to_touch() {
    let scene = Scene::new();
    patient(&scene);
    let touched = "events.jsonl was touched";
    let moves = [
        ("echo garbage >> .tdd/events.jsonl", touched),
        ("tail -n 1 .tdd/events.jsonl >> .tdd/events.jsonl", touched),
        (": > .tdd/events.jsonl", touched),
        ("rm .tdd/events.jsonl", touched),
        (
            "cp .tdd/events.jsonl e; mv e .tdd/events.jsonl; sed -i 1d .tdd/events.jsonl",
            touched,
        ),
        ("rm .tdd/events.jsonl; mkdir .tdd/events.jsonl", touched),
        ("rm -rf .tdd", touched),
        ("git clean -fdxq", touched),
        ("rm -rf .tdd; echo x > .tdd", touched),
        (
            "rm -rf .tdd/runs; mkdir elsewhere; ln -s ../elsewhere .tdd/runs",
            "records of earlier launches",
        ),
        (
            "echo 0 > .tdd/issue-42-timeout",
            "issue-42-timeout was written",
        ),
        (
            "rm .tdd/issue-42-skill-commit",
            "issue-42-skill-commit was removed",
        ),
        (
            "mkdir .tdd/mine; echo x > .tdd/mine/notes",
            ".tdd/mine was made",
        ),
    ];
    let before = format!("{FRESH}\n{NAME_TEST}");
    each_is_sent_back(&scene, Phase::Red, &before, &moves);
    let seqs: Vec<u64> = scene.journal().iter().map(|l| l.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

/// The conductor is killed while the leaf is at work, and the leaf then spoils the journal.
#[test]
fn a_journal_that_was_spoilt_while_nobody_watched_is_put_back() {
    for bad in [
        "echo garbage >> .tdd/events.jsonl",
        "rm -rf .tdd/events.jsonl .tdd/runs",
        "sed -i 2d .tdd/events.jsonl",
    ] {
        let scene = Scene::new();
        let going = scene.path("going");
        scene.agent(&Agent {
            red: format!(
                "{}\nif [ ! -e {1} ]; then touch {1}; {KILL_CONDUCTOR}; {bad}; fi",
                Agent::default().red,
                going.display()
            ),
            ..Agent::default()
        });
        let ran = scene.tdd(&[]);
        assert_eq!(ran.code, None, "{bad}: {}{}", ran.out, ran.err);
        scene.tdd(&[]).expect(0);
        walk(&scene);
        scene.nothing_is_left_running();
    }
}

#[test]
fn a_daemon_of_a_leaf_does_not_outlive_it_and_changes_nothing_that_is_judged() {
    let scene = Scene::new();
    // In a session of its own, forked twice, its streams closed: it would undo the good work a moment later.
    let daemon = "(setsid sh -c '(trap \"\" TERM HUP INT; while :; do echo broken > src/lib.sh; rm -f tests/*.sh; done) </dev/null >/dev/null 2>&1 &' </dev/null >/dev/null 2>&1 &)";
    let good = Agent::default();
    let once = scene.note("once");
    scene.agent(&Agent {
        // It hangs once, with its daemon; then it ends, with its daemon.
        red: format!("if [ ! -e {0} ]; then touch {0}; {daemon}; sleep 1000; fi\n{1}\n(setsid sleep 1000 </dev/null >/dev/null 2>&1 &)", once.display(), good.red),
        green: format!("{}\n(setsid sh -c '(while kill -0 $0 2>/dev/null; do sleep 0.02; done; sleep 1; while :; do echo broken > src/lib.sh; done) &' $$ </dev/null >/dev/null 2>&1 &)", good.green),
        verify: format!("(setsid sh -c 'sleep 1000 &' &)\n{}", good.verify),
        ..good
    });
    scene.tdd(&["--timeout", "3"]).expect(0);
    walk(&scene);
    scene.nothing_is_left_running();
}

#[test]
fn repositories_within_become_plain_files_or_are_refused() {
    let scene = Scene::new();
    let inner =
        "git init -q inner; echo x > inner/x; (cd inner; git add x; git commit -qm 'LEAFWORD')";
    scene.agent(&Agent {
        red: attempts(
            FRESH,
            // A submodule's entry can only be staged, and what a leaf stages is undone: plain files are left.
            &[&format!("{inner}; git add inner; echo '[submodule \"inner\"]' > .gitmodules; rm tests/greet.sh")],
            &format!("{inner}; {}", Agent::default().red),
        ),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    walk(&scene);
    assert_eq!(scene.git(&["show", "tdd/issue-42:inner/x"]), "x");
    assert!(
        !scene
            .git(&["ls-tree", "-r", "tdd/issue-42"])
            .contains("160000")
    );
}

/// Nobody can read or enter what a leaf has locked: as any user but root, or as root without its privileges.
#[test]
fn files_and_folders_that_are_locked_away_are_sent_back_and_opened_again() {
    let scene = Scene::new();
    patient(&scene);
    scene.agent(&Agent {
        red: attempts(
            FRESH,
            &[
                &format!("{NAME_TEST}; chmod 000 src/lib.sh; echo x > new.txt; chmod 000 new.txt"),
                &format!("{NAME_TEST}; mkdir -p a/b; echo x > a/b/c; chmod 000 a/b a"),
                &format!("{NAME_TEST}; chmod 000 src tests"),
                &format!("{NAME_TEST}; chmod 555 . src tests"),
            ],
            &format!(
                "echo \"# $VERI_ATTEMPT\" > /dev/null; {}",
                Agent::default().red
            ),
        ),
        ..Agent::default()
    });
    let veri = without_root(&scene, &scene.arguments());
    let Some(ran) = veri else {
        println!("skipped: root's privileges cannot be dropped here");
        return;
    };
    let ran = ran.expect(0);
    let why = crate::branch::sent_back(&scene, 1, Phase::Red);
    assert!(
        why[0].contains("new.txt") || why[0].contains("src/lib.sh"),
        "{why:#?}\n{}",
        ran.out
    );
    walk(&scene);
}

/// `veri` with these arguments, as somebody whom file permissions bind: by `setpriv` where the tests run as root.
/// None when that cannot be had.
fn without_root(scene: &Scene, args: &[String]) -> Option<Ran> {
    if !nix::unistd::geteuid().is_root() {
        let mut command = scene.command(VERI);
        command.args(args);
        return Some(finish(command));
    }
    let drop = [
        "--inh-caps=-dac_override,-dac_read_search,-fowner",
        "--bounding-set=-dac_override,-dac_read_search,-fowner",
    ];
    let probe = scene.command("setpriv").args(drop).arg("true").status();
    if !probe.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut command = scene.command("setpriv");
    command.args(drop).arg(VERI).args(args);
    Some(finish(command))
}

#[test]
fn pipes_devices_and_folders_where_veris_files_were_are_neither_waited_for_nor_read_without_end() {
    let scene = Scene::new();
    patient(&scene);
    let ledger = ".tdd/issue-42.md was changed";
    let moves = [
        ("rm .tdd/issue-42.md; mkfifo .tdd/issue-42.md", ledger),
        ("ln -sf /dev/zero .tdd/issue-42.md", ledger),
        (
            "rm .tdd/issue-42.md; mkdir .tdd/issue-42.md; echo mine > .tdd/issue-42.md/notes",
            "in-the-place-of-the-ledger-",
        ),
        (
            "mkfifo .tdd/runs/$VERI_LAUNCH.kill .tdd/runs/$VERI_LAUNCH.exit; exit 3",
            ".kill was made",
        ),
        (
            "i=$(git rev-parse --git-dir)/index; rm $i; mkfifo $i; exit 3",
            "index was made, which git cannot read",
        ),
        (
            "for f in ../issue-42.journal ../issue-42.guard; do rm $f; mkfifo $f; done; exit 3",
            "exited with code 3",
        ),
    ];
    each_is_sent_back(&scene, Phase::Red, NAME_TEST, &moves);
}
