//! A file that refers to an image: an artifact whose manifest has the image as its subject.
//!
//! (OCI image specification 1.1, "Guidelines for Artifact Usage"; distribution specification 1.1, "Listing Referrers".)

use serde_json::{Value, json};

use super::Error;
use super::document::{digest_of, read_index};
use crate::base::{Digest, Store, canon};
use crate::image::oci::ImageDigests;
use crate::net::registry::{Document, Repository, referrers_tag};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// The specification's config of what has none.
const NOTHING: &[u8] = b"{}";

/// A file to attach.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// What it is.
    pub media_type: String,
    /// Its name, for those who take it out again.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// Attaches a file to an image that is in the repository, unless it is attached already; says whether it was not.
pub(super) fn attach(
    store: &Store,
    repository: &Repository,
    image: &ImageDigests,
    attachment: &Attachment,
) -> Result<bool, Error> {
    let file = store.put_blob(&attachment.bytes)?;
    let nothing = store.put_blob(NOTHING)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": attachment.media_type,
        "config": descriptor(EMPTY, &nothing, NOTHING.len()),
        "layers": [{
            "mediaType": attachment.media_type,
            "digest": file.to_string(),
            "size": attachment.bytes.len(),
            "annotations": { "org.opencontainers.image.title": attachment.name },
        }],
        "subject": { "mediaType": MANIFEST, "digest": image.manifest.to_string(), "size": image.manifest_size },
    });
    let bytes = canon::to_vec(&manifest)?;
    let document = Document { digest: Digest::of(&bytes), bytes, media_type: MANIFEST.to_owned() };
    let known = repository.referrers(&image.manifest)?;
    let name = format!("{}@{}", repository.name(), image.manifest);
    let mut entries: Vec<Value> = Vec::new();
    if let Some(known) = &known {
        let index = read_index(&name, &known.bytes, &known.media_type)?.ok_or_else(|| {
            Error::Document { name: name.clone(), problem: "its referrers are no index".to_owned() }
        })?;
        for entry in index.manifests() {
            if digest_of(&name, entry)? == document.digest {
                return Ok(false);
            }
        }
        let value: Value = serde_json::from_slice(&known.bytes)
            .map_err(|error| Error::Document { name, problem: error.to_string() })?;
        entries.extend(value["manifests"].as_array().into_iter().flatten().cloned());
    }
    for (digest, size) in [(file, attachment.bytes.len()), (nothing, NOTHING.len())] {
        if !repository.has_blob(&digest)? {
            repository.upload(&digest, size as u64, &store.blob_path(&digest), None, &|_| {})?;
        }
    }
    if repository.put_document(&document, None)? {
        return Ok(true);
    }
    // The registry does not keep referrers itself: the tag that stands in for them is ours to write.
    let mut own = descriptor(MANIFEST, &document.digest, document.bytes.len());
    own["artifactType"] = attachment.media_type.clone().into();
    entries.push(own);
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries });
    let bytes = canon::to_vec(&index)?;
    let index = Document { digest: Digest::of(&bytes), bytes, media_type: INDEX.to_owned() };
    repository.put_document(&index, Some(&referrers_tag(&image.manifest)))?;
    Ok(true)
}

fn descriptor(media_type: &str, digest: &Digest, size: usize) -> Value {
    json!({ "mediaType": media_type, "digest": digest.to_string(), "size": size })
}
