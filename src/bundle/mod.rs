//! Locked files on disk: fetched in parallel, verified while reading, stored once; packed to one file
//! and unpacked for machines without a network. From here on everything works offline.

mod checkout;
mod error;
mod export;
mod fetch;
mod gc;
mod git;
pub mod history;
mod names;
mod pack;
mod presence;
pub mod sdist;

pub use checkout::checkout;
pub use error::{Error, FetchFailure};
pub use export::export_wheels;
pub use fetch::{FetchReport, fetch, fetch_with};
pub use gc::{GcReport, Keep, Kind, Removed, gc};
use names::is_plain_name;
pub use pack::{PackReport, pack, unpack};
pub use presence::{Fault, missing, open, verify};
