//! Docker Engine, and what speaks its API: the connection, images sent into it, and runs in its containers.
//!
//! ```text
//! hallmark                      Docker::run: asks for a container, takes its output, watches limits, cleans up
//!   +- daemon -> runc
//!        +- pid 1 (init/)       a static program of ours: sets up what the embedded runtime's pid 1 does, counts
//!             +- the command    no privileges, seccomp, execve
//! ```

#[cfg(target_os = "linux")]
mod ask;
#[cfg(target_os = "linux")]
mod container;
#[cfg(target_os = "linux")]
mod decode;
#[cfg(target_os = "linux")]
mod encode;
mod engine;
#[cfg(target_os = "linux")]
mod follow;
#[cfg(target_os = "linux")]
mod images;
#[cfg(all(test, target_os = "linux"))]
#[path = "init/main.rs"]
#[expect(
    dead_code,
    clippy::disallowed_methods,
    reason = "a program of its own, without crates, here for its tests and for the linter"
)]
mod init;
#[cfg(target_os = "linux")]
mod mark;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(all(not(test), target_os = "linux"))]
#[path = "init/report.rs"]
mod report;
#[cfg(all(not(test), target_os = "linux"))]
#[path = "init/request.rs"]
mod request;
#[cfg(target_os = "linux")]
mod run;

#[cfg(all(test, target_os = "linux"))]
use init::{report, request};

pub use engine::{
    ApiVersion, Daemon, DaemonError, Endpoint, Engine, LoadReport, LoadedImage, Product,
};
#[cfg(target_os = "linux")]
pub use images::remove_run_images;
#[cfg(target_os = "linux")]
pub use run::Docker;
