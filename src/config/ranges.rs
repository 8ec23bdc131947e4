//! What numbers may be set to.

use anyhow::{Result, anyhow};

/// The longest that any time may be set to: a year of seconds. Beyond it clocks overflow before anybody waits.
pub const MAX_SECONDS: u64 = 366 * 24 * 60 * 60;

/// Refuses a number outside its range.
pub(super) fn within(key: &str, value: Option<u64>, least: u64, most: u64) -> Result<()> {
    match value {
        Some(value) if !(least..=most).contains(&value) => Err(anyhow!(
            "the configuration says {key} = {value}; it may be {least} to {most}"
        )),
        _ => Ok(()),
    }
}
