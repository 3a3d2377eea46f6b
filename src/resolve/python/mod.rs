//! The Python part of a lock: uv as the solver, run in the base image with the network on, and what the
//! interpreter of that image says of itself.

mod build_system;
mod error;
mod interpreter;
mod wheel_name;

pub use build_system::BuildSystem;
pub(crate) use build_system::HOOK;
pub use error::Error;
pub(crate) use error::{how_it_ended, tail_of};
pub use interpreter::{Interpreter, PYTHON, Scheme};
pub use wheel_name::{WheelName, normalize, same_version};
