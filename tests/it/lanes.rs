//! Cases side by side: a run waits more than it works (for a leaf that hangs, for a second to pass).

#![allow(clippy::print_stdout)] // how long it took is for whoever looks

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Where scenes are quickest: in memory, where a system keeps enough of it for files that may be programs. A third of
/// what a run costs on a disk is the disk's.
pub fn quick_folder() -> PathBuf {
    let named = std::env::var_os("VERI_TEST_MEMORY");
    let memory = named.as_deref().map_or(Path::new("/dev/shm"), Path::new);
    let fits = || -> nix::Result<bool> {
        let stat = nix::sys::statvfs::statvfs(memory)?;
        let room = stat.blocks_available() as u64 * stat.fragment_size() as u64;
        let programs = !stat.flags().contains(nix::sys::statvfs::FsFlags::ST_NOEXEC);
        nix::unistd::access(memory, nix::unistd::AccessFlags::W_OK)?;
        Ok(programs && room > 1 << 30)
    };
    if cfg!(target_os = "linux") && fits() == Ok(true) {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Does something with each case, so many at a time; every failure is shown under the case's name, not the first alone.
/// Gives what came of each, in order.
#[track_caller]
pub fn each<T: Sync, R: Send>(
    what: &str,
    lanes: usize,
    cases: &[T],
    name: impl Fn(&T) -> String + Sync,
    act: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let began = Instant::now();
    let next = AtomicUsize::new(0);
    let (done, failures) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { return };
                    let run = std::panic::AssertUnwindSafe(|| act(case));
                    match std::panic::catch_unwind(run) {
                        Ok(came) => {
                            let mut done = done.lock().unwrap();
                            done.push((index, came));
                            if done.len() % 100 == 0 {
                                let (some, all) = (done.len(), cases.len());
                                println!("{what}: {some} of {all} in {:.0?}", began.elapsed());
                            }
                        }
                        Err(panic) => {
                            let text = panic.downcast_ref::<String>().cloned();
                            let text = text.unwrap_or_default();
                            let said = format!("=== {}\n{text}", name(case));
                            failures.lock().unwrap().push(said);
                        }
                    }
                }
            });
        }
    });
    println!("{what}: {} in {:.0?}", cases.len(), began.elapsed());
    let failures = failures.into_inner().unwrap();
    let (some, all) = (failures.len(), cases.len());
    assert!(
        failures.is_empty(),
        "{some} of {all}:\n{}",
        failures.join("\n")
    );
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, came)| came).collect()
}
