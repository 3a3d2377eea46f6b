//! What a push did.

use serde::Serialize;

use crate::base::Digest;

/// What a push did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PushReport {
    /// Every image of the set, in its order.
    pub images: Vec<PushedImage>,
    /// Blobs that were sent.
    pub sent: Placed,
    /// Blobs that were mounted from another repository of the registry.
    pub mounted: Placed,
    /// Blobs that were there, those of images that were there among them.
    pub present: Placed,
}

/// One image of the set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PushedImage {
    /// Its name, with the tag.
    pub name: String,
    /// What the name stands for: a manifest, or an index.
    pub digest: Digest,
    /// The image's manifest.
    pub manifest: Digest,
    /// What was done.
    pub outcome: Outcome,
    /// Whether a file was attached that was not before.
    pub attached: bool,
}

/// What became of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was written.
    Pushed,
    /// Its name stood for it already.
    Present,
}

/// A number of blobs. One that several repositories need counts once for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Placed {
    /// How many.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Placed {
    pub(super) fn add(&mut self, bytes: u64) {
        self.blobs += 1;
        self.bytes += bytes;
    }
}
