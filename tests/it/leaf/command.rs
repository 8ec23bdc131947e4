//! `veri leaf`, as promised to scripts.

use super::*;

#[test]
fn a_refusal_of_the_plumbing_says_which_folder_was_looked_at_and_what_to_run() {
    let house = House::new();
    let folder = house.records.dir().display().to_string();
    let said = |args: &[&str]| String::from_utf8(house.leaf(args).1.stderr).unwrap();
    let waited = said(&["wait", "nobody"]);
    assert!(
        waited.contains(&folder) && waited.contains("veri leaf list"),
        "{waited}"
    );
    let killed = said(&["kill", "nobody"]);
    assert!(killed.contains(&folder), "{killed}");
    said(&["start", "busy", "--", "sleep", "1000"]);
    let again = said(&["start", "busy", "--", "true"]);
    assert!(again.contains("`veri leaf kill busy`"), "{again}");
    let result = said(&["run", "x", "--result", "FINAL", "--", "true"]);
    assert!(result.contains("as in /type=result"), "{result}");
    said(&["kill", "busy"]);
}

#[test]
fn the_commands_exit_codes_are_the_promised_ones() {
    let house = House::new();
    for (command, expected) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 9"], 1),
        (&["no such program"], 1),
        (&["sh", "-c", "kill -KILL $$"], 2),
    ] {
        let args = [&["run", "develop-red", "--"], command].concat();
        assert_eq!(house.leaf(&args).0, expected, "{command:?}");
        // The same again for who only waits; a death by a signal is then lost, which is 2 as well.
        assert_eq!(
            house.leaf(&["wait", "develop-red"]).0,
            expected,
            "{command:?}"
        );
    }
    assert_eq!(house.leaf(&["run", "a/b", "--", "true"]).0, 64);
    assert_eq!(house.leaf(&["run", "develop-red"]).0, 64);
    assert_eq!(house.leaf(&["wait", "nobody"]).0, 2);
    assert_eq!(house.leaf(&["kill", "develop-red"]).0, 3);

    assert_eq!(
        house
            .leaf(&["start", "develop-red", "--", "sleep", "1000"])
            .0,
        0
    );
    assert_eq!(
        house.leaf(&["wait", "develop-red", "--max-seconds", "0"]).0,
        3
    );
    let launch = house.shim_launch();
    let listed = String::from_utf8(house.leaf(&["list"]).1.stdout).unwrap();
    assert_eq!(listed, format!("develop-red\t{launch}\tstill running\n"));
    assert_eq!(house.leaf(&["kill", "develop-red"]).0, 0);
    assert_eq!(marked(&launch), Vec::<String>::new());
    let listed = String::from_utf8(house.leaf(&["list"]).1.stdout).unwrap();
    assert_eq!(listed, format!("develop-red\t{launch}\tkilled-by-stop\n"));
    assert_eq!(house.leaf(&["wait", "develop-red"]).0, 2);
    let killed = leaf::kill(&house.records, "develop-red", KillWhy::Stop).unwrap();
    assert_eq!(killed, Killed::NotRunning);
}

#[test]
fn a_stop_request_refuses_a_launch_or_ends_the_wait() {
    let house = House::new();
    fs::create_dir_all(house.records.dir()).unwrap();
    let stop = house.records.dir().join("stop");
    for (mode, expected) in [
        ("at-leaf\n", 2),
        ("now", 2),
        ("at-ledger", 0),
        ("", 0),
        ("\u{1f6d1}", 0),
    ] {
        fs::write(&stop, mode).unwrap();
        let (code, output) = house.leaf(&["run", "develop-red", "--", "true"]);
        assert_eq!(code, expected, "{mode:?}");
        let said = String::from_utf8_lossy(&output.stderr).contains("refused");
        assert_eq!(said, expected == 2, "{mode:?}");
    }
    fs::remove_file(&stop).unwrap();
    let script = "echo $$ >leaf; exec sleep 1000";
    let waiting = house
        .veri(&["run", "develop-red", "--", "sh", "-c", script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let leaf = house.pid("leaf");
    fs::write(&stop, "now\n").unwrap();
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stderr, b"supervise[develop-red]: killed-by-stop\n");
    assert!(!alive(leaf));
}

/// A command that runs `veri leaf` with namespaces of its own; None where that cannot be had.
fn apart(house: &House, namespaces: &str, first: &str) -> Option<Command> {
    let ways = match nix::unistd::geteuid().is_root() {
        true => format!("-{namespaces}"),
        false => format!("-Ur{namespaces}"),
    };
    let mut command = Command::new("unshare");
    let script = format!("{first} && exec \"$@\"");
    command.args([&ways, "--kill-child", "sh", "-c", &script, "sh"]);
    let mut probe = Command::new(command.get_program());
    let works = probe.args(command.get_args()).arg("true").output();
    if !works.is_ok_and(|out| out.status.success()) {
        eprintln!("not tried: no namespaces of one's own here");
        return None;
    }
    command
        .args([VERI, "leaf", "--dir"])
        .arg(house.records.dir());
    command.current_dir(house.cwd()).env_remove("VERI_LAUNCH");
    Some(command)
}

#[test]
fn a_signal_to_the_first_process_of_a_container_ends_its_leaf_and_is_recorded() {
    let house = House::new();
    let Some(mut command) = apart(&house, "mpf", "mount -t proc proc /proc") else {
        return;
    };
    let script = "echo $$ >leaf; exec sleep 1000";
    let mut container = command
        .args([
            "run",
            "develop-red",
            "--grace",
            "1",
            "--",
            "sh",
            "-c",
            script,
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    house.pid("leaf");
    let id = container.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let first = Pid::from_raw(children.trim().parse().unwrap());
    send(first, Signal::SIGTERM).unwrap();
    let soon = Instant::now() + PATIENCE / 3;
    while container.try_wait().unwrap().is_none() && Instant::now() < soon {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = container.kill();
    let output = container.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stderr, b"supervise[develop-red]: killed-by-stop\n");
    let launch = house.shim_launch();
    let exit = house.records.ended(&launch).unwrap().unwrap();
    assert_eq!(exit.why, Some(KillWhy::Stop));
}

#[test]
fn where_there_is_no_proc_a_launch_says_that_and_does_not_guess() {
    let house = House::new();
    let Some(mut command) = apart(&house, "mpf", "mount -t tmpfs none /proc") else {
        return;
    };
    let output = command.args(["run", "develop-red", "--", "true"]).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("There is no /proc here"), "{said}");
    assert!(said.contains("No such file or directory"), "{said}");
    assert_eq!(
        output.status.code(),
        Some(i32::from(veri::exit::BAIL_SYSTEM)),
        "{said}"
    );
}
