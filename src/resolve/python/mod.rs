//! The Python part of a lock: uv as the solver, run in the base image with the network on, and what the
//! interpreter of that image says of itself.

mod age;
mod archive;
mod build_system;
mod error;
mod interpreter;
mod project;
mod requirement_file;
mod solve;
mod source;
mod tags;
mod uv;
mod uv_output;
mod wheel_name;

pub(crate) use archive::{Archive, Entry, write_stored};
pub use build_system::BuildSystem;
pub(crate) use build_system::HOOK;
pub use error::Error;
pub(crate) use error::{how_it_ended, tail_of};
pub use interpreter::{Interpreter, PYTHON, Scheme};
pub use solve::{PythonLock, lock};
pub use wheel_name::{WheelName, same_version};

pub use crate::spec::normalize_package_name as normalize;
