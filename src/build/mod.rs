//! Base, env and instance images from locks: steps with keys, cached by key, offline.

mod base;
mod command;
mod deb;
mod error;
mod step;
pub mod wheel;

pub use base::base;
pub use error::Error;
