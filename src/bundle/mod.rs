//! Locked files on disk: fetched in parallel, verified while reading, stored once; packed to one file
//! and unpacked for machines without a network. From here on everything works offline.

mod error;
mod fetch;
mod presence;

pub use error::{Error, FetchFailure};
pub use fetch::{FetchReport, fetch};
pub use presence::{Fault, missing, open, verify};
