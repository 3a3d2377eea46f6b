//! From specs to locks: Debian's and Python's solvers. The one step that has the network. Base images are
//! taken by reference, never built here.

pub mod debian;
mod error;
mod image;
pub mod python;

pub use error::Error;
pub use image::lock_base;
