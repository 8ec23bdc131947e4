//! Nothing is left of a leaf's tree, and nothing else is touched.

use super::*;

/// A daemon in a session of its own whose parents are gone, and which ignores TERM.
const DAEMON: &str = "setsid sh -c 'trap \"\" TERM; sh -c \"echo \\$\\$ >daemon; while :; do sleep 1000; done\" & exit' & \
     wait; while [ ! -s daemon ]; do sleep 0.01; done; ";

/// The same with an empty environment.
const BARE_DAEMON: &str = "env -i \"PATH=$PATH\" setsid sh -c 'trap \"\" TERM; sh -c \"echo \\$\\$ >bare; while :; do sleep 1000; done\" & exit' & \
     wait; while [ ! -s bare ]; do sleep 0.01; done; ";

#[test]
fn nothing_is_left_of_a_hanging_leaf_with_a_daemon_in_its_own_session() {
    let house = House::new();
    let spec = house.script(&format!(
        "{DAEMON}{BARE_DAEMON} echo $$ >leaf; exec sleep 1000"
    ));
    let mut running = leaf::start(&house.records, &spec).unwrap();
    let (daemon, bare, leaf) = (house.pid("daemon"), house.pid("bare"), house.pid("leaf"));
    assert!(alive(daemon) && alive(bare));
    let stuck = KillWhy::Idle;
    let end = running.wait(Some(PATIENCE), &mut || Some(stuck)).unwrap();
    assert_eq!(end, End::KilledStuck { why: stuck });
    // Already, not soon.
    assert!(!alive(daemon) && !alive(bare) && !alive(leaf));
    assert_eq!(marked(&spec.launch), Vec::<String>::new());
    assert!(running.record().unwrap().unwrap().swept >= 2);
}

#[test]
fn nothing_is_left_of_a_daemon_after_a_normal_end() {
    let house = House::new();
    let (end, exit) = house.run(&format!("{DAEMON}{BARE_DAEMON} exit 4"));
    assert_eq!(end, End::Done { code: 4 });
    assert!(!alive(house.pid("daemon")) && !alive(house.pid("bare")));
    assert_eq!(marked(&exit.launch), Vec::<String>::new());
    assert!(exit.swept >= 2, "{exit:?}");
    assert_eq!(exit.unswept, 0);
}

/// A multiplexer or a build daemon starts programs for whoever asks: they are no descendants of the leaf that asked.
#[test]
fn what_a_server_started_for_a_leaf_is_ended_with_it_after_a_normal_end_and_at_its_deadline() {
    for code in [0, 143] {
        let house = House::new();
        let asks = "echo $$ >leaf; while [ ! -e go ]; do sleep 0.01; done; ";
        let then = if code == 0 { "" } else { "exec sleep 1000" };
        let mut running = house.start(&format!("{asks}{then}"));
        house.pid("leaf");
        let mut server = Command::new("sleep");
        server
            .arg("1000")
            .env("VERI_LAUNCH", running.launch().as_str());
        let mut for_the_leaf = server.spawn().unwrap();
        fs::write(house.cwd().join("go"), "").unwrap();
        let mut why = || (code != 0).then_some(KillWhy::Idle);
        running.wait(Some(PATIENCE), &mut why).unwrap();
        // Already, not soon: before the leaf was said to have ended.
        let exit = running.record().unwrap().unwrap();
        let ended = !alive(Pid::from_raw(for_the_leaf.id() as i32));
        let _ = for_the_leaf.kill();
        for_the_leaf.wait().unwrap();
        assert!(ended, "{exit:?}");
        assert_eq!((exit.swept, exit.unswept), (1, 0), "{exit:?}");
    }
}

#[test]
fn a_killed_shim_is_external_to_who_watched_and_everything_of_its_leaf_is_ended() {
    let house = House::new();
    let script = format!("{DAEMON} env -i sleep 1001 & echo $! >bare; echo $$ >leaf; wait");
    let mut running = house.start(&script);
    let (daemon, bare, leaf) = (house.pid("daemon"), house.pid("bare"), house.pid("leaf"));
    send(house.shim(), Signal::SIGKILL).unwrap();
    assert_eq!(wait(&mut running), End::KilledExternal { signal: None });
    gone(leaf);
    // No environment betrays it, but it is in the session of a shim that was not yet reaped.
    assert!(!alive(daemon) && !alive(bare));
    assert_eq!(marked(running.launch()), Vec::<String>::new());
    assert!(
        house
            .err()
            .ends_with("supervise[develop-red]: killed-external\n")
    );
    assert_eq!(running.record().unwrap(), None);
}

#[test]
fn a_killed_shim_is_lost_to_who_comes_later() {
    let house = House::new();
    let script = format!("{DAEMON} echo $$ >leaf; exec sleep 1000");
    let (code, output) = house.leaf(&["start", "develop-red", "--", "sh", "-c", &script]);
    assert_eq!(code, 0);
    let launch = LaunchId::parse(String::from_utf8(output.stdout).unwrap().trim()).unwrap();
    let (daemon, leaf) = (house.pid("daemon"), house.pid("leaf"));
    let shim = house.shim();
    send(shim, Signal::SIGKILL).unwrap();
    gone(shim);
    // The leaf itself goes at once, though nobody watches.
    gone(leaf);
    assert_eq!(house.settle(&launch), End::Lost);
    assert!(!alive(daemon));
    assert_eq!(house.settle(&launch), End::Lost);
    assert!(!house.err().contains("killed-external"));
    assert_eq!(house.leaf(&["wait", "develop-red"]).0, 2);
}

