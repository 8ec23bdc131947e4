//! What a confined leaf can do, and what not: by the kernel that is there.

use super::*;
use crate::kernel;
use std::os::unix::fs::symlink;
use veri::leaf::{Confined, Sandbox};

/// A house whose leaf is confined to its working folder.
pub(super) fn confined(hidden: &[&Path]) -> (House, impl Fn(&House, &str) -> Spec + use<>) {
    let house = House::new();
    let sandbox = Sandbox {
        hidden: hidden.iter().map(|p| p.to_path_buf()).collect(),
        write: vec![house.cwd()],
        ..Sandbox::default()
    };
    let spec = move |house: &House, script: &str| Spec {
        sandbox: Some(sandbox.clone()),
        ..house.script(script)
    };
    (house, spec)
}

/// Shell that says which of its moves succeeded, one a line.
fn tries(moves: &[(&str, String)]) -> String {
    let each = moves.iter().map(|(name, shell)| {
        format!("if ( {shell} ) > /dev/null 2>> errors; then echo {name}; fi\n")
    });
    each.collect()
}

fn moves(list: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    list.iter().map(|(n, s)| (*n, (*s).to_owned())).collect()
}

#[track_caller]
pub(super) fn succeeded(house: &House, spec: &Spec) -> Vec<String> {
    let (end, exit) = house.run_spec(spec);
    assert_eq!(end, End::Done { code: 0 }, "{exit:?}\n{}", house.err());
    let confined = exit.sandbox.expect("it was confined, and says so");
    assert_eq!(confined.landlock, kernel::landlock().unwrap().landlock);
    house.out().lines().map(str::to_owned).collect()
}

