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
