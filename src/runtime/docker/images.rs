//! The images that containers are made from: layers under a config without any content of its own, so that its id follows
//! from the diff IDs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::Error;
use super::engine::Engine;
use crate::base::progress::Silent;
use crate::base::{Arch, Cancel, Digest, SharedReporter, Store};
use crate::image::{self, Image, ImageConfig, Layer, NamedImage, config_digest};

/// Says in an image that it was made for runs, and may be removed once nobody runs it.
const LABEL: &str = "hallmark.run-image";

/// Those that the daemon was seen to have, or was given: our id, and the daemon's.
pub(super) struct Images {
    store: Store,
    engine: Engine,
    seen: Mutex<BTreeMap<Digest, Digest>>,
}

impl Images {
    pub(super) fn new(store: &Store, engine: Engine) -> Self {
        Self { store: store.clone(), engine, seen: Mutex::default() }
    }

    /// The id of the image of these layers, which the daemon then has.
    pub(super) fn ensure(&self, layers: &[Layer], cancel: &Cancel) -> Result<String, Error> {
        let image = image_of(layers);
        let own = config_digest(&image)?;
        // One at a time: the second finds what the first has loaded.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = seen.get(&own) {
            return Ok(id.to_string());
        }
        let name = format!("hallmark-run:{}", &own.hex()[..32]);
        let named = NamedImage { name: &name, image: &image };
        let silent: SharedReporter = Arc::new(Silent);
        let mut report = self.engine.load(&[named], &self.store, &silent, cancel);
        if let Some(error) = report.failure.take() {
            return Err(match error {
                Error::Image(image::Error::MissingLayer { diff_id }) => {
                    Error::MissingLayer { path: self.store.layer_path(&diff_id) }
                }
                error => error,
            });
        }
        let id = report.images.first().map_or(own, |image| image.id);
        seen.insert(own, id);
        Ok(id.to_string())
    }

    /// The daemon says that it does not have it after all: somebody removed it.
    pub(super) fn forget(&self, layers: &[Layer]) -> Result<(), Error> {
        let own = config_digest(&image_of(layers))?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(&own);
        Ok(())
    }
}

fn image_of(layers: &[Layer]) -> Image {
    let labels = [(LABEL.to_owned(), "1".to_owned())].into();
    Image {
        key: Digest::of(b""),
        arch: Arch::HOST,
        layers: layers.to_vec(),
        config: ImageConfig { labels, ..ImageConfig::default() },
        created: 0,
    }
}
