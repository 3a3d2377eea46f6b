//! Admission policies: what they ask for, and how they are written in TOML.

mod model;
mod parse;
mod raw;

pub use model::{Policy, Remedy};
pub use parse::{PolicyErrors, policy_schema};
