//! What a ground remembers, lost, spoilt or half written.

use super::{ground, listing, read};
use crate::project::Project;
use std::fs;
use veri::ground::{Ground, Kind};

#[test]
fn pipes_in_the_place_of_a_grounds_records_are_waited_at_by_nobody() {
    let project = Project::new();
    let tree = |text: &str| project.tree(&[("f", text), ("k", "")]);
    let mut ground = self::ground(&project);
    ground.bring_to(&project.repo, tree("1")).unwrap();
    let records = ground.records().to_owned();
    let pipe = |name: &str| {
        let path = records.join(name);
        let _ = fs::remove_file(&path);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    let all = ["index", "manifest", "state.json", "made"];
    all.iter().for_each(|name| pipe(name));
    ground.bring_to(&project.repo, tree("1")).unwrap();
    ground.bring_to(&project.repo, tree("2")).unwrap();
    drop(ground);
    all.iter().for_each(|name| pipe(name));
    ground = self::ground(&project);
    ground.bring_to(&project.repo, tree("3")).unwrap();
    assert!(ground.verify_exact(tree("3")).unwrap().is_empty());
    drop(ground);
    // The place of the lock is veri's own, too.
    pipe("../check.lock");
    Ground::acquire(&project.home(), Kind::Check).unwrap();
    assert!(project.home().join("ground/check.lock").is_file());
}

#[test]
fn a_lost_record_makes_the_ground_anew() {
    let project = Project::new();
    let tree = project.tree(&[("a", "1")]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    let records = ground.records().to_owned();
    fs::create_dir(ground.path().join("target")).unwrap();
    drop(ground);
    fs::write(records.join("manifest"), "torn").unwrap();
    let mut ground = self::ground(&project);
    ground.bring_to(&project.repo, tree).unwrap();
    assert_eq!(listing(ground.path()), ["a"]);
}

#[test]
fn what_a_killed_process_left_half_done_does_not_hold_the_next_one() {
    let project = Project::new();
    let first = project.tree(&[("a", "1"), ("b", "1")]);
    let second = project.tree(&[("a", "2"), ("b", "1")]);
    let mut ground = ground(&project);
    ground.bring_to(&project.repo, first).unwrap();
    // As after a kill in the middle: locks of both indexes, files laid but not moved, one moved but not recorded.
    let records = ground.records().to_owned();
    fs::write(records.join("index.lock"), "").unwrap();
    fs::write(records.join("few.lock"), "").unwrap();
    fs::create_dir_all(records.join("fresh/a")).unwrap();
    fs::write(ground.path().join("a"), "2").unwrap();
    drop(ground);
    let mut ground = self::ground(&project);
    ground.bring_to(&project.repo, first).unwrap();
    assert_eq!(read(&ground, "a"), "1");
    ground.bring_to(&project.repo, second).unwrap();
    assert_eq!(read(&ground, "a"), "2");
}
