//! The manifest's values, and its text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::base::{Arch, Digest, canon};
use crate::image::{Blob, Image, ImageDigests, Layer};
use crate::results::Outcome;
use crate::runtime::{Gap, Network};
use crate::spec::Parser;
use crate::verify::{Lists, LogRef, PatchRef, Phase, Policy, Profile, RunRecord, Verdict};

/// The version that is written.
pub const MANIFEST_VERSION: u64 = 2;

/// An evaluation manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u64,
    /// The digests of the three parts: of their canonical JSON.
    pub digests: Digests,
    /// What is reproducible.
    pub subject: Subject,
    /// Runs, logs, verdicts, compressed layers.
    pub evidence: Evidence,
    /// What ran it.
    pub host: Host,
}

/// One digest a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Digests {
    /// Of [`Manifest::subject`].
    pub subject: Digest,
    /// Of [`Manifest::evidence`].
    pub evidence: Digest,
    /// Of [`Manifest::host`].
    pub host: Digest,
}

/// What another machine must meet: from the split to the rules of the verdict. No tool version, time or host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Subject {
    /// The split.
    pub split: SplitEntry,
    /// For which processor.
    pub platform: Arch,
    /// The network that runs see.
    pub network: Network,
    /// Digest of the source of the runner that reports tests.
    pub runner: Digest,
    /// The version of the rules that judge.
    pub rules: u64,
    /// What an admission asks for.
    pub policy: Policy,
    /// Base images by name.
    pub bases: BTreeMap<String, BaseEntry>,
    /// Environments by the name of their spec.
    pub environments: BTreeMap<String, EnvironmentEntry>,
    /// Instances by id.
    pub instances: BTreeMap<String, InstanceEntry>,
}

/// A split by name and content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SplitEntry {
    /// Its name.
    pub name: String,
    /// Digest of its canonical rows, which are a blob.
    pub hash: Digest,
}

/// A file of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BundleFile {
    /// File name.
    pub name: String,
    /// Digest.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
}

/// An image: what it is, and the digest of its config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImageEntry {
    /// Key, layers by diff ID, config, date.
    pub image: Image,
    /// Digest of the OCI config.
    pub config: Digest,
}

/// A base image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BaseEntry {
    /// Digest of its lock's canonical values, which are a blob.
    pub lock: Digest,
    /// The files that it was made from.
    pub files: Vec<BundleFile>,
    /// What runs on it use besides its image: mounted, never installed.
    pub tools: Vec<BundleFile>,
    /// The image.
    pub image: ImageEntry,
}

/// An environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EnvironmentEntry {
    /// The checked spec, with its commands, limits and parser.
    pub spec: serde_json::Value,
    /// Digest of the parts of the spec that the environment is made from.
    pub env_hash: Digest,
    /// Digest of the parts of the spec that say how tests run and are read.
    pub run_hash: Digest,
    /// Who reads the results.
    pub parser: Parser,
    /// Name of the base image.
    pub base: String,
    /// Digest of its lock's canonical values, which are a blob.
    pub lock: Digest,
    /// The files that it was made from, besides the base's.
    pub files: Vec<BundleFile>,
    /// The image.
    pub image: ImageEntry,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InstanceEntry {
    /// Name of its environment.
    pub environment: String,
    /// The files that its source was made from.
    pub files: Vec<BundleFile>,
    /// The patches, in the order of application.
    pub patches: Vec<PatchRef>,
    /// The tests that are expected.
    pub lists: Lists,
    /// The image.
    pub image: ImageEntry,
}

/// What backs the verdicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Evidence {
    /// OCI documents and compressed layers by image key.
    pub images: BTreeMap<Digest, ImageDigests>,
    /// The compressed layers that runs laid over images.
    pub run_layers: Vec<LayerBlob>,
    /// Runs and verdict by instance id.
    pub instances: BTreeMap<String, InstanceEvidence>,
}

/// A layer and its compressed form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LayerBlob {
    /// The layer.
    pub layer: Layer,
    /// Its blob.
    pub blob: Blob,
}

/// The runs of an instance, and what they say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InstanceEvidence {
    /// Every run, by phase and repeat.
    pub runs: Vec<RunEntry>,
    /// The verdict.
    pub verdict: Verdict,
}

/// A run by its digests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunEntry {
    /// The run's key.
    pub key: Digest,
    /// Which patches.
    pub phase: Phase,
    /// Which verification it belongs to; empty for the first.
    pub series: String,
    /// Number in its phase and profile, from 0.
    pub repeat: u32,
    /// Whether nothing else ran on the machine.
    pub alone: bool,
    /// Conditions.
    pub profile: Profile,
    /// How it ended, in one word.
    pub outcome: String,
    /// Digest of the outcome per test id: what another machine's run is compared with.
    pub outcomes: Digest,
    /// Digest of the record.
    pub record: Digest,
    /// Standard output.
    pub stdout: LogRef,
    /// Standard error.
    pub stderr: LogRef,
    /// The runner's stream.
    pub report: LogRef,
}

/// What ran it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Host {
    /// Version of hallmark.
    pub hallmark: String,
    /// The processor.
    pub arch: Arch,
    /// How many runs were made at once, at most.
    pub slots: u32,
    /// What the host could not give to some run.
    pub gaps: Vec<Gap>,
    /// What made the containers, where it was not the embedded runtime alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<String>,
}

/// Digest of a run's outcome per test id.
pub(crate) fn outcomes_digest(record: &RunRecord) -> Result<Digest, crate::base::Error> {
    let outcomes: BTreeMap<&str, Outcome> =
        record.tests.iter().map(|(id, result)| (id.as_str(), result.outcome)).collect();
    canon::digest(&outcomes)
}

impl Digests {
    /// The digests of three parts.
    pub(crate) fn of(
        subject: &Subject,
        evidence: &Evidence,
        host: &Host,
    ) -> Result<Self, crate::base::Error> {
        Ok(Self {
            subject: canon::digest(subject)?,
            evidence: canon::digest(evidence)?,
            host: canon::digest(host)?,
        })
    }
}

/// The manifest's text: canonical JSON and a newline.
pub fn write(manifest: &Manifest) -> Result<Vec<u8>, Error> {
    let mut bytes = canon::to_vec(manifest)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads a manifest; `name` is for errors.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Manifest, Error> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    let malformed = |source| Error::Malformed { name: name.to_owned(), source };
    let Versioned { version } = serde_json::from_slice(bytes).map_err(malformed)?;
    let (expected, actual) = (MANIFEST_VERSION, version);
    if actual > expected {
        return Err(Error::Newer { name: name.to_owned(), expected, actual });
    }
    if actual < expected {
        return Err(Error::Older { name: name.to_owned(), expected, actual });
    }
    serde_json::from_slice(bytes).map_err(malformed)
}
