//! What a name stands for before anything is pushed, at one request a name.

use oci_spec::image::{ImageIndex, Os};

use super::Error;
use super::document::{digest_of, fits, is_index, platform_name, read_index};
use crate::base::{Arch, Digest};
use crate::net::registry::{Document, Purpose, Repository};

/// What a name stands for.
pub(super) enum Standing {
    /// Of names of single images: the digest, where there is one.
    Image(Option<Digest>),
    /// Of names of indexes.
    Index(Option<Document>),
}

impl Standing {
    /// Looks at a name of an image for `arch`. Where names are of single images, one of an index with images for other
    /// platforms is refused: they would be lost.
    pub(super) fn look(
        name: &str,
        repository: &Repository,
        tag: &str,
        arch: Arch,
        index: bool,
    ) -> Result<Self, Error> {
        if index {
            return Ok(Self::Index(repository.by_tag(tag)?));
        }
        let Some(tagged) = repository.tagged(tag, Purpose::Push)? else {
            return Ok(Self::Image(None));
        };
        if is_index(&tagged.media_type)
            && let Some(document) = repository.by_tag(tag)?
            && let Some(index) = read_index(name, &document.bytes, &document.media_type)?
        {
            let lost = others(&index, arch);
            if !lost.is_empty() {
                return Err(Error::Others { name: name.to_owned(), lost });
            }
        }
        Ok(Self::Image(Some(tagged.digest)))
    }

    /// The digest of what the name stands for, where that is this image already.
    pub(super) fn held(
        &self,
        name: &str,
        arch: Arch,
        manifest: Digest,
    ) -> Result<Option<Digest>, Error> {
        match self {
            Self::Image(digest) => Ok(digest.filter(|digest| *digest == manifest)),
            Self::Index(None) => Ok(None),
            Self::Index(Some(document)) => {
                Ok(names(name, document, arch, manifest)?.then_some(document.digest))
            }
        }
    }
}

/// Whether an index names this image, and no other, for its platform.
fn names(name: &str, document: &Document, arch: Arch, manifest: Digest) -> Result<bool, Error> {
    let Some(index) = read_index(name, &document.bytes, &document.media_type)? else {
        return Ok(false);
    };
    let mut own = index.manifests().iter().filter(|entry| fits(entry.platform().as_ref(), arch));
    Ok(match (own.next(), own.next()) {
        (Some(entry), None) => digest_of(name, entry)? == manifest,
        _ => false,
    })
}

/// The platforms of an index besides this one. What is of no platform at all (`unknown/unknown`) speaks of the other entries.
fn others(index: &ImageIndex, arch: Arch) -> Vec<String> {
    let entries = index.manifests().iter().map(|entry| entry.platform().as_ref());
    let others = entries.filter(|platform| !fits(*platform, arch)).filter_map(|platform| {
        let Some(platform) = platform else {
            return Some("a platform that is not said".to_owned());
        };
        let unknown = matches!(platform.os(), Os::Other(name) if name == "unknown");
        (!unknown).then(|| platform_name(platform.os(), platform.architecture()))
    });
    others.collect()
}
