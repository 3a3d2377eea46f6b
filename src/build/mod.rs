//! Base, env and instance images from locks: steps with keys, cached by key, offline.

mod error;
mod step;
pub mod wheel;

pub use error::Error;
