//! The matrix over the story with a revise, a stuck-retry, a refactor and a finish.

use super::{Case, Crashed, Story, lanes, outcomes, points_of, singles};
use crate::watching::{HANGS, eventful_in};
use std::collections::BTreeSet;

const EVENTFUL: Story = Story {
    scene: || eventful_in(&lanes::quick_folder()),
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

/// All pairs, or of each combination of kinds and sides of both crashes one.
fn pairs(singles: &[Crashed], effects: &[String], whole: bool) -> Vec<Case> {
    let (mut seen, mut cases) = (BTreeSet::new(), Vec::new());
    for single in singles {
        let (index, point, of) = parts(single, effects);
        if whole && point == "before" && index > 0 {
            continue;
        }
        for (second, kind, at) in seconds(single) {
            // Where the first is at a finer point, the start that goes on is killed at once.
            let chosen = match point {
                "before" | "after" => matches!(at, "before" | "after"),
                _ => second == "0:journalled" || second == "1:after",
            };
            let key = (of.clone(), point, kind.clone(), at);
            if whole || chosen && seen.insert(key) {
                cases.push(pair(single, &second, &kind));
            }
        }
    }
    cases
}

#[allow(clippy::print_stdout)] // for whoever looks
fn gone_through(whole: bool) {
    let reference = EVENTFUL.reference();
    let disturb = |case: &Case| EVENTFUL.disturb(case, &reference);
    let singles = lanes::each("single crashes", &singles(&reference.effects), disturb);
    for single in &singles {
        assert_eq!(single.crashed, [true], "{}", single.case.name);
    }
    let pairs = pairs(&singles, &reference.effects, whole);
    let crashed = lanes::each("pairs of crashes", &pairs, disturb);
    // A start that finds a leaf's end, or does again what was done, need not come to each point.
    let both = crashed.iter().filter(|c| c.crashed == [true, true]).count();
    println!("{both} of {} pairs crashed twice", pairs.len());
    assert!(both * 2 > pairs.len(), "{both} of {}", pairs.len());
}

/// Every point of every effect, once; and in a row, each kind of effect with each kind that the resumed start comes
/// through, before and after both.
#[test]
fn a_conductor_that_is_killed_at_any_point_of_any_effect_ends_as_if_it_had_not_been() {
    gone_through(false);
}

#[test]
#[ignore = "each pair takes a core for a second: cargo test --test it -- --ignored every_pair"]
fn every_pair_of_crashes_ends_as_if_it_had_not_been() {
    gone_through(true);
}
