//! Trees, layers and images: a tree is packed into a normalised tar, whose sha256 is the layer's
//! diff ID; layers and a config make an image; images are written as an OCI layout.

mod archive;
mod attributes;
mod blob;
mod chunks;
mod commit;
mod compressor;
mod entry;
mod error;
mod gzip;
pub mod layout;
mod listing;
mod merged;
mod model;
mod oci;
mod pack;
mod reference;
pub mod registry;
mod rules;
mod tarball;
mod tree;
mod unpack;
mod walk;

pub use blob::{Blob, compress};
pub use commit::{commit_tree, ensure_unpacked, import_layer};
pub use compressor::{Compressor, CompressorRecord};
pub use error::{Error, Problem};
pub use listing::{tree_digest, write_listing};
pub use merged::{EntryKind, Merged, MergedEntry, MergedWalk, merged};
pub use model::{Image, ImageConfig, Layer};
pub use oci::{ImageDigests, config_digest, config_json, manifest, manifest_json};
pub use reference::NameTemplate;
pub use rules::{Owner, PackRules, Times};
pub use tarball::{NamedImage, Tarball};
pub use tree::remove_tree;
pub use unpack::{Limits, unpack};
