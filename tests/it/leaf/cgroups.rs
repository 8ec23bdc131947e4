//! A control group of the leaf's own, where there can be one; and trees that multiply while they are ended.

use super::*;
use std::fs::File;

/// Whether this machine lets the tests' user make control groups; says so where it does not.
fn possible(what: &str) -> bool {
    let can = leaf::reach().cgroup;
    if !can {
        eprintln!("skipped: no control group can be made here, so {what} is not tested");
    }
    can
}

/// The group that the newest launch's record names.
fn group(house: &House) -> PathBuf {
    house.shim();
    let text = fs::read_to_string(house.records.pid("develop-red")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    PathBuf::from(record["cgroup"].as_str().unwrap())
}

/// A daemon without a name: no environment, no session, parent or open file of the leaf's.
const NAMELESS: &str = "(env -i \"PATH=$PATH\" setsid sh -c 'trap \"\" TERM; echo $$ >nameless; while :; do sleep 1000; done' <&- >&- 2>&- &); \
     while [ ! -s nameless ]; do sleep 0.01; done; ";

#[test]
fn a_leaf_runs_in_a_group_that_bears_its_launch_and_none_is_left() {
    if !possible("that a leaf has one") {
        return;
    }
    let house = House::new();
    let mut spec = house.script("cat /proc/self/cgroup; mkdir \"$G/inner\"; echo 0 >\"$G/inner/cgroup.procs\"; setsid sleep 1000 & exit 0");
    // The leaf's own place is known before it starts.
    let first = house.run("exit 0").1;
    assert!(first.cgroup);
    let parent = group(&house).parent().unwrap().to_owned();
    let own = parent.join(format!("veri-{}", spec.launch));
    spec.env.push(("G".into(), own.clone().into()));
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::Done { code: 0 });
    assert!(exit.cgroup && exit.swept == 1, "{exit:?}");
    let line = house.out();
    assert!(
        line.lines()
            .any(|l| l.starts_with("0::") && l.ends_with(spec.launch.as_str())),
        "{line}"
    );
    assert!(!own.exists() && !parent.join(format!("veri-{}", first.launch)).exists());
}

#[test]
fn a_program_that_cannot_be_executed_leaves_no_group() {
    let house = House::new();
    let (end, exit) = house.run_spec(&house.spec(&["no-such-program"]));
    assert!(matches!(end, End::SpawnFailed { code: 127, .. }), "{end}");
    assert!(!exit.cgroup);
    if possible("that nothing is left") {
        assert!(!group(&house).exists());
    }
}

/// A machine that crashed, or a run that nobody came back for, must not leave groups for ever.
#[test]
fn empty_groups_that_crashes_have_left_are_removed_by_the_next_launch_and_no_others() {
    if !possible("what is left of groups") {
        return;
    }
    let house = House::new();
    assert!(house.run("exit 0").1.cgroup);
    let parent = group(&house).parent().unwrap().to_owned();
    let made = |name: &str, old: bool| {
        let path = parent.join(name);
        fs::create_dir(&path).unwrap();
        if old {
            let then = std::time::SystemTime::now() - Duration::from_secs(3600);
            File::open(&path).unwrap().set_modified(then).unwrap();
        }
        path
    };
    let name = || format!("veri-{}", LaunchId::random().unwrap());
    let (left, of_now, lived_in) = (made(&name(), true), made(&name(), false), name());
    // Of a launch that lives, or that nobody has taken up yet.
    let lived_in = made(&lived_in, true);
    let mut living = Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(lived_in.join("cgroup.procs"), living.id().to_string()).unwrap();
    let others = made(&format!("{}-of-somebody", name()), true);
    assert_eq!(house.run("exit 0").0, End::Done { code: 0 });
    let there = [&left, &of_now, &lived_in, &others].map(|path| path.exists());
    living.kill().unwrap();
    living.wait().unwrap();
    for path in [&left, &of_now, &lived_in, &others] {
        until("a group to be empty", || {
            (!path.exists() || fs::remove_dir(path).is_ok()).then_some(())
        });
    }
    assert_eq!(there, [false, true, true, true]);
}

