//! The configuration: `.veri.toml` of the repository over `config.toml` of the user, over the defaults.
//!
//! Flags and `VERI_*` variables stand above both; the door puts them on top.

mod env;
mod file;

pub use env::Env;
pub use file::{
    AgentEntry, Agents, Commit, Config, Cycle, ForgeConfig, ForgeTable, Ground, LimitsTable,
    MAX_SECONDS, PlanTable, Tests, load,
};
