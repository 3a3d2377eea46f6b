//! Container registries (OCI distribution specification 1.1): blobs and manifests, pulled and pushed.
//!
//! Our own client over the transport of this room, since none of the existing ones retries, obeys `Retry-After`, resumes an
//! upload, or reads the host's credentials (docs/decisions/0020-registry-client.md). Documents are bytes here; what they
//! mean is the business of `image`.

mod access;
mod blobs;
mod challenge;
mod credentials;
mod helper;
mod manifests;
mod reference;
mod repository;
mod settings;
mod support;
mod upload;

pub(super) use access::{Access, Means, Visit};
pub use manifests::{Document, Tagged, referrers_tag};
pub use reference::Reference;
pub use repository::{Purpose, Repository};
pub use settings::Registries;
pub use upload::{Mount, Uploaded};
