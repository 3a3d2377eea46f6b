//! What an image is to the other rooms: ordered layers by diff ID and a config. How bytes are
//! compressed is a record of its own ([`crate::image`]'s compression records), never part of
//! an image's identity.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::{Arch, Digest, Error, canon};

/// One layer: the normalised, uncompressed tar named by its sha256.
///
/// Its unpacked tree is at `Store::layer_path(diff_id)`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub struct Layer {
    /// sha256 of the uncompressed tar.
    pub diff_id: Digest,
    /// Length of the uncompressed tar in bytes.
    pub size: u64,
}

/// What a container of the image starts with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ImageConfig {
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Working directory; empty means `/`.
    pub working_dir: String,
    /// User and group, by number; empty means that the image does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What a container runs that is told nothing else. There is never an entry point: it would take the commands of the field's
    /// harnesses as arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Labels: spec, lock and instance digests; never a tool version or a time. No part of any key.
    pub labels: BTreeMap<String, String>,
}

/// An image: layers from the bottom up, and a config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Image {
    /// Digest of everything the image was made from (DESIGN.md section 4). Runs, verdicts and
    /// caches hang on it.
    pub key: Digest,
    /// For which processor.
    pub arch: Arch,
    /// Layers, bottom first.
    pub layers: Vec<Layer>,
    /// What a container starts with.
    pub config: ImageConfig,
    /// The image's date in seconds since the epoch: a locked input, never the clock.
    pub created: i64,
}

impl Image {
    /// A new image with `layer` on top and the same config; its key is made of this image's key and
    /// `inputs`, everything the layer was made from.
    pub fn with_layer<T: Serialize>(&self, layer: Layer, inputs: &T) -> Result<Self, Error> {
        let mut image = self.clone();
        image.key = canon::digest(&(self.key, canon::digest(inputs)?))?;
        image.layers.push(layer);
        Ok(image)
    }
}
