//! Images sent into a daemon: as streams, without the layers that it has.

mod body;
mod held;
mod send;
mod set;

pub use set::{LoadReport, LoadedImage};
