//! The record that others reproduce or audit: every file that influenced a verdict, by digest.
//!
//! A manifest has three parts, each with its own digest (DESIGN.md section 10): `subject`, what is
//! reproducible, from the split to the rules of the verdict; `evidence`, the runs with their logs, the verdicts and
//! how layers were compressed; `host`, what ran it. The JSON is canonical and names its version first in its schema,
//! `docs/schema/manifest.schema.json`.
//!
//! An audit needs the manifest and the store, and no network.

mod audit;
mod build;
mod error;
mod finding;
mod jobs;
mod model;
mod schema;

pub use audit::audit;
pub use build::{InstanceInput, ManifestInput, build};
pub use error::Error;
pub use finding::{AuditReport, Finding, Problem, Unchecked};
pub use model::{
    BaseEntry, BundleFile, Digests, EnvironmentEntry, Evidence, Host, ImageEntry, InstanceEntry,
    InstanceEvidence, LayerBlob, MANIFEST_VERSION, Manifest, RunEntry, SplitEntry, Subject, parse,
    write,
};
pub use schema::schema;
