//! The only HTTP client: retries, credentials, sizes and digests checked while reading, and the
//! offline switch. It knows where PyPI's index, Debian's mirror and the snapshot service are on
//! this host; locks name them only.

mod address;
mod apt_sources;
mod body;
mod certificates;
mod client;
mod config;
pub mod debian;
mod error;
mod patience;
mod pip_conf;
pub mod pypi;
mod pypi_html;
pub mod registry;
mod transfer;
mod uv_toml;

pub use address::Address;
pub use certificates::Certificates;
pub use client::{Client, Response};
pub use config::{Config, Host, Place, Proxy, UvEnvironment};
pub use error::{Error, Server};
pub use patience::Patience;
