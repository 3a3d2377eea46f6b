//! Images sent into a daemon: in one stream, without the layers that it has.

mod body;
mod held;
mod send;
mod set;

pub use set::{LoadReport, LoadedImage};
