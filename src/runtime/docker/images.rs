//! The images that containers are made from: layers under a config without any content of its own, so that its id follows
//! from the diff IDs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::errors::Error as ClientError;
use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptions};

use super::super::Error;
use super::engine::{DaemonError, Engine};
use crate::base::progress::Silent;
use crate::base::{Arch, Cancel, Digest, SharedReporter, Store};
use crate::image::{self, Image, ImageConfig, Layer, NamedImage, config_digest};

/// Says in an image that it was made for runs, and may be removed once nobody runs it.
const LABEL: &str = "hallmark.run-image";

/// For a list of them, and for the removal of one with all of its layers.
const LIST: Duration = Duration::from_mins(5);

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

/// Removes from a daemon what runs left there, but what a container still uses; their names. Runs load them again.
pub fn remove_run_images(
    engine: &Engine,
    dry_run: bool,
    cancel: &Cancel,
) -> Result<Vec<String>, DaemonError> {
    let filters = [("label".to_owned(), vec![LABEL.to_owned()])].into();
    let options = ListImagesOptionsBuilder::new().filters(&filters).build();
    let listing = engine.docker().list_images(Some(options));
    let images = engine.call("list its images", LIST, cancel, listing)?;
    let mut removed = Vec::new();
    for image in images {
        let name = image.repo_tags.first().unwrap_or(&image.id).clone();
        if dry_run || remove(engine, &name, cancel)? {
            removed.push(name);
        }
    }
    removed.sort();
    Ok(removed)
}

/// Whether it is gone now: not where a container uses it, or somebody else removed it.
fn remove(engine: &Engine, name: &str, cancel: &Cancel) -> Result<bool, DaemonError> {
    let removal = engine.docker().remove_image(name, None::<RemoveImageOptions>, None);
    engine.call("remove an image", LIST, cancel, async {
        match removal.await {
            Ok(_) => Ok(true),
            Err(ClientError::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    })
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
