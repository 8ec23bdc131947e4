//! The deadlines of a role's leaves: a flag or variable (wall alone) over what is said of the role, over `limits`, over
//! what an earlier start was told (wall alone), over the defaults.

use crate::agent::Streaming;
use crate::conductor::settings::Settings;
use crate::config::{AgentEntry, AgentTable, MAX_SECONDS};
use crate::leaf::{self, KillWhy, Watch};
use crate::machine::LeafEnd;
use crate::role::Role;
use crate::untrusted;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The shortest default wall time of a leaf.
const WALL: Duration = Duration::from_secs(900);

/// Until an agent that streams must have written something.
const FIRST_SIGN: u64 = 120;

/// How long an agent that streams may be silent: thinking looks like being dead, agents were seen to stall for 405 s and to
/// recover, and their own retries come after 5 minutes.
const IDLE: u64 = 480;

/// How long an agent that streams may go on after its final result.
const LINGERING: u64 = 30;

/// The deadlines of a role's leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::conductor) struct Deadlines {
    role: Role,
    pub(in crate::conductor) wall: Duration,
    pub(in crate::conductor) grace: Duration,
    first_sign: Duration,
    idle: Duration,
    lingering: Duration,
}

impl Settings {
    /// The deadlines of a role's leaves; `stored` is the timeout that an earlier start was told.
    pub(in crate::conductor) fn deadlines(
        &self,
        role: Role,
        stored: Option<u64>,
        suite_ms: u64,
    ) -> Deadlines {
        let limits = &self.config.limits;
        let none = AgentTable::default();
        let own = match self.entry(role) {
            Some(AgentEntry::Table(table)) => table,
            _ => &none,
        };
        let seconds = |own: Option<u64>, all: Option<u64>, default: u64| {
            Duration::from_secs(own.or(all).unwrap_or(default))
        };
        let wall = own.timeout.or(limits.timeout).or(stored);
        Deadlines {
            role,
            wall: match wall {
                Some(seconds) => Duration::from_secs(seconds),
                None => WALL.max(Duration::from_millis(suite_ms.saturating_mul(4))),
            },
            grace: own.grace.map_or_else(|| self.grace(), Duration::from_secs),
            first_sign: seconds(own.first_sign, limits.first_sign, FIRST_SIGN),
            idle: seconds(own.idle, limits.idle, IDLE),
            lingering: seconds(own.lingering, limits.lingering, LINGERING),
        }
    }

    /// What whatever is ended has between TERM and KILL, unless its role says otherwise.
    pub(in crate::conductor) fn grace(&self) -> Duration {
        let grace = self.config.limits.grace;
        grace.map_or(leaf::DEFAULT_GRACE, Duration::from_secs)
    }
}

/// The timeout that a start was told and that counts for later ones; None when the file says nothing that can be meant.
pub(in crate::conductor) fn stored(tdd: &Path, issue: u64) -> Option<u64> {
    let file = tdd.join(format!("issue-{issue}-timeout"));
    // Whoever works in the tree can put anything in its place.
    let text = untrusted::whole(&file, 64).ok()??;
    let seconds = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
    Some(seconds).filter(|s| (1..=MAX_SECONDS).contains(s))
}

impl Deadlines {
    /// What the supervisor is to watch for beside the wall time: nothing where the agent does not stream.
    pub(in crate::conductor) fn watch(&self, streaming: Option<&Streaming>) -> Option<Watch> {
        let streaming = streaming?;
        Some(Watch {
            first_sign: Some(self.first_sign),
            idle: Some(self.idle),
            lingering: Some(self.lingering),
            transcript: streaming.transcript.clone(),
            signs: streaming.signs.clone(),
        })
    }

    /// For the journal: those that hold, in seconds.
    pub(in crate::conductor) fn told(&self, streams: bool) -> Value {
        let mut told = json!({ "timeout": self.wall.as_secs(), "grace": self.grace.as_secs() });
        if streams {
            told["first_sign"] = self.first_sign.as_secs().into();
            told["idle"] = self.idle.as_secs().into();
            told["lingering"] = self.lingering.as_secs().into();
        }
        told
    }
}