#[test]
fn a_hidden_folder_is_read_by_no_way_round() {
    if kernel::landlock().is_none() {
        return;
    }
    let world = tempfile::tempdir().unwrap();
    let at = |name: &str| world.path().join(name);
    let secret = at("secret");
    fs::create_dir_all(secret.join("deep")).unwrap();
    fs::write(secret.join("deep/file"), "hidden words").unwrap();
    fs::create_dir(at("beside")).unwrap();
    fs::write(at("beside/file"), "open words").unwrap();
    fs::write(at("file"), "open words").unwrap();
    symlink(&secret, at("beside/link")).unwrap();
    symlink(at("beside"), at("to-beside")).unwrap();
    // A process outside that has the file open, stands in the folder, and is of the same user.
    let mut outside = Command::new("sh")
        .args(["-c", "exec 7< deep/file; echo; exec sleep 1000"])
        .current_dir(&secret)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(outside.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let pid = outside.id();
    let (s, w) = (secret.display(), world.path().display());
    let (house, spec) = confined(&[&secret, &at("not/there/yet")]);
    let me = std::process::id();
    let closed: Vec<(&str, String)> = vec![
        ("direct", format!("cat {s}/deep/file")),
        ("list", format!("ls {s}")),
        ("list-above", format!("ls {w}")),
        ("by-link", format!("cat {w}/beside/link/deep/file")),
        ("by-self-root", format!("cat /proc/self/root{s}/deep/file")),
        ("by-own-cwd", format!("cd {s}/deep && cat file")),
        ("by-dots", format!("cat {w}/beside/../secret/deep/file")),
        (
            "by-root-of-another",
            format!("cat /proc/{pid}/root{s}/deep/file"),
        ),
        (
            "by-cwd-of-another",
            format!("cat /proc/{pid}/cwd/deep/file"),
        ),
        ("by-fd-of-another", format!("cat /proc/{pid}/fd/7")),
        ("by-map-of-another", format!("cat /proc/{pid}/maps")),
        ("environ-of-another", format!("cat /proc/{pid}/environ")),
        ("memory-of-another", format!("head -c1 /proc/{pid}/mem")),
        (
            "by-root-of-the-shim",
            format!("cat /proc/$PPID/root{s}/deep/file"),
        ),
        ("environ-of-the-shim", "cat /proc/$PPID/environ".to_owned()),
        (
            "by-root-of-the-conductor",
            format!("cat /proc/{me}/root{s}/deep/file"),
        ),
        ("by-hard-link", format!("ln {s}/deep/file mine && cat mine")),
        ("by-moving", format!("mv {s}/deep mine")),
        (
            "by-binding",
            format!("mkdir m && mount --bind {s} m && cat m/deep/file"),
        ),
        (
            "by-namespace",
            format!("mkdir n && unshare -Urm sh -c 'mount --bind {s} n && cat n/deep/file'"),
        ),
        ("by-running", format!("sh {s}/deep/file")),
        ("made-later", format!("cat {w}/later")),
        ("write", format!("echo x > {s}/deep/file")),
        ("append", format!("echo x >> {s}/deep/file")),
        ("empty", format!("truncate -s0 {s}/deep/file")),
        ("remove", format!("rm {s}/deep/file")),
        ("make", format!("echo x > {s}/new")),
    ];
    let open: Vec<(&str, String)> = vec![
        ("beside", format!("cat {w}/beside/file && ls {w}/beside")),
        ("file-beside", format!("cat {w}/file")),
        ("by-link-beside", format!("cat {w}/to-beside/file")),
        (
            "own",
            "echo x > mine2 && mkdir -p a/b && mv mine2 a/b/ && rm -r a".to_owned(),
        ),
        (
            "system",
            "cat /etc/passwd /proc/self/status && ls /usr/bin".to_owned(),
        ),
    ];
    let all: Vec<_> = closed.iter().chain(&open).cloned().collect();
    // Made while the leaf runs, beside the hidden folder.
    let script = format!(
        "echo ready > ready; until [ -e go ]; do sleep 0.01; done\n{}",
        tries(&all)
    );
    let mut running = leaf::start(&house.records, &spec(&house, &script)).unwrap();
    until("the leaf", || {
        house.cwd().join("ready").exists().then_some(())
    });
    fs::write(at("later"), "words").unwrap();
    fs::write(house.cwd().join("go"), "").unwrap();
    let end = wait(&mut running);
    outside.kill().unwrap();
    outside.wait().unwrap();
    assert_eq!(end, End::Done { code: 0 }, "{}", house.err());
    let said = house.out();
    let names: Vec<&str> = open.iter().map(|(name, _)| *name).collect();
    let errors = fs::read_to_string(house.cwd().join("errors")).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), names, "\n{errors}");
    // All of it is there, and can be done without a sandbox: the moves themselves are good ones.
    assert_eq!(
        fs::read_to_string(secret.join("deep/file")).unwrap(),
        "hidden words"
    );
    let plain = House::new();
    let readable: Vec<_> = all[..3].iter().chain(&all[4..7]).cloned().collect();
    let (end, _) = plain.run(&tries(&readable));
    assert_eq!(end, End::Done { code: 0 });
    assert_eq!(plain.out().lines().count(), readable.len());
}

#[test]
fn nothing_outside_is_written_and_harmless_devices_are() {
    if kernel::landlock().is_none() {
        return;
    }
    let world = tempfile::tempdir().unwrap();
    let w = world.path().display();
    fs::write(world.path().join("file"), "words").unwrap();
    let (house, spec) = confined(&[]);
    let open = moves(&[
        ("null", "echo x > /dev/null"),
        ("zero", "head -c9 /dev/zero | cat > /dev/zero"),
        ("random", "head -c9 /dev/urandom"),
        (
            "shm",
            "echo x > /dev/shm/veri-test-$$ && rm /dev/shm/veri-test-$$",
        ),
        ("streams", "echo x > /dev/stderr"),
        (
            "terminal",
            "script -qc 'echo x > /dev/tty; stty -a' /dev/null",
        ),
        ("link", "echo x > l1 && ln l1 l2 && ln -s l1 l3 && mkfifo p"),
        ("read", &format!("cat {w}/file")),
    ]);
    let closed = moves(&[
        ("write", &format!("echo x > {w}/file")),
        ("make", &format!("echo x > {w}/new")),
        ("folder", &format!("mkdir {w}/new")),
        ("link-out", &format!("ln l1 {w}/new")),
        ("move-out", &format!("mv l1 {w}/new")),
        ("move-in", &format!("mv {w}/file stolen")),
        ("truncate", &format!("truncate -s0 {w}/file")),
        ("by-link", &format!("ln -s {w}/file here && echo x > here")),
        ("temp", "echo x > /tmp/veri-test-$$"),
        ("kernel", "echo x > /proc/sys/kernel/hostname"),
        ("device", "mknod disk b 7 0"),
        ("mount", "mkdir m && mount -t tmpfs none m"),
    ]);
    let all: Vec<_> = open.iter().chain(&closed).cloned().collect();
    let said = succeeded(&house, &spec(&house, &tries(&all)));
    let names: Vec<&str> = open.iter().map(|(name, _)| *name).collect();
    let errors = fs::read_to_string(house.cwd().join("errors")).unwrap();
    assert_eq!(said, names, "\n{errors}");
    assert_eq!(
        fs::read_to_string(world.path().join("file")).unwrap(),
        "words"
    );
}

