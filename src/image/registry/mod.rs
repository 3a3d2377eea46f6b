//! Images in registries: pushed as sets, so that what they share goes over once; pulled by digest, for one platform.

mod attach;
mod compress;
mod document;
mod error;
mod index;
mod pull;
mod push;
mod report;
mod spread;
mod standing;
mod variables;
mod workers;

pub use attach::Attachment;
pub use error::Error;
pub use pull::{Found, Held, find};
pub use push::{PushOptions, Set, push};
pub use report::{Outcome, Placed, PushReport, PushedImage};
pub use variables::variables;
