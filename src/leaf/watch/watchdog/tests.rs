use super::*;

const MOST: Duration = Duration::from_millis(250);

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A leaf and its clock, without either: time passes as the watchdog plans it.
struct Bench {
    dog: Watchdog,
    now: Duration,
    seen: Seen,
    heard: Vec<Heard>,
    /// Whether the processes below the leaf are busy, asked how often.
    busy: bool,
    asked: u32,
    next: Next,
}

impl Bench {
    /// 900 s wall, 120 s first sign, 480 s idle, 30 s lingering.
    fn new() -> Bench {
        let mut bench = Bench {
            dog: Watchdog::new(
                s(900.0),
                &Orders {
                    first_sign_ms: Some(120_000),
                    idle_ms: Some(480_000),
                    lingering_ms: Some(30_000),
                    ..Orders::default()
                },
            ),
            now: Duration::ZERO,
            seen: Seen::default(),
            heard: Vec::new(),
            busy: false,
            asked: 0,
            next: Next::Measure,
        };
        bench.look();
        bench
    }

    /// As `new`, with a first sign at once.
    fn spoken() -> Bench {
        let mut bench = Bench::new();
        bench.says(&[]);
        bench
    }

    fn look(&mut self) {
        loop {
            let heard = std::mem::take(&mut self.heard);
            self.next = self.dog.look(self.now, self.seen, heard, MOST);
            if self.next != Next::Measure {
                return;
            }
            self.asked += 1;
            self.dog.measured(self.busy);
        }
    }

    fn says(&mut self, heard: &[Heard]) {
        self.seen.written += 10;
        self.heard = heard.to_vec();
        self.look();
    }

    /// Lets time pass, look by look; gives when and why the leaf was ended, if it was.
    fn pass(&mut self, seconds: f64) -> Option<(f64, KillWhy)> {
        let until = self.now + s(seconds);
        loop {
            match self.next {
                Next::End(why) => {
                    return Some(((self.now.as_secs_f64() * 10.0).round() / 10.0, why));
                }
                _ if self.now >= until => return None,
                Next::Wait(wait) => self.now = (self.now + wait).min(until),
                Next::Measure => unreachable!(),
            }
            self.look();
        }
    }
}

fn opened() -> Heard {
    Heard::Opened("1".to_owned())
}

#[test]
fn a_leaf_without_a_watch_may_be_silent_to_its_wall_time() {
    let mut bench = Bench::new();
    bench.dog = Watchdog::new(s(900.0), &Orders::default());
    bench.look();
    assert_eq!(bench.pass(2000.0), Some((900.0, KillWhy::Wall)));
}

#[test]
fn a_leaf_that_says_nothing_at_all_ends_at_the_first_sign_and_one_that_did_does_not() {
    assert_eq!(Bench::new().pass(900.0), Some((120.0, KillWhy::FirstSign)));
    let mut bench = Bench::new();
    assert_eq!(bench.pass(119.0), None);
    bench.says(&[]);
    assert_eq!(bench.pass(900.0), Some((599.0, KillWhy::Idle)));
}

#[test]
fn a_transcript_that_grows_is_no_first_sign_but_keeps_a_leaf_from_being_idle() {
    let mut bench = Bench::new();
    assert_eq!(bench.pass(100.0), None);
    bench.seen.transcript = 1;
    assert_eq!(bench.pass(900.0), Some((120.0, KillWhy::FirstSign)));
    let mut bench = Bench::spoken();
    assert_eq!(bench.pass(300.0), None);
    bench.seen.transcript = 1;
    assert_eq!(bench.pass(470.0), None);
}

#[test]
fn idle_is_measured_from_the_last_output_and_a_shorter_idle_waits_for_the_first_sign() {
    let mut bench = Bench::spoken();
    for _ in 0..5 {
        assert_eq!(bench.pass(70.0), None);
        bench.says(&[]);
    }
    assert_eq!(bench.pass(900.0), Some((830.0, KillWhy::Idle)));
    let mut bench = Bench::new();
    bench.dog.idle = Some(s(10.0));
    assert_eq!(bench.pass(119.0), None);
}

#[test]
fn busy_processes_of_an_open_tool_call_extend_idle_once_and_never_renew_it() {
    let mut bench = Bench::spoken();
    bench.dog.wall = s(10_000.0);
    bench.busy = true;
    bench.says(&[opened()]);
    assert_eq!(bench.pass(10_000.0), Some((960.0, KillWhy::Idle)));
    assert_eq!(bench.asked, 2, "at half and at the end of one idle time");
}

#[test]
fn every_silence_has_an_extension_of_its_own() {
    let mut bench = Bench::spoken();
    bench.dog.wall = s(10_000.0);
    bench.busy = true;
    bench.says(&[opened()]);
    for _ in 0..3 {
        assert_eq!(bench.pass(900.0), None);
        bench.says(&[]);
    }
    assert_eq!(bench.pass(10_000.0), Some((2700.0 + 960.0, KillWhy::Idle)));
}

