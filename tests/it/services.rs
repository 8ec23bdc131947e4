//! Services that the configuration declares: beside every leaf, suite and sweep, and gone with the run.
#![cfg(target_os = "linux")] // whether a process lives is read from /proc

use crate::processes::alive;
use crate::scene::{Agent, Scene, wait};
use crate::watching::{kill, launches_of, noting, plain, signal, start, until};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A service that writes its own pid and that of a daemon of its own, counts its starts and says its slot.
fn service(scene: &Scene) -> String {
    let script = format!(
        "echo up >>'{0}/starts'; echo $VERI_SLOT >'{0}/slot'; \
         (env -i \"PATH=$PATH\" setsid sh -c 'echo $$ >\"{0}/daemon\"; exec sleep 1000' &); \
         while [ ! -s '{0}/daemon' ]; do sleep 0.01; done; \
         echo $$ >'{0}/service.new'; mv '{0}/service.new' '{0}/service'; exec sleep 1000\n",
        scene.path("notes").display()
    );
    let path = scene.path("service.sh");
    fs::write(&path, script).unwrap();
    format!("exec sh '{}'", path.display())
}

/// Shell that fails when the service is not alive. A confined leaf can signal nobody, and see who is there.
fn needs_it(scene: &Scene) -> String {
    let d = scene.path("notes");
    format!(
        "[ -e /proc/$(cat '{0}/service') ] && [ -e /proc/$(cat '{0}/daemon') ] && [ \"$VERI_SLOT\" = $(cat '{0}/slot') ]",
        d.display()
    )
}

fn with_services(scene: &Scene, more: &str, commands: &[&str]) {
    let list: Vec<String> = commands.iter().map(|c| format!("{c:?}")).collect();
    let before = format!(
        "while [ ! -s '{}' ]; do sleep 0.01; done",
        scene.note("service").display()
    );
    scene.write(
        ".veri.toml",
        format!(
            "{more}[ground]\nservices = [{}]\nbefore_suite = {before:?}\n",
            list.join(", ")
        ),
    );
    scene.commit_all("services");
}

fn pid(scene: &Scene, file: &str) -> u32 {
    let text = fs::read_to_string(scene.note(file)).unwrap_or_default();
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{file}: {text:?}"))
}

fn starts(scene: &Scene) -> usize {
    let text = fs::read_to_string(scene.note("starts")).unwrap_or_default();
    text.lines().count()
}

/// The records of services in the ground.
fn records(scene: &Scene) -> PathBuf {
    let homes = fs::read_dir(scene.path("state")).unwrap().flatten();
    let mut all = homes.map(|home| home.path().join("ground/check.d/services"));
    all.find(|path| path.exists())
        .expect("services were started")
}

#[test]
fn services_outlive_every_leaf_suite_and_sweep_and_end_with_the_run() {
    let scene = Scene::new();
    let needs = needs_it(&scene);
    let suite = fs::read_to_string(scene.repo().join("run-tests.sh")).unwrap();
    scene.write("run-tests.sh", format!("{needs} || exit 9\n{suite}"));
    let noisy = "while :; do head -c 500000 /dev/zero; sleep 0.02; done";
    with_services(
        &scene,
        "[limits]\noutput_mib = 1\n",
        &[&service(&scene), noisy],
    );
    let good = Agent::default();
    // Leaves of every role leave something to sweep, and find the services alive.
    let sweeps = format!("setsid sleep 1000 & {needs} || exit 9\n");
    scene.agent(&Agent {
        plan: format!("setsid sleep 1000 >&- 2>&- &\n{}", good.plan),
        red: format!("{sweeps}{}", good.red),
        green: format!("{sweeps}{}", good.green),
        verify: format!("{sweeps}{}", good.verify),
        ..good
    });
    let ran = scene.tdd(&[]).expect(0);
    assert!(ran.out.contains("the service `exec sh"), "{}", ran.out);
    assert_eq!(starts(&scene), 1);
    assert!(!alive(pid(&scene, "service")) && !alive(pid(&scene, "daemon")));
    let output = records(&scene).join("service-2.out");
    let about = fs::metadata(&output).unwrap();
    assert!(about.len() > 4 << 20, "{}", about.len());
    assert!(about.blocks() * 512 <= 3 << 20, "{}", about.blocks());
    scene.nothing_is_left_running();
}

