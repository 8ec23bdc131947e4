//! x
use super::place::Place;
use std::time::Duration;
pub(super) fn words(_place: &Place, _code: u8, took: Duration) -> String { format!("{took:?}\n") }
