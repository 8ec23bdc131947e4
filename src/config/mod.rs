//! The configuration: `.veri.toml` of the repository over `config.toml` of the user, over the defaults.
//!
//! Flags and `VERI_*` variables stand above both; the door puts them on top.

mod agents;
mod env;
mod file;
mod ranges;

pub use agents::{AgentEntry, AgentTable, Agents, CommandAgent};
pub use env::Env;
pub use file::{
    Commit, Config, Cycle, ForgeConfig, ForgeTable, Ground, LimitsTable, PlanTable, Tests, load,
};
pub use ranges::MAX_SECONDS;
