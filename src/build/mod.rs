//! Base, env and instance images from locks: steps with keys, cached by key, offline.

mod base;
mod command;
mod deb;
mod debs;
mod distribution;
mod elf;
mod env;
mod error;
mod faketime;
mod git_index;
mod history;
mod inside;
mod instance;
mod leaks;
mod metadata;
mod offline;
mod patches;
mod plan;
mod pyc;
mod repository;
mod sdist;
mod step;
mod union;
pub mod wheel;

pub use base::base;
pub use debs::system_packages;
pub use env::{EnvBuild, env, env_with_plan};
pub use error::Error;
pub use faketime::faketime;
pub use instance::instance;
pub use leaks::{Leak, leaks};
pub use patches::{GoldFile, Patches, patches};
pub use plan::LayerPlan;
