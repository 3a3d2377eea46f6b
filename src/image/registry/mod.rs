//! Images in registries: pushed as sets, so that what they share goes over once; pulled by digest, for one platform.

mod attach;
mod document;
mod error;
mod index;
mod pull;
mod push;
mod workers;

pub use attach::Attachment;
pub use error::Error;
pub use pull::{Found, Held, find};
pub use push::{Outcome, Placed, PushOptions, PushReport, PushedImage, Set, push};
