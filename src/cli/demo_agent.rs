//! stand-in
pub(super) const COMMAND: &str = "__demo-agent";
pub(super) fn main() -> u8 {
    0
}
