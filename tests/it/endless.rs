//! Files whose end nobody lives to see, since they have holes or are pipes: in the place of whatever veri or git reads.

use crate::attempts::{FRESH, NAME_TEST, each_is_sent_back};
use crate::scene::Scene;
use veri::role::Phase;

#[test]
fn a_sparse_file_of_two_tebibytes_is_sent_back_before_git_reads_it() {
    let scene = Scene::new();
    scene.write("empty", "");
    scene.commit_all("a file that git must read to compare it");
    let moves = [
        "truncate -s 2T huge.bin",
        "truncate -s 2T empty",
        "git add -N .; truncate -s 2T tests/name.sh",
    ];
    let moves = moves.map(|huge| {
        (
            format!("{NAME_TEST}; {huge}"),
            "2199023255552 bytes, more than the 5242880 of limits.max_file_mib",
        )
    });
    each_is_sent_back(&scene, Phase::Red, FRESH, &moves);
}

#[test]
fn rules_of_two_tebibytes_are_moved_away_before_git_reads_them() {
    let scene = Scene::new();
    let moves = [".gitignore", "tests/.gitattributes"];
    let moves = moves.map(|huge| {
        (
            format!("{NAME_TEST}; truncate -s 2T {huge}"),
            "which git cannot read",
        )
    });
    each_is_sent_back(&scene, Phase::Red, FRESH, &moves);
}
