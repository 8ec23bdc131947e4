//! How long it takes to make a proving ground ready, in a repository of 20,000 files. Prints figures, fails
//! nothing: `cargo bench --bench ground`. On a machine that does other things, the processor time is what to look at.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement that cannot be made is none

mod cost;

use cost::{Cost, measured, middle};
use git2::{IndexEntry, IndexTime, Oid, Repository};
use std::path::Path;
use std::time::Duration;
use veri::ground::{Ground, Kind, Verify};

const FILES: usize = 20_000;

/// How often each step is measured; the middle one counts.
const ROUNDS: usize = 5;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let repo = Repository::init(dir.path().join("checkout")).unwrap();
    let home = dir.path().join("home");
    let base = tree(&repo, 0);
    let mut ground = Ground::acquire(&home, Kind::Check).unwrap();

    println!("a proving ground of {FILES} files (the middle one of {ROUNDS})");
    let all = measured(|| lay(&mut ground, &repo, base));
    show("the first time: every file", all, all);

    let mut ten = Vec::new();
    let mut none = Vec::new();
    let mut compare = Vec::new();
    let mut verifier = Vec::new();
    for round in 1..=ROUNDS {
        let next = tree(&repo, round);
        ten.push(measured(|| lay(&mut ground, &repo, next)));
        none.push(measured(|| lay(&mut ground, &repo, next)));
        compare.push(measured(|| drop(ground.verify_exact(next).unwrap())));
        verifier.push(measured(|| drop(verify(&home, &repo, next))));
    }
    show("the next candidate: ten files changed", middle(&ten), all);
    show("the same tree again", middle(&none), all);
    show("compared with the tree", middle(&compare), all);
    show(
        "a verifier's ground, without history",
        middle(&verifier),
        all,
    );
}

fn lay(ground: &mut Ground, repo: &Repository, tree: Oid) {
    ground.bring_to(repo, tree).unwrap();
}

fn verify(home: &Path, repo: &Repository, tree: Oid) -> Verify {
    Verify::make(home, repo, tree, None).unwrap()
}

fn show(what: &str, cost: Cost, all: Cost) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{:>9.1} ms cpu {:>9.1} ms wall  {:>6.3} × the first  {what}",
        ms(cost.cpu),
        ms(cost.wall),
        cost.wall.as_secs_f64() / all.wall.as_secs_f64()
    );
}

/// The tree of the round: ten files differ from any other round.
fn tree(repo: &Repository, round: usize) -> Oid {
    let mut index = git2::Index::new().unwrap();
    let zero = IndexTime::new(0, 0);
    for n in 0..FILES {
        let line = if n % (FILES / 10) == 77 {
            n + round * FILES
        } else {
            n
        };
        let id = repo
            .blob(format!("{line}\n").repeat(200).as_bytes())
            .unwrap();
        let path = format!("d{}/f{n}.txt", n % 200);
        let entry = IndexEntry {
            ctime: zero,
            mtime: zero,
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id,
            flags: 0,
            flags_extended: 0,
            path: path.into_bytes(),
        };
        index.add(&entry).unwrap();
    }
    index.write_tree_to(repo).unwrap()
}
