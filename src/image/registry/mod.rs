//! Images in registries: pushed as sets, so that what they share goes over once; pulled by digest, for one platform.

mod document;
mod error;
mod index;
mod pull;
mod push;
mod workers;

pub use error::Error;
pub use pull::{Found, Held, find};
pub use push::{Outcome, Placed, PushOptions, PushReport, PushedImage, push};
