//! stand-in
use crate::config::Env;
use std::io::Write;
#[derive(Debug, clap::Args)]
pub struct DemoCommand {}
impl DemoCommand {
    pub(super) fn run(self, _env: &Env, _o: &mut dyn Write, _e: &mut dyn Write) -> u8 {
        0
    }
}
