//! Going on when parts of what an earlier start left are gone, damaged or locked, and on another machine.

use crate::scene::{Agent, Scene, VERI, finish, wait};
use crate::watching::{
    ONE_STEP, is_finished, kill, kill_everything, launches_of, noting, plain, start, until,
};
use std::fs;
use std::path::PathBuf;

/// A run of one step, everything of it killed while the developer of green works.
fn cut_off_in_green() -> Scene {
    cut_off_in("developer-green")
}

fn cut_off_in(who: &str) -> Scene {
    let scene = plain();
    scene.hold(who);
    let run = start(&scene, &[]);
    scene.begun(who);
    kill_everything(&scene, run);
    scene.let_go(who);
    scene
}

#[test]
fn whatever_vanishes_the_run_goes_on_from_what_is_left() {
    type Vanish = fn(&Scene);
    let forget_refs: Vanish = |s| {
        for name in s.own_refs() {
            s.git(&["update-ref", "-d", &name]);
        }
        s.git(&["reflog", "expire", "--all", "--expire=now"]);
        s.git(&["gc", "-q", "--prune=now"]);
    };
    // What vanishes, and how often the test is written: once more only where nothing is left of it.
    let cases: [(&str, Vec<Vanish>, usize); 8] = [
        (
            "the journal",
            vec![|s| fs::remove_file(s.worktree().join(".tdd/events.jsonl")).unwrap()],
            1,
        ),
        (
            ".tdd",
            vec![|s| fs::remove_dir_all(s.worktree().join(".tdd")).unwrap()],
            1,
        ),
        (
            "the worktree",
            vec![|s| fs::remove_dir_all(s.worktree()).unwrap()],
            1,
        ),
        (
            "git's record of the worktree",
            vec![|s| {
                let admin = s.git_in(&s.worktree(), &["rev-parse", "--absolute-git-dir"]);
                fs::remove_dir_all(admin).unwrap();
            }],
            1,
        ),
        (
            "everything of veri's home",
            vec![|s| {
                fs::remove_dir_all(s.path("state")).unwrap();
                fs::create_dir(s.path("state")).unwrap();
            }],
            1,
        ),
        (
            "the refs, but not what is in the worktree",
            vec![forget_refs],
            1,
        ),
        (
            "the refs and the test in the worktree",
            vec![
                |s| fs::remove_file(s.worktree().join("tests/name.sh")).unwrap(),
                forget_refs,
            ],
            2,
        ),
        (
            "the refs and the worktree",
            vec![|s| fs::remove_dir_all(s.worktree()).unwrap(), forget_refs],
            2,
        ),
    ];
    std::thread::scope(|scope| {
        for (what, vanish, reds) in cases {
            scope.spawn(move || {
                let scene = cut_off_in_green();
                vanish.iter().for_each(|vanish| vanish(&scene));
                let ran = scene.tdd(&[]);
                assert_eq!(ran.code, Some(0), "{what}:\n{}{}", ran.out, ran.err);
                let red = launches_of(&scene, "developer red");
                assert_eq!(red, reds, "{what}: {:?}", scene.launches());
                assert_eq!(launches_of(&scene, "planner"), 1, "{what}");
                is_finished(&scene);
            });
        }
    });
}

#[test]
fn another_clone_goes_on_from_the_first_step_that_is_not_ticked() {
    let scene = Scene::new();
    scene.agent(&noting(Agent::default()));
    let bare = scene.path("bare.git");
    scene.git(&["clone", "-q", "--bare", ".", &bare.display().to_string()]);
    scene.git(&["remote", "add", "origin", &bare.display().to_string()]);
    scene.hold("verifier-red");
    let run = start(&scene, &[]);
    scene.begun("verifier-red");
    scene.veri(&["stop", "--mode", "at-ledger"]).expect(0);
    scene.let_go("verifier-red");
    wait(run).expect(12);

    // The other machine: its own clone, its own home, no journal and no refs; the same forge.
    let other = scene.path("other");
    scene.git(&[
        "clone",
        "-q",
        &bare.display().to_string(),
        &other.display().to_string(),
    ]);
    let mut command = scene.command(VERI);
    command
        .current_dir(&other)
        .args(scene.arguments())
        .env("VERI_HOME", scene.path("home/other-state"));
    finish(command).expect(0).says("done: ");
    let steps = ["greet takes a name", "bye says bye"];
    let log = scene.git_in(
        &bare,
        &["log", "--reverse", "--format=%s", "main..tdd/issue-42"],
    );
    assert_eq!(
        log,
        format!("plan: issue 42 in 2 steps\n{}", steps.join("\n"))
    );
    assert_eq!(
        (
            launches_of(&scene, "planner"),
            launches_of(&scene, "developer red")
        ),
        (1, 2)
    );
    assert_eq!(fs::read_dir(scene.path("forge/pulls")).unwrap().count(), 1);

    // And back on the first: the commits of the other are taken in, and nothing is done twice.
    scene.tdd(&[]).expect(0);
    assert_eq!(scene.subjects()[1..], steps);
    assert_eq!(launches_of(&scene, "developer red"), 2);
}

