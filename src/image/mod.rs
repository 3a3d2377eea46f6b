//! Trees, layers and images: a tree is packed into a normalised tar, whose sha256 is the layer's
//! diff ID; layers and a config make an image; images are written as an OCI layout.

mod model;

pub use model::{Image, ImageConfig, Layer};
