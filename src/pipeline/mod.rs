//! A split through all stages: locks, bundle, images, runs, verdicts; scheduling and resume.
//!
//! Every stage finds what was done before by its key, so a pipeline that was killed goes on where it stopped.

mod board;
mod check;
mod climb;
mod deliver;
mod digests;
mod error;
mod execute;
mod graph;
mod kind;
mod outcome;
mod project;
mod push;
mod series;
mod stages;
mod swebench;

pub use board::Board;
pub use climb::Verification;
pub use deliver::ExportedImage;
pub use digests::{ImageEntry, SplitDigests};
pub use error::{Error, Failure};
pub use execute::Goal;
pub use kind::Kind;
pub use outcome::{Collected, Done, InstanceVerdict, RunCounts};
pub use project::Project;
pub use push::registry_of;
pub use series::{Sample, Series};
pub use stages::{Locks, Pipeline};
pub use swebench::SwebenchRows;
