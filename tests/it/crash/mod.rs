//! The crash matrix: whatever effect the conductor is killed at, on whichever side, and whether or not the
//! start that goes on is killed too, running the same command again comes to what an undisturbed run comes to.

mod course;
mod ends;
mod matrix;
mod stories;

use crate::scene::{Ran, Scene, finish};
use crate::watching::Came;
use course::{Course, effect_of, outcomes};
use veri::event::Line;

/// A story that crashes disturb: the same command is run until it says that it is done.
struct Story {
    scene: fn() -> Scene,
    flags: &'static [&'static str],
    /// How often the command is run when nothing disturbs it: once, and once more for each stop or bail in it.
    starts: usize,
}

impl Story {
    fn run(&self, scene: &Scene, crash: Option<&str>) -> Ran {
        let mut command = scene.command(crate::scene::VERI);
        command.args(scene.arguments()).args(self.flags);
        command.envs(crash.map(|at| ("VERI_CRASH_AT", at)));
        finish(command)
    }

    /// The undisturbed run.
    fn reference(&self) -> Reference {
        let scene = (self.scene)();
        for start in 1..=self.starts {
            let ran = self.run(&scene, None);
            assert_eq!(ran.code == Some(0), start == self.starts, "{ran:?}");
        }
        Reference::of(&scene)
    }

    /// Crashes as a case says, goes on to the end, and compares. Gives what the pairs are made from.
    fn disturb(&self, case: &Case, reference: &Reference) -> Crashed {
        let scene = (self.scene)();
        let (mut crashed, mut last) = (Vec::new(), None);
        for crash in &case.crashes {
            let ran = self.run(&scene, Some(crash));
            crashed.push(ran.code.is_none());
            last = Some(ran).filter(|ran| ran.code == Some(0));
        }
        let mut starts = 0;
        let last = loop {
            if let Some(last) = last {
                break last;
            }
            let ran = self.run(&scene, None);
            starts += 1;
            last = Some(ran).filter(|ran| ran.code == Some(0) || starts > self.starts);
        };
        let (out, err) = (&last.out, &last.err);
        assert_eq!(last.code, Some(0), "{}:\n{out}\n{err}", case.name);
        let came = Reference::of(&scene);
        came.came.is_what(&reference.came, &case.name);
        came.course.is_what(&reference.course, &case.name);
        Crashed {
            case: case.clone(),
            crashed,
            lines: scene.lines(),
        }
    }
}

/// How many cases run at a time: as many as keep two cores busy.
const LANES: usize = 24;

/// Does something with each case, side by side.
fn each(what: &str, cases: &[Case], act: impl Fn(&Case) -> Crashed + Sync) -> Vec<Crashed> {
    crate::lanes::each(what, LANES, cases, |case| case.name.clone(), act)
}

/// What a run came to, and how it came there.
struct Reference {
    came: Came,
    course: Course,
    effects: Vec<String>,
    lines: Vec<Line>,
}

impl Reference {
    fn of(scene: &Scene) -> Reference {
        let lines = scene.lines();
        assert_eq!(scene.git(&["status", "--porcelain"]), "", "the checkout");
        Reference {
            came: Came::of(scene),
            course: Course::of(scene, &lines),
            effects: lines.iter().filter_map(effect_of).collect(),
            lines,
        }
    }
}

/// One crash, or two in a row: at which effect of their start, at which of its points (`7:after`). Where there is none
/// (``), a start of the story that is left alone.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    crashes: Vec<String>,
}

/// A case that was gone through.
struct Crashed {
    case: Case,
    /// Of each crash, whether its start came to that point.
    crashed: Vec<bool>,
    lines: Vec<Line>,
}

/// The points that an effect has, in their order.
fn points_of(effect: &str) -> Vec<&'static str> {
    let name = effect.split(' ').next().unwrap_or_default();
    let commits = matches!(name, "committed" | "plan-committed");
    let posts = commits || name == "published" || effect.starts_with("leaf-ended verifier");
    let mut points = vec!["before"];
    match name {
        "leaf-ended" => points.extend(["launching", "started"]),
        _ => points.push("intended"),
    }
    points.extend(commits.then_some("committed"));
    points.extend(["after", "journalled"]);
    points.extend(posts.then_some("posted"));
    points.push("told");
    points
}

/// Every point of every effect.
fn singles(effects: &[String]) -> Vec<Case> {
    let numbered = effects.iter().enumerate();
    let all = numbered.flat_map(|(index, effect)| {
        points_of(effect).into_iter().map(move |point| {
            let crash = format!("{}:{point}", index + 1);
            Case {
                name: format!("{crash} ({effect})"),
                crashes: vec![crash],
            }
        })
    });
    all.collect()
}