/// The end of a leaf of this role that was killed as stuck: which deadline it passed, how many seconds that was, and what
/// sets it. `told` is what its launch was journalled with: what is in force by now may differ.
pub(in crate::conductor) fn overdue(role: Role, why: KillWhy, told: &Value) -> LeafEnd {
    let (within, flags, key) = match why {
        KillWhy::Wall => (
            ["had not ended within", "had not ended in time"],
            "--timeout, VERI_TIMEOUT, ",
            "timeout",
        ),
        KillWhy::FirstSign => (
            ["wrote nothing within", "wrote nothing in time"],
            "",
            "first_sign",
        ),
        KillWhy::Idle => (["was silent for", "was silent for too long"], "", "idle"),
        KillWhy::Stop | KillWhy::Lingering | KillWhy::Waits | KillWhy::Stuck => {
            return LeafEnd::Stuck;
        }
    };
    let [within, in_time] = within;
    let what = match told.get(key).and_then(Value::as_u64) {
        Some(seconds) => format!("{within} {seconds} s"),
        // An earlier version did not say.
        None => in_time.to_owned(),
    };
    let role = role.as_str();
    let detail = format!("it {what} ({flags}limits.{key}, or {key} of agents.{role})");
    match why {
        KillWhy::Wall => LeafEnd::Late { detail },
        _ => LeafEnd::Silent { detail },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn settings(text: &str) -> Settings {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".veri.toml");
        std::fs::write(&path, text).unwrap();
        let config: Config = crate::config::load(Some(&path), None).unwrap();
        Settings {
            config,
            trust: None,
        }
    }

    fn walls(text: &str, stored: Option<u64>, suite_ms: u64) -> [u64; 2] {
        let settings = settings(text);
        [Role::Planner, Role::Developer]
            .map(|role| settings.deadlines(role, stored, suite_ms).wall.as_secs())
    }

    #[test]
    fn the_wall_time_is_that_of_the_role_then_of_all_then_what_was_said_before() {
        let role = "agents.developer = { use = 'x', timeout = 50 }\n";
        let both = format!("{role}limits.timeout = 70");
        assert_eq!(walls("", None, 0), [900, 900]);
        assert_eq!(walls("", None, 600_000), [2400, 2400]);
        assert_eq!(walls("", Some(30), 600_000), [30, 30]);
        assert_eq!(walls("limits.timeout = 70", Some(30), 0), [70, 70]);
        assert_eq!(walls(role, Some(30), 0), [30, 50]);
        assert_eq!(walls(&both, Some(30), 0), [70, 50]);
    }

    #[test]
    fn every_other_deadline_is_that_of_the_role_then_of_all_then_its_default_for_agents_that_stream()
     {
        let streaming = Streaming::default();
        let of = |text: &str, role| {
            let deadlines = settings(text).deadlines(role, None, 0);
            assert_eq!(deadlines.watch(None), None);
            let watch = deadlines.watch(Some(&streaming)).unwrap();
            let times = [watch.first_sign, watch.idle, watch.lingering];
            (
                times.map(|t| t.unwrap().as_secs()),
                deadlines.grace.as_secs(),
            )
        };
        let own = "agents.developer = { use = 'x', first_sign = 3, idle = 4, lingering = 0, grace = 6 }\n";
        let all = "[limits]\nfirst_sign = 13\nidle = 14\nlingering = 15\ngrace = 0";
        let defaults = ([120, 480, 30], 5);
        assert_eq!(of("", Role::Developer), defaults);
        assert_eq!(of(own, Role::Planner), defaults);
        assert_eq!(of(own, Role::Developer), ([3, 4, 0], 6));
        assert_eq!(of(all, Role::Developer), ([13, 14, 15], 0));
        let both = format!("{own}{all}");
        assert_eq!(of(&both, Role::Planner), ([13, 14, 15], 0));
        assert_eq!(of(&both, Role::Developer), ([3, 4, 0], 6));
    }

    #[test]
    fn a_pipe_in_the_place_of_the_stored_timeout_is_not_waited_at() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("issue-42-timeout");
        std::fs::write(&file, "70\n").unwrap();
        assert_eq!(stored(dir.path(), 42), Some(70));
        std::fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert_eq!(stored(dir.path(), 42), None);
    }

    #[test]
    fn a_stuck_end_names_the_deadline_of_its_launch_and_what_sets_it() {
        let told = settings("").deadlines(Role::Verifier, None, 0).told(true);
        let detail = "it was silent for 480 s (limits.idle, or idle of agents.verifier)".to_owned();
        assert_eq!(
            overdue(Role::Verifier, KillWhy::Idle, &told),
            LeafEnd::Silent { detail }
        );
        let detail = "it had not ended within 900 s (--timeout, VERI_TIMEOUT, limits.timeout, or timeout of \
                      agents.planner)"
            .to_owned();
        assert_eq!(
            overdue(Role::Planner, KillWhy::Wall, &told),
            LeafEnd::Late { detail }
        );
        // An earlier version's journal does not say how long, its record not even which.
        let detail =
            "it wrote nothing in time (limits.first_sign, or first_sign of agents.planner)"
                .to_owned();
        assert_eq!(
            overdue(Role::Planner, KillWhy::FirstSign, &Value::Null),
            LeafEnd::Silent { detail }
        );
        assert_eq!(
            overdue(Role::Planner, KillWhy::Stuck, &told),
            LeafEnd::Stuck
        );
    }
}
