//! Links that lead to a person's folder, in the place of folders in which veri writes and removes.

use crate::attempts::{FRESH, NAME_TEST, attempts};
use crate::branch::{walk, was_sent_back};
use crate::scene::{Agent, Scene};
use std::fs;
use veri::role::Phase;

/// A folder of a person's, with files whose names a run has, too.
fn person(scene: &Scene) -> String {
    let folder = scene.path("person");
    for file in ["src/lib.sh", "keep", "check/keep"] {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "theirs").unwrap();
    }
    folder.display().to_string()
}

fn is_untouched(scene: &Scene) {
    for file in ["src/lib.sh", "keep", "check/keep"] {
        let file = scene.path("person").join(file);
        assert_eq!(
            fs::read_to_string(&file).ok().as_deref(),
            Some("theirs"),
            "{file:?}"
        );
    }
    let tracked = scene.path("person/tests");
    assert!(!tracked.exists(), "a tree was laid in a person's folder");
}

#[test]
fn a_link_in_the_place_of_the_working_tree_does_not_make_veri_clean_what_it_leads_to() {
    let scene = Scene::new();
    let person = person(&scene);
    let swap = format!(
        "{NAME_TEST}; w=$PWD; cp .git '{person}/.git'; mv \"$w\" \"$w.x\"; ln -s '{person}' \"$w\""
    );
    scene.agent(&Agent {
        red: attempts(FRESH, &[&swap], &Agent::default().red),
        ..Agent::default()
    });
    scene.tdd(&[]).expect(0);
    was_sent_back(&scene, 1, Phase::Red, &["what it leads to was left alone"]);
    is_untouched(&scene);
    walk(&scene);
}

#[test]
fn a_link_in_the_place_of_a_ground_does_not_make_veri_clean_what_it_leads_to() {
    let scene = Scene::new();
    let person = person(&scene);
    // The test, while it fails, swaps the ground that it runs in.
    let red = format!(
        "cat > tests/name.sh <<'T'\n. src/lib.sh\n[ \"$(greet Ann)\" = \"hello Ann\" ] && exit 0\n\
         case $PWD in */ground/check*) w=$PWD; [ -L \"$w\" ] || {{ mv \"$w\" \"$w.x\"; ln -s '{person}' \"$w\"; }};; esac\n\
         exit 1\nT"
    );
    let good = Agent::default();
    let verify = format!(
        "case $VERI_PHASE in red) g=${{PWD%/*}}; mv \"$g\" \"$g.x\"; ln -s '{person}' \"$g\";; esac\n{}",
        good.verify
    );
    scene.agent(&Agent {
        red: format!(
            "case \"$VERI_STEP\" in greet*) {red}\n;; *) {};; esac",
            good.red
        ),
        verify,
        ..good
    });
    scene.tdd(&[]).expect(0);
    is_untouched(&scene);
    walk(&scene);
}
