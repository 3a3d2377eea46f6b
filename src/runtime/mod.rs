//! Runs a command in an image: the trait [`Runtime`] and its implementations. `embedded` is ours and
//! needs nothing installed; `docker` lets a daemon make the containers; `fake` replays answers for tests of schedules.
//!
//! Raw system calls and `unsafe` live in `embedded`, and in the program that is pid 1 of a daemon's container.

mod check;
mod contract;
pub mod docker;
#[cfg(target_os = "linux")]
pub mod embedded;
mod error;
pub mod fake;
#[cfg(target_os = "linux")]
mod shared;
mod workbench;

pub use contract::{
    Account, BLACK_HOLE_DEVICE, EMBEDDED, EntryOrder, ExitStatus, FolderCopy, Gap, Limits, Mount,
    Network, NetworkAttempts, Root, RunLog, RunSpec, Runtime,
};
pub use error::Error;
pub use workbench::Workbench;
