//! A set of images to a registry. What several of them share is sent once and mounted elsewhere; what is there is left alone.
//!
//! An image whose tag stands for its manifest costs one request and nothing else. An image's name comes last, so a set that was
//! cut in the middle has no name that is not whole, and the same command goes on where it stopped.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::attach::{Attachment, attach};
use super::document::{digest_of, fits, read_index};
use super::workers::each;
use super::{Error, index};
use crate::base::progress::Task;
use crate::base::{Arch, Cancel, Digest, SharedReporter, Store};
use crate::image::Image;
use crate::image::compressor::Compressor;
use crate::image::oci::{ImageDigests, manifest};
use crate::net::Client;
use crate::net::registry::{Document, Reference, Repository, Uploaded};

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
    /// Blobs that were there.
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
    fn add(&mut self, bytes: u64) {
        self.blobs += 1;
        self.bytes += bytes;
    }
}

/// An image with all that is sent of it.
struct Ready {
    name: Reference,
    tag: String,
    repository: Repository,
    digests: ImageDigests,
    config_size: u64,
    arch: Arch,
    /// What the name shall stand for, where that is an index.
    index: Option<Document>,
}

/// A blob and the repositories of one registry that need it.
struct Shared {
    digest: Digest,
    size: u64,
    /// The first one gets it, the others mount it from there.
    repositories: Vec<usize>,
}

/// How a blob came to a repository.
enum How {
    Present,
    Uploaded(Uploaded),
}

struct Push<'a> {
    store: &'a Store,
    options: PushOptions,
    reporter: &'a SharedReporter,
    cancel: &'a Cancel,
}

/// Pushes images under their names.
pub fn push(
    store: &Store,
    client: &Client,
    set: Set<'_>,
    options: PushOptions,
    reporter: &SharedReporter,
    cancel: &Cancel,
) -> Result<PushReport, Error> {
    let client = client.with_cancel(cancel);
    let push = Push { store, options, reporter, cancel };
    let mut names = BTreeSet::new();
    let mut ready = Vec::new();
    for (name, image) in set.images {
        let (Some(tag), None) = (&name.tag, &name.digest) else {
            return Err(Error::NoTag { name: name.to_string() });
        };
        if !names.insert(name) {
            return Err(Error::Duplicate { name: name.to_string() });
        }
        let digests = manifest(store, image, options.compressor, cancel)?;
        let config = fs_err::metadata(store.blob_path(&digests.config));
        ready.push(Ready {
            tag: tag.clone(),
            repository: client.repository(&name.registry, &name.repository)?,
            name: name.clone(),
            digests,
            config_size: config.map_err(crate::base::Error::from)?.len(),
            arch: image.arch,
            index: None,
        });
    }
    let there = each(&ready, options.jobs, |image| push.look(image))?;
    let mut report = PushReport::default();
    let (mut whole, mut missing) = (Vec::new(), Vec::new());
    for (mut image, seen) in ready.into_iter().zip(there) {
        let outcome = if seen.whole { Outcome::Present } else { Outcome::Pushed };
        report.images.push(PushedImage {
            name: image.name.to_string(),
            digest: seen.index.as_ref().map_or(image.digests.manifest, |index| index.digest),
            manifest: image.digests.manifest,
            outcome,
            attached: false,
        });
        image.index = seen.index;
        if seen.whole { whole.push(image) } else { missing.push(image) }
    }
    push.blobs(&missing, &mut report)?;
    each(&missing, options.jobs, |image| push.name(image))?;
    if let Some(attachment) = set.attachment {
        let all: Vec<&Ready> = whole.iter().chain(&missing).collect();
        let attached = each(&all, options.jobs, |image| {
            cancel.check()?;
            Ok((
                image.name.to_string(),
                attach(store, &image.repository, &image.digests, attachment)?,
            ))
        })?;
        let attached: BTreeMap<String, bool> = attached.into_iter().collect();
        for image in &mut report.images {
            image.attached = attached.get(&image.name).copied().unwrap_or_default();
        }
    }
    Ok(report)
}

/// What a name stands for so far.
struct Seen {
    /// Whether it stands for the image.
    whole: bool,
    /// What it shall stand for.
    index: Option<Document>,
}