#[test]
fn neither_its_shim_nor_anybody_else_is_signalled() {
    let Some(Confined { without, .. }) = kernel::landlock() else {
        return;
    };
    if !without.is_empty() {
        println!("skipped: this kernel's Landlock does not confine signals");
        return;
    }
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let (house, spec) = confined(&[]);
    let said = succeeded(
        &house,
        &spec(
            &house,
            &format!(
                "kill -9 $PPID 2>/dev/null && echo shim\nkill -9 {} 2>/dev/null && echo other\n\
                 kill -0 {} 2>/dev/null && echo conductor\n\
                 sleep 1000 & kill -9 $! && echo own\ntrue",
                bystander.id(),
                std::process::id()
            ),
        ),
    );
    let lives = bystander.try_wait().unwrap().is_none();
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(lives);
    assert_eq!(said, ["own"]);
}

#[test]
fn what_a_confined_leaf_leaves_running_is_swept_as_ever() {
    if kernel::landlock().is_none() {
        return;
    }
    let (house, spec) = confined(&[]);
    let script = "for i in 1 2 3; do setsid sh -c 'echo $$ >> pids; exec sleep 1000' & done\n\
                  until [ $(cat pids 2>/dev/null | wc -l) = 3 ]; do sleep 0.01; done";
    let (end, exit) = house.run_spec(&spec(&house, script));
    assert_eq!(end, End::Done { code: 0 });
    assert!(exit.swept >= 3, "{exit:?}");
    for pid in fs::read_to_string(house.cwd().join("pids"))
        .unwrap()
        .lines()
    {
        gone(Pid::from_raw(pid.parse().unwrap()));
    }
}

/// A house whose leaf may write its working folder except for two things in it.
pub(super) fn sealed() -> (House, Sandbox) {
    let house = House::new();
    let cwd = house.cwd();
    fs::create_dir(cwd.join(".kept")).unwrap();
    fs::write(cwd.join(".kept/file"), "words").unwrap();
    fs::write(cwd.join(".one"), "words").unwrap();
    let sandbox = Sandbox {
        write: vec![cwd.clone()],
        sealed: [".kept", ".one", ".not-there"]
            .map(|n| cwd.join(n))
            .to_vec(),
        ..Sandbox::default()
    };
    (house, sandbox)
}

