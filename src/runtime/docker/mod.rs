//! Docker Engine, and what speaks its API: the connection, and images sent into it.

mod engine;

pub use engine::{
    ApiVersion, Daemon, DaemonError, Endpoint, Engine, LoadReport, LoadedImage, Product,
};
