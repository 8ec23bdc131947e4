//! The machine, model-checked: every interleaving of outcomes, answers, kills, stops, edits, crashes and restarts of a
//! run of two steps, over the real `next`.

mod actions;
mod budgets;
mod doing;
mod fault;
mod mutants;
mod outcomes;
mod properties;
mod rank;
mod world;
mod wrong;

use super::RefactorWhen;
use actions::Action;
use fault::Fault;
use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};
use std::collections::BTreeSet;
use std::time::Instant;
use world::World;

/// A run of two steps, and how much may come in its way.
#[derive(Debug, Clone)]
struct Cycle {
    /// What is wrong with the machine: nothing, but in mutants.
    fault: Option<Fault>,
    /// Whether the first, and the second, step is one without a test.
    no_test: [bool; 2],
    refactor: RefactorWhen,
    /// How many crashes, kills, stops, failures, questions, edits and reruns a path may have, in any order.
    fuel: u8,
    /// Whether the supervisor loses launches under the eyes of the conductor, which it never should.
    careless: bool,
}

impl Cycle {
    fn fuelled(fuel: u8) -> Cycle {
        Cycle {
            fault: None,
            no_test: [false, false],
            refactor: RefactorWhen::Step,
            fuel,
            careless: false,
        }
    }
}

impl Model for Cycle {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.possible(world, actions);
        let hangs = actions.is_empty() && self.fault.is_none() && !world.closed;
        assert!(
            !hangs,
            "nothing can happen, and the run has not ended: {world:?}"
        );
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        self.after(world, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// Explores everything; gives the names of the properties that must be found in some world and were not.
#[track_caller]
fn holds(what: &str, cycle: Cycle) -> Vec<&'static str> {
    let began = Instant::now();
    let checker = cycle.checker().threads(2).spawn_bfs().join();
    println!(
        "{what}: {} states, {} transitions, depth {}, {:.1?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        began.elapsed()
    );
    let mut missing = Vec::new();
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        match (property.expectation, found) {
            (Expectation::Sometimes, None) => missing.push(property.name),
            (Expectation::Always, Some(path)) => {
                let faults = path.last_state().wrong.clone();
                let actions = path.into_actions();
                let actions: Vec<String> = actions.iter().map(|a| format!("  {a:?}")).collect();
                panic!(
                    "{}: {faults:?} after\n{}",
                    property.name,
                    actions.join("\n")
                );
            }
            _ => {}
        }
    }
    missing
}

#[test]
fn whatever_comes_in_the_way_of_a_run_of_two_steps_every_property_holds() {
    let missing = holds("two steps", Cycle::fuelled(2));
    assert!(
        missing.is_empty(),
        "the model never comes by these: {missing:?}"
    );
}

#[test]
fn the_properties_hold_for_steps_without_a_test_and_for_every_choice_of_refactor() {
    for (first, second) in [(true, false), (false, true), (true, true)] {
        let no_test = [first, second];
        holds(
            &format!("no test: {no_test:?}"),
            Cycle {
                no_test,
                ..Cycle::fuelled(1)
            },
        );
    }
    for refactor in [RefactorWhen::End, RefactorWhen::Off] {
        holds(
            &format!("refactor: {refactor:?}"),
            Cycle {
                refactor,
                ..Cycle::fuelled(1)
            },
        );
    }
    holds(
        "a careless supervisor",
        Cycle {
            careless: true,
            ..Cycle::fuelled(0)
        },
    );
}

#[test]
fn every_seeded_mutant_is_caught_by_the_property_that_it_was_made_for() {
    let began = Instant::now();
    let mutants = mutants::all();
    let mut survivors = Vec::new();
    for mutant in &mutants {
        let began = Instant::now();
        let cycle = Cycle {
            fault: Some(mutant.fault),
            careless: mutant.name.contains("no trace"),
            ..Cycle::fuelled(mutant.fuel)
        };
        let wanted = HasDiscoveries::AllOf(BTreeSet::from([mutant.property]));
        let checker = cycle.checker().finish_when(wanted).spawn_bfs().join();
        match checker.discovery(mutant.property) {
            Some(path) => println!(
                "{}: caught by \"{}\" after {} actions, {:.1?}",
                mutant.name,
                mutant.property,
                path.into_actions().len(),
                began.elapsed()
            ),
            None => {
                let by: Vec<_> = checker
                    .model()
                    .properties()
                    .into_iter()
                    .filter(|p| {
                        p.expectation == Expectation::Always && checker.discovery(p.name).is_some()
                    })
                    .map(|p| p.name)
                    .collect();
                survivors.push(format!(
                    "{}: not caught by \"{}\" (by {by:?})",
                    mutant.name, mutant.property
                ));
            }
        }
    }
    println!("{} mutants in {:.1?}", mutants.len(), began.elapsed());
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}