#[test]
fn what_is_sealed_in_a_folder_that_can_be_written_stays_as_it_is() {
    if kernel::landlock().is_none() {
        return;
    }
    let (house, sandbox) = sealed();
    let open = moves(&[
        ("read", "cat .kept/file .one"),
        (
            "top",
            "echo x > new.txt && mv new.txt newer.txt && rm newer.txt",
        ),
        ("folder", "mkdir -p src/a && echo x > src/a/b && rm -r src"),
        ("out", "echo x > /dev/stdout"),
    ]);
    let closed = moves(&[
        ("write", "echo x > .kept/file"),
        ("make", "echo x > .kept/new"),
        ("remove", "rm .kept/file"),
        ("remove-all", "rm -rf .kept"),
        ("rename", "mv .kept .other"),
        ("over", "mkdir o && mv -T o .kept"),
        ("file", "echo x > .one"),
        ("file-over", "echo x > n && mv n .one"),
        ("file-gone", "rm -f .one"),
        ("unmount", "umount .kept"),
        ("unmount-lazily", "umount -l .kept"),
        (
            "remount",
            "mount -o remount,bind,rw .kept && echo x > .kept/file",
        ),
        (
            "deeper",
            "unshare -Urm sh -c 'umount .kept || mount -o remount,bind,rw .kept'",
        ),
        ("by-fd", "echo x > /proc/self/cwd/.kept/file"),
        ("by-root", "echo x > \"/proc/$PPID/root$(pwd)/.kept/file\""),
        ("by-shim", "nsenter -t $PPID -m touch .kept/new"),
    ]);
    let all: Vec<_> = open.iter().chain(&closed).cloned().collect();
    let spec = Spec {
        sandbox: Some(sandbox),
        ..house.script(&tries(&all))
    };
    let (end, exit) = house.run_spec(&spec);
    assert_eq!(end, End::Done { code: 0 }, "{}", house.err());
    let without = exit.sandbox.unwrap().without;
    if without.iter().any(|w| w.contains(".kept and .one")) {
        println!("skipped: a leaf can have no mounts of its own here: {without:?}");
        return;
    }
    let names: Vec<&str> = open.iter().map(|(name, _)| *name).collect();
    let errors = fs::read_to_string(house.cwd().join("errors")).unwrap();
    let said = house.out();
    let said: Vec<&str> = said.lines().filter(|l| *l != "x").collect();
    assert_eq!(said, names, "\n{errors}");
    for file in [".kept/file", ".one"] {
        assert_eq!(fs::read_to_string(house.cwd().join(file)).unwrap(), "words");
    }
    // The mounts were the leaf's own.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(".kept"), "{mounts}");
}

#[test]
fn a_leaf_that_is_to_be_confined_is_not_run_where_it_cannot_be() {
    let Some(shim) = kernel::without_landlock(&[VERI]) else {
        return;
    };
    let (mut house, spec) = confined(&[]);
    let file = house.dir.path().join("shim");
    fs::write(&file, format!("#!/bin/sh\nexec {shim} \"$@\"\n")).unwrap();
    crate::executable::executable(&file);
    house.records = house.records.clone().with_shim(&file);
    let (end, exit) = house.run_spec(&spec(&house, "echo ran"));
    assert!(matches!(end, End::SpawnFailed { .. }), "{end:?}");
    assert_eq!(exit.sandbox, None);
    let why = exit.spawn_error.unwrap();
    assert!(why.contains("cannot be put into a sandbox"), "{why}");
    assert_eq!(house.out(), "");
}

#[test]
fn root_in_a_sandbox_sets_no_clock_and_restarts_no_machine() {
    if kernel::landlock().is_none() || !nix::unistd::geteuid().is_root() {
        return;
    }
    // A caller that hands privileges on, as older container engines did: root would get them back. And one without the
    // privilege to bound them.
    let ways = match Command::new("setpriv").arg("--version").output() {
        Ok(_) => &[
            ("setpriv --inh-caps +sys_time,+sys_boot", 4),
            ("setpriv --bounding-set -setpcap", 3),
        ][..],
        Err(_) => &[("", 4)],
    };
    for (by, sets) in ways {
        let (mut house, spec) = confined(&[]);
        let file = house.dir.path().join("shim");
        fs::write(&file, format!("#!/bin/sh\nexec {by} {VERI} \"$@\"\n")).unwrap();
        crate::executable::executable(&file);
        house.records = house.records.clone().with_shim(&file);
        let said = succeeded(
            &house,
            &spec(&house, "sed -n 's/^Cap[IPEB].*:\\t//p' /proc/self/status"),
        );
        assert_eq!(said.len(), 4, "{said:?}");
        const CONTAINERS: u64 = 0xa804_25fb & !(1 << 27);
        // Inheritable, permitted, effective, bounding.
        for set in &said[..*sets] {
            let set = u64::from_str_radix(set, 16).unwrap();
            assert_eq!(set & !CONTAINERS, 0, "{by}: {said:?}");
        }
    }
}
