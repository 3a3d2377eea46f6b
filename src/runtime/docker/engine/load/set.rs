//! A set of images: what the daemon lacks of it, sent in as few requests as its disk should bear.

use std::collections::BTreeSet;

use super::super::{DaemonError, Engine, Product};
use super::held::{Chains, chains_of, held, id_of};
use super::send::send;
use crate::base::progress::{Event, Task};
use crate::base::{Cancel, Digest, SharedReporter, Store};
use crate::image::{Compressor, Image, Layer, NamedImage, Tarball, config_digest, manifest};
use crate::runtime::Error;

/// Bytes of layers in one request, if it has several images. A daemon keeps a copy of what comes until it has unpacked all of it, and
/// nothing of a request that is cut: this bounds both.
const MOST_AT_ONCE: u64 = 512 << 20;

/// An image that is in the daemon under its name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LoadedImage {
    /// Its name there.
    pub name: String,
    /// Its id there: the digest of its config (of its manifest, in containerd's image store).
    pub id: Digest,
    /// Whether it was there before.
    pub was_there: bool,
}

/// What came of a load.
#[derive(Debug, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LoadReport {
    /// Images that are in, in the order they were given; each was checked.
    pub images: Vec<LoadedImage>,
    /// Different layers of them that were sent.
    pub layers_sent: usize,
    /// Different layers of them that were not sent, since the daemon had them.
    pub layers_there: usize,
    /// Bytes that were sent, all in all.
    pub bytes_sent: u64,
    /// Bytes of the layers that were not sent, uncompressed.
    pub bytes_there: u64,
    /// What ended the load before all images were in.
    #[serde(skip)]
    pub failure: Option<Error>,
}

/// What a load works with.
struct Load<'a> {
    engine: &'a Engine,
    store: &'a Store,
    reporter: &'a SharedReporter,
    cancel: &'a Cancel,
    /// Bytes of layers in one request.
    most: u64,
    /// Layers that the daemon has.
    held: Chains,
    /// Layers that it was sent, by diff ID.
    sent: BTreeSet<Digest>,
    report: LoadReport,
}

