//! Leaves that remove their records, or put something else in the place of them, while they run.

use super::*;

/// What a run takes at most when nobody waits for something that never comes.
const AT_ONCE: Duration = Duration::from_secs(10);

#[test]
fn a_pipe_in_the_place_of_an_output_file_is_waited_at_by_nobody() {
    let house = House::new();
    let began = Instant::now();
    // Its own death has a line written to its stderr.
    let pipes = "cd ../a*; for f in develop-red.err runs/$VERI_LAUNCH.err; do rm $f; mkfifo $f; done; kill -9 $$";
    let (end, _) = house.run(pipes);
    assert_eq!(end, End::KilledExternal { signal: Some(9) });
    // What is too long is marked as such.
    let mut spec = house.script(
        "cd ../a*; for f in develop-red.out runs/$VERI_LAUNCH.out; do rm $f; mkfifo $f; done; head -c 3000000 /dev/zero",
    );
    spec.output_cap = Some(1 << 20);
    let (end, exit) = house.run_spec(&spec);
    assert_eq!((end, exit.code), (End::Done { code: 0 }, Some(0)));
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

#[test]
fn a_link_in_the_place_of_an_output_file_has_veri_write_or_copy_nothing_that_it_leads_to() {
    let house = House::new();
    let theirs = house.dir.path().join("theirs");
    fs::write(&theirs, vec![b'x'; 2_000_000]).unwrap();
    let mut spec =
        house.script("cd ../a*; rm -f $0; ln -s ../theirs $0; head -c 3000000 /dev/zero");
    spec.argv.push("develop-red.out".into());
    spec.output_cap = Some(1 << 20);
    let (end, _) = house.run_spec(&spec);
    assert_eq!(end, End::Done { code: 0 });
    assert_eq!(fs::read(&theirs).unwrap(), vec![b'x'; 2_000_000]);

    // Output that lies elsewhere is brought to the records in the end: on another file system, as a copy.
    let elsewhere = TempDir::new_in("/dev/shm").unwrap();
    let out = elsewhere.path().join("out");
    for what in ["ln -s", "mkfifo"] {
        let mut spec = house
            .script("rm \"$1\"; case $0 in mkfifo) mkfifo \"$1\";; *) ln -s \"$2\" \"$1\";; esac");
        spec.argv
            .extend([what.into(), out.clone().into(), theirs.clone().into()]);
        spec.stdout = out.clone();
        let (end, _) = house.run_spec(&spec);
        assert_eq!(end, End::Done { code: 0 });
        let kept = house.records.run(&spec.launch, "out");
        let holds = fs::symlink_metadata(&kept).map(|m| (m.is_file(), m.len()));
        assert!(
            holds.is_err() || holds.is_ok_and(|h| h == (true, 0)),
            "{what}"
        );
    }
}

#[test]
fn a_leaf_that_removed_its_lock_is_alive_all_the_same() {
    let house = House::new();
    let running = house.start(
        "rm ../a*/develop-red.lock; echo $$ >up; while [ ! -e go ]; do sleep 0.01; done; exit 7",
    );
    let leaf = house.pid("up");
    let launch = running.launch().clone();
    drop(running);
    let listed = leaf::list(&house.records).unwrap();
    assert_eq!(listed[0].end, End::StillRunning);
    let error = leaf::start(&house.records, &house.script("true")).unwrap_err();
    assert!(error.is::<AlreadyRunning>(), "{error:#}");
    let limit = Some(Duration::from_millis(10));
    let end = leaf::settle(&house.records, "develop-red", &launch, limit, &mut || None).unwrap();
    assert_eq!(end, End::StillRunning);
    assert!(alive(leaf));
    fs::write(house.cwd().join("go"), "").unwrap();
    assert_eq!(house.settle(&launch), End::Done { code: 7 });

    let mut running = house.start("rm ../a*/develop-red.lock; echo $$ >up2; sleep 1000");
    house.pid("up2");
    let killed = leaf::kill(&house.records, "develop-red", KillWhy::Stop).unwrap();
    assert_eq!(killed, Killed::Asked(running.launch().clone()));
    assert_eq!(wait(&mut running), End::KilledByStop);
}

#[test]
fn folders_and_links_in_the_place_of_records_keep_nobody_from_saying_how_it_ended() {
    let house = House::new();
    let theirs = house.dir.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("exit"), "theirs").unwrap();
    for (name, make) in [
        ("folders", "mkdir -p $f/below"),
        ("links", "ln -s ../../theirs/exit $f"),
    ] {
        let script = format!(
            "cd ../a*/runs; for w in exit pid out err kill; do for f in $VERI_LAUNCH.$w ../develop-red.$w; do \
             rm -rf $f; {make}; done; done; exit 3"
        );
        let (end, exit) = house.run(&script);
        assert_eq!((end, exit.code), (End::Done { code: 3 }, Some(3)), "{name}");
        let (end, _) = house.run("echo again");
        assert_eq!(end, End::Done { code: 0 }, "{name}");
        assert_eq!(house.out(), "again\n");
    }
    assert_eq!(fs::read_to_string(theirs.join("exit")).unwrap(), "theirs");
}

#[test]
fn a_shim_that_is_suspended_ends_its_leaf_when_it_is_asked_to() {
    let house = House::new();
    let mut running = house.start("kill -STOP $PPID; echo $$ >up; sleep 1000");
    let leaf = house.pid("up");
    let began = Instant::now();
    leaf::kill(&house.records, "develop-red", KillWhy::Stop).unwrap();
    let launch = running.launch().clone();
    assert_eq!(house.settle(&launch), End::KilledByStop);
    assert_eq!(wait(&mut running), End::KilledByStop);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    gone(leaf);
}

#[test]
fn a_leaf_that_removed_all_records_of_itself_has_ended_as_it_did() {
    let house = House::new();
    let mut spec = house.script("rm -r \"$RECORDS\"; exit 6");
    spec.env
        .push(("RECORDS".into(), house.records.dir().into()));
    let (end, exit) = house.run_spec(&spec);
    assert_eq!((end, exit.code), (End::Done { code: 6 }, Some(6)));
    assert_eq!(house.settle(&spec.launch), End::Done { code: 6 });
}
