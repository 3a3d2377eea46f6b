//! Manifests and indexes: small documents by tag or digest.

use reqwest::header::{self, HeaderMap};
use reqwest::{Method, StatusCode};

use super::super::body::Payload;
use super::super::transfer::Failure;
use super::super::{Address, Error};
use super::repository::{Ask, Purpose, Repository, headers};
use crate::base::Digest;

/// What the distribution specification asks registries to take at least, and what is read here at most.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Everything that a name may stand for. Without this list registries answer in forms of ten years ago.
const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A manifest or an index, as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The bytes, which have `digest`.
    pub bytes: Vec<u8>,
    /// Of the bytes.
    pub digest: Digest,
    /// What the registry says that it is: lower-case, without parameters.
    pub media_type: String,
}

/// A manifest or an index, as far as a registry tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged {
    /// Its digest.
    pub digest: Digest,
    /// What it is: lower-case, without parameters.
    pub media_type: String,
}

impl Repository {
    /// What a tag stands for, as the registry says it without sending it, or where it does not, by the document itself; `None`
    /// where there is no such tag.
    pub fn tagged(&self, tag: &str, purpose: Purpose) -> Result<Option<Tagged>, Error> {
        let path = format!("manifests/{tag}");
        let found = self.head(&self.address(&path)?, &[(header::ACCEPT, ACCEPT)], purpose)?;
        let Some(lines) = found else { return Ok(None) };
        if let Some(digest) = told_digest(&lines) {
            return Ok(Some(Tagged { digest, media_type: media_type(&lines) }));
        }
        let document = self.document(&path, None, purpose)?;
        Ok(document.map(|Document { digest, media_type, .. }| Tagged { digest, media_type }))
    }

    /// What a tag stands for; `None` where there is no such tag.
    pub fn by_tag(&self, tag: &str) -> Result<Option<Document>, Error> {
        self.document(&format!("manifests/{tag}"), None, Purpose::Pull)
    }

    /// The document with this digest; `None` where it is not there.
    pub fn by_digest(&self, digest: &Digest) -> Result<Option<Document>, Error> {
        self.document(&format!("manifests/{digest}"), Some(*digest), Purpose::Pull)
    }

    /// The index of what refers to a document: from the registry's own interface, or where it has none from the tag that stands
    /// in for it (distribution specification, "Referrers Tag Schema"). `None` where nothing refers to it.
    pub fn referrers(&self, digest: &Digest) -> Result<Option<Document>, Error> {
        match self.document(&format!("referrers/{digest}"), None, Purpose::Pull)? {
            Some(found) if found.media_type == INDEX => Ok(Some(found)),
            // A registry without the interface may answer anything.
            _ => self.by_tag(&referrers_tag(digest)),
        }
    }

    fn document(
        &self,
        path: &str,
        promised: Option<Digest>,
        purpose: Purpose,
    ) -> Result<Option<Document>, Error> {
        let address = self.address(path)?;
        let scopes = self.scopes(purpose);
        self.persist(&address, async || {
            let ask = Ask {
                method: Method::GET,
                address: &address,
                headers: headers(&[(header::ACCEPT, ACCEPT)]),
                body: Payload::None,
                scopes: &scopes,
            };
            let (response, from) = self.ask(ask).await?;
            match response.status() {
                StatusCode::OK => {}
                StatusCode::NOT_FOUND => return Ok(None),
                _ => return Err(self.objection((response, from)).await),
            }
            let too_large = || Error::TooLarge { address: from.clone(), limit: LARGEST };
            if response.content_length().is_some_and(|length| length > LARGEST) {
                return Err(too_large().into());
            }
            let media_type = media_type(response.headers());
            let told = told_digest(response.headers());
            let mut bytes = Vec::new();
            let means = self.client.means();
            means
                .transport
                .read(&from, response, means.cancel, |piece| {
                    if (bytes.len() + piece.len()) as u64 > LARGEST {
                        return Err(too_large().into());
                    }
                    bytes.extend_from_slice(piece);
                    Ok(())
                })
                .await?;
            let digest = Digest::of(&bytes);
            // Asked for by tag, the registry's own word is the only promise.
            if let Some(expected) = promised.or(told)
                && expected != digest
            {
                let name = from.to_string();
                return Err(Error::Base(crate::base::Error::DigestMismatch {
                    name,
                    expected,
                    actual: digest,
                })
                .into());
            }
            if serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err() {
                // A sign-in page of a hotel or a company proxy, mostly.
                let reason = format!(
                    "the answer is {media_type:?} and no JSON, where a manifest was expected"
                );
                return Err(Error::NoRegistry { address: from, reason }.into());
            }
            Ok(Some(Document { bytes, digest, media_type }))
        })
    }

    /// Writes a manifest or an index under a tag, or without one under its digest. What it names must be there already. Says
    /// whether the registry took note of the document's subject.
    pub fn put_document(&self, document: &Document, tag: Option<&str>) -> Result<bool, Error> {
        let name = tag.map_or_else(|| document.digest.to_string(), str::to_owned);
        let address = self.address(&format!("manifests/{name}"))?;
        let scopes = self.to_push(None);
        self.persist(&address, async || {
            let ask = Ask {
                method: Method::PUT,
                address: &address,
                headers: headers(&[(header::CONTENT_TYPE, &document.media_type)]),
                body: Payload::Bytes(document.bytes.clone().into()),
                scopes: &scopes,
            };
            let answer = self.ask(ask).await?;
            if answer.0.status() != StatusCode::CREATED {
                return Err(self.objection(answer).await);
            }
            match told_digest(answer.0.headers()) {
                Some(actual) if actual != document.digest => {
                    Err(stored_otherwise(&answer.1, document, actual))
                }
                _ => Ok(answer.0.headers().contains_key("oci-subject")),
            }
        })
    }
}

fn stored_otherwise(address: &Address, document: &Document, actual: Digest) -> Failure {
    let name = address.to_string();
    Error::Base(crate::base::Error::DigestMismatch { name, expected: document.digest, actual })
        .into()
}

/// The tag that stands in for the referrers of a document.
pub fn referrers_tag(digest: &Digest) -> String {
    format!("sha256-{}", digest.hex())
}

fn told_digest(headers: &HeaderMap) -> Option<Digest> {
    let text = headers.get("docker-content-digest")?.to_str().ok()?;
    Digest::from_hex(text.trim().strip_prefix("sha256:")?).ok()
}

pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_lowercase()
}
