//! The connection to a Docker daemon (or to Podman's compatible socket): where it is, what it is, and calls with
//! a deadline.

mod address;
mod connection;
mod context;
mod daemon;
mod error;

pub use address::Endpoint;
pub use connection::Engine;
pub use daemon::{ApiVersion, Daemon, Product};
pub use error::DaemonError;