impl Push<'_> {
    fn look(&self, image: &Ready) -> Result<Seen, Error> {
        self.cancel.check()?;
        if !self.options.index {
            let tagged = image.repository.tagged(&image.tag)?;
            return Ok(Seen { whole: tagged == Some(image.digests.manifest), index: None });
        }
        let name = image.name.to_string();
        let before = image.repository.by_tag(&image.tag)?;
        let index = index::with_image(&name, before.as_ref(), image.arch, &image.digests)?;
        let whole = match &before {
            Some(before) => holds(&name, before, image)?,
            None => false,
        };
        // What stands there may be written in another order.
        let index = if whole { before } else { Some(index) };
        Ok(Seen { whole, index })
    }

    /// Brings every blob to every repository that needs it.
    fn blobs(&self, images: &[Ready], report: &mut PushReport) -> Result<(), Error> {
        let shared = shared(images);
        let bytes = shared.iter().map(|blob| blob.size).sum();
        let whole =
            Task::start(self.reporter, "push", format!("{} blobs", shared.len()), Some(bytes));
        let first = each(&shared, self.options.jobs, |blob| {
            let repository = &images[blob.repositories[0]].repository;
            if repository.has_blob(&blob.digest)? {
                whole.advance(blob.size);
                return Ok(How::Present);
            }
            self.bring(repository, blob, None, &whole).map(How::Uploaded)
        })?;
        let rest: Vec<(&Shared, usize)> = shared
            .iter()
            .flat_map(|blob| blob.repositories[1..].iter().map(move |other| (blob, *other)))
            .collect();
        let others = each(&rest, self.options.jobs, |(blob, other)| {
            let from = images[blob.repositories[0]].repository.name();
            self.bring(&images[*other].repository, blob, Some(from), &whole).map(How::Uploaded)
        })?;
        let sizes = shared.iter().chain(rest.iter().map(|(blob, _)| *blob)).map(|blob| blob.size);
        for (how, size) in first.into_iter().chain(others).zip(sizes) {
            match how {
                How::Present => report.present.add(size),
                How::Uploaded(Uploaded::Mounted) => report.mounted.add(size),
                How::Uploaded(Uploaded::Sent) => report.sent.add(size),
            }
        }
        whole.done_with(format!(
            "{} sent, {} mounted, {} were there",
            report.sent.blobs, report.mounted.blobs, report.present.blobs
        ));
        Ok(())
    }

    fn bring(
        &self,
        repository: &Repository,
        blob: &Shared,
        from: Option<&str>,
        whole: &Task,
    ) -> Result<Uploaded, Error> {
        self.cancel.check()?;
        let name = format!("{} {}", repository.name(), &blob.digest.hex()[..12]);
        let task = Task::start(self.reporter, "blob", name, Some(blob.size));
        let path = self.store.blob_path(&blob.digest);
        let report = |by| {
            task.advance(by);
            if from.is_none() {
                whole.advance(by);
            }
        };
        let uploaded = repository.upload(&blob.digest, blob.size, &path, from, &report)?;
        task.done();
        Ok(uploaded)
    }

    /// Writes the manifest, and with it the name.
    fn name(&self, image: &Ready) -> Result<(), Error> {
        self.cancel.check()?;
        let document = Document {
            bytes: self.store.read_blob(&image.digests.manifest)?,
            digest: image.digests.manifest,
            media_type: MANIFEST.to_owned(),
        };
        match &image.index {
            None => image.repository.put_document(&document, Some(&image.tag))?,
            Some(index) => {
                image.repository.put_document(&document, None)?;
                image.repository.put_document(index, Some(&image.tag))?
            }
        };
        Ok(())
    }
}

/// Whether an index names this image for its platform.
fn holds(name: &str, document: &Document, image: &Ready) -> Result<bool, Error> {
    let Some(index) = read_index(name, &document.bytes, &document.media_type)? else {
        return Ok(false);
    };
    let mut own =
        index.manifests().iter().filter(|entry| fits(entry.platform().as_ref(), image.arch));
    let (first, second) = (own.next(), own.next());
    Ok(match (first, second) {
        (Some(entry), None) => digest_of(name, entry)? == image.digests.manifest,
        _ => false,
    })
}

/// Every blob once a registry, the largest first so that none is left alone at the end.
fn shared(images: &[Ready]) -> Vec<Shared> {
    let mut found: BTreeMap<(&str, Digest), Shared> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (place, image) in images.iter().enumerate() {
        let config = (image.digests.config, image.config_size);
        let layers = image.digests.layers.iter().map(|layer| (layer.digest, layer.size));
        for (digest, size) in layers.chain([config]) {
            let registry = image.repository.registry();
            if !seen.insert((registry, image.repository.name(), digest)) {
                continue;
            }
            found
                .entry((registry, digest))
                .or_insert_with(|| Shared { digest, size, repositories: Vec::new() })
                .repositories
                .push(place);
        }
    }
    let mut shared: Vec<Shared> = found.into_values().collect();
    shared.sort_by_key(|blob| std::cmp::Reverse(blob.size));
    shared
}
