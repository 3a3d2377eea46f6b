//! Manifests, indexes and configs as others write them.

use oci_spec::image::{Arch as OciArch, Descriptor, ImageIndex, Os, Platform};
use serde::de::DeserializeOwned;

use super::Error;
use crate::base::{Arch, Digest};

/// Media types of indexes: OCI's and Docker's.
const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// Media types of manifests: OCI's and Docker's.
const MANIFESTS: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// The index that a document is, or nothing where it is a manifest; its own word counts more than the registry's. What may be
/// taken for either is refused (CVE-2021-41190): another program could see another image in it.
pub(super) fn read_index(
    name: &str,
    bytes: &[u8],
    told: &str,
) -> Result<Option<ImageIndex>, Error> {
    let value: serde_json::Value = parse(name, bytes)?;
    if value.get("schemaVersion") != Some(&serde_json::Value::from(2)) {
        let problem = "it is not of schema version 2".to_owned();
        return Err(Error::Document { name: name.to_owned(), problem });
    }
    let own = value.get("mediaType").and_then(serde_json::Value::as_str);
    let has_manifests = value.get("manifests").is_some();
    let has_layers =
        ["config", "layers", "fsLayers"].iter().any(|field| value.get(field).is_some());
    if has_manifests && (has_layers || own.is_some_and(|own| MANIFESTS.contains(&own)))
        || has_layers && own.is_some_and(is_index)
    {
        let problem = "it is a manifest and an index at once".to_owned();
        return Err(Error::Document { name: name.to_owned(), problem });
    }
    let is_index = is_index(own.unwrap_or(told)) || has_manifests;
    is_index.then(|| parse(name, bytes)).transpose()
}

/// Whether a media type is one of indexes.
pub(super) fn is_index(media_type: &str) -> bool {
    INDEXES.contains(&media_type)
}

pub(super) fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::Document { name: name.to_owned(), problem: error.to_string() })
}

/// The digest of a descriptor, which must be of the one algorithm that is known here.
pub(super) fn digest_of(name: &str, descriptor: &Descriptor) -> Result<Digest, Error> {
    let text = descriptor.digest().to_string();
    text.strip_prefix("sha256:").and_then(|hex| Digest::from_hex(hex).ok()).ok_or_else(|| {
        Error::Document {
            name: name.to_owned(),
            problem: format!("its digest {text} is not sha256"),
        }
    })
}

/// `linux/amd64`.
pub(super) fn platform_name(os: &Os, architecture: &OciArch) -> String {
    format!("{os}/{architecture}")
}

/// The platform of a processor.
pub(super) fn platform_of(arch: Arch) -> String {
    format!("linux/{}", arch.oci())
}

/// Whether an entry of an index is for this processor.
pub(super) fn fits(platform: Option<&Platform>, arch: Arch) -> bool {
    platform.is_some_and(|platform| {
        platform_name(platform.os(), platform.architecture()) == platform_of(arch)
    })
}
