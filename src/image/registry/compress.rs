//! The layers of a set made ready to go: each once, several at once.

use std::collections::BTreeMap;

use super::Error;
use super::workers::each;
use crate::base::progress::Task;
use crate::base::{Cancel, Digest, SharedReporter, Store};
use crate::image::blob::{compress, held};
use crate::image::compressor::Compressor;
use crate::image::{Image, Layer};

/// Compresses every layer of the images whose blob is not known yet.
pub(super) fn compress_layers<'a>(
    store: &Store,
    images: impl Iterator<Item = &'a Image>,
    compressor: Compressor,
    jobs: usize,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut layers: BTreeMap<Digest, &Layer> = BTreeMap::new();
    for layer in images.flat_map(|image| &image.layers) {
        if held(store, &layer.diff_id, Some(compressor))?.is_none() {
            layers.insert(layer.diff_id, layer);
        }
    }
    let mut layers: Vec<&Layer> = layers.into_values().collect();
    // The largest first, so that none is left alone at the end.
    layers.sort_by_key(|layer| std::cmp::Reverse(layer.size));
    each(&layers, jobs, |layer| {
        let name = format!("layer {}", &layer.diff_id.hex()[..12]);
        let task = Task::start(reporter, "compress", name, None);
        compress(store, layer, compressor, cancel)?;
        task.done();
        Ok(())
    })?;
    Ok(())
}
