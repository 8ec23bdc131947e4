//! Processes that no KILL reaches: frozen by a control group of version 1.

use super::*;

/// A freezer of the test's own, which lets go of what it holds when the test ends.
struct Freezer(PathBuf);

impl Freezer {
    fn new() -> Option<Freezer> {
        let name = format!("veri-test-{}", LaunchId::random().unwrap());
        let folder = Path::new("/sys/fs/cgroup/freezer").join(name);
        fs::create_dir(&folder).ok().map(|()| Freezer(folder))
    }

    fn thaw(&self) {
        let _ = fs::write(self.0.join("freezer.state"), "THAWED");
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        let until = Instant::now() + PATIENCE;
        while fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_leaf_that_is_frozen_holds_nobody_and_is_named() {
    let Some(freezer) = Freezer::new() else {
        eprintln!("skipped: no freezer of version 1 can be used here, so nothing is frozen");
        return;
    };
    let house = House::new();
    let at = freezer.0.display();
    let mut spec = house.script(&format!(
        "echo $$ > '{at}/cgroup.procs'; echo $$ > frozen; echo FROZEN > '{at}/freezer.state'; sleep 1000"
    ));
    spec.wall = Duration::from_secs(1);
    let mut running = leaf::start(&house.records, &spec).unwrap();
    let end = running.wait(Some(PATIENCE * 2), &mut || None).unwrap();
    assert_eq!(end, End::KilledStuck { why: KillWhy::Wall });
    let exit = running.record().unwrap().unwrap();
    let pid = house.pid("frozen");
    let named = format!("process {pid} (");
    assert_eq!(exit.unswept, 1, "{exit:?}");
    assert!(exit.left.iter().any(|l| l.starts_with(&named)), "{exit:?}");
    // It has been killed all the same, and ends as soon as it can.
    assert!(alive(pid));
    freezer.thaw();
    gone(pid);
}
