//! The connection to a Docker daemon (or to Podman's compatible socket): where it is, what it is, calls with
//! a deadline, and images sent into it.

mod address;
mod connection;
mod context;
mod daemon;
mod error;
mod load;

pub use address::Endpoint;
pub use connection::Engine;
pub use daemon::{ApiVersion, Daemon, Product};
pub use error::DaemonError;
pub use load::{LoadReport, LoadedImage};
