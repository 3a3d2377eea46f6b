//! What a name in a registry stands for, looked at down to its layers.

use oci_spec::image::{Descriptor, ImageConfiguration, ImageManifest, MediaType};

use super::Error;
use super::document::{digest_of, fits, parse, platform_name, platform_of, read_index};
use super::variables::variables;
use crate::base::{Arch, Digest};
use crate::net::Client;
use crate::net::registry::{Document, Purpose, Reference, Repository};

/// Configs are smaller.
const LARGEST_CONFIG: u64 = 4 * 1024 * 1024;

/// Docker takes no image with more than 125 (`maxLayerDepth` of its layer store), and some of ours come on top.
const MOST_LAYERS: usize = 120;

/// An image for one platform, as it lies in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What the name stands for: a manifest, or an index of several platforms.
    pub digest: Digest,
    /// The image's manifest.
    pub manifest: Digest,
    /// Its config.
    pub config: Held,
    /// Its layers, bottom first.
    pub layers: Vec<Held>,
}

/// A blob of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Of the compressed bytes.
    pub digest: Digest,
    /// Their number.
    pub size: u64,
}

/// Finds the image of a name for a processor. A name with a digest stands for that, wherever its tag has gone; but a tag beside
/// it must still stand for the same, or there is an error that names both.
pub fn find(client: &Client, name: &Reference, arch: Arch) -> Result<Found, Error> {
    let places = client.repositories(&name.registry, &name.repository)?;
    let text = name.to_string();
    if let (Some(expected), Some(tag)) = (name.digest, &name.tag) {
        let own = client.repository(&name.registry, &name.repository)?;
        let actual = own.tagged(tag, Purpose::Pull)?.map(|tagged| tagged.digest);
        if let Some(actual) = actual.filter(|actual| *actual != expected) {
            let name = Reference { digest: None, ..name.clone() }.to_string();
            return Err(Error::Moved { name, expected, actual });
        }
    }
    let tag = name.tag.as_deref().unwrap_or_default();
    let top = document(&places, &text, |place| match &name.digest {
        Some(digest) => place.by_digest(digest),
        None => place.by_tag(tag),
    })?;
    let bottom = match read_index(&text, &top.bytes, &top.media_type)? {
        None => top.clone(),
        Some(index) => {
            let entries = index.manifests();
            let Some(entry) = entries.iter().find(|entry| fits(entry.platform().as_ref(), arch))
            else {
                let platforms = entries.iter().filter_map(|entry| entry.platform().as_ref());
                let actual = platforms.map(|found| platform_name(found.os(), found.architecture()));
                return Err(other_platform(&text, arch, actual.collect()));
            };
            let digest = digest_of(&text, entry)?;
            let document = document(&places, &text, |place| place.by_digest(&digest))?;
            check_size(&text, entry, document.bytes.len() as u64)?;
            if read_index(&text, &document.bytes, &document.media_type)?.is_some() {
                return Err(wrong(&text, "its index names another index".to_owned()));
            }
            document
        }
    };
    let manifest: ImageManifest = parse(&text, &bottom.bytes)?;
    let config = held(&text, manifest.config())?;
    if config.size > LARGEST_CONFIG {
        return Err(wrong(&text, format!("its config has {} bytes", config.size)));
    }
    let bytes =
        client.download_blob(&places, &text, config.digest, config.size, || Ok(Vec::new()))?;
    let described: ImageConfiguration = parse(&text, &bytes)?;
    let platform = platform_name(described.os(), described.architecture());
    if platform != platform_of(arch) {
        return Err(other_platform(&text, arch, vec![platform]));
    }
    variables(&described).map_err(|problem| unfit(&text, problem))?;
    let layers = manifest.layers().iter().map(|layer| {
        check_layer(&text, layer)?;
        held(&text, layer)
    });
    let layers = layers.collect::<Result<Vec<Held>, Error>>()?;
    let expected = described.rootfs().diff_ids().len();
    if layers.len() != expected {
        let problem = format!("its config has {expected} layers, its manifest {}", layers.len());
        return Err(wrong(&text, problem));
    }
    if layers.is_empty() {
        return Err(unfit(&text, "it has no layers".to_owned()));
    }
    if layers.len() > MOST_LAYERS {
        let problem =
            format!("it has {} layers, and at most {MOST_LAYERS} are taken", layers.len());
        return Err(unfit(&text, problem));
    }
    Ok(Found { digest: top.digest, manifest: bottom.digest, config, layers })
}

/// The document from the first place that has it. What one place fails at, the next may give.
fn document(
    places: &[Repository],
    name: &str,
    ask: impl Fn(&Repository) -> Result<Option<Document>, crate::net::Error>,
) -> Result<Document, Error> {
    let mut failure = None;
    for place in places {
        match ask(place) {
            Ok(Some(document)) => return Ok(document),
            Ok(None) => {}
            Err(error) if error.is_final() => return Err(error.into()),
            // The last one is the registry itself, whose word counts most.
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.map_or_else(|| Error::NotThere { name: name.to_owned() }, Error::Net))
}

fn held(name: &str, descriptor: &Descriptor) -> Result<Held, Error> {
    Ok(Held { digest: digest_of(name, descriptor)?, size: descriptor.size() })
}

fn check_size(name: &str, descriptor: &Descriptor, actual: u64) -> Result<(), Error> {
    let expected = descriptor.size();
    if expected == actual {
        return Ok(());
    }
    let (name, more) = (name.to_owned(), actual > expected);
    Err(Error::Base(crate::base::Error::SizeMismatch { name, expected, actual, more }))
}

/// Layers are archives that lie in this registry.
fn check_layer(name: &str, layer: &Descriptor) -> Result<(), Error> {
    let known = match layer.media_type() {
        MediaType::ImageLayer | MediaType::ImageLayerGzip | MediaType::ImageLayerZstd => true,
        other => other.to_string() == "application/vnd.docker.image.rootfs.diff.tar.gzip",
    };
    if known {
        return Ok(());
    }
    Err(wrong(
        name,
        format!("a layer is of the type {}, which is not read here", layer.media_type()),
    ))
}

fn wrong(name: &str, problem: String) -> Error {
    Error::Document { name: name.to_owned(), problem }
}

fn unfit(name: &str, problem: String) -> Error {
    Error::Unfit { name: name.to_owned(), problem }
}

fn other_platform(name: &str, arch: Arch, actual: Vec<String>) -> Error {
    Error::Platform { name: name.to_owned(), expected: platform_of(arch), actual }
}
