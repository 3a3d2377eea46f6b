//! What every room stands on: digests, canonical JSON, atomic files, the store's layout, progress
//! events and cancellation. May touch the filesystem; knows nothing of images, specs or networks.

mod arch;
pub mod cancel;
pub mod canon;
pub mod clock;
mod digest;
mod error;
pub mod files;
pub mod flock;
mod nonce;
mod owner;
pub mod progress;
mod remover;
pub mod scratch;
pub mod store;
mod words;

pub use arch::Arch;
pub use cancel::Cancel;
pub use digest::{Digest, DigestError, HashingReader, HashingWriter};
pub use error::Error;
pub use nonce::nonce;
pub use owner::Owner;
pub use progress::{Event, Reporter, SharedReporter, TaskId};
pub use scratch::Scratch;
pub use store::Store;
pub use words::{counted, harmless};
