//! Base, env and instance images from locks: steps with keys, cached by key, offline.

mod base;
mod command;
mod deb;
mod debs;
mod error;
mod git_index;
mod history;
mod instance;
mod metadata;
mod offline;
mod patches;
mod repository;
mod step;
pub mod wheel;

pub use base::base;
pub use debs::system_packages;
pub use error::Error;
pub use instance::instance;
pub use patches::{GoldFile, Patches, patches};
