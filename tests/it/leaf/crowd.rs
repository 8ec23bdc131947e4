//! A leaf with five hundred descendants in fifty sessions, half of them daemons, some with no open file and no environment.

use super::*;

const SESSIONS: usize = 50;
const MEMBERS: usize = 10;

/// The leaf with its crowd, which `benches/sweep.rs` takes the time of.
fn crowd(house: &House) -> Spec {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tree.sh");
    let (sessions, members) = (SESSIONS.to_string(), MEMBERS.to_string());
    house.spec(&[
        "sh",
        script.to_str().unwrap(),
        &sessions,
        &members,
        "ignoring",
    ])
}

fn stands(house: &House) -> Option<()> {
    house.cwd().join("ready").exists().then_some(())
}

/// Every process that works in the house.
fn members(house: &House) -> usize {
    let cwd = house.cwd().canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|p| fs::read_link(p.path().join("cwd")).is_ok_and(|d| d == cwd))
        .count()
}

#[test]
fn five_hundred_descendants_in_fifty_sessions_are_gone_when_the_deadline_is_told() {
    let house = House::new();
    let mut running = leaf::start(&house.records, &crowd(&house)).unwrap();
    let mut most = 0;
    let end = running.wait(Some(PATIENCE), &mut || {
        stands(&house)?;
        most = members(&house);
        Some(KillWhy::Wall)
    });
    assert_eq!(end.unwrap(), End::KilledStuck { why: KillWhy::Wall });
    // Already, not soon.
    assert_eq!(members(&house), 0);
    assert!(most > SESSIONS * MEMBERS, "{most}");
    let exit = running.record().unwrap().unwrap();
    assert!(exit.swept as usize >= SESSIONS * MEMBERS, "{exit:?}");
    assert_eq!(exit.unswept, 0);
}

#[test]
fn five_hundred_descendants_are_gone_after_the_shim_was_killed() {
    let house = House::new();
    let spec = crowd(&house);
    let path = house.dir.path().join("said");
    let mut words = vec!["run".to_owned(), spec.name.clone(), "--".to_owned()];
    words.extend(spec.argv.iter().map(|a| a.to_str().unwrap().to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut running = house
        .veri(&words)
        .stderr(fs::File::create(&path).unwrap())
        .spawn()
        .unwrap();
    until("the crowd", || stands(&house));
    send(house.shim(), Signal::SIGKILL).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(2));
    assert!(
        fs::read_to_string(path)
            .unwrap()
            .contains("killed-external")
    );
    assert_eq!(members(&house), 0);
}
