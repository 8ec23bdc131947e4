//! The matrix over the story with a revise, a stuck-retry, a refactor and a finish.

use super::{Case, Crashed, Story, each, outcomes, points_of, singles};
use crate::lanes::quick_folder;
use crate::watching::{HANGS, eventful_in};
use std::collections::{BTreeMap, BTreeSet};

const EVENTFUL: Story = Story {
    scene: || eventful_in(&quick_folder()),
    flags: &HANGS,
    starts: 1,
};

/// The kind of an effect: what is done, and by whom.
fn kind(effect: &str) -> String {
    let mut words = effect.split(' ');
    let name = words.next().unwrap_or_default();
    let actor = words.next().filter(|_| name == "leaf-ended");
    [name, actor.unwrap_or_default()].join(" ")
}

/// The effects of the start after a crash that the argument of `Course` leaves to be crashed at: from its first up to
/// and including the one that was interrupted.
fn until_recovered(single: &Crashed) -> Vec<String> {
    let effects = outcomes(&single.lines, 1);
    let again = ["preflight-passed", "ledger-read", "accepted"];
    let recovered = effects
        .iter()
        .position(|effect| !again.contains(&effect.as_str()));
    let many = recovered.map_or(effects.len(), |at| at + 1);
    effects.into_iter().take(many).collect()
}

/// Every second crash after one first. `0:journalled` is where the start settles an open leaf, before any effect. To be
/// killed before an effect is to be killed when the one before it is told, and is tried for the first alone.
fn seconds(single: &Crashed) -> Vec<(String, String, &'static str)> {
    let settling = (
        "0:journalled".to_owned(),
        "settling".to_owned(),
        "journalled",
    );
    let mut seconds = vec![settling];
    for (index, effect) in until_recovered(single).into_iter().enumerate() {
        let points = points_of(&effect).into_iter();
        seconds.extend(
            points
                .filter(|point| index == 0 || *point != "before")
                .map(|point| (format!("{}:{point}", index + 1), kind(&effect), point)),
        );
    }
    seconds
}

fn pair(single: &Crashed, second: &str, kind: &str) -> Case {
    let [first] = single.case.crashes.as_slice() else {
        unreachable!("a single is one crash")
    };
    Case {
        name: format!("{}, then {second} ({kind})", single.case.name),
        crashes: vec![first.clone(), second.to_owned()],
    }
}

fn parts(single: &Crashed, effects: &[String]) -> (usize, &'static str, String) {
    let (number, point) = single.case.crashes[0].split_once(':').unwrap();
    let index = number.parse::<usize>().unwrap() - 1;
    let effect = &effects[index];
    let point = points_of(effect).into_iter().find(|p| *p == point).unwrap();
    (index, point, kind(effect))
}

/// All single crashes; or before and after each effect, and at each finer point of the first effect of its kind.
fn chosen_singles(effects: &[String], whole: bool) -> Vec<Case> {
    let mut seen = BTreeSet::new();
    let mut cases = singles(effects);
    cases.retain(|case| {
        let (number, point) = case.crashes[0].split_once(':').unwrap();
        let effect = &effects[number.parse::<usize>().unwrap() - 1];
        whole
            || matches!(point, "before" | "after")
            || seen.insert((kind(effect), point.to_owned()))
    });
    cases
}

/// All pairs; or of each two kinds of effects one, whose points go round all that there are.
fn pairs(singles: &[Crashed], effects: &[String], whole: bool) -> Vec<Case> {
    let mut by_kinds = BTreeMap::<_, Vec<Case>>::new();
    for single in singles {
        let (index, point, of) = parts(single, effects);
        if point == "before" && index > 0 {
            continue;
        }
        for (second, kind, _) in seconds(single) {
            let case = pair(single, &second, &kind);
            by_kinds.entry((of.clone(), kind)).or_default().push(case);
        }
    }
    let cases = by_kinds.into_values().enumerate();
    cases
        .flat_map(|(round, mut cases)| match whole {
            true => cases,
            // In strides, so that early and late points are among them, and first and last effects.
            false => vec![cases.swap_remove(round * 7 % cases.len())],
        })
        .collect()
}

#[allow(clippy::print_stdout)] // for whoever looks
fn gone_through(whole: bool) {
    let reference = EVENTFUL.reference();
    let disturb = |case: &Case| EVENTFUL.disturb(case, &reference);
    let firsts = chosen_singles(&reference.effects, whole);
    let singles = each("single crashes", &firsts, disturb);
    for single in &singles {
        assert_eq!(single.crashed, [true], "{}", single.case.name);
    }
    let pairs = pairs(&singles, &reference.effects, whole);
    let crashed = each("pairs of crashes", &pairs, disturb);
    // A start that finds a leaf's end, or does again what was done, need not come to each point.
    let both = crashed.iter().filter(|c| c.crashed == [true, true]).count();
    println!("{both} of {} pairs crashed twice", pairs.len());
    assert!(both * 2 > pairs.len(), "{both} of {}", pairs.len());
}

/// Before and after every effect, and at every finer point of every kind of effect, once; and in a row, each kind of
/// effect with each kind that the resumed start comes through. By hand, below: every point of every effect, and all pairs.
#[test]
fn a_conductor_that_is_killed_at_any_point_of_any_effect_ends_as_if_it_had_not_been() {
    gone_through(false);
}

#[test]
#[ignore = "each pair takes a core for a second: cargo test --test it -- --ignored every_pair"]
fn every_pair_of_crashes_ends_as_if_it_had_not_been() {
    gone_through(true);
}