impl Engine {
    /// Brings images into the daemon under their names. Nothing is written to disk on this side, and layers that the daemon
    /// has are not sent. What is there under the same name with the same id is left as it is, so that after a load that
    /// was cut only the images of requests that were not whole are sent again. Podman, and Docker with containerd's image store, are
    /// sent all layers.
    ///
    /// An image is reported as in only when the daemon gave its id back.
    pub fn load(
        &self,
        images: &[NamedImage<'_>],
        store: &Store,
        reporter: &SharedReporter,
        cancel: &Cancel,
    ) -> LoadReport {
        self.load_in_requests(images, MOST_AT_ONCE, store, reporter, cancel)
    }

    /// The same in requests of so many bytes of layers, or of one image each where that has more.
    pub fn load_in_requests(
        &self,
        images: &[NamedImage<'_>],
        most: u64,
        store: &Store,
        reporter: &SharedReporter,
        cancel: &Cancel,
    ) -> LoadReport {
        let mut load = Load {
            engine: self,
            store,
            reporter,
            cancel,
            most,
            held: Chains::new(),
            sent: BTreeSet::new(),
            report: LoadReport::default(),
        };
        load.report.failure = load.run(images).err();
        load.count(images);
        load.report
    }

    /// Whether layers that are there may be left out of an archive.
    fn takes_parts(&self) -> bool {
        let daemon = self.daemon();
        daemon.product == Product::Docker && !daemon.containerd_images
    }
}

impl Load<'_> {
    fn run(&mut self, images: &[NamedImage<'_>]) -> Result<(), Error> {
        let mut missing = Vec::new();
        for image in images {
            match self.find(image)? {
                Some(id) => self.note(image, id, true),
                None => missing.push(*image),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        if self.engine.takes_parts() {
            self.held = held(self.engine, self.cancel)?;
        } else {
            self.warn("this daemon wants every layer of an image, also those that it has");
        }
        let mut rest = &missing[..];
        while !rest.is_empty() {
            let (count, layers) = self.next_batch(rest);
            let (batch, later) = rest.split_at(count);
            self.load_batch(batch, &layers)?;
            rest = later;
        }
        Ok(())
    }

    /// How many of these images go together, and the layers that must be sent for them.
    fn next_batch(&self, images: &[NamedImage<'_>]) -> (usize, BTreeSet<Digest>) {
        let mut known = self.held.clone();
        let mut layers = BTreeSet::new();
        let mut bytes = 0;
        for (index, image) in images.iter().enumerate() {
            let missing: Vec<_> = chains_of(image.image)
                .into_iter()
                .zip(&image.image.layers)
                .filter(|(chain, layer)| !known.contains(chain) && !layers.contains(&layer.diff_id))
                .collect();
            let more: u64 = missing.iter().map(|(_, layer)| layer.size).sum();
            if index > 0 && bytes + more > self.most {
                return (index, layers);
            }
            bytes += more;
            for (chain, layer) in missing {
                known.insert(chain);
                layers.insert(layer.diff_id);
            }
        }
        (images.len(), layers)
    }

    fn load_batch(
        &mut self,
        batch: &[NamedImage<'_>],
        layers: &BTreeSet<Digest>,
    ) -> Result<(), Error> {
        let all: BTreeSet<Digest> = layers_of(batch).map(|layer| layer.diff_id).collect();
        let sent = match self.send(batch, layers) {
            Err(Error::Daemon(DaemonError::Refused { message, .. }))
                if layers.len() < all.len() =>
            {
                self.warn(&format!(
                    "the daemon wants layers that it had ({message}): all are sent"
                ));
                self.send(batch, &all)
            }
            sent => sent,
        };
        if let Err(error) = sent {
            // A daemon that fails at one image has those before it.
            if matches!(
                error,
                Error::Daemon(DaemonError::Refused { .. } | DaemonError::DiskFull { .. })
            ) {
                for image in batch {
                    if let Some(id) = self.find(image)? {
                        self.note(image, id, false);
                    }
                }
            }
            return Err(error);
        }
        for image in batch {
            let Some(id) = self.find(image)? else {
                return Err(Error::Daemon(DaemonError::OtherImage {
                    name: image.name.to_owned(),
                    expected: config_digest(image.image)?,
                    actual: id_of(self.engine, image.name, self.cancel)?,
                }));
            };
            if self.engine.takes_parts() {
                self.held.extend(chains_of(image.image));
            }
            self.note(image, id, false);
        }
        Ok(())
    }

    /// The image's id, if the daemon has it under its name.
    fn find(&self, image: &NamedImage<'_>) -> Result<Option<Digest>, Error> {
        match id_of(self.engine, image.name, self.cancel)? {
            Some(id) => self.recognise(image.image, &id),
            None => Ok(None),
        }
    }

    fn send(&mut self, batch: &[NamedImage<'_>], layers: &BTreeSet<Digest>) -> Result<(), Error> {
        let archive = if self.engine.daemon().containerd_images {
            // Its ids are those of manifests, which only an archive with an index keeps.
            Tarball::hybrid(self.store, batch, Compressor::default(), self.cancel)?.0
        } else {
            Tarball::for_daemon(self.store, batch, layers, self.cancel)?
        };
        let (count, bytes) = archive.layers();
        let name = match batch {
            [one] => one.name.to_owned(),
            _ => format!("{} images", batch.len()),
        };
        let task = Task::start(self.reporter, "load", name, None);
        let sent = send(self.engine, self.store, &archive, self.reporter, self.cancel)?;
        task.done_with(format!("{count} layers, {} MB", bytes / 1_000_000));
        self.sent
            .extend(layers_of(batch).map(|layer| layer.diff_id).filter(|id| layers.contains(id)));
        self.report.bytes_sent += sent;
        Ok(())
    }

    /// The image's id if `actual` is it.
    fn recognise(&self, image: &Image, actual: &str) -> Result<Option<Digest>, Error> {
        // Podman's ids are bare.
        let actual = actual.strip_prefix("sha256:").unwrap_or(actual);
        let config = config_digest(image)?;
        if config.hex() == actual {
            return Ok(Some(config));
        }
        if self.engine.daemon().containerd_images {
            let digests = manifest(self.store, image, Compressor::default(), self.cancel)?;
            return Ok(Some(digests.manifest).filter(|digest| digest.hex() == actual));
        }
        Ok(None)
    }

    fn note(&mut self, image: &NamedImage<'_>, id: Digest, was_there: bool) {
        if was_there {
            Task::start(self.reporter, "load", image.name, None).cached();
        }
        self.report.images.push(LoadedImage { name: image.name.to_owned(), id, was_there });
    }

    /// Totals over the images that are in.
    fn count(&mut self, images: &[NamedImage<'_>]) {
        let report = &mut self.report;
        let is_in =
            |image: &&NamedImage<'_>| report.images.iter().any(|one| one.name == image.name);
        let all: BTreeSet<Layer> =
            images.iter().filter(is_in).flat_map(|image| image.image.layers.clone()).collect();
        let there = all.iter().filter(|layer| !self.sent.contains(&layer.diff_id));
        (report.layers_there, report.bytes_there) =
            there.fold((0, 0), |(count, bytes), layer| (count + 1, bytes + layer.size));
        report.layers_sent = all.len() - report.layers_there;
    }

    fn warn(&self, message: &str) {
        self.reporter.report(Event::Warned { message: message.to_owned(), hint: None });
    }
}

fn layers_of<'a>(images: &'a [NamedImage<'_>]) -> impl Iterator<Item = &'a Layer> {
    images.iter().flat_map(|image| &image.image.layers)
}
