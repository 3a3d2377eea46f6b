//! Runs a command in an image: the trait [`Runtime`] and its implementations. `embedded` is ours and
//! needs nothing installed; `docker` speaks with a daemon; `fake` replays answers for tests of schedules.
//!
//! Raw system calls and `unsafe` live in `embedded` alone.

mod contract;
pub mod docker;
#[cfg(target_os = "linux")]
pub mod embedded;
mod error;
pub mod fake;
mod workbench;

pub use contract::{
    Account, BLACK_HOLE_DEVICE, EntryOrder, ExitStatus, FolderCopy, Gap, Limits, Mount, Network,
    NetworkAttempts, Root, RunLog, RunSpec, Runtime,
};
pub use error::Error;
pub use workbench::Workbench;
