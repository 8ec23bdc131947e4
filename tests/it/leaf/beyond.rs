//! What a confined leaf cannot do by another way than a file's own path: sockets without a file, and mounts.

use super::sandbox::{confined, sealed, succeeded};
use super::*;
use crate::kernel;
use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Has the house's shim run by another program, given as shell words that veri and its arguments follow.
fn shim_by(house: &mut House, words: &str) {
    let file = house.dir.path().join("shim");
    fs::write(&file, format!("#!/bin/sh\nexec {words} '{VERI}' \"$@\"\n")).unwrap();
    crate::executable::executable(&file);
    house.records = house.records.clone().with_shim(&file);
}

/// Whether a command succeeds, without a word.
fn works(command: &[&str]) -> bool {
    let ran = Command::new(command[0]).args(&command[1..]).output();
    ran.is_ok_and(|o| o.status.success())
}

/// An agent that serves others, a desktop's bus: they would do for the leaf what it may not.
#[test]
fn a_socket_without_a_file_that_somebody_else_listens_at_is_not_reached() {
    let Some(offered) = kernel::landlock() else {
        return;
    };
    if offered.landlock < 6 || !works(&["perl", "-MSocket", "-e", "1"]) {
        println!("skipped: this kernel keeps nobody from such sockets, or there is no perl");
        return;
    }
    let (house, spec) = confined(&[]);
    let name = format!("veri-test-{}", LaunchId::random().unwrap());
    let at = SocketAddr::from_abstract_name(&name).unwrap();
    let _listens = UnixListener::bind_addr(&at).unwrap();
    let calls = format!(
        "perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0) or die; \
         print connect(S,pack(q(Sxa*),AF_UNIX,q({name}))) ? qq(reached\\n) : qq(kept off\\n)'"
    );
    assert_eq!(house.run(&calls).0, End::Done { code: 0 });
    assert_eq!(house.out(), "reached\n", "without a sandbox");
    assert_eq!(succeeded(&house, &spec(&house, &calls)), ["kept off"]);
}

/// Else a program that is another user's when it runs would not be held by what this user may not.
#[test]
fn no_program_that_a_confined_leaf_runs_gains_privileges() {
    if kernel::landlock().is_none() {
        return;
    }
    let (house, spec) = confined(&[]);
    let said = succeeded(&house, &spec(&house, "grep NoNewPrivs /proc/self/status"));
    assert_eq!(said, ["NoNewPrivs:\t1"]);
}

/// A disk's own device shows all that lies in any folder of it.
#[test]
fn where_something_is_hidden_no_device_is_opened_that_could_show_it() {
    if kernel::landlock().is_none() {
        return;
    }
    let opens = |at: &&&str| File::open(at).is_ok();
    let devices = [
        "/dev/vda",
        "/dev/sda",
        "/dev/nvme0n1",
        "/dev/loop0",
        "/dev/autofs",
        "/dev/kmsg",
    ];
    let Some(device) = devices.iter().find(opens) else {
        println!("skipped: no device here that this user may open");
        return;
    };
    let looks = format!("(exec 3< {device}) 2> /dev/null && echo open || echo closed");
    let secret = tempfile::tempdir().unwrap();
    for (hidden, said) in [(vec![], "open"), (vec![secret.path()], "closed")] {
        let (house, spec) = confined(&hidden);
        assert_eq!(succeeded(&house, &spec(&house, &looks)), [said], "{device}");
    }
}

#[test]
fn a_hidden_folder_that_is_mounted_elsewhere_too_is_hidden_there() {
    if kernel::landlock().is_none() {
        return;
    }
    if !works(&["unshare", "-m", "mount", "--bind", "/tmp", "/tmp"]) {
        println!("skipped: no mounts of its own can be made by this user");
        return;
    }
    let world = tempfile::tempdir().unwrap();
    let (secret, other) = (world.path().join("secret"), world.path().join("other"));
    for folder in [&secret, &other] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(secret.join("file"), "hidden words\n").unwrap();
    let (s, o) = (secret.display(), other.display());
    let looks = format!("cat '{o}/file' || echo closed");
    let by = format!("unshare -m sh -c 'mount --bind \"{s}\" \"{o}\" && exec \"$@\"' sh");
    for (hidden, said) in [(vec![], "hidden words"), (vec![&*secret], "closed")] {
        let (mut house, spec) = confined(&hidden);
        shim_by(&mut house, &by);
        assert_eq!(succeeded(&house, &spec(&house, &looks)), [said]);
    }
}

/// Elsewhere each mount would be seen by the whole machine, and stay when the leaf is gone.
#[test]
fn what_seals_a_folder_is_mounted_for_the_leaf_alone_where_mounts_are_shared_with_the_machine() {
    if kernel::landlock().is_none() {
        return;
    }
    let shared = ["unshare", "-m", "--propagation", "shared"];
    if !works(&[&shared[..], &["true"]].concat()) {
        println!("skipped: no mounts of its own can be made by this user");
        return;
    }
    let (mut house, sandbox) = sealed();
    shim_by(&mut house, &shared.join(" "));
    let spec = Spec {
        sandbox: Some(sandbox),
        ..house.script("echo $$ >leaf; while [ ! -e go ]; do sleep 0.01; done; ! echo x >.one")
    };
    let mut running = leaf::start(&house.records, &spec).unwrap();
    let mounts = |pid: Pid| fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let (inside, beside) = (mounts(house.pid("leaf")), mounts(house.shim()));
    fs::write(house.cwd().join("go"), "").unwrap();
    assert_eq!(wait(&mut running), End::Done { code: 0 }, "{}", house.err());
    assert!(beside.contains(" shared:"), "{beside}");
    assert!(
        inside.contains("/.kept ") && !beside.contains("/.kept "),
        "{beside}"
    );
}

#[test]
fn what_is_mounted_inside_a_sealed_folder_is_sealed_with_it() {
    if kernel::landlock().is_none() {
        return;
    }
    if !works(&["unshare", "-m", "mount", "--bind", "/tmp", "/tmp"]) {
        println!("skipped: no mounts of its own can be made by this user");
        return;
    }
    let (mut house, sandbox) = sealed();
    let inside = house.cwd().join(".kept/inside");
    fs::create_dir(&inside).unwrap();
    let mount = format!("mount -t tmpfs none \"{}\"", inside.display());
    shim_by(
        &mut house,
        &format!("unshare -m sh -c '{mount} && exec \"$@\"' sh"),
    );
    let script = "(echo x >.kept/inside/file) 2>/dev/null && echo written || echo sealed";
    for (sandbox, said) in [(None, "written\n"), (Some(sandbox), "sealed\n")] {
        let spec = Spec {
            sandbox,
            ..house.script(script)
        };
        assert_eq!(house.run_spec(&spec).0, End::Done { code: 0 });
        assert_eq!(house.out(), said);
    }
}
