//! What a leaf is given and what becomes of its output.

use super::*;

#[test]
fn standard_input_is_the_prompt_or_nothing() {
    let house = House::new();
    let prompt = house.dir.path().join("the prompt");
    let text = "Write a test.\n".repeat(100_000);
    fs::write(&prompt, &text).unwrap();
    let mut spec = house.spec(&["cat"]);
    spec.stdin = Some(prompt);
    assert_eq!(house.run_spec(&spec).0, End::Done { code: 0 });
    assert_eq!(house.out(), text);
    assert_eq!(
        house.run_spec(&house.spec(&["cat"])).0,
        End::Done { code: 0 }
    );
    assert_eq!(house.out(), "");
}

#[test]
fn output_takes_bounded_disk_and_keeps_head_and_tail() {
    let house = House::new();
    let (cap, total) = (4u64 << 20, 50u64 << 20);
    let mut spec = house.script("echo first; yes 0123456789abcde | head -c 52428800; echo last");
    spec.output_cap = Some(cap);
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::Done { code: 0 });
    assert!(exit.truncated);
    assert_eq!(exit.bytes.stdout, total + 11);
    let path = house.records.out("develop-red");
    assert!(fs::metadata(&path).unwrap().blocks() * 512 <= cap + (64 << 10));
    let text = fs::read(&path).unwrap();
    assert!(text.starts_with(b"first\n0123456789abcde\n"));
    assert!(text.ends_with(b"0123456789abcde\nlast\n"));
}

#[test]
fn both_streams_may_be_one_file() {
    let house = House::new();
    let mut spec = house.script("for i in 1 2 3; do echo out$i; echo err$i >&2; done");
    spec.stderr = spec.stdout.clone();
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::Done { code: 0 });
    assert_eq!(house.out(), "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    assert_eq!((exit.bytes.stdout, exit.bytes.stderr), (30, 0));
    assert!(!house.records.err("develop-red").exists());
}

#[test]
fn output_elsewhere_is_brought_to_the_records_after_the_end_and_not_before() {
    // Another file system where there is one: then it has to be copied.
    let shared = Path::new("/dev/shm");
    let elsewhere = tempfile::tempdir_in(shared)
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    for killed in [false, true] {
        let house = House::new();
        let mut spec =
            house.script("echo $$ >leaf; echo verdict; while [ ! -e go ]; do sleep 0.01; done");
        spec.stdout = elsewhere.path().join("o");
        spec.stderr = elsewhere.path().join("e");
        let mut running = leaf::start(&house.records, &spec).unwrap();
        house.pid("leaf");
        assert!(!house.records.out("develop-red").exists());
        assert!(!house.records.run(&spec.launch, "out").exists());
        if killed {
            until("its words", || {
                (fs::read(&spec.stdout).unwrap() == b"verdict\n").then_some(())
            });
            send(house.shim(), Signal::SIGKILL).unwrap();
        }
        fs::write(house.cwd().join("go"), "").unwrap();
        let end = wait(&mut running);
        assert_eq!(end == End::Done { code: 0 }, !killed, "{end:?}");
        assert_eq!(house.out(), "verdict\n");
        assert_eq!(house.err().contains("killed-external"), killed);
    }
}

#[test]
fn arguments_and_variables_of_any_bytes_arrive_unchanged() {
    let house = House::new();
    let odd = OsStr::from_bytes(b"\xff\xfe a'\"$(x)`\n*");
    let mut spec = house.spec(&[
        "sh",
        "-c",
        "printf '%s|%s|%s' \"$1\" \"$ODD\" \"$VERI_LAUNCH\"",
        "--",
    ]);
    spec.argv.push(odd.to_owned());
    spec.env.push(("ODD".into(), odd.to_owned()));
    spec.env
        .push(("VERI_LAUNCH".into(), "of somebody else".into()));
    let folder = house
        .dir
        .path()
        .join(OsString::from_vec(b"f\xff older".to_vec()));
    fs::create_dir(&folder).unwrap();
    spec.cwd = folder;
    let records = Records::new(house.dir.path().join(OsStr::from_bytes(b"r\xfe ecords")))
        .unwrap()
        .with_shim(VERI);
    spec.stdout = records.out("develop-red");
    spec.stderr = records.err("develop-red");
    let mut running = leaf::start(&records, &spec).unwrap();
    assert_eq!(wait(&mut running), End::Done { code: 0 });
    let out = fs::read(records.out("develop-red")).unwrap();
    let launch = spec.launch.as_str().as_bytes();
    assert_eq!(out, [odd.as_bytes(), odd.as_bytes(), launch].join(&b'|'));
}

#[test]
fn the_leaf_inherits_its_environment_and_no_other_files() {
    let house = House::new();
    let script = "env | cut -d= -f1 | grep -vx -e _ -e PWD -e SHLVL -e OLDPWD | sort; \
         for fd in /proc/$$/fd/*; do n=${fd##*/}; [ $n -le 2 ] || readlink $fd; done; exit 0";
    // A launcher that has an open file to hand on; bash would keep a copy of its own in the leaf.
    let sh = if Path::new("/bin/dash").exists() {
        "dash"
    } else {
        "sh"
    };
    let outer = format!(
        "exec 7<{VERI}; exec env -i \"PATH=$PATH\" {VERI} leaf --dir tdd run develop-red -- {sh} -c \"$1\""
    );
    let mut command = Command::new("sh");
    command.args(["-c", &outer, "--", script]);
    assert!(
        command
            .current_dir(house.cwd())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let out = fs::read_to_string(house.cwd().join("tdd/develop-red.out")).unwrap();
    assert_eq!(
        out,
        "BASH_DEFAULT_TIMEOUT_MS\nBASH_MAX_TIMEOUT_MS\nPATH\nVERI_LAUNCH\n"
    );
}

#[test]
fn the_leaf_starts_with_no_signal_blocked_or_ignored() {
    // A shell that finds SIGCHLD blocked waits for ever, and one that finds it ignored sees no exit codes.
    let house = House::new();
    let outer = format!(
        "trap '' HUP INT TERM; exec {VERI} leaf --dir tdd run develop-red -- \
         grep -E '^Sig(Blk|Ign)' /proc/self/status"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &outer]);
    assert!(
        command
            .current_dir(house.cwd())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let out = fs::read_to_string(house.cwd().join("tdd/develop-red.out")).unwrap();
    let sets: Vec<u64> = out
        .lines()
        .map(|l| u64::from_str_radix(l.rsplit('\t').next().unwrap(), 16).unwrap())
        .collect();
    // Numbers above 31 are the C library's own.
    assert_eq!(
        sets.iter().map(|s| s & 0x7fff_ffff).collect::<Vec<_>>(),
        [0, 0],
        "{out}"
    );
}