#[test]
fn two_hundred_quick_launches_leave_no_process() {
    let house = House::new();
    let mut launches = Vec::new();
    for i in 0..200 {
        let mut running = house.start(&format!("sleep 1000 & exit {}", i % 2));
        assert_eq!(wait(&mut running), End::Done { code: i % 2 });
        launches.push(running.launch().clone());
    }
    let entries: Vec<String> = launches.iter().flat_map(marked).collect();
    assert_eq!(entries, Vec::<String>::new());
    for launch in &launches {
        let shim = house.records.started(launch).unwrap().unwrap();
        let stat = crate::processes::stat(shim.pid.unsigned_abs());
        let start = stat.get(19).map(|s| s.parse::<u64>().unwrap());
        assert!(
            start.is_none() || start != shim.start,
            "a shim or its zombie is left"
        );
    }
}

#[test]
fn a_sweep_signals_nothing_that_does_not_carry_the_launch() {
    let launch = LaunchId::random().unwrap();
    let sleeper = |value: &str| {
        Command::new("sleep")
            .arg("1000")
            .env("VERI_LAUNCH", value)
            .spawn()
            .unwrap()
    };
    let mut ours = sleeper(launch.as_str());
    let mut others = [
        sleeper(LaunchId::random().unwrap().as_str()),
        sleeper(&launch.as_str()[..31]),
        sleeper(&format!("{launch}0")),
        Command::new("sleep")
            .arg("1000")
            .env("X", format!("VERI_LAUNCH={launch}"))
            .spawn()
            .unwrap(),
    ];
    let swept = leaf::sweep_launch(&launch);
    assert_eq!((swept.ended, swept.left), (1, 0));
    assert!(ours.wait().unwrap().code().is_none());
    for other in &mut others {
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

#[test]
fn a_supervisor_within_a_leaf_goes_with_it() {
    let house = House::new();
    let script = format!(
        "{VERI} leaf --dir inner run suite -- sh -c 'trap \"\" TERM; {}echo $$ >leaf; while :; do sleep 1000; done'",
        DAEMON.replace('\'', "'\\''")
    );
    let mut running = house.start(&script);
    let (daemon, leaf) = (house.pid("daemon"), house.pid("leaf"));
    assert!(alive(daemon) && alive(leaf));
    let end = running
        .wait(Some(PATIENCE), &mut || Some(KillWhy::Stop))
        .unwrap();
    assert_eq!(end, End::KilledByStop);
    assert!(!alive(daemon) && !alive(leaf));
}

/// As an agent for keys is: nobody may look into it.
#[test]
fn a_daemon_that_proc_hides_is_ended_as_a_child() {
    let house = House::new();
    // The group of root is shown everything.
    let root = nix::unistd::geteuid().is_root();
    let (ways, who) = match root {
        true => ("-mpf", "--reuid 65534 --regid 65534 --clear-groups"),
        false => ("-Urmpf", "--bounding-set=-all --inh-caps=-all"),
    };
    let own_proc = |then: &str| {
        let script = format!(
            "mount -t proc -o hidepid=2 proc /proc && mount -t tmpfs none /sys/fs/cgroup && setpriv {who} {then}"
        );
        let mut command = Command::new("unshare");
        command.args([ways, "--kill-child", "sh", "-c", &script]);
        command.current_dir(house.cwd()).output()
    };
    if root {
        for folder in [house.dir.path(), &house.cwd()] {
            std::os::unix::fs::chown(folder, Some(65534), Some(65534)).unwrap();
        }
    }
    // prctl(PR_SET_DUMPABLE, 0)
    let prctl = if cfg!(target_arch = "x86_64") {
        157
    } else {
        167
    };
    fs::write(
        house.cwd().join("hidden.pl"),
        format!(
            "use POSIX; $SIG{{TERM}} = 'IGNORE'; syscall({prctl}, 4, 0, 0, 0, 0); POSIX::setsid(); fork(); \
             syscall({prctl}, 4, 0, 0, 0, 0); system('touch', \"up$$\"); sleep 1000"
        ),
    )
    .unwrap();
    if !own_proc(&format!("perl -e 'exec @ARGV' '{VERI}' --version"))
        .is_ok_and(|o| o.status.success())
    {
        eprintln!("not tried: no /proc of its own can be mounted here, or there is no perl");
        return;
    }
    let leaf = "for i in 1 2 3 4; do perl hidden.pl & done; \
                while [ \"$(ls | grep -c up)\" -lt 8 ]; do sleep 0.01; done";
    fs::write(house.cwd().join("leaf.sh"), leaf).unwrap();
    let dir = house.records.dir().display();
    let ran = own_proc(&format!(
        "'{VERI}' leaf --dir '{dir}' run x --timeout 20 -- sh leaf.sh"
    ));
    let ran = ran.unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let text = fs::read_to_string(house.records.exit("x")).unwrap();
    let exit: leaf::Exit = serde_json::from_str(&text).unwrap();
    assert!(!exit.cgroup && exit.swept >= 8, "{exit:?}");
    assert_eq!(exit.unswept, 0);
}