#[test]
fn a_service_that_is_gone_before_the_first_suite_is_needs_user_and_its_words_are_shown() {
    let scene = plain();
    let dies = "echo the port is taken; exit 7";
    with_services(&scene, "", &[&service(&scene), dies]);
    // It looks for it, and says what it found: that it fails is the service's doing.
    let gone = format!(
        "until grep -qs taken {}/*/ground/check.d/services/service-2.out; do sleep 0.01; done",
        scene.path("state").display()
    );
    scene.write("run-tests.sh", format!("{gone}; exit 1\n"));
    scene.commit_all("a suite that fails without its service");
    let ran = scene.tdd(&[]).bails("needs-user");
    ran.says("ground.services")
        .says("the port is taken")
        .says("done(7)");
    assert!(!alive(pid(&scene, "service")) && !alive(pid(&scene, "daemon")));
    scene.nothing_is_left_running();
}

#[test]
fn a_service_that_dies_later_is_said_and_no_suite_is_run_without_it() {
    let scene = plain();
    with_services(&scene, "", &[&service(&scene)]);
    let good = Agent::default();
    let kills = format!("kill -9 $(cat '{}')", scene.note("service").display());
    scene.agent(&noting(Agent {
        plan: crate::watching::ONE_STEP.to_owned(),
        red: format!("{}\n{kills}", good.red),
        ..good
    }));
    let ran = scene.tdd(&[]).bails("needs-user");
    let ran = ran.says("no suite is run without it").says("by signal 9");
    assert!(ran.out.contains("service.sh'` has ended: "), "{}", ran.out);
    assert_eq!(launches_of(&scene, "developer red"), 1);
    // What it left below itself is ended, too.
    assert!(!alive(pid(&scene, "daemon")));
    scene.nothing_is_left_running();
    // It spent nothing: with the service there again the same answer is judged.
    scene.agent(&noting(Agent {
        plan: crate::watching::ONE_STEP.to_owned(),
        ..Agent::default()
    }));
    fs::remove_file(scene.note("service")).unwrap();
    scene.tdd(&[]).expect(0);
    assert_eq!(launches_of(&scene, "developer red"), 1);
    assert_eq!(starts(&scene), 2);
    scene.nothing_is_left_running();
}

/// The shim of a recorded service.
fn shim(records: &Path) -> u32 {
    let text = fs::read_to_string(records.join("service-1.pid")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    u32::try_from(record["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn what_a_killed_conductor_left_of_its_services_is_ended_by_the_next_start_or_by_clean() {
    for (with_shim, by_clean) in [(false, false), (true, false), (false, true), (true, true)] {
        let scene = plain();
        with_services(&scene, "", &[&service(&scene)]);
        scene.hold("developer-red");
        let run = start(&scene, &[]);
        scene.begun("developer-red");
        kill(run);
        let first = (pid(&scene, "service"), pid(&scene, "daemon"));
        assert!(alive(first.0) && alive(first.1), "they go on by themselves");
        if with_shim {
            signal(shim(&records(&scene)), Signal::SIGKILL);
            until("the service to die with its shim", || !alive(first.0));
        }
        scene.let_go("developer-red");
        if by_clean {
            scene.veri(&["clean"]).expect(0);
            assert!(!alive(first.0), "{with_shim}");
        }
        fs::remove_file(scene.note("service")).unwrap();
        wait(start(&scene, &[])).expect(0);
        assert!(!alive(first.0), "{with_shim}");
        assert_eq!(starts(&scene), 2);
        assert!(!alive(pid(&scene, "service")) && !alive(pid(&scene, "daemon")));
        if !with_shim {
            assert!(!alive(first.1));
        }
        // Nameless, and everybody is dead who had it in sight.
        if with_shim {
            signal(first.1, Signal::SIGKILL);
        }
        scene.nothing_is_left_running();
    }
}

#[test]
fn a_service_whose_supervisor_is_stopped_holds_no_run_at_its_end_and_no_other_service() {
    let scene = plain();
    with_services(
        &scene,
        "limits.grace = 0\n",
        &["exec sleep 1000", &service(&scene)],
    );
    scene.hold("verifier-green");
    let run = start(&scene, &[]);
    scene.begun("verifier-green");
    signal(shim(&records(&scene)), Signal::SIGSTOP);
    scene.let_go("verifier-green");
    wait(run).expect(0);
    assert!(!alive(pid(&scene, "service")) && !alive(pid(&scene, "daemon")));
    scene.nothing_is_left_running();
}
