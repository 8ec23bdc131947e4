//! The states that a run goes through, by its journal: what makes crashes in a row a finite matter.

use crate::scene::Scene;
use veri::event::{Kind, Line};
use veri::machine::{At, Ending, Event, State, next};

/// Where the run stood after each input of its journal, without what every start does anew (preflight, the look at
/// the ledger, acceptance before it publishes) and without what changes nothing.
///
/// That a crashed and resumed run has the very course of an undisturbed one is why second crashes need not be tried
/// everywhere. All that a start goes by is the journal, by way of the state that it folds to, the repository and the
/// forge. Once the resumed start has journalled the outcome of the effect that the crash interrupted, the first is what
/// it is in an undisturbed run (this very comparison), and the others are, too (`Came`, and each later effect of the
/// same case that comes to the same). What a start keeps in memory beside that (`Seen`, `Ready`) is what it found
/// itself since preflight: less of it than in an undisturbed run, never anything else, and less is what any start has
/// that follows a crash. So a second crash beyond that effect is a first one at the same place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Course(Vec<String>);

impl Course {
    pub(super) fn of(scene: &Scene, lines: &[Line]) -> Course {
        let folder = scene.path("").display().to_string();
        let folder = folder.trim_end_matches('/');
        let (mut state, mut course) = (State::new(), Vec::new());
        for event in lines.iter().filter_map(input) {
            state = next(state, event).expect("a journal of what can be").0;
            if matches!(state.at, At::Preflight | At::Boundary | At::Accepting) {
                continue;
            }
            let seen = (&state.at, &state.work, &state.planner);
            let stands = serde_json::to_string(&seen)
                .expect("a state")
                .replace(folder, "SCENE");
            if course.last() != Some(&stands) {
                course.push(stands);
            }
            // A command that is given once more finds a finished run, and looks at it again.
            if matches!(state.at, At::Ended(Ending::Done { .. })) {
                break;
            }
        }
        Course(course)
    }

    #[track_caller]
    pub(super) fn is_what(&self, other: &Course, case: &str) {
        let differs = self.0.iter().zip(&other.0).position(|(a, b)| a != b);
        let at = differs.unwrap_or(self.0.len().min(other.0.len()));
        let (ours, theirs) = (self.0.get(at), other.0.get(at));
        assert!(
            ours == theirs,
            "{case}: the course differs at its state {at}\n--- disturbed\n{ours:?}\n--- undisturbed\n{theirs:?}"
        );
    }
}

fn input(line: &Line) -> Option<Event> {
    let input = line.fields.get("input")?;
    Some(serde_json::from_value(input.clone()).expect("an event"))
}

/// The effect whose outcome a line holds: what was done, and for which role and phase.
pub(super) fn effect_of(line: &Line) -> Option<String> {
    let input = line.fields.get("input")?;
    let name = match input {
        serde_json::Value::String(name) => name.clone(),
        serde_json::Value::Object(fields) => fields.keys().next()?.clone(),
        _ => return None,
    };
    let outcome = !matches!(name.as_str(), "begun" | "resumed" | "stop-asked");
    let phase = line.phase.map_or("", |p| p.as_str());
    let actor = if line.event == Kind::Launch || name == "leaf-ended" {
        line.actor.as_str()
    } else {
        ""
    };
    outcome.then(|| {
        let words = format!("{name} {actor} {phase}");
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

/// The effects of the journal's n-th start (from 0), as its crash points count them: what it settles before it tells
/// the machine that it begins is not counted.
pub(super) fn outcomes(lines: &[Line], start: usize) -> Vec<String> {
    let is_begin = |line: &Line| {
        matches!(
            input(line),
            Some(Event::Begun { .. } | Event::Resumed { .. })
        )
    };
    let begins: Vec<usize> = (0..lines.len())
        .filter(|at| is_begin(&lines[*at]))
        .collect();
    let Some(from) = begins.get(start) else {
        return Vec::new();
    };
    let run = &lines[*from].run;
    let own = lines[*from..].iter().take_while(|l| l.run == *run);
    own.filter_map(effect_of).collect()
}
