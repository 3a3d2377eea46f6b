//! A set of images to a registry. What several of them share is sent once and mounted elsewhere; what is there is left alone.
//!
//! An image whose tag stands for its manifest costs one request and nothing else. An image's name comes last, so a set that was
//! cut in the middle has no name that is not whole, and the same command goes on where it stopped.

use std::collections::{BTreeMap, BTreeSet};

use super::attach::{Attachment, attach};
use super::compress::compress_layers;
use super::report::{Outcome, PushReport, PushedImage};
use super::standing::Standing;
use super::workers::each;
use super::{Error, index};
use crate::base::{Arch, Cancel, Digest, SharedReporter, Store};
use crate::image::Image;
use crate::image::compressor::Compressor;
use crate::image::oci::{ImageDigests, manifest};
use crate::net::Client;
use crate::net::registry::{Document, Reference, Repository};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// How to push.
#[derive(Debug, Clone, Copy)]
pub struct PushOptions {
    /// Of the layers.
    pub compressor: Compressor,
    /// Whether names stand for an index with one image a platform, in which those for other platforms are kept.
    pub index: bool,
    /// How many layers or images are worked on at once.
    pub jobs: usize,
}

/// What to push.
#[derive(Debug, Clone, Copy)]
pub struct Set<'a> {
    /// Images and their names, each with a tag.
    pub images: &'a [(Reference, &'a Image)],
    /// A file to attach to each of them.
    pub attachment: Option<&'a Attachment>,
}

/// An image with all that is sent of it.
pub(super) struct Ready {
    name: String,
    tag: String,
    pub(super) repository: Repository,
    digests: ImageDigests,
    config_size: u64,
    arch: Arch,
}

impl Ready {
    /// Digest and size of every blob.
    pub(super) fn blobs(&self) -> impl Iterator<Item = (Digest, u64)> {
        let layers = self.digests.layers.iter().map(|layer| (layer.digest, layer.size));
        layers.chain([(self.digests.config, self.config_size)])
    }
}

pub(super) struct Push<'a> {
    pub(super) store: &'a Store,
    pub(super) options: PushOptions,
    pub(super) reporter: &'a SharedReporter,
    pub(super) cancel: &'a Cancel,
}

/// Where an image goes.
struct Place<'a> {
    name: String,
    tag: &'a str,
    repository: Repository,
    image: &'a Image,
}

/// Pushes images under their names. The registry is asked before anything is compressed.
pub fn push(
    store: &Store,
    client: &Client,
    set: Set<'_>,
    options: PushOptions,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<PushReport, Error> {
    let push = Push { store, options, reporter, cancel };
    let places = places(&client.with_cancel(cancel), set.images)?;
    let standing = each(&places, options.jobs, |place| {
        cancel.check()?;
        let Place { name, tag, repository, image } = place;
        Standing::look(name, repository, tag, image.arch, options.index)
    })?;
    let images = places.iter().map(|place| place.image);
    compress_layers(store, images, options.compressor, options.jobs, reporter, cancel)?;
    let mut report = PushReport::default();
    let (mut whole, mut missing) = (Vec::new(), Vec::new());
    for (place, standing) in places.into_iter().zip(standing) {
        let image = push.ready(place)?;
        let manifest = image.digests.manifest;
        let held = standing.held(&image.name, image.arch, manifest)?;
        report.images.push(PushedImage {
            name: image.name.clone(),
            digest: held.unwrap_or(manifest),
            manifest,
            outcome: if held.is_some() { Outcome::Present } else { Outcome::Pushed },
            attached: false,
        });
        if held.is_some() { whole.push(image) } else { missing.push(image) }
    }
    push.spread(&whole, &missing, &mut report)?;
    let named = each(&missing, options.jobs, |image| push.name(image))?;
    let pushed = report.images.iter_mut().filter(|image| image.outcome == Outcome::Pushed);
    for (image, digest) in pushed.zip(named) {
        image.digest = digest;
    }
    if let Some(attachment) = set.attachment {
        let all: Vec<&Ready> = whole.iter().chain(&missing).collect();
        let attached = each(&all, options.jobs, |image| {
            cancel.check()?;
            let attached = attach(store, &image.repository, &image.digests, attachment)?;
            Ok((image.name.clone(), attached))
        })?;
        let attached: BTreeMap<String, bool> = attached.into_iter().collect();
        for image in &mut report.images {
            image.attached = attached.get(&image.name).copied().unwrap_or_default();
        }
    }
    Ok(report)
}

fn places<'a>(
    client: &Client,
    images: &'a [(Reference, &'a Image)],
) -> Result<Vec<Place<'a>>, Error> {
    let mut names = BTreeSet::new();
    let mut places = Vec::new();
    for (reference, image) in images {
        let name = reference.to_string();
        let (Some(tag), None) = (&reference.tag, &reference.digest) else {
            return Err(Error::NoTag { name });
        };
        if !names.insert(reference) {
            return Err(Error::Duplicate { name });
        }
        let repository = client.repository(&reference.registry, &reference.repository)?;
        places.push(Place { name, tag, repository, image });
    }
    Ok(places)
}

impl Push<'_> {
    fn ready(&self, place: Place<'_>) -> Result<Ready, Error> {
        let Place { name, tag, repository, image } = place;
        let digests = manifest(self.store, image, self.options.compressor, self.cancel)?;
        let config = fs_err::metadata(self.store.blob_path(&digests.config));
        Ok(Ready {
            name,
            tag: tag.to_owned(),
            repository,
            digests,
            config_size: config.map_err(crate::base::Error::from)?.len(),
            arch: image.arch,
        })
    }

    /// Writes the manifest, and with it the name; the digest of what the name stands for now.
    fn name(&self, image: &Ready) -> Result<Digest, Error> {
        self.cancel.check()?;
        let document = Document {
            bytes: self.store.read_blob(&image.digests.manifest)?,
            digest: image.digests.manifest,
            media_type: MANIFEST.to_owned(),
        };
        if !self.options.index {
            image.repository.put_document(&document, Some(&image.tag))?;
            return Ok(document.digest);
        }
        image.repository.put_document(&document, None)?;
        // Looked at again: another machine may have written its image while ours was on its way.
        let before = image.repository.by_tag(&image.tag)?;
        let index = index::with_image(&image.name, before.as_ref(), image.arch, &image.digests)?;
        image.repository.put_document(&index, Some(&image.tag))?;
        Ok(index.digest)
    }
}