#[test]
fn a_nameless_daemon_is_ended_though_conductor_and_shim_were_killed_at_once() {
    if !possible("a daemon that nothing else betrays") {
        return;
    }
    for by_the_leaf in [false, true] {
        let house = House::new();
        // As the shim sees it, the conductor is its parent.
        let kills = match by_the_leaf {
            true => "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID; ",
            false => "",
        };
        let script =
            format!("{NAMELESS}while [ ! -e go ]; do sleep 0.01; done; {kills}exec sleep 1000");
        let mut conductor = house
            .veri(&["run", "develop-red", "--", "sh", "-c", &script])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (daemon, shim, launch) = (house.pid("nameless"), house.shim(), house.shim_launch());
        let group = group(&house);
        if by_the_leaf {
            fs::write(house.cwd().join("go"), "").unwrap();
        } else {
            let above = Pid::from_raw(conductor.id() as i32);
            for pid in [above, shim] {
                send(pid, Signal::SIGSTOP).unwrap();
            }
            for pid in [above, shim] {
                send(pid, Signal::SIGKILL).unwrap();
            }
        }
        assert_eq!(conductor.wait().unwrap().code(), None);
        gone(shim);
        assert!(alive(daemon) && group.exists());
        // Whoever comes next: to settle it, or to launch the same leaf again.
        match by_the_leaf {
            true => assert_eq!(house.settle(&launch), End::Lost),
            false => assert_eq!(house.run("exit 0").0, End::Done { code: 0 }),
        }
        assert!(!alive(daemon) && !group.exists());
    }
}

#[test]
fn a_process_that_left_the_group_is_ended_as_a_descendant() {
    if !possible("leaving one") {
        return;
    }
    let house = House::new();
    let script = format!("echo $$ >\"$UP/cgroup.procs\" || exit 3; {NAMELESS} exit 0");
    let mut spec = house.script(&script);
    assert_eq!(house.run("exit 0").0, End::Done { code: 0 });
    spec.env
        .push(("UP".into(), group(&house).parent().unwrap().into()));
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::Done { code: 0 }, "{}", house.err());
    assert!(exit.swept >= 1 && !alive(house.pid("nameless")));
    assert!(!group(&house).exists());
}

/// A tree in which each process is followed by another in a session of its own and ends; TERM does nothing.
const RACERS: &str =
    "cat >race <<'R'\ntrap '' TERM\nsetsid sh race & setsid sleep 1000 & exec sleep 0.02\nR\n";

#[test]
fn a_tree_that_multiplies_while_it_is_ended_is_ended() {
    // In its group, and outside of it by the descent alone.
    for outside in [false, true] {
        if outside && !possible("racers outside of a group") {
            return;
        }
        let house = House::new();
        assert_eq!(house.run("exit 0").0, End::Done { code: 0 });
        let leave = match outside {
            true => format!(
                "echo $$ >'{}/cgroup.procs'; ",
                group(&house).parent().unwrap().display()
            ),
            false => String::new(),
        };
        let script = format!(
            "{leave}{RACERS}for i in 1 2 3 4 5; do sh race & done; sleep 0.3; echo $$ >leaf; exec sleep 1000"
        );
        let spec = house.script(&script);
        let mut running = leaf::start(&house.records, &spec).unwrap();
        house.pid("leaf");
        let stuck = KillWhy::Stuck;
        let end = running.wait(Some(PATIENCE), &mut || Some(stuck)).unwrap();
        assert_eq!(end, End::KilledStuck { why: stuck });
        let exit = running.record().unwrap().unwrap();
        assert!(exit.swept > 5 && exit.unswept == 0, "{exit:?}");
        assert_eq!(marked(&spec.launch), Vec::<String>::new());
    }
}
