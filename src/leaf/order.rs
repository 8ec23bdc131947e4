//! A launch as it is handed to the shim: an unlinked file, so that nobody else reads the environment in it.

use super::raw::Raw;
use super::records::Records;
use super::sandbox::Sandbox;
use super::spec::{LAUNCH_VAR, LaunchId, Spec};
use super::watch::watchdog::Orders;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A launch as it is handed to the shim.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) dir: Raw,
    pub(super) name: String,
    pub(super) launch: LaunchId,
    pub(super) argv: Vec<Raw>,
    pub(super) cwd: Raw,
    pub(super) env: Vec<(Raw, Raw)>,
    pub(super) stdin: Option<Raw>,
    pub(super) stdout: Raw,
    pub(super) stderr: Raw,
    pub(super) wall_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) watch: Option<Orders>,
    pub(super) output_cap: Option<u64>,
    pub(super) sandbox: Option<Sandbox>,
}

impl Order {
    pub(super) fn new(records: &Records, spec: &Spec) -> Order {
        let env = spec.env.iter().filter(|(key, _)| key != LAUNCH_VAR);
        let mut env: Vec<_> = env.map(|(k, v)| (Raw::new(k), Raw::new(v))).collect();
        env.push((Raw::new(LAUNCH_VAR), Raw::new(spec.launch.as_str())));
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        Order {
            dir: Raw::new(records.dir()),
            name: spec.name.clone(),
            launch: spec.launch.clone(),
            argv: spec.argv.iter().map(Raw::new).collect(),
            cwd: Raw::new(&spec.cwd),
            env,
            stdin: spec.stdin.as_ref().map(Raw::new),
            stdout: Raw::new(&spec.stdout),
            stderr: Raw::new(&spec.stderr),
            wall_ms: millis(spec.wall),
            grace_ms: millis(spec.grace),
            watch: spec.watch.as_ref().map(Orders::from),
            output_cap: spec.output_cap,
            sandbox: spec.sandbox.clone(),
        }
    }
}
