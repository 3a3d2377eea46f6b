//! Unpacking sdists (PEP 527, PEP 625): archives made by strangers.

mod archive;
mod error;
mod tree;

pub use archive::{extract, extract_file};
pub use error::SdistError;