#[test]
fn a_torn_line_is_set_aside_and_a_damaged_one_is_named_and_nothing_is_touched() {
    // Not while a developer works: then there is a copy of the journal, which is put back.
    let scene = cut_off_in("verifier-green");
    let journal = scene.worktree().join(".tdd/events.jsonl");
    let whole = fs::read(&journal).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let cut: Vec<&str> = text.lines().collect();
    let before = (scene.git(&["for-each-ref"]), scene.comments());

    // Overwritten, and taken out.
    for damaged in [
        [&cut[..4], &["{\"v\":1,\0\0\0"], &cut[5..]].concat(),
        [&cut[..4], &cut[5..]].concat(),
    ] {
        fs::write(&journal, damaged.join("\n") + "\n").unwrap();
        let ran = scene
            .tdd(&[])
            .bails("storage-failed")
            .says("line 5 of the journal");
        assert!(ran.err.contains("events.jsonl"), "{}", ran.err);
        assert_eq!((scene.git(&["for-each-ref"]), scene.comments()), before);
        scene
            .veri(&["log"])
            .expect(11)
            .says("line 5 of the journal");
    }

    // Torn.
    fs::write(&journal, [&whole[..], b"{\"v\":1,\"seq\":"].concat()).unwrap();
    let ran = scene.tdd(&[]).expect(0);
    assert!(
        ran.out
            .contains("a torn last line of the journal was set aside"),
        "{}",
        ran.out
    );
    is_finished(&scene);
}

#[test]
fn locks_of_a_git_that_died_with_its_conductor_are_removed_and_older_ones_are_not() {
    let scene = cut_off_in_green();
    let admin =
        PathBuf::from(scene.git_in(&scene.worktree(), &["rev-parse", "--absolute-git-dir"]));
    let locks = [
        admin.join("index.lock"),
        admin.join("HEAD.lock"),
        scene.repo().join(".git/refs/heads/tdd/issue-42.lock"),
        scene.repo().join(".git/refs/veri/issue-42/candidate.lock"),
    ];
    for lock in &locks {
        fs::write(lock, "").unwrap();
    }
    // Somebody else's, in a place that all worktrees share, is never touched.
    let others = scene.repo().join(".git/index.lock");
    fs::write(&others, "").unwrap();
    let ran = scene.tdd(&[]).expect(0);
    assert_eq!(
        ran.out
            .matches("a lock that a killed git left is removed")
            .count(),
        4,
        "{}",
        ran.out
    );
    assert!(others.exists() && locks.iter().all(|l| !l.exists()));
    fs::remove_file(&others).unwrap();
    is_finished(&scene);

    // From long before the run was started: nobody knows whose it is.
    fs::write(&locks[0], "").unwrap();
    let new = fs::metadata(&locks[0]).unwrap().modified().unwrap();
    let old = new - std::time::Duration::from_secs(3600);
    fs::File::options()
        .write(true)
        .open(&locks[0])
        .unwrap()
        .set_modified(old)
        .unwrap();
    scene.hold("suite");
    scene.issue("title: Greet", "Changed: `greet Ann` prints `hello Ann`.\n");
    let ran = scene.tdd(&[]);
    assert!(locks[0].exists(), "{ran:?}");
}

#[test]
fn locks_of_a_git_that_died_are_known_for_what_they_are_though_the_journal_is_torn_too() {
    let scene = cut_off_in("verifier-green");
    let began: jiff::Timestamp = scene.lines()[0].ts.parse().unwrap();
    let began = std::time::UNIX_EPOCH
        + std::time::Duration::from_millis(began.as_millisecond().unsigned_abs());
    let admin =
        PathBuf::from(scene.git_in(&scene.worktree(), &["rev-parse", "--absolute-git-dir"]));
    let lock = admin.join("index.lock");
    fs::write(&lock, "").unwrap();
    fs::File::options()
        .write(true)
        .open(&lock)
        .unwrap()
        .set_modified(began)
        .unwrap();
    let journal = scene.worktree().join(".tdd/events.jsonl");
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, [&whole[..], b"{\"v\":1,\"seq\":"].concat()).unwrap();
    let ran = scene.tdd(&[]).expect(0);
    assert!(ran.out.contains("torn last line"), "{}", ran.out);
    assert!(
        ran.out.contains("a lock that a killed git left is removed"),
        "{}",
        ran.out
    );
    is_finished(&scene);
}

#[test]
fn a_git_of_a_developer_that_is_still_at_work_keeps_its_lock() {
    let scene = plain();
    let d = scene.path("").display().to_string();
    let good = Agent::default();
    scene.agent(&noting(Agent {
        plan: ONE_STEP.to_owned(),
        red: format!(
            "lock=$(git rev-parse --absolute-git-dir)/index.lock; touch $lock '{d}/at-work'\n\
             while [ ! -e '{d}/go' ]; do sleep 0.01; done\n\
             [ -e $lock ] || touch '{d}/robbed'\nrm -f $lock\n{}",
            good.red
        ),
        ..good
    }));
    let first = start(&scene, &[]);
    until("the developer", || scene.path("at-work").exists());
    kill(first);
    let second = start(&scene, &[]);
    until("it to be taken up", || scene.said("it is taken up"));
    fs::write(scene.path("go"), "").unwrap();
    wait(second).expect(0);
    assert!(!scene.path("robbed").exists());
    is_finished(&scene);
}