#[test]
fn nothing_is_extended_without_an_open_tool_call_or_without_use() {
    let mut bench = Bench::spoken();
    bench.busy = true;
    bench.says(&[opened(), Heard::Closed("1".to_owned())]);
    assert_eq!(bench.pass(900.0), Some((480.0, KillWhy::Idle)));
    assert_eq!(bench.asked, 0);
    let mut bench = Bench::spoken();
    bench.says(&[opened()]);
    assert_eq!(bench.pass(900.0), Some((480.0, KillWhy::Idle)));
    // What was used before the second half of the silence says nothing of it.
    let mut bench = Bench::spoken();
    bench.says(&[opened()]);
    bench.busy = true;
    assert_eq!(bench.pass(300.0), None);
    bench.busy = false;
    assert_eq!(bench.pass(900.0), Some((480.0, KillWhy::Idle)));
}

#[test]
fn a_leaf_that_lingers_after_its_final_result_is_ended_as_answered() {
    let mut bench = Bench::spoken();
    assert_eq!(bench.pass(100.0), None);
    bench.says(&[Heard::Result]);
    assert_eq!(bench.pass(20.0), None);
    bench.says(&[]);
    assert_eq!(bench.pass(900.0), Some((130.0, KillWhy::Lingering)));
}

#[test]
fn a_result_after_which_work_goes_on_was_not_the_final_one() {
    for more in [Heard::Begun, opened()] {
        let mut bench = Bench::spoken();
        bench.says(&[Heard::Result]);
        assert_eq!(bench.pass(20.0), None);
        bench.says(&[more]);
        assert_eq!(bench.pass(100.0), None);
        bench.says(&[Heard::Result]);
        assert_eq!(bench.pass(900.0), Some((150.0, KillWhy::Lingering)));
    }
}

#[test]
fn a_leaf_that_has_answered_is_never_stuck() {
    // Neither idle, where nothing is said of lingering,
    let mut bench = Bench::spoken();
    bench.dog.lingering = None;
    bench.says(&[Heard::Result]);
    assert_eq!(bench.pass(2000.0), Some((900.0, KillWhy::Lingering)));
    // nor when its wall time comes first.
    let mut bench = Bench::spoken();
    bench.dog.wall = s(110.0);
    assert_eq!(bench.pass(100.0), None);
    bench.says(&[Heard::Result]);
    assert_eq!(bench.pass(900.0), Some((110.0, KillWhy::Lingering)));
}

#[test]
fn an_announced_wait_pauses_idle_and_not_the_wall() {
    let mut bench = Bench::spoken();
    bench.dog.wall = s(10_000.0);
    bench.says(&[Heard::Waits(s(3600.0))]);
    assert_eq!(bench.pass(3600.0), None);
    assert_eq!(bench.pass(6000.0), Some((3600.0 + 480.0, KillWhy::Idle)));
    let mut bench = Bench::spoken();
    bench.says(&[Heard::Waits(s(3600.0))]);
    assert_eq!(bench.pass(6000.0), Some((900.0, KillWhy::Wall)));
}

#[test]
fn a_wait_is_over_when_the_agent_works_again() {
    let mut bench = Bench::spoken();
    bench.dog.wall = s(10_000.0);
    bench.says(&[Heard::Waits(s(3600.0))]);
    assert_eq!(bench.pass(100.0), None);
    // Output that means nothing does not end it.
    bench.says(&[]);
    assert_eq!(bench.pass(1000.0), None);
    bench.says(&[Heard::Begun]);
    assert_eq!(bench.pass(6000.0), Some((1100.0 + 480.0, KillWhy::Idle)));
}

#[test]
fn the_time_that_a_leaf_is_suspended_counts_for_the_wall_alone() {
    let mut bench = Bench::new();
    assert_eq!(bench.pass(100.0), None);
    bench.seen.suspended = true;
    bench.look();
    assert_eq!(bench.pass(500.0), None);
    bench.seen.suspended = false;
    bench.look();
    assert_eq!(bench.pass(900.0), Some((620.0, KillWhy::FirstSign)));

    let mut bench = Bench::spoken();
    bench.seen.suspended = true;
    bench.look();
    assert_eq!(bench.pass(2000.0), Some((900.0, KillWhy::Wall)));
}

#[test]
fn a_gap_between_two_looks_is_not_the_leafs_idleness() {
    let mut bench = Bench::spoken();
    assert_eq!(bench.pass(400.0), None);
    // The shim itself was stopped.
    bench.now += s(300.0);
    bench.look();
    assert_eq!(bench.pass(70.0), None);
    let (at, why) = bench.pass(900.0).unwrap();
    assert!((779.5..=780.0).contains(&at), "{at}");
    assert_eq!(why, KillWhy::Idle);
    // The wall goes on.
    let mut bench = Bench::spoken();
    bench.now += s(901.0);
    bench.look();
    assert_eq!(bench.next, Next::End(KillWhy::Wall));
}

#[test]
fn no_deadline_is_passed_by_more_than_a_look_and_no_look_is_planned_for_no_time() {
    let mut bench = Bench::spoken();
    bench.dog.idle = Some(s(0.3));
    assert_eq!(bench.pass(1.0), Some((0.3, KillWhy::Idle)));
    let mut bench = Bench::new();
    bench.dog.first_sign = Some(Duration::from_micros(1));
    assert_eq!(
        bench.dog.look(Duration::ZERO, bench.seen, Vec::new(), MOST),
        Next::Wait(s(0.001))
    );
}

#[test]
fn an_agent_that_opens_calls_without_end_takes_no_more_memory() {
    let mut bench = Bench::spoken();
    for n in 0..10_000 {
        bench.says(&[Heard::Opened(n.to_string())]);
    }
    assert_eq!(bench.dog.open.len(), MAX_OPEN);
}
