//! Services that the configuration declares (`ground.services`): started once a run beside everything else that it
//! runs, left alone by every sweep, and ended with the run.
//!
//! Each is a leaf of its own without a deadline, recorded beside the ground whose `VERI_SLOT` it has. So whoever holds
//! that ground next finds what a killed conductor left, and ends it.

use crate::ground::disk::each_unused;
use crate::leaf::{self, End, KillWhy, LaunchId, Records};
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

/// The folder of their records, in the records of the ground.
pub(in crate::conductor) const FOLDER: &str = "services";

/// The services of this run. Whatever ends the run, short of a kill, ends them.
pub(in crate::conductor) struct Services {
    pub(in crate::conductor) records: Records,
    pub(in crate::conductor) all: Vec<Service>,
}

/// One of them.
pub(in crate::conductor) struct Service {
    pub(in crate::conductor) name: String,
    pub(in crate::conductor) command: String,
    pub(in crate::conductor) launch: LaunchId,
    /// How it ended, in words, once that was seen.
    pub(in crate::conductor) ended: Option<String>,
}

impl Services {
    /// Looks at those that lived at the last look; gives the first that has ended since.
    pub(in crate::conductor) fn newly_gone(&mut self) -> Result<Option<&Service>> {
        for service in &mut self.all {
            if service.ended.is_some() {
                continue;
            }
            let (name, launch) = (&service.name, &service.launch);
            let end = leaf::settle(
                &self.records,
                name,
                launch,
                Some(Duration::ZERO),
                &mut || None,
            )?;
            if end != End::StillRunning {
                let record = self.records.ended(launch)?;
                service.ended = Some(match record.and_then(|record| record.signal) {
                    Some(signal) => format!("it was ended by signal {signal}"),
                    None => end.to_string(),
                });
                return Ok(Some(service));
            }
        }
        Ok(None)
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // Nobody is left who could be told; the next start ends what is still there.
        drop(end(&self.records));
    }
}

/// Ends what killed conductors have left of services, wherever nobody holds the ground.
///
/// # Errors
/// When records cannot be read or written.
pub fn end_left(home: &Path) -> Result<()> {
    each_unused(home, &mut |records| {
        end(&Records::new(records.join(FOLDER))?)
    })
}

/// Ends every service that is recorded, all at once, and what is left of those that have ended without a record. One that
/// cannot be ended keeps none of the others alive.
///
/// # Errors
/// The first, when records cannot be read or written.
pub(in crate::conductor) fn end(records: &Records) -> Result<()> {
    let listed = leaf::list(records)?;
    let alive = listed.iter().filter(|s| s.end == End::StillRunning);
    let mut done: Vec<Result<()>> = alive
        .map(|s| leaf::kill(records, &s.started.leaf, KillWhy::Stop).map(drop))
        .collect();
    done.extend(listed.iter().map(|service| {
        let (name, launch) = (&service.started.leaf, &service.started.launch);
        if records.ended(launch)?.is_none() {
            // Asked again, as whoever asks takes a supervisor for hung that does not end it in time.
            leaf::settle(records, name, launch, None, &mut || Some(KillWhy::Stop))?;
        }
        Ok(())
    }));
    done.into_iter().collect()
}
